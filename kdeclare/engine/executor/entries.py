"""The lines of a run's journal, and the record of the run, which is built from these lines."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Annotated, Literal, TypeVar
from weakref import WeakKeyDictionary

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kdeclare.core.clock import parse_time
from kdeclare.core.diagnostics import KdeclareError, error, summarize_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, as_list, as_object, as_text, parse_json
from kdeclare.core.plans.plan import FORMAT_VERSION, Plan
from kdeclare.core.plans.run import OperationResult, Status
from kdeclare.core.plans.state import State
from kdeclare.core.resources.changes import Action, Reason
from kdeclare.engine.planning.planfile import find_written_kinds, parse_plan
from kdeclare.engine.state.port import StateStore


def _check_time(text: str) -> str:
    parse_time(text)
    return text


_Time = Annotated[str, AfterValidator(_check_time)]
"""A string that `parse_time` can convert to a time."""


class _JournalLine(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    at: _Time


class OverrideLine(BaseModel):
    """An overridden denial by one policy, with the reason for the override.

    principal: kdeclare's principal in the system; None if the system does not authenticate clients.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    policy: str
    resource: str
    topic: str | None = None
    reason: str
    principal: str | None = None


class RunLine(_JournalLine):
    """The first line of a journal: the plan, the command, and the user who started the run."""

    event: Literal["run"] = "run"
    plan_id: str
    who: str
    command: str
    undoes: str | None = None
    overrides: list[OverrideLine] = []


class BeginLine(_JournalLine):
    """The line that is written before each attempt to send a request.

    The line lists the operations of the request.

    deadline: the time until which brokers can work on the request; absent in journals of earlier versions of
        kdeclare.
    """

    event: Literal["begin"] = "begin"
    ids: list[str]
    deadline: _Time | None = None


class ResultLine(BaseModel):
    """The result of one operation."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    id: str
    status: Status
    error: str | None = None
    message: str = ""
    cause: str | None = None
    topic_id: str | None = None
    """The id that the cluster gave to a created topic; absent in journals of kdeclare 0.1."""


class EndLine(_JournalLine):
    """A line with the results of operations.

    settled: whether the results were determined after a crash or timeout, from the live state.
    """

    event: Literal["end"] = "end"
    results: list[ResultLine]
    settled: bool = False


class FinishLine(_JournalLine):
    """The last line of a journal. This line is written after the state, when all results are known.

    lineage, serial: the lineage and the serial of the state, which show whether the state was later replaced
    by an older copy. None in journals of kdeclare 0.1.
    """

    event: Literal["finish"] = "finish"
    outcome: Literal["complete", "partial", "interrupted", "recovered"]
    lineage: str | None = None
    serial: int | None = None


class LockLoss(BaseModel):
    """The report of a process that lost the lock while its requests were in flight.

    The process must not append to the journal anymore, so this report is stored beside the journal.

    at: when the process noticed the loss. who: the user and the host.
    operations: the ids of the operations whose requests might have taken effect at any time up to ``at``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    at: str
    who: str
    operations: list[str]


JournalLine = RunLine | BeginLine | EndLine | FinishLine
_LINE_ADAPTER: TypeAdapter[JournalLine] = TypeAdapter(
    Annotated[JournalLine, Field(discriminator="event")], config=ConfigDict(defer_build=True)
)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The contents of a journal: who ran which command, the operations with their results, and the outcome.

    begun: the operations in the order in which they began. outcome: None while the run is unfinished.
    ended_at: when each operation ended according to the journal.
    sent_at: when each operation was last sent. deadlines: the time until which brokers can work on the last
        request for each operation, if the journal records it.
    lineage, serial: the lineage and the serial of the state after the run; None if the journal does not
        record them.
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
        """The ids of the operations that began and whose results are unknown."""
        known = {id_ for id_, result in self.results.items() if result.status is not Status.UNKNOWN}
        return tuple(id_ for id_ in self.begun if id_ not in known)

    @property
    def is_over(self) -> bool:
        """Whether the journal contains its last line."""
        return self.outcome is not None


def as_json(line: JournalLine) -> JsonValue:
    """Return the JSON form of a journal line."""
    return line.model_dump(mode="json", exclude_defaults=False)


