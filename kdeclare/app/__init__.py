"""The use cases of kdeclare, with one function per use case.

Only this package decides which implementation of an interface is used.
"""
