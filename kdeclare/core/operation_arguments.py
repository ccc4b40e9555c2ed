"""What the arguments of an operation in a plan file must be, for the file to be believed.

Strict and closed: an argument that this version does not know could mean something.
"""

from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from kdeclare.core.jsontypes import Json
from kdeclare.core.registry import OPERATION_TYPES

CLOSED = ConfigDict(extra="forbid", strict=True)


@with_config(CLOSED)
class SecretArgument(TypedDict):
    """A secret: its hash, and the reference that resolves to it (null for a literal)."""

    secret: str
    reference: str | None


def find_argument_error(verb: str, args: Json) -> str | None:
    """What is wrong with the arguments of an operation of this verb, in words; None where all is well."""
    if verb not in OPERATION_TYPES:
        return f"no verb '{verb}' is known"
    try:
        _adapter(verb).validate_python(args)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        return f"args.{where}: {first['msg']}" if where else f"args: {first['msg']}"
    return None


@cache
def _adapter(verb: str) -> TypeAdapter[Any]:
    return TypeAdapter(OPERATION_TYPES[verb].arguments)
