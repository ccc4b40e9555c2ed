"""The command line: the entry point, and the options, output, prompts and progress bars of the commands."""
