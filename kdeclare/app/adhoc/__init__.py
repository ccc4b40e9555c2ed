"""Use cases of ad hoc commands, which are commands of providers that change resources without a manifest."""
