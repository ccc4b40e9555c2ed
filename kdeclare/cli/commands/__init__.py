"""kdeclare's own commands, one module per command. Providers keep their commands in their own packages.

A command parses its arguments, calls one use case, renders the result and returns the exit code. The function
`register` of a module adds the command to the application. Only the module of the requested command is
imported.
"""
