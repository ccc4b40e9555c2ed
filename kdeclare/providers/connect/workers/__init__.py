"""What the kind, its verb and the commands know of Connect workers."""
