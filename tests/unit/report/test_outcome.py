"""Headline, status and exit code come from one place and fit each other."""

from dataclasses import replace

import pytest

from kdeclare.model.diagnostics import denied, error
from kdeclare.model.exits import ExitCode
from kdeclare.model.plan import ClusterRef, Ownership, Plan, Summary, Verdict
from kdeclare.model.run import RunResult
from kdeclare.report.outcome import adopting, plan_outcome, run_outcome, where
from tests.unit.report.sample_plans import CREATE_ORDERS, ORDERS, SAMPLES, plan
from tests.unit.report.sample_runs import RUNS

PLANS = {
    "no-changes": (0, 0),
    "adopting": (0, 0),
    "orphans": (0, 0),
    "create": (0, 2),
    "everything": (0, 2),
    "blocked": (3, 3),
    "errors": (1, 1),
    "rollback": (0, 2),
    "cannot-undo": (0, 0),
    "nothing-to-undo": (0, 0),
}


@pytest.mark.parametrize("name", PLANS)
def test_plans(name: str) -> None:
    codes = tuple(int(plan_outcome(SAMPLES[name], detailed).exit_code) for detailed in (False, True))
    assert codes == PLANS[name]


RUN_CODES = {
    "done": 0,
    "nothing": 0,
    "adopted": 0,
    "forgot": 0,
    "started": 0,
    "partial": 5,
    "lost-sight": 5,
    "denied": 3,
    "interrupted": 130,
    "rolled-back": 5,
    "all-failed": 5,
    "journal-lost": 5,
}


@pytest.mark.parametrize("name", RUNS)
def test_runs(name: str) -> None:
    assert int(run_outcome(RUNS[name]).exit_code) == RUN_CODES[name]


def test_an_error_weighs_more_than_a_denial() -> None:
    both = plan(changes=(CREATE_ORDERS,), diagnostics=(denied("guard", "No"), error("bad", "Wrong")))
    assert plan_outcome(both).exit_code is ExitCode.ERROR


def test_a_denying_verdict_is_enough_and_a_warning_one_is_not() -> None:
    def judged(outcome: str) -> Plan:
        return plan(changes=(CREATE_ORDERS,), verdicts=(Verdict("p", str(ORDERS), outcome, ""),))

    assert plan_outcome(judged("deny")).exit_code is ExitCode.DENIED
    assert plan_outcome(judged("warn")).exit_code is ExitCode.OK


def test_a_denial_without_a_change_is_no_no_changes() -> None:
    outcome = plan_outcome(plan(diagnostics=(denied("guard", "No"),), summary=Summary(blocked=1)))
    assert (outcome.status, outcome.exit_code) == ("denied", ExitCode.DENIED)
    assert "No changes" not in outcome.headline


def test_a_rollback_that_can_do_nothing_is_partial() -> None:
    outcome = run_outcome(RunResult(None, SAMPLES["cannot-undo"], {}))
    assert outcome.exit_code is ExitCode.PARTIAL
    assert outcome.headline.startswith("Nothing was rolled back")


def test_errors_with_nothing_done() -> None:
    outcome = run_outcome(RunResult(None, plan(), {}, (error("bad", "Wrong"),)))
    assert (outcome.status, outcome.exit_code) == ("error", ExitCode.ERROR)


def test_what_nothing_was_heard_of_was_not_begun() -> None:
    outcome = run_outcome(RunResult("r", SAMPLES["create"], {}))
    assert outcome.exit_code is ExitCode.PARTIAL
    assert "1 not begun" in outcome.headline


def test_adopting_counts_only_what_is_taken_over_unchanged() -> None:
    changed = plan(
        changes=(CREATE_ORDERS,),
        ownership=(
            Ownership(ORDERS, None, {}),
            Ownership(replace(ORDERS, name="a"), None, {}),
            Ownership(replace(ORDERS, name="b"), {}, {"x": 1}),
            Ownership(replace(ORDERS, name="c"), {}, None),
        ),
    )
    assert adopting(changed) == 1


def test_where_names_the_cluster_once() -> None:
    assert where(plan()) == "payments/sandbox on 127.0.0.1:19092"
    assert where(plan(cluster=ClusterRef("abc", "sandbox"))) == "payments/sandbox on cluster abc"
