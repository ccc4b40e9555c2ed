"""The arguments of operations that move replicas."""

from collections.abc import Collection, Mapping
from typing import Annotated, Literal

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.argument_binding import OMIT_NONE
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.providers.kafka.operations.arguments import PartitionName, PartitionsArgs
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import ThrottleValue
from kdeclare.providers.kafka.reassignment.throttles import ALL_RATE_KEYS, REPLICAS_KEYS
from kdeclare.providers.kafka.request_values import BrokerId

ReplicaName = Annotated[str, Field(pattern=r"^.+-(0|[1-9][0-9]*)@(0|[1-9][0-9]*)$")]
_ThrottledEntity = Annotated[str, Field(pattern=r"^(TOPIC/.+|BROKER/.*)$")]
_ThrottleKey = Literal[*REPLICAS_KEYS, *ALL_RATE_KEYS]  # type: ignore[valid-type]


@dataclass(frozen=True, slots=True)
class ReassignArgs(PartitionsArgs):
    """Partitions with their target replicas.

    client_guard: whether kdeclare checks the replication factor itself, because the brokers cannot (KIP-860).
    pace: the pace of the moves, and of the moves that undo them.
    pause_s: the seconds to wait after all dependencies have finished, before the first request.
    group: the name of the group of moves that share the pace.
    """

    allow_replication_factor_change: bool
    client_guard: Annotated[bool | None, OMIT_NONE] = None
    pace: Annotated[Pace | None, OMIT_NONE] = None
    pause_s: Annotated[float | int | None, OMIT_NONE] = None
    group: Annotated[str | None, OMIT_NONE] = None


@dataclass(frozen=True, slots=True)
class MovesArgs(PartitionsArgs):
    """Partitions with a move in flight.

    partitions: the target of each partition's move. If the operation cancels the moves: the replicas after
        the cancellation.
    """

    pace: Annotated[Pace | None, OMIT_NONE] = None


@dataclass(frozen=True, slots=True)
class ElectArgs(Arguments):
    """Preferred leaders to elect. partitions: the preferred leader by partition."""

    partitions: Mapping[PartitionName, BrokerId]
    pace: Annotated[Pace | None, OMIT_NONE] = None


@dataclass(frozen=True, slots=True)
class RelocateArgs(Arguments):
    """Target log directories. replicas: the target path of each replica (``<topic>-<n>@<broker>``)."""

    replicas: Mapping[ReplicaName, str]


@dataclass(frozen=True, slots=True)
class ThrottleArgs(Arguments):
    """Throttles to set or clear; see `providers.kafka.reassignment.pending_move_cleanup.ThrottleEntries`.

    partitions: the partitions whose moves are throttled. relies_on: the existing rates that must not change
    during the moves, by entity and key.
    """

    entries: Mapping[_ThrottledEntity, Mapping[_ThrottleKey, ThrottleValue]]
    partitions: tuple[PartitionName, ...]
    pace: Annotated[Pace | None, OMIT_NONE] = None
    relies_on: Annotated[Mapping[_ThrottledEntity, Mapping[_ThrottleKey, str]] | None, OMIT_NONE] = None


def list_partitions(op: Operation) -> Collection[str]:
    """Return the partitions (``<topic>-<n>``) in the arguments of an operation; empty if there are none."""
    if isinstance(op.args, PartitionsArgs | ElectArgs):
        return op.args.partitions.keys()
    return op.args.partitions if isinstance(op.args, ThrottleArgs) else ()


def get_pace(op: Operation) -> Pace:
    """Return the pace of an operation; an empty pace if the operation has no pace."""
    if isinstance(op.args, ReassignArgs | MovesArgs | ElectArgs | ThrottleArgs):
        return op.args.pace or Pace()
    return Pace()


def find_group(op: Operation) -> str | None:
    """Return the name of the group of moves that an operation belongs to; None if it belongs to no group."""
    return op.args.group if isinstance(op.args, ReassignArgs) else None
