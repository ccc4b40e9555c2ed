"""The summaries of finished runs, which are stored beside the runs so that runs can be listed quickly.

A summary is a cache. If it is missing or damaged, or has an unknown format version, it is computed from the
plan and the journal. It is only displayed: recovery, rollbacks and the removal of runs read journals and
plans.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from kdeclare.core.clock import check_time, parse_time
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.plan import Plan, Summary
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.engine.executor.entries import RunRecord, read_run, read_run_plan
from kdeclare.engine.state.port import StateStore
from kdeclare.report.outcome import count_adopted, run_outcome
from kdeclare.report.run.views import RunSummary

_FIRST_CHUNK, _CHUNK = 4, 100
"""How many summaries are read in the first batch, and in each later batch.

The first batch is small, because ``status`` needs only a few summaries. ``history`` needs many.
"""


_Moment = Annotated[datetime, AfterValidator(check_time)]


class StoredSummary(BaseModel):
    """The summary of one run, as it is stored; see `RunSummary`.

    has_operations: whether the plan has operations. had_effect: whether an operation had an effect. Auxiliary
    operations, such as throttles, count only if there are no other operations. Only `has_undone` uses these
    two fields.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: Literal[1] = 1
    run_id: str
    started: _Moment | None
    ended: _Moment | None
    outcome: str
    gist: str
    user: str
    command: str
    plan_id: str
    undoes: str | None
    overridden: int
    summary: Summary
    adopted: int
    operations: int
    counts: dict[Status, int]
    lineage: str | None
    serial: int | None
    has_operations: bool
    had_effect: bool

    def as_run_summary(self) -> RunSummary:
        """Return the summary in the form that commands show."""
        return RunSummary(
            run_id=self.run_id,
            started=self.started,
            ended=self.ended,
            outcome=self.outcome,
            gist=self.gist,
            user=self.user,
            command=self.command,
            plan_id=self.plan_id,
            summary=self.summary,
            operations=self.operations,
            counts=self.counts,
            undoes=self.undoes,
            overridden=self.overridden,
            adopted=self.adopted,
        )

    def has_undone(self, target: RunSummary) -> bool:
        """Return whether this rollback undid any change of the earlier run ``target``.

        A rollback without operations only releases ownership. Such a rollback counts only if the earlier run
        changed nothing but ownership.
        """
        if not self.has_operations:
            return self.ended is not None and not target.done
        return self.had_effect


def write_run_summary(store: StateStore, run_id: str | None, plan: Plan) -> None:
    """Store the summary of a run that has just finished. An error is ignored: a summary is only a cache."""
    if run_id is None:
        return
    with suppress(KdeclareError):
        record = read_run(store, run_id)
        if record.is_over:
            store.write_summary(run_id, summarize_run(record, plan).model_dump(mode="json"))


def read_stored_summaries(
    store: StateStore, run_ids: Sequence[str]
) -> Iterator[tuple[str, StoredSummary | None]]:
    """Yield the id of each run with its stored summary, or with None if the summary must be computed."""
    remaining_ids = iter(run_ids)
    size = _FIRST_CHUNK
    while chunk := tuple(islice(remaining_ids, size)):
        size = _CHUNK
        documents = store.read_summaries(chunk)
        for run_id in chunk:
            yield run_id, _parse_summary(run_id, documents.get(run_id))


def _parse_summary(run_id: str, document: JsonValue) -> StoredSummary | None:
    try:
        summary = StoredSummary.model_validate(document)
    except ValidationError:
        return None
    return summary if summary.run_id == run_id else None


def compute_summary(store: StateStore, run_id: str) -> StoredSummary:
    """Compute a summary from the plan and the journal.

    Raises KdeclareError (``run-unreadable`` if one of them is damaged).
    """
    return summarize_run(read_run(store, run_id), read_run_plan(store, run_id))


def summarize_run(record: RunRecord, plan: Plan) -> StoredSummary:
    """Build the summary of a run."""
    start = record.start
    outcome = outcome_gist = "unfinished"
    if record.is_over:
        is_interrupted = record.outcome == "interrupted"
        final_outcome = run_outcome(ApplyResult(record.run_id, plan, record.results, (), is_interrupted))
        outcome, outcome_gist = final_outcome.status, final_outcome.gist
    return StoredSummary(
        run_id=record.run_id,
        started=parse_time(start.at) if start else parse_run_time(record.run_id),
        ended=parse_time(record.ended) if record.ended else None,
        outcome=outcome,
        gist=outcome_gist,
        user=start.who if start else "",
        command=start.command if start else "",
        plan_id=start.plan_id if start else "",
        undoes=plan.undoes,
        overridden=len(start.overrides) if start else 0,
        summary=plan.summary,
        adopted=count_adopted(plan),
        operations=len(plan.operations),
        counts=Counter(result.status for result in record.results.values()),
        lineage=record.lineage,
        serial=record.serial,
        has_operations=bool(plan.operations),
        had_effect=_had_effect(record, plan),
    )


def _had_effect(record: RunRecord, plan: Plan) -> bool:
    primary_operations: Iterable[str] = [
        op.id for op in plan.operations if not get_operation_type(op).is_auxiliary
    ] or [op.id for op in plan.operations]
    results = (record.results.get(id_) for id_ in primary_operations)
    return any(result.had_effect for result in results if result)


def parse_run_time(run_id: str) -> datetime | None:
    """Return the start time in the id of a run, for a run whose journal does not contain it.

    Return None for an id that kdeclare did not generate.
    """
    try:
        return parse_time(run_id[:16])
    except ValueError:
        return None
