"""The lines of a run's journal: what they look like, and what they add up to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.jsontypes import Json
from kdeclare.core.run import OperationResult, Status
from kdeclare.core.state import State


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    at: str


class OverrideLine(BaseModel):
    """One denial of a policy that was not heeded, and why.

    principal: whom the brokers took the person for; None where they authenticate nobody.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    policy: str
    resource: str
    topic: str | None = None
    reason: str
    principal: str | None = None


class RunLine(_Line):
    """The first line: what runs, and on whose behalf."""

    event: Literal["run"] = "run"
    plan_id: str
    who: str
    command: str
    undoes: str | None = None
    overrides: list[OverrideLine] = []


class BeginLine(_Line):
    """On disk before the request with these operations is sent, also when it is sent again.

    deadline: until when brokers may work on it. Earlier versions did not say.
    """

    event: Literal["begin"] = "begin"
    ids: list[str]
    deadline: str | None = None


class ResultLine(BaseModel):
    """How one operation ended."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: str
    status: Status
    error: str | None = None
    message: str = ""
    cause: str | None = None
    topic_id: str | None = None
    """Of a topic that was created, as the cluster acknowledged it; kdeclare 0.1 did not write it."""


class EndLine(_Line):
    """How operations ended; ``settled`` when that was found out later by observing."""

    event: Literal["end"] = "end"
    results: list[ResultLine]
    settled: bool = False


class FinishLine(_Line):
    """The last line: the state is written, nothing is left open.

    lineage, serial: of the state as it was then, which tells later whether an older one was put in its place;
    None in journals of kdeclare 0.1.
    """

    event: Literal["finish"] = "finish"
    outcome: Literal["complete", "partial", "interrupted", "recovered"]
    lineage: str | None = None
    serial: int | None = None


Line = RunLine | BeginLine | EndLine | FinishLine
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="event")])


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A journal folded: who ran what, what was begun, how it ended, and whether it is over.

    begun: in the order in which they were begun. outcome: None while the run is unfinished.
    ended_at: when the journal says how each operation ended. sent_at, deadlines: when it was sent last, and
    until when brokers may work on that request; the latter only where the journal says it.
    lineage, serial: of the state once the run was over; None where the journal does not say.
    """

    run_id: str
    start: RunLine | None
    begun: tuple[str, ...] = ()
    results: dict[str, OperationResult] = field(default_factory=dict)
    outcome: str | None = None
    ended: str | None = None
    lineage: str | None = None
    serial: int | None = None
    ended_at: dict[str, str] = field(default_factory=dict)
    sent_at: dict[str, str] = field(default_factory=dict)
    deadlines: dict[str, str] = field(default_factory=dict)

    @property
    def unsettled(self) -> tuple[str, ...]:
        """Begun, and not known how they ended."""
        known = {id_ for id_, result in self.results.items() if result.status is not Status.UNKNOWN}
        return tuple(id_ for id_ in self.begun if id_ not in known)

    @property
    def is_over(self) -> bool:
        """Whether its last line was written."""
        return self.outcome is not None


def as_json(line: Line) -> Json:
    """What the journal stores of a line."""
    return line.model_dump(mode="json", exclude_defaults=False)


def end_line(at: str, results: Iterable[OperationResult], *, settled: bool = False) -> EndLine:
    """The line for operations that ended."""
    lines = [
        ResultLine(
            id=r.id,
            status=r.status,
            error=r.error,
            message=r.message,
            cause=r.cause,
            topic_id=r.created_id,
        )
        for r in results
    ]
    return EndLine(at=at, results=lines, settled=settled)


def finish_line(
    at: str, outcome: Literal["complete", "partial", "interrupted", "recovered"], state: State | None
) -> FinishLine:
    """The last line of a run that left this state."""
    if state is None:
        return FinishLine(at=at, outcome=outcome)
    return FinishLine(at=at, outcome=outcome, lineage=state.lineage, serial=state.serial)


def fold(run_id: str, entries: Sequence[Json]) -> RunRecord:
    """What a journal adds up to. Raises KdeclareError for a line that is no line of ours."""
    start: RunLine | None = None
    begun: dict[str, None] = {}
    results: dict[str, OperationResult] = {}
    ended_at: dict[str, str] = {}
    sent_at: dict[str, str] = {}
    deadlines: dict[str, str] = {}
    finish: FinishLine | None = None
    for line in lines(run_id, entries):
        if isinstance(line, RunLine):
            start = line
        elif isinstance(line, BeginLine):
            begun |= dict.fromkeys(line.ids)
            sent_at |= dict.fromkeys(line.ids, line.at)
            if line.deadline is not None:
                deadlines |= dict.fromkeys(line.ids, line.deadline)
        elif isinstance(line, EndLine):
            results |= {
                r.id: OperationResult(r.id, r.status, r.error, r.message, r.cause, r.topic_id)
                for r in line.results
            }
            ended_at |= dict.fromkeys((r.id for r in line.results), line.at)
        else:
            finish = line
    return RunRecord(
        run_id,
        start,
        tuple(begun),
        results,
        outcome=finish.outcome if finish else None,
        ended=finish.at if finish else None,
        lineage=finish.lineage if finish else None,
        serial=finish.serial if finish else None,
        ended_at=ended_at,
        sent_at=sent_at,
        deadlines=deadlines,
    )


def lines(run_id: str, entries: Sequence[Json]) -> list[Line]:
    """The lines of a journal. Raises KdeclareError for one that is not of ours."""
    return [_parse(run_id, number, entry) for number, entry in enumerate(entries, start=1)]


def _parse(run_id: str, number: int, entry: Json) -> Line:
    try:
        return _LINE.validate_python(entry)
    except ValidationError as wrong:
        raise KdeclareError(
            error(
                "journal-corrupt",
                "The journal cannot be read",
                f"Entry {number} of the journal of run {run_id} is not understood: "
                f"{wrong.errors()[0]['msg']}.",
                hint="It was written by another version of kdeclare; use that one to finish the run.",
            )
        ) from None
