"""The verbs of operations: one file a subject, all of them in `registry.VERBS`."""
