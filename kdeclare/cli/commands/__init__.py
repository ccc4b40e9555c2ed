"""kdeclare's own commands, one module each: parse, call one use case, render, return the exit code.

A module has `register`, which puts its command into the application; only the one that is typed is imported.
Commands of a provider are in its own sub-package ``commands``.
"""
