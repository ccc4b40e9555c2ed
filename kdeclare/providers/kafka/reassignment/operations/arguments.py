"""The types of the arguments of operations that move replicas in a plan file."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.core.jsontypes import Json
from kdeclare.core.operation_arguments import CLOSED
from kdeclare.providers.kafka.operations.arguments import BrokerId, Replicas
from kdeclare.providers.kafka.reassignment.throttles import ALL_RATES, LISTS

PartitionName = Annotated[str, Field(pattern=r"^.+-(0|[1-9][0-9]*)$")]
ReplicaName = Annotated[str, Field(pattern=r"^.+-(0|[1-9][0-9]*)@(0|[1-9][0-9]*)$")]
_Throttled = Annotated[str, Field(pattern=r"^(TOPIC/.+|BROKER/.*)$")]
_Keys = dict[Literal[*LISTS, *ALL_RATES], Json]  # type: ignore[valid-type]


@with_config(CLOSED)
class ReassignArgs(TypedDict):
    partitions: dict[PartitionName, Replicas]
    allow_replication_factor_change: bool
    client_guard: NotRequired[bool]
    pace: NotRequired[Json]
    pause_s: NotRequired[float | int]
    group: NotRequired[str]


@with_config(CLOSED)
class MovesArgs(TypedDict):
    partitions: dict[PartitionName, Replicas]
    pace: NotRequired[Json]


@with_config(CLOSED)
class ElectArgs(TypedDict):
    partitions: dict[PartitionName, BrokerId]
    pace: NotRequired[Json]


@with_config(CLOSED)
class RelocateArgs(TypedDict):
    replicas: dict[ReplicaName, str]


@with_config(CLOSED)
class ThrottleArgs(TypedDict):
    entries: dict[_Throttled, _Keys]
    partitions: list[PartitionName]
    pace: NotRequired[Json]
    relies_on: NotRequired[dict[_Throttled, _Keys]]
