"""When the operations of a run were under way: a bar for each, those of one request together."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kdeclare.core.run import Status
from kdeclare.report.views import RunDetail, RunStep

_ROOM = 1.1
"""How much wider a drawing is that must show something without an end."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Operations of one verb that began together and ended together.

    begun, ended: seconds since the run began; ended None: nobody knows. steps: places in the plan's order.
    """

    begun: float
    ended: float | None
    verb: str
    status: Status
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Waterfall:
    """bars: in the order in which they began. seconds: how long the run took, until the last thing known.

    span: seconds that a drawing has room for; more than that where a bar has no end, so that it has a width.
    """

    bars: tuple[Bar, ...]
    seconds: float
    span: float


def waterfall(detail: RunDetail) -> Waterfall:
    """The bars of a run; what was never begun has none."""
    start = detail.run.started
    groups: dict[tuple[datetime, datetime | None, str, Status], list[int]] = {}
    for number, step in enumerate(detail.steps):
        if step.begun is not None:
            groups.setdefault((step.begun, step.ended, step.verb, step.known_status), []).append(number)
    bars = [
        Bar(
            _since(start, begun),
            None if ended is None else _since(start, max(begun, ended)),
            verb,
            status,
            tuple(found),
        )
        for (begun, ended, verb, status), found in groups.items()
    ]
    last = [*(bar.ended or bar.begun for bar in bars), _since(start, detail.run.ended or start)]
    seconds = max(last)
    is_open = any(bar.ended is None for bar in bars)
    return Waterfall(tuple(sorted(bars, key=_order)), seconds, seconds * _ROOM if is_open else seconds)


def seconds_of(detail: RunDetail) -> Mapping[str, float]:
    """How long each operation took, where that is known."""
    return {step.id: took for step in detail.steps if (took := _took(step)) is not None}


def _took(step: RunStep) -> float | None:
    return _since(step.begun, step.ended) if step.begun and step.ended else None


def _since(start: datetime, moment: datetime) -> float:
    return max(0.0, (moment - start).total_seconds())  # clocks can be set back


def _order(bar: Bar) -> tuple[float, float, tuple[int, ...]]:
    return bar.begun, bar.ended if bar.ended is not None else float("inf"), bar.steps