def build_end_line(ended_at: str, results: Iterable[OperationResult], *, settled: bool = False) -> EndLine:
    """Return the journal line for operations that ended."""
    result_lines = [
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
    return EndLine(at=ended_at, results=result_lines, settled=settled)


def build_finish_line(
    finished_at: str, outcome: Literal["complete", "partial", "interrupted", "recovered"], state: State | None
) -> FinishLine:
    """Return the last line of the journal for a run that resulted in ``state``."""
    if state is None:
        return FinishLine(at=finished_at, outcome=outcome)
    return FinishLine(at=finished_at, outcome=outcome, lineage=state.lineage, serial=state.serial)


def fold_journal(run_id: str, entries: Sequence[JsonValue]) -> RunRecord:
    """Build the record of a run from the lines of its journal. Raises KdeclareError for an unknown line."""
    start: RunLine | None = None
    begun_ids: dict[str, None] = {}
    results: dict[str, OperationResult] = {}
    ended_at: dict[str, str] = {}
    sent_at: dict[str, str] = {}
    deadlines: dict[str, str] = {}
    finish: FinishLine | None = None
    for line in parse_lines(run_id, entries):
        if isinstance(line, RunLine):
            start = line
        elif isinstance(line, BeginLine):
            begun_ids |= dict.fromkeys(line.ids)
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
        tuple(begun_ids),
        results,
        outcome=finish.outcome if finish else None,
        ended=finish.at if finish else None,
        lineage=finish.lineage if finish else None,
        serial=finish.serial if finish else None,
        ended_at=ended_at,
        sent_at=sent_at,
        deadlines=deadlines,
    )


def parse_lines(run_id: str, entries: Sequence[JsonValue]) -> list[JournalLine]:
    """Parse the lines of a journal. Raises KdeclareError for an unknown line."""
    return [_parse_line(run_id, number, entry) for number, entry in enumerate(entries, start=1)]


def _parse_line(run_id: str, number: int, entry: JsonValue) -> JournalLine:
    try:
        return _LINE_ADAPTER.validate_python(entry)
    except ValidationError as problem:
        raise KdeclareError(
            error(
                "journal-corrupt",
                "The journal cannot be read",
                f"Entry {number} of the journal of run {run_id} has an unknown format: "
                f"{problem.errors()[0]['msg']}. Another version of kdeclare may have written it.",
                hint="Use the kdeclare version that wrote the journal to finish the run.",
            )
        ) from None


RUN_UNREADABLE = "run-unreadable"

_Read = TypeVar("_Read")

_DAMAGE_CODES = frozenset(
    {
        "state-corrupt",
        "journal-corrupt",
        "not-a-plan",
        "plan-not-json",
        "plan-format-version",
        "plan-tampered",
        "plan-malformed",
    }
)
"""The codes of errors about damaged files of a run.

Errors about files that cannot be read are not included.
"""


def read_run(store: StateStore, run_id: str) -> RunRecord:
    """Read the journal of a run. Raises KdeclareError (``run-unreadable`` if the journal is damaged)."""
    finished_runs = _finished_runs.get(store)
    if finished_runs is not None and run_id in finished_runs:
        return finished_runs[run_id]
    with _explain_damage(store, run_id):
        record = fold_journal(run_id, store.entries(run_id))
    if finished_runs is not None and record.is_over:
        finished_runs[run_id] = record
    return record


def read_lock_losses(store: StateStore, run_id: str) -> tuple[LockLoss, ...]:
    """Read the reports of processes that lost the lock during a run. Raises KdeclareError.

    A report that cannot be parsed is ignored, because no decision depends on these reports.
    """
    losses: list[LockLoss] = []
    for report in store.read_losses(run_id):
        with suppress(ValidationError):
            losses.append(LockLoss.model_validate(report))
    return tuple(losses)


