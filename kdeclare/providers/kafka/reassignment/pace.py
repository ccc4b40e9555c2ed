"""How moves are to be gone about: throttle, batches, pauses, how long to wait. Also as people write it."""

import re
from dataclasses import dataclass, fields
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, TypeAdapter, WithJsonSchema

from kdeclare.core.arguments import Arguments
from kdeclare.core.operation_arguments import UNSTATED
from kdeclare.core.units import Duration

_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtKMGT]?i?B)/s")
_SIZE = TypeAdapter(ByteSize)


def bytes_per_second(value: Any) -> Any:
    """``50MiB/s``, or a number, in bytes a second. Raises ValueError for a text that is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _RATE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"'{value}' is no rate; write 50MiB/s, or a number of bytes a second")
    return int(_SIZE.validate_python("".join(found.groups())))


Rate = Annotated[
    int,
    BeforeValidator(bytes_per_second),
    Field(ge=1, le=2**63 - 1),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["50MiB/s", 52428800]}),
]


class PaceSpec(BaseModel):
    """The fields of a manifest that say how to go about moves."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    throttle: Rate | None = None
    batchSize: Annotated[int, Field(ge=1, le=1_000_000)] | None = None  # noqa: N815
    interBatchPause: Duration | None = None  # noqa: N815
    timeout: Duration | None = None


@dataclass(frozen=True, slots=True)
class Pace(Arguments):
    """throttle: bytes a second on each broker. batch_size: partitions at a time. pause_s: between batches.

    timeout_s: how long one batch may take before the run goes on without it. None is "not said".
    """

    throttle: Annotated[int | None, UNSTATED] = None
    batch_size: Annotated[int | None, UNSTATED] = None
    pause_s: Annotated[float | int | None, UNSTATED] = None
    timeout_s: Annotated[float | int | None, UNSTATED] = None

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return self != Pace()

    def over(self, other: "Pace") -> "Pace":
        """This one where it says something, else the other one."""
        mine = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return Pace(**{f.name: getattr(other, f.name) for f in fields(other)} | mine)


def pace_of(spec: PaceSpec) -> Pace:
    """What a manifest says."""
    return Pace(spec.throttle, spec.batchSize, spec.interBatchPause, spec.timeout)
