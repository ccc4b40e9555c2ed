"""JSON that tests can index freely: a missing key fails the test."""

from typing import Any, TypeAlias

from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.operations.operation import Operation

Json: TypeAlias = Any
"""A parsed document, or a part of one."""


def untyped(value: object) -> Json:
    """Return a value as JSON that can be indexed."""
    return value


def dump_args(op: Operation) -> Json:
    """Return the arguments of an operation as files hold them."""
    return dump_arguments(op.args)
