"""kdeclare's own commands, one module per command. The commands of a provider are in its own package.

A command parses its arguments, calls one use case, renders the result and returns the exit code. The function
`register` of a module adds the command to the application. Only the module of the requested command is
imported.
"""
