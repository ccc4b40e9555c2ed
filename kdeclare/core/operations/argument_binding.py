"""Convert the arguments of operations between frozen dataclasses in memory and JSON in files.

Only `bind_arguments` converts JSON from a file to arguments. The function is strict and rejects unknown
arguments, because an argument that this version of kdeclare does not know might change the operation's
effect.
"""

from collections.abc import Mapping, Sized
from typing import TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from kdeclare.core.jsontypes import JsonValue, dump_json
from kdeclare.core.operations.operation import Arguments, Operation, UnboundArguments
from kdeclare.core.provider.registry import OPERATION_TYPES


def _is_none(value: object) -> bool:
    return value is None


def _is_empty(value: Sized) -> bool:
    return not len(value)


def _is_false(value: object) -> bool:
    return value is False


OMIT_NONE = Field(exclude_if=_is_none)
"""Annotates a field whose default is None. Files omit the field when it is None."""

OMIT_EMPTY = Field(exclude_if=_is_empty)
"""Annotates a field whose default is empty. Files omit the field when it is empty."""

OMIT_FALSE = Field(exclude_if=_is_false)
"""Annotates a field whose default is False. Files omit the field when it is False."""

_Wanted = TypeVar("_Wanted", bound=Arguments)


def get_arguments(op: Operation, arguments_type: type[_Wanted]) -> _Wanted:
    """Return the arguments of ``op``. Raises TypeError if the arguments have a different class."""
    if not isinstance(op.args, arguments_type):
        raise TypeError(f"operation '{op.id}' has {type(op.args).__name__}, not {arguments_type.__name__}")
    return op.args


def bind_arguments(verb: str, json: Mapping[str, JsonValue]) -> Arguments:
    """Convert ``json`` to the arguments of an operation. verb: the name of the operation type.

    If the operation type is not installed or rejects the arguments, return `UnboundArguments`. The operation
    can then be displayed, but not executed.
    """
    if verb not in OPERATION_TYPES:
        return UnboundArguments(json, f"unknown operation type '{verb}'")
    try:
        # Parsed as JSON, because only then does pydantic's strict mode accept a list for a tuple.
        return get_adapter(OPERATION_TYPES[verb].arguments).validate_json(dump_json(json))
    except ValidationError as problem:
        return UnboundArguments(json, explain_mismatch(problem, "args"))


def explain_mismatch(problem: ValidationError, root_name: str = "") -> str:
    """Return the message of the first validation error, preceded by the error's location in the JSON.

    root_name: the name that a file uses for the JSON value.
    """
    first_error = problem.errors()[0]
    location = ".".join(str(step) for step in (root_name, *first_error["loc"]) if step != "")
    return f"{location}: {first_error['msg']}" if location else first_error["msg"]


def dump_arguments(args: Arguments) -> Mapping[str, JsonValue]:
    """Return the arguments in the form that files contain; the inverse of `bind_arguments`."""
    if isinstance(args, UnboundArguments):
        return args.json
    dumped: Mapping[str, JsonValue] = get_adapter(type(args)).dump_python(args, mode="json")
    return dumped


_adapters: dict[type[Arguments], TypeAdapter[Arguments]] = {}


def get_adapter(value_type: type[Arguments]) -> TypeAdapter[Arguments]:
    """Return the cached pydantic adapter for a class. Adapters are cached because building them is slow."""
    adapter = _adapters.get(value_type)
    if adapter is None:
        adapter = _adapters[value_type] = TypeAdapter(value_type)
    return adapter
