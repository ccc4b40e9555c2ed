"""The command line: one file a command group; parse, call one use-case, render, exit code."""
