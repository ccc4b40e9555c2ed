"""The types of each verb's arguments: what an operation of a plan file must have to be believed.

Strict and closed: an argument that this version does not know could mean something.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from kdeclare.kinds.throttles import ALL_RATES, LISTS
from kdeclare.model.jsontypes import Json

CLOSED = ConfigDict(extra="forbid", strict=True)

_Count = Annotated[int, Field(ge=1)]
_Broker = Annotated[int, Field(ge=0)]
_Replicas = Annotated[list[_Broker], Field(min_length=1)]
_Partition = Annotated[str, Field(pattern=r"^.+-(0|[1-9][0-9]*)$")]
_Replica = Annotated[str, Field(pattern=r"^.+-(0|[1-9][0-9]*)@(0|[1-9][0-9]*)$")]
_Rate = Annotated[str, Field(pattern=r"^[0-9]+$")]
_Throttled = Annotated[str, Field(pattern=r"^(TOPIC/.+|BROKER/.*)$")]


@with_config(CLOSED)
class _SecretRef(TypedDict):
    """A secret: its hash, and the reference that resolves to it (null for a literal)."""

    secret: str
    reference: str | None


_Value = str | list[str] | _SecretRef | None


@with_config(CLOSED)
class _CreateTopic(TypedDict):
    topic: str
    partitions: _Count | None
    replication_factor: _Count | None
    assignments: dict[Annotated[str, Field(pattern=r"^[0-9]+$")], _Replicas] | None
    configs: dict[str, str | list[str]]


@with_config(CLOSED)
class _DeleteTopic(TypedDict):
    topic: str
    topic_id: NotRequired[str | None]
    require_empty: NotRequired[bool]
    recreate: NotRequired[_CreateTopic | None]


@with_config(CLOSED)
class _IncreasePartitions(TypedDict):
    topic: str
    total: _Count
    assignments: list[_Replicas] | None


@with_config(CLOSED)
class _ConfigOp(TypedDict):
    key: str
    op: Literal["SET", "DELETE", "APPEND", "SUBTRACT"]
    value: _Value
    was: NotRequired[_SecretRef]


@with_config(CLOSED)
class _AlterConfigs(TypedDict):
    entity_type: Literal["TOPIC", "BROKER"]
    entity_name: str
    ops: Annotated[list[_ConfigOp], Field(min_length=1)]


@with_config(CLOSED)
class _Reassign(TypedDict):
    partitions: dict[_Partition, _Replicas]
    allow_replication_factor_change: bool
    client_guard: NotRequired[bool]
    pace: NotRequired[Json]
    pause_s: NotRequired[float | int]
    group: NotRequired[str]


@with_config(CLOSED)
class _Moves(TypedDict):
    partitions: dict[_Partition, _Replicas]
    pace: NotRequired[Json]


@with_config(CLOSED)
class _Elect(TypedDict):
    partitions: dict[_Partition, _Broker]
    pace: NotRequired[Json]


@with_config(CLOSED)
class _Relocate(TypedDict):
    replicas: dict[_Replica, str]


@with_config(CLOSED)
class _Elements(TypedDict):
    elements: list[str]
    fresh: bool


_Keys = dict[Literal[*LISTS, *ALL_RATES], Json]  # type: ignore[valid-type]


@with_config(CLOSED)
class _Throttle(TypedDict):
    entries: dict[_Throttled, _Keys]
    partitions: list[_Partition]
    pace: NotRequired[Json]
    relies_on: NotRequired[dict[_Throttled, _Keys]]


@with_config(CLOSED)
class _Workers(TypedDict):
    urls: Annotated[list[str], Field(min_length=1)]
    ca_file: NotRequired[str]
    cert_file: NotRequired[str]
    key_file: NotRequired[str]
    headers: NotRequired[list[list[str]]]


@with_config(CLOSED)
class _PatchWorkers(TypedDict):
    workers: _Workers
    ops: list[_ConfigOp]
    again: NotRequired[list[str]]


_TYPES: Mapping[str, Any] = {
    "topic.create": _CreateTopic,
    "topic.delete": _DeleteTopic,
    "partitions.increase": _IncreasePartitions,
    "configs.alter": _AlterConfigs,
    "partitions.reassign": _Reassign,
    "moves.await": _Moves,
    "moves.cancel": _Moves,
    "replicas.relocate": _Relocate,
    "leaders.elect": _Elect,
    "throttle.set": _Throttle,
    "throttle.clear": _Throttle,
    "connect.worker-config.patch": _PatchWorkers,
}


@cache
def _adapter(verb: str) -> TypeAdapter[Any]:
    return TypeAdapter(_TYPES[verb])


def find_argument_error(verb: str, args: Json) -> str | None:
    """What is wrong with the arguments of an operation of this verb, in words; None where all is well."""
    if verb not in _TYPES:
        return f"no verb '{verb}' is known"
    try:
        _adapter(verb).validate_python(args)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        return f"args.{where}: {first['msg']}" if where else f"args: {first['msg']}"
    return None
