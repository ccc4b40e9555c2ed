"""The kind `Schema`: the latest version of a subject in a schema registry, and its compatibility level."""
