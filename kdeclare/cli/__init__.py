"""The command line: the entry point, and what commands share (options, output, confirmation, progress)."""
