"""The contract suite, as the author of the example runs it."""

from test_flags_contract import TestFlags

__all__ = ["TestFlags"]