class Abandonment(BaseModel):
    """The record of a run that a user abandoned because it cannot be finished. It is stored beside the run.

    at: when the run was abandoned. who: the user and the host. reason: why the run could not be finished.
    unsettled: the operations without a known outcome, as far as the journal can be read.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)
    at: str
    who: str
    reason: str = ""
    unsettled: list[str] = []


def is_abandoned(store: StateStore, run_id: str) -> bool:
    """Whether a user abandoned the run. No decision depends on the journal of such a run anymore."""
    return run_id in store.list_abandoned()


def read_abandonment(store: StateStore, run_id: str) -> Abandonment:
    """Return the record of an abandoned run. If the record is damaged, return an empty record."""
    with suppress(ValidationError):
        return Abandonment.model_validate(store.read_abandonment(run_id))
    return Abandonment(at="", who="")


def read_undamaged(read: Callable[[], _Read]) -> _Read | None:
    """Return the result of ``read``; None if it fails because files of a run are damaged.

    Any other KdeclareError is passed on to the caller.
    """
    try:
        return read()
    except KdeclareError as problem:
        if any(d.code != RUN_UNREADABLE for d in problem.diagnostics):
            raise
        return None


_finished_runs: WeakKeyDictionary[StateStore, dict[str, RunRecord]] = WeakKeyDictionary()
"""The records of finished runs that `keep_finished_runs` caches, by run id."""


@contextmanager
def keep_finished_runs(store: StateStore) -> Iterator[None]:
    """Cache the journals of finished runs inside the ``with`` block. Such a journal never changes."""
    if store in _finished_runs:
        yield
        return
    _finished_runs[store] = {}
    try:
        yield
    finally:
        del _finished_runs[store]


def read_written_kinds(store: StateStore, run_id: str) -> frozenset[tuple[str, str]] | None:
    """Return the pairs of operation type and resource kind that occur in the plan of a run.

    The plan file is not validated or converted. Return None if the file is damaged or has a different
    version.
    """
    try:
        return find_written_kinds(store.read_plan_lines(run_id))
    except KdeclareError:
        return None


def read_reasons(store: StateStore, run_id: str) -> frozenset[Reason]:
    """Return the reasons for the changes in the plan of a run. Raises KdeclareError (see `read_run_plan`).

    To save time, the plan file is validated only if the reasons cannot be read from it directly.
    """
    try:
        document = as_object(parse_json(store.read_plan_text(run_id)))
        if document["format_version"] == FORMAT_VERSION:
            changes = map(as_object, as_list(document["changes"]))
            reasons = {as_text(c["reason"]) for c in changes if c["action"] != Action.NO_OP.value}
            return frozenset(map(Reason, reasons))
    except (KdeclareError, KeyError, TypeError, ValueError, RecursionError):
        pass  # reading the whole plan below reports the problem
    effective_changes = (c for c in read_run_plan(store, run_id).changes if c.action is not Action.NO_OP)
    return frozenset(change.reason for change in effective_changes)


def read_run_plan(store: StateStore, run_id: str) -> Plan:
    """Read the plan that a run executed. Raises KdeclareError (``run-unreadable`` if the plan is damaged)."""
    with _explain_damage(store, run_id):
        text, kept_plans = store.read_plan_text(run_id), _kept_plans.get(store)
        if kept_plans is None:
            return parse_plan(text, f"run {run_id}")
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        kept_plan = kept_plans.get(run_id)
        if kept_plan is None or kept_plan[0] != digest:
            kept_plan = kept_plans[run_id] = (digest, parse_plan(text, f"run {run_id}"))
        return kept_plan[1]


_kept_plans: WeakKeyDictionary[StateStore, dict[str, tuple[bytes, Plan]]] = WeakKeyDictionary()
"""The plans that `keep_run_plans` caches, each with the SHA-256 digest of its file, by run id."""


@contextmanager
def keep_run_plans(store: StateStore) -> Iterator[None]:
    """Cache the plans of runs inside the ``with`` block. A plan is read again only if its file changes.

    A rollback uses the plan in several steps, each of which takes less time than reading the plan. Other
    commands use a plan only once, so they need no cache.
    """
    _kept_plans[store] = {}
    try:
        yield
    finally:
        del _kept_plans[store]


@contextmanager
def _explain_damage(store: StateStore, run_id: str) -> Iterator[None]:
    try:
        yield
    except KdeclareError as problem:
        if not any(d.code in _DAMAGE_CODES for d in problem.diagnostics):
            raise
        location = store.get_run_location(run_id)
        raise KdeclareError(
            error(
                RUN_UNREADABLE,
                "A recorded run cannot be read",
                f"Run {run_id}: {summarize_diagnostics(problem.diagnostics)}",
                hint=f"Restore {location} from a backup. If there is no backup, run 'kdeclare state abandon "
                f"{run_id}': the command lists the operations of the run, and marks the run as abandoned. "
                "Then run 'kdeclare plan' "
                "to see the changes of the run that are not in the state.",
            )
        ) from problem
