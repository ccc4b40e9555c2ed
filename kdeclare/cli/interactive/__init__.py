"""The interactive shell: a prompt, completion, a history of lines, and scripts.

`kdeclare.cli.main` runs each line as a separate command line.
"""
