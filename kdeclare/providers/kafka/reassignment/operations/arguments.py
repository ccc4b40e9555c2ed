"""The arguments of operations that move replicas."""

from collections.abc import Collection, Mapping
from typing import Annotated, Literal

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.argument_binding import OMIT_NONE
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.providers.kafka.operations.arguments import PartitionName, PartitionsArgs
from kdeclare.providers.kafka.port import BrokerId
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import ThrottleValue
from kdeclare.providers.kafka.reassignment.throttles import ALL_RATE_KEYS, REPLICAS_KEYS

ReplicaName = Annotated[str, Field(pattern=r"^.+-(0|[1-9][0-9]*)@(0|[1-9][0-9]*)$")]
_ThrottledEntity = Annotated[str, Field(pattern=r"^(TOPIC/.+|BROKER/.*)$")]
_ThrottleKey = Literal[*REPLICAS_KEYS, *ALL_RATE_KEYS]  # type: ignore[valid-type]


@dataclass(frozen=True, slots=True)
class ReassignArgs(PartitionsArgs):
    """Partitions, each with the replicas that it is to have.

    client_guard: the broker cannot guard the replication factor (KIP-860); kdeclare's own check has to do.
    pace: how to go about it; undoing it goes about it in the same way. pause_s: how long to wait once it
        could begin. group: the name of the moves that share the pace.
    """

    allow_replication_factor_change: bool
    client_guard: Annotated[bool | None, OMIT_NONE] = None
    pace: Annotated[Pace | None, OMIT_NONE] = None
    pause_s: Annotated[float | int | None, OMIT_NONE] = None
    group: Annotated[str | None, OMIT_NONE] = None


@dataclass(frozen=True, slots=True)
class MovesArgs(PartitionsArgs):
    """Partitions that are being moved: where they are heading, or what is left once they are cancelled."""

    pace: Annotated[Pace | None, OMIT_NONE] = None


@dataclass(frozen=True, slots=True)
class ElectArgs(Arguments):
    """partitions: the preferred leader by partition."""

    partitions: Mapping[PartitionName, BrokerId]
    pace: Annotated[Pace | None, OMIT_NONE] = None


@dataclass(frozen=True, slots=True)
class RelocateArgs(Arguments):
    """replicas: the path of the log directory by replica (``<topic>-<n>@<broker>``)."""

    replicas: Mapping[ReplicaName, str]


@dataclass(frozen=True, slots=True)
class ThrottleArgs(Arguments):
    """Throttles to be set or taken away; see `providers.kafka.reassignment.leftovers.Entries`.

    partitions: for whose moves they are. relies_on: rates by entity and key that are there and have to hold.
    """

    entries: Mapping[_ThrottledEntity, Mapping[_ThrottleKey, ThrottleValue]]
    partitions: tuple[PartitionName, ...]
    pace: Annotated[Pace | None, OMIT_NONE] = None
    relies_on: Annotated[Mapping[_ThrottledEntity, Mapping[_ThrottleKey, str]] | None, OMIT_NONE] = None


def list_partitions(op: Operation) -> Collection[str]:
    """Return the partitions (``<topic>-<n>``) that an operation is about; none where it is about others."""
    if isinstance(op.args, PartitionsArgs | ElectArgs):
        return op.args.partitions.keys()
    return op.args.partitions if isinstance(op.args, ThrottleArgs) else ()


def get_pace(op: Operation) -> Pace:
    """Return how an operation is to go about its work; nothing is said where it has no pace."""
    if isinstance(op.args, ReassignArgs | MovesArgs | ElectArgs | ThrottleArgs):
        return op.args.pace or Pace()
    return Pace()


def find_group(op: Operation) -> str | None:
    """Return the name of the moves that an operation shares its pace with; None where it has its own."""
    return op.args.group if isinstance(op.args, ReassignArgs) else None
