"""The pace of moves (throttle, batches, pauses and timeout), and how manifests declare it."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, as_int_or_none, as_number
from kdeclare.core.operations.argument_binding import OMIT_NONE
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.parts import PlanOptions
from kdeclare.core.plans.plan_hooks import PlanSettings
from kdeclare.core.units import Duration, parse_size

_MAX_RATE = 2**63 - 1
_MAX_BATCH = 1_000_000
_Seconds = Annotated[float | int, Field(ge=0, le=365 * 86_400)]


def parse_rate(value: object) -> int:
    """Parse ``50MiB/s`` or a number; return bytes per second. Raises ValueError for an invalid rate."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = value.removesuffix("/s") if isinstance(value, str) else ""
    rate = parse_size(text) if text != value else None  # the "/s" is required
    if rate is None:
        raise ValueError(
            f"'{value}' is not a rate; write a rate such as 50MiB/s, or a number of bytes per second"
        )
    return rate


Rate = Annotated[
    int,
    BeforeValidator(parse_rate),
    Field(ge=1, le=_MAX_RATE),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["50MiB/s", 52428800]}),
]


class PaceSpec(BaseModel):
    """The fields of a manifest that set the pace of moves."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    throttle: Annotated[
        Rate | None,
        Field(description="Maximum replication traffic per broker during moves, such as 50MiB/s."),
    ] = None
    batchSize: Annotated[  # noqa: N815
        Annotated[int, Field(ge=1, le=_MAX_BATCH)] | None,
        Field(description="Maximum number of partitions to move at the same time."),
    ] = None
    interBatchPause: Annotated[  # noqa: N815
        Duration | None, Field(description="How long to wait between batches, such as 30s.")
    ] = None
    timeout: Annotated[
        Duration | None,
        Field(
            description="How long to wait for a batch to finish, such as 2h. If the batch takes longer, the "
            "run stops waiting for it and goes on to the next step."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Pace(Arguments):
    """The pace of moves.

    throttle: the maximum bytes per second on each broker. batch_size: the maximum number of partitions that
    move at the same time. pause_s: the seconds between batches. timeout_s: the seconds after which the run
    stops waiting for a batch and continues. None means "not set".
    """

    throttle: Annotated[Annotated[int, Field(ge=1, le=_MAX_RATE)] | None, OMIT_NONE] = None
    batch_size: Annotated[Annotated[int, Field(ge=1, le=_MAX_BATCH)] | None, OMIT_NONE] = None
    pause_s: Annotated[_Seconds | None, OMIT_NONE] = None
    timeout_s: Annotated[_Seconds | None, OMIT_NONE] = None

    def __bool__(self) -> bool:
        """Whether any field is set."""
        return self != Pace()

    def over(self, other: "Pace") -> "Pace":
        """Return a copy of this pace in which unset fields are taken from ``other``."""
        mine = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return Pace(**{f.name: getattr(other, f.name) for f in fields(other)} | mine)


def bind_pace(json: JsonObject) -> Pace:
    """Read a pace that `dump_arguments` wrote. Raises TypeError if the pace is not valid."""
    pause, timeout = json.get("pause_s"), json.get("timeout_s")
    return Pace(
        as_int_or_none(json.get("throttle")),
        as_int_or_none(json.get("batch_size")),
        None if pause is None else as_number(pause),
        None if timeout is None else as_number(timeout),
    )


def build_pace(spec: PaceSpec) -> Pace:
    """Return the pace that a manifest declares."""
    return Pace(spec.throttle, spec.batchSize, spec.interBatchPause, spec.timeout)


def get_default_pace(options: PlanOptions) -> Pace:
    """Return the pace that a plan uses for moves whose manifest does not set a pace."""
    return options.find(Pace) or Pace()


def complete_pace(options: PlanOptions, pace_specs: Sequence[BaseModel]) -> PlanOptions:
    """Use the specs to fill in the pace fields that the options leave unset.

    Earlier specs take precedence.
    """
    pace = get_default_pace(options)
    for spec in pace_specs:
        if isinstance(spec, PaceSpec):
            pace = pace.over(build_pace(spec))
    return options.with_part(pace)


REASSIGNMENTS = PlanSettings(
    "reassignments",
    PaceSpec,
    complete_pace,
    description="The pace of replica moves, unless a manifest sets a different pace.",
    environment_description="The pace of replica moves in this environment.",
)
