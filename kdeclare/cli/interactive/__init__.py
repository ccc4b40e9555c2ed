"""The interactive shell: a prompt, completion, a history of lines, and scripts.

`kdeclare.cli.main` runs each line like a command line of its own.
"""
