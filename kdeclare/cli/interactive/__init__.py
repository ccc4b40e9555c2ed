"""The interactive shell: the prompt, completion, the history of typed lines, and scripts.

`kdeclare.cli.main` runs each line in the same way as a command line of its own.
"""
