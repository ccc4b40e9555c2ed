"""kdeclare's own commands, one module each: parse, call one use case, render, return the exit code.

The function `register` of a module adds its command to the application. Only the module of the requested
command is imported. The commands of a provider are in the package ``commands`` of that provider.
"""
