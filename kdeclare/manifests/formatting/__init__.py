"""Format manifest files: the order of fields, the indentation and the blank lines."""
