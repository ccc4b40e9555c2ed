"""Use cases of ad hoc commands, with which providers change resources without a manifest."""
