"""Topics and dynamic configs in fleets: their JSON, facts about them, and audit rules."""
