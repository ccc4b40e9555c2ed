"""How moves are to be gone about: throttle, batches, pauses, how long to wait. Also as people write it."""

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, TypeAdapter, WithJsonSchema

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, as_int_or_none, as_number
from kdeclare.core.operations.argument_binding import OMIT_NONE
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.parts import PlanOptions
from kdeclare.core.plans.plan_hooks import PlanSettings
from kdeclare.core.units import Duration

_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtKMGT]?i?B)/s")
_SIZE = TypeAdapter(ByteSize)


def parse_rate(value: object) -> int:
    """``50MiB/s``, or a number, in bytes a second. Raises ValueError for a text that is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    rate_match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if rate_match is None:
        raise ValueError(f"'{value}' is no rate; write 50MiB/s, or a number of bytes a second")
    return int(_SIZE.validate_python("".join(rate_match.groups())))


Rate = Annotated[
    int,
    BeforeValidator(parse_rate),
    Field(ge=1, le=2**63 - 1),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["50MiB/s", 52428800]}),
]


class PaceSpec(BaseModel):
    """The fields of a manifest that say how to go about moves."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    throttle: Annotated[
        Rate | None,
        Field(
            description="How much replication traffic moves may make on each broker involved, as in 50MiB/s."
        ),
    ] = None
    batchSize: Annotated[  # noqa: N815
        Annotated[int, Field(ge=1, le=1_000_000)] | None,
        Field(description="How many partitions are moved at a time."),
    ] = None
    interBatchPause: Annotated[  # noqa: N815
        Duration | None, Field(description="How long to wait between batches, as in 30s.")
    ] = None
    timeout: Annotated[
        Duration | None,
        Field(description="How long one batch may take, as in 2h; the run then goes on without it."),
    ] = None


@dataclass(frozen=True, slots=True)
class Pace(Arguments):
    """throttle: bytes a second on each broker. batch_size: partitions at a time. pause_s: between batches.

    timeout_s: how long one batch may take before the run goes on without it. None is "not said".
    """

    throttle: Annotated[int | None, OMIT_NONE] = None
    batch_size: Annotated[int | None, OMIT_NONE] = None
    pause_s: Annotated[float | int | None, OMIT_NONE] = None
    timeout_s: Annotated[float | int | None, OMIT_NONE] = None

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return self != Pace()

    def over(self, other: "Pace") -> "Pace":
        """This one where it says something, else the other one."""
        mine = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return Pace(**{f.name: getattr(other, f.name) for f in fields(other)} | mine)


def bind_pace(json: JsonObject) -> Pace:
    """Return the pace that `dump_arguments` has written. Raises TypeError for what is none."""
    pause, timeout = json.get("pause_s"), json.get("timeout_s")
    return Pace(
        as_int_or_none(json.get("throttle")),
        as_int_or_none(json.get("batch_size")),
        None if pause is None else as_number(pause),
        None if timeout is None else as_number(timeout),
    )


def build_pace(spec: PaceSpec) -> Pace:
    """What a manifest says."""
    return Pace(spec.throttle, spec.batchSize, spec.interBatchPause, spec.timeout)


def get_default_pace(options: PlanOptions) -> Pace:
    """Return the pace of moves whose manifest says nothing else, as it was chosen for a plan."""
    return options.find(Pace) or Pace()


def complete_pace(options: PlanOptions, pace_specs: Sequence[BaseModel]) -> PlanOptions:
    """Return the options with a pace where the chosen one leaves something open."""
    pace = get_default_pace(options)
    for spec in pace_specs:
        if isinstance(spec, PaceSpec):
            pace = pace.over(build_pace(spec))
    return options.with_part(pace)


REASSIGNMENTS = PlanSettings(
    "reassignments",
    PaceSpec,
    complete_pace,
    description="How moves of replicas are gone about, where a manifest says nothing else.",
    environment_description="How moves of replicas are gone about here.",
)
