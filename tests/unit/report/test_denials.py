"""Resources with some denied topics: which changes are made and which are not."""

from dataclasses import replace

import pytest

from kdeclare.core.diagnostics import denied
from kdeclare.core.plans.plan import Ownership, Plan, Summary, Verdict
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.core.resources.changes import Reason
from kdeclare.providers.kafka.topic.record import TopicRecord
from kdeclare.report.elements.markdown_escape import escape_code
from kdeclare.report.outcome import plan_outcome, run_outcome
from kdeclare.report.plan.plan_markdown import plan_markdown
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.report.run.documents import build_run_document
from kdeclare.report.run.run_text import render_run_text
from tests.unit.report.sample_plans import (
    ALLOW,
    DENY,
    DRAIN,
    DRIFT_REFUNDS,
    MOVE,
    ORDERS,
    make_field_change,
    make_operation,
    make_plan,
)
from tests.unit.report.sample_runs import DENIED, RUN_ID, make_results

TWO = replace(
    MOVE,
    fields=(
        make_field_change("replicas.orders-0", [1, 2], [1, 3]),
        make_field_change("replicas.a-b-0", [1], [3]),
    ),
)
VERDICTS = (
    Verdict("racks", str(DRAIN), DENY, "no", topic="orders"),
    Verdict("more", str(DRAIN), DENY, "nor so", topic="orders"),
    Verdict("racks", str(DRAIN), ALLOW, topic="a-b"),
)
MOVING = make_operation("partitions.reassign", DRAIN, moved={"a-b-0": ([1], [3])})
PARTLY = make_plan(
    summary=Summary(update=1, reassign=1), changes=(TWO,), operations=(MOVING,), verdicts=VERDICTS
)
BESIDE = replace(
    PARTLY,
    summary=Summary(update=1, reassign=1, blocked=1),
    changes=(TWO, replace(DRIFT_REFUNDS, blocked="policy-violation")),
    verdicts=(*VERDICTS, Verdict("racks", str(DRIFT_REFUNDS.id), DENY, "no")),
)


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        (PARTLY, "1 to change (1 partition to move), 1 topic denied"),
        (BESIDE, "1 to change (1 partition to move), 1 blocked, 1 topic denied"),
    ],
)
def test_plan_headline_counts_denied_topics(given: Plan, counts: str) -> None:
    headline = plan_outcome(given).headline
    assert headline.endswith(f": {counts}.")
    assert plan_text(given).startswith(headline)
    assert plan_text(given).splitlines()[-1] == f"Summary: {counts}"
    assert counts in plan_markdown(given).splitlines()[0]


def test_plan_headline_does_not_count_blocked_topics_twice() -> None:
    whole = replace(PARTLY, summary=Summary(blocked=1), changes=(replace(TWO, blocked="policy-violation"),))
    assert plan_outcome(replace(whole, operations=())).headline.endswith(": 1 blocked.")


@pytest.mark.parametrize(
    ("given", "counts"), [(PARTLY, "1 topic denied"), (BESIDE, "1 denied, 1 topic denied")]
)
def test_run_headline_counts_denied_topics(given: Plan, counts: str) -> None:
    run = ApplyResult(RUN_ID, given, make_results(given))
    assert run_outcome(run).headline.endswith(f": 1 done, {counts}.")
    assert build_run_document(run).headline == run_outcome(run).headline


def test_headline_counts_partial_denials() -> None:
    guarded = replace(PARTLY, verdicts=(), diagnostics=(denied("guard", "No", resource=str(DRAIN)),))
    assert plan_outcome(guarded).headline.endswith("(1 partition to move), 1 denial.")
    assert run_outcome(ApplyResult(RUN_ID, guarded, make_results(guarded))).headline.endswith(
        "done, 1 denied."
    )


def test_plan_marks_denied_partitions() -> None:
    rows = [line for line in plan_text(PARTLY).splitlines() if "replicas." in line]
    assert [row.endswith("  denied") for row in rows] == [True, False]
    table = plan_markdown(PARTLY)
    orders, other = escape_code("replicas.orders-0"), escape_code("replicas.a-b-0")
    assert f"| {orders} | **denied** | {escape_code('[1, 2]')} | {escape_code('[1, 3]')} |" in table
    assert f"| {other} |  | {escape_code('[1]')} | {escape_code('[3]')} |" in table
    assert f"| {orders} (denied), {other} |" in table


def test_plan_marks_blocked_change_once() -> None:
    rows = [line for line in plan_text(BESIDE).splitlines() if "retention.ms" in line]
    assert not any(row.endswith("denied") for row in rows)


def find_next_line(run: ApplyResult) -> str:
    """Return the line about the changes that were not denied."""
    return next(line for line in render_run_text(run).splitlines() if line.startswith("next: Denied changes"))


def test_run_text_states_outcome_of_other_changes() -> None:
    orders = make_plan(
        operations=(make_operation("topic.create", ORDERS),),
        ownership=(Ownership(ORDERS, None, TopicRecord()),),
    )
    left = "next: Denied changes were not made."
    started = (Status.STARTED, None, "", None)
    both = replace(PARTLY, operations=(MOVING, make_operation("configs.alter", ORDERS)))
    for run, rest in (
        (ApplyResult(RUN_ID, PARTLY, make_results(PARTLY)), "Everything else is done."),
        (
            ApplyResult(RUN_ID, PARTLY, make_results(PARTLY, _0=started)),
            "Everything else is still in progress in the cluster.",
        ),
        (
            ApplyResult(RUN_ID, both, make_results(both, _0=started)),
            "Everything else is done, or still in progress in the cluster.",
        ),
        (ApplyResult(RUN_ID, orders, make_results(orders, _0=DENIED)), "There was nothing else to do."),
        (ApplyResult(None, replace(PARTLY, operations=()), {}), "There was nothing else to do."),
        (
            ApplyResult(RUN_ID, replace(PARTLY, operations=(), ownership=orders.ownership), {}),
            "Everything else is done.",
        ),
    ):
        assert find_next_line(run) == f"{left} {rest}"


def test_denial_hint_depends_on_origin_of_change() -> None:
    manifest = "hint: Change the manifest, ask the owners of the policy, or pass --override-policy NAME"
    alone = "hint: Ask the owners of the policy, or pass --override-policy NAME"
    asked = replace(PARTLY, changes=(replace(TWO, reason=Reason.ASKED),))
    assert manifest in plan_text(PARTLY)
    assert "Hint: Change the manifest" in plan_markdown(PARTLY)
    for other in (asked, replace(PARTLY, undoes="run-1")):
        assert alone in plan_text(other)
        assert "Hint: Ask the owners of the policy" in plan_markdown(other)
