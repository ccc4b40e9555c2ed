"""The arguments of operations: frozen values of their provider in memory, JSON in files.

`bind_arguments` is the only place where JSON from a file becomes arguments. It is strict and closed: an
argument that this version does not know could mean something.
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


OMIT_NONE = Field(exclude_if=_is_none)
"""Annotates a field with the default None that files leave out where it is None."""

OMIT_EMPTY = Field(exclude_if=_is_empty)
"""Annotates a field with an empty default that files leave out where it is empty."""

_Wanted = TypeVar("_Wanted", bound=Arguments)


def get_arguments(op: Operation, arguments_type: type[_Wanted]) -> _Wanted:
    """Return the arguments of ``op``. Raises TypeError where they are of another class."""
    if not isinstance(op.args, arguments_type):
        raise TypeError(f"operation '{op.id}' has {type(op.args).__name__}, not {arguments_type.__name__}")
    return op.args


def bind_arguments(verb: str, json: Mapping[str, JsonValue]) -> Arguments:
    """Return the arguments that ``json`` holds for an operation of this type.

    `UnboundArguments` where the type is not installed or does not take them: such an operation can be shown.
    """
    if verb not in OPERATION_TYPES:
        return UnboundArguments(json, f"no verb '{verb}' is known")
    try:
        # as JSON, since only then strictness takes a list for a tuple
        return get_adapter(OPERATION_TYPES[verb].arguments).validate_json(dump_json(json))
    except ValidationError as problem:
        return UnboundArguments(json, explain_mismatch(problem, "args"))


def explain_mismatch(problem: ValidationError, root_name: str = "") -> str:
    """Return what is wrong first with JSON from a file, and where in it.

    root_name: what the file calls it.
    """
    first_error = problem.errors()[0]
    location = ".".join(str(step) for step in (root_name, *first_error["loc"]) if step != "")
    return f"{location}: {first_error['msg']}" if location else first_error["msg"]


def dump_arguments(args: Arguments) -> Mapping[str, JsonValue]:
    """Return the arguments as files hold them; the way back from `bind_arguments`."""
    if isinstance(args, UnboundArguments):
        return args.json
    dumped: Mapping[str, JsonValue] = get_adapter(type(args)).dump_python(args, mode="json")
    return dumped


_adapters: dict[type[Arguments], TypeAdapter[Arguments]] = {}


def get_adapter(value_type: type[Arguments]) -> TypeAdapter[Arguments]:
    """Return what reads and writes values of a class; making it takes milliseconds, so each is kept."""
    adapter = _adapters.get(value_type)
    if adapter is None:
        adapter = _adapters[value_type] = TypeAdapter(value_type)
    return adapter
