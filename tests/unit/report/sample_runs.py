"""Sample runs with every possible result, and their history."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from kdeclare.core.diagnostics import error, warning
from kdeclare.core.documents import build_document
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.plan import Plan, Summary
from kdeclare.core.plans.run import ApplyResult, OperationResult, Status
from kdeclare.core.plans.state import LockInfo
from kdeclare.core.provider.provider import Activity, OngoingWork
from kdeclare.core.resources.changes import Action, Change, Reason, Risk
from kdeclare.report.run.views import (
    RunDetail,
    RunOverride,
    RunStep,
    RunSummary,
    StatusView,
    UnfinishedRun,
)
from tests.unit.report.sample_plans import (
    DRAIN,
    ORDERS,
    PAYMENTS,
    REFUNDS,
    SAMPLES,
    make_operation,
    make_plan,
)

RUN_ID = "20260131-120000-a1b2"
START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def make_results(of: Plan, **ends: tuple[Status, str | None, str, str | None]) -> dict[str, OperationResult]:
    """Return results that are DONE, except those given: ``_3=(Status.FAILED, error, message, cause)``."""
    found = {}
    for number, operation in enumerate(of.operations):
        end = ends.get(f"_{number}", (Status.DONE, None, "", None))
        found[operation.id] = OperationResult(operation.id, *end)
    return found


EVERYTHING = SAMPLES["everything"]
FAILED = (Status.FAILED, "INVALID_CONFIG", "Invalid value -5 for retention.ms: at least -1.", None)
DENIED = (Status.DENIED, "POLICY_VIOLATION", "No more partitions on Fridays.", None)
MANY = make_plan(
    summary=Summary(update=30),
    operations=tuple(make_operation("configs.alter", type(ORDERS)("Topic", f"t{n:02}")) for n in range(30)),
)

RUNS: dict[str, ApplyResult] = {
    "done": ApplyResult(RUN_ID, EVERYTHING, make_results(EVERYTHING)),
    "nothing": ApplyResult(None, SAMPLES["no-changes"], {}),
    "adopted": ApplyResult(RUN_ID, SAMPLES["adopting"], {}),
    "forgot": ApplyResult(
        RUN_ID,
        make_plan(
            summary=Summary(forget=1),
            changes=(Change(ORDERS, Action.FORGET, Reason.FORGOTTEN, Risk.SAFE),),
        ),
        {},
    ),
    "started": ApplyResult(
        RUN_ID, EVERYTHING, make_results(EVERYTHING, _6=(Status.STARTED, None, "2 partitions to go", None))
    ),
    "partial": ApplyResult(
        RUN_ID,
        EVERYTHING,
        make_results(
            EVERYTHING,
            _2=FAILED,
            _3=(Status.SKIPPED, None, "", f"partitions.increase:{PAYMENTS}"),
            _4=(Status.STALE, "stale", "retention.ms: planned on -1, now 5000.", None),
        ),
    ),
    "lost-sight": ApplyResult(
        RUN_ID,
        EVERYTHING,
        make_results(
            EVERYTHING,
            _5=(Status.UNKNOWN, "REQUEST_TIMED_OUT", "The request was not answered.", None),
            _6=(Status.STARTED, "move-timeout", "Still moving after 60 s.", None),
        ),
    ),
    "denied": ApplyResult(RUN_ID, SAMPLES["blocked"], make_results(SAMPLES["blocked"])),
    "refused": ApplyResult(
        RUN_ID,
        EVERYTHING,
        make_results(EVERYTHING, _2=DENIED, _3=(Status.SKIPPED, None, "", f"partitions.increase:{PAYMENTS}")),
    ),
    "refused-alone": ApplyResult(RUN_ID, SAMPLES["create"], make_results(SAMPLES["create"], _0=DENIED)),
    "refused-and-failed": ApplyResult(RUN_ID, EVERYTHING, make_results(EVERYTHING, _2=DENIED, _8=FAILED)),
    "judged": ApplyResult(RUN_ID, SAMPLES["judged"], make_results(SAMPLES["judged"])),
    "interrupted": ApplyResult(
        RUN_ID,
        EVERYTHING,
        {k: v for k, v in make_results(EVERYTHING).items() if not k.endswith(str(DRAIN))},
        interrupted=True,
    ),
    "rolled-back": ApplyResult(
        RUN_ID,
        SAMPLES["rollback"],
        make_results(SAMPLES["rollback"]),
        (warning("note", "The broker was slow", "Retried 3 times."),),
    ),
    "all-failed": ApplyResult(RUN_ID, MANY, make_results(MANY, **{f"_{n}": FAILED for n in range(30)})),
    "journal-lost": ApplyResult(
        RUN_ID,
        SAMPLES["create"],
        make_results(SAMPLES["create"]),
        (error("state-not-written", "The state cannot be written", "No space left on device."),),
    ),
}


def make_summary(run_id: str, outcome: str, seconds: float | None, **more: object) -> RunSummary:
    ended = None if seconds is None else START + timedelta(seconds=seconds)
    given: dict[str, object] = {
        "run_id": run_id,
        "started": START,
        "ended": ended,
        "outcome": outcome,
        "user": "ann@laptop",
        "command": "kdeclare apply --yes",
        "plan_id": "79ab0a3bdceca6919142011ab22308903daf5d277134decde7e752fcb442278d",
        "operations": 9,
        "counts": {Status.DONE: 9},
    }
    return RunSummary(**(given | more))  # type: ignore[arg-type]


HISTORY = (
    make_summary("20260131-130000-cccc", "unfinished", None, counts={Status.DONE: 3, Status.FAILED: 1}),
    make_summary("20260131-121500-bbbb", "done", 0.4, undoes=RUN_ID, command="kdeclare rollback"),
    make_summary(
        RUN_ID,
        "partial",
        83,
        counts={Status.DONE: 7, Status.FAILED: 1},
        undone_by="20260131-121500-bbbb",
        overridden=2,
    ),
    make_summary("20260130-090000-aaaa", "error", 4000, counts={}),
    make_summary("20260129-170000-9999", "done", 0.2, operations=0, counts={}, adopted=52),
    make_summary("20260129-160000-8888", "done", 0.3, summary=Summary(5, 2, 1, forget=3), adopted=1),
)

STEPS = (
    RunStep("a", "topic.create", str(ORDERS), Status.DONE, START, START + timedelta(seconds=1)),
    RunStep("b", "configs.alter", str(ORDERS), None, START + timedelta(seconds=1)),
    RunStep("c", "partitions.reassign", str(DRAIN), Status.SKIPPED, None, None, None, "", "d"),
    RunStep("d", "throttle.set", str(DRAIN), Status.FAILED, START, START, "TIMEOUT", "No answer in 30 s."),
    RunStep("e", "configs.alter", str(REFUNDS)),
)

OVERRIDES = (
    RunOverride("bounds", str(PAYMENTS), None, "agreed on Monday", "User:ann"),
    RunOverride("racks", str(DRAIN), "orders", "broker 3\nis going", "User:ann"),
)

DETAIL = build_document(
    RunDetail,
    HISTORY[2],
    plan=EVERYTHING,
    steps=STEPS,
    overrides=OVERRIDES,
    diagnostics=(warning("note", "The broker was slow"),),
)


def _make_move(
    topic: str,
    partition: int,
    replicas: list[int],
    adding: list[int],
    removing: Sequence[int] = (),
    run_id: str | None = None,
) -> OngoingWork:
    target = [replica for replica in replicas if replica not in removing]
    document: dict[str, JsonValue] = {
        "topic": topic,
        "partition": partition,
        "replicas": list(replicas),
        "adding": list(adding),
        "removing": list(removing),
        "target": list(target),
        "run_id": run_id,
        "waits_for": [],
        "down": [],
    }
    before: list[JsonValue] = [replica for replica in replicas if replica not in adding]
    return OngoingWork(f"{topic}-{partition}", before, list(target), run_id, document=document)


QUIET = StatusView(
    "payments", "sandbox", "127.0.0.1:19092", activities=(Activity(quiet="no moves"),), last=HISTORY[1]
)
BUSY = StatusView(
    "payments",
    "sandbox",
    "127.0.0.1:19092",
    unfinished=(build_document(UnfinishedRun, HISTORY[0], unknown=STEPS[1:2], not_begun=4),),
    activities=(
        Activity(
            ("2 partitions moving",),
            "no moves",
            "Moves in flight:",
            (
                _make_move("orders", 0, [1, 2, 3, 4], [4], [3], RUN_ID),
                _make_move("payments.captured", 11, [1, 2, 3], [3]),
            ),
        ),
    ),
    lock=LockInfo("bob@ci", 4711, "kdeclare apply", "2026-01-31T13:00:00Z"),
)
