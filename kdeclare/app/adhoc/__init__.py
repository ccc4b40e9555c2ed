"""Use cases of ad hoc commands. With these commands, providers change resources without a manifest."""
