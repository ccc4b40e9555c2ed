"""What a shell adds to the command line: a prompt, completion, a history, scripts.

The lines themselves are run by `kdeclare.cli.main`, as if each stood on a command line of its own.
"""
