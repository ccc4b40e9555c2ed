"""Use cases for ad hoc commands, which change resources without a manifest."""
