"""The arguments of `PatchWorkers`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from kdeclare.core.arguments import Arguments
from kdeclare.core.operation_arguments import EMPTY_UNSTATED, UNSTATED
from kdeclare.core.secrets import SecretRef
from kdeclare.providers.connect.worker_state import WorkerGroup


@dataclass(frozen=True, slots=True)
class WorkerConfigOpArgs(Arguments):
    """One op on one key. value: None for DELETE. was: the record of a secret that it overwrites."""

    key: str
    op: Literal["SET", "DELETE"]
    value: str | SecretRef | None
    was: Annotated[SecretRef | None, UNSTATED] = None


@dataclass(frozen=True, slots=True)
class PatchWorkersArgs(Arguments):
    """Ops on what the workers of one group share.

    again: the workers for whose sake values are sent that are there already, as these workers refused them.
    """

    workers: WorkerGroup
    ops: tuple[WorkerConfigOpArgs, ...]
    again: Annotated[tuple[str, ...], EMPTY_UNSTATED] = ()
