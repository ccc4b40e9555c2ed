"""What operations take: frozen dataclasses of their provider, in whose names and types files keep them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kdeclare.core.jsontypes import Json

if TYPE_CHECKING:
    from pydantic import ConfigDict


@dataclass(frozen=True, slots=True)
class Arguments:
    """The base of the arguments of an operation type, and of dataclasses within them.

    A frozen dataclass whose fields are plain values, tuples, mappings with texts as keys, and dataclasses of
    this base, `core.secrets.SecretRef` among them. Plan files hold it as a JSON object with the same names.
    """

    __pydantic_config__: ClassVar["ConfigDict"] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class UnboundArguments(Arguments):
    """The arguments of an operation that this kdeclare cannot run, as its file holds them.

    problem: why not, in words.
    """

    json: Mapping[str, Json]
    problem: str


@dataclass(frozen=True, slots=True)
class Inverse:
    """The operation that undoes another one, as far as that can be said before it has run.

    verb: its operation type.
    """

    verb: str
    args: Arguments
