"""The interactive shell: the prompt, completion, the history of typed lines, and scripts.

`kdeclare.cli.main` runs each line as a separate command line.
"""
