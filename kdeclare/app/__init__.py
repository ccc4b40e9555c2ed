"""The use cases of kdeclare, one function each. Only this package chooses implementations of interfaces."""
