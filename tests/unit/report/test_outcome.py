"""Headline, status and exit code have one source and agree with each other."""

from dataclasses import replace

import pytest

from kdeclare.core.diagnostics import Diagnostic, denied, error, warning
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.plan import ClusterRef, Ownership, Plan, Summary, Verdict, VerdictOutcome
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.providers.kafka.topic.record import TopicRecord
from kdeclare.report.outcome import (
    count_adopted,
    format_target,
    plan_outcome,
    run_outcome,
    validation_outcome,
)
from kdeclare.report.run.views import ValidationView
from tests.unit.report.sample_plans import CREATE_ORDERS, ORDERS, SAMPLES, make_plan
from tests.unit.report.sample_runs import DENIED, EVERYTHING, RUNS, make_results

PLANS = {
    "no-changes": (0, 0),
    "adopting": (0, 0),
    "orphans": (0, 0),
    "create": (0, 2),
    "everything": (0, 2),
    "blocked": (3, 3),
    "judged": (3, 3),
    "errors": (1, 1),
    "rollback": (0, 2),
    "cannot-undo": (0, 0),
    "nothing-to-undo": (0, 0),
}


@pytest.mark.parametrize("name", PLANS)
def test_plan_exit_codes_match_samples(name: str) -> None:
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
    "refused": 3,
    "judged": 3,
    "refused-alone": 3,
    "refused-and-failed": 5,
    "interrupted": 130,
    "rolled-back": 5,
    "all-failed": 5,
    "journal-lost": 5,
}


@pytest.mark.parametrize("name", RUNS)
def test_run_exit_codes_match_samples(name: str) -> None:
    assert int(run_outcome(RUNS[name]).exit_code) == RUN_CODES[name]


def test_plan_outcome_prefers_error_over_denial() -> None:
    both = make_plan(changes=(CREATE_ORDERS,), diagnostics=(denied("guard", "No"), error("bad", "Wrong")))
    assert plan_outcome(both).exit_code is ExitCode.ERROR


def test_plan_outcome_is_denied_by_deny_verdict_only() -> None:
    def plan_with_verdict(outcome: VerdictOutcome) -> Plan:
        return make_plan(changes=(CREATE_ORDERS,), verdicts=(Verdict("p", str(ORDERS), outcome),))

    assert plan_outcome(plan_with_verdict(VerdictOutcome.DENY)).exit_code is ExitCode.DENIED
    assert plan_outcome(plan_with_verdict(VerdictOutcome.WARN)).exit_code is ExitCode.OK
    assert plan_outcome(plan_with_verdict(VerdictOutcome.ALLOW)).exit_code is ExitCode.OK


def test_plan_with_denial_only_is_denied() -> None:
    outcome = plan_outcome(make_plan(diagnostics=(denied("guard", "No"),), summary=Summary(blocked=1)))
    assert (outcome.status, outcome.exit_code) == ("denied", ExitCode.DENIED)
    assert "No changes" not in outcome.headline


def test_rollback_that_undoes_nothing_is_partial() -> None:
    outcome = run_outcome(ApplyResult(None, SAMPLES["cannot-undo"], {}))
    assert outcome.exit_code is ExitCode.PARTIAL
    assert outcome.headline.startswith("Nothing was rolled back")


def test_run_with_errors_and_nothing_done_is_error() -> None:
    outcome = run_outcome(ApplyResult(None, make_plan(), {}, (error("bad", "Wrong"),)))
    assert (outcome.status, outcome.exit_code) == ("error", ExitCode.ERROR)


def test_run_without_results_counts_operations_as_not_started() -> None:
    outcome = run_outcome(ApplyResult("r", SAMPLES["create"], {}))
    assert outcome.exit_code is ExitCode.PARTIAL
    assert "1 not started" in outcome.headline


def make_refused_run(**ends: tuple[Status, str | None, str, str | None]) -> ApplyResult:
    """A run of all kinds of operations; a broker policy refused the third."""
    return ApplyResult("r", EVERYTHING, make_results(EVERYTHING, _2=DENIED, **ends))


def test_run_is_denied_if_failures_depend_on_denied_operation() -> None:
    ids = [op.id for op in EVERYTHING.operations]
    far = make_refused_run(_3=(Status.SKIPPED, None, "", ids[2]), _4=(Status.SKIPPED, None, "", ids[3]))
    outcome = run_outcome(far)
    assert (outcome.status, outcome.exit_code) == ("denied", ExitCode.DENIED)
    assert outcome.headline.endswith("6 of 9 operations done, 1 denied, 2 skipped.")


@pytest.mark.parametrize(
    "other",
    [
        (Status.FAILED, "X", "no", None),
        (Status.SKIPPED, None, "for another reason", None),
        (Status.SKIPPED, None, "in a circle", "CIRCLE"),
        (Status.SKIPPED, None, "after what was not begun", "gone"),
        (Status.STALE, "stale", "changed", None),
        (Status.UNKNOWN, "TIMED_OUT", "", None),
        (Status.STARTED, "move-timeout", "", None),
        (Status.INTERRUPTED, None, "", None),
    ],
)
def test_run_is_partial_if_other_operations_failed(other: tuple[Status, str | None, str, str | None]) -> None:
    own = EVERYTHING.operations[7].id
    end = (*other[:3], own) if other[3] == "CIRCLE" else other
    outcome = run_outcome(make_refused_run(_7=end))
    assert (outcome.status, outcome.exit_code) == ("partial", ExitCode.PARTIAL)
    assert "1 denied" in outcome.headline


def test_run_is_denied_while_other_operations_continue() -> None:
    assert run_outcome(make_refused_run(_6=(Status.STARTED, None, "", None))).exit_code is ExitCode.DENIED


def test_run_headline_adds_denials_before_and_during_run() -> None:
    run = ApplyResult("r", SAMPLES["judged"], make_results(SAMPLES["judged"], _0=DENIED))
    assert run_outcome(run).headline.endswith("1 of 2 operations done, 3 denied.")


@pytest.mark.parametrize(
    ("found", "headline", "code"),
    [
        ((), "Valid: 2 resources in 1 file.", 0),
        ((warning("w", "Careful"),), "Valid: 2 resources in 1 file, 1 warning.", 0),
        ((denied("d", "No"), warning("w", "Careful")), "Not valid: 1 denial, 1 warning in 1 file.", 3),
        ((denied("d", "No"), error("e", "Wrong")), "Not valid: 1 error, 1 denial in 1 file.", 1),
    ],
)
def test_validation_outcome_summarizes_diagnostics(
    found: tuple[Diagnostic, ...], headline: str, code: int
) -> None:
    outcome = validation_outcome(ValidationView(1, 2, found))
    assert (outcome.headline, int(outcome.exit_code)) == (headline, code)


def test_count_adopted_counts_unchanged_adoptions_only() -> None:
    changed = make_plan(
        changes=(CREATE_ORDERS,),
        ownership=(
            Ownership(ORDERS, None, TopicRecord()),
            Ownership(replace(ORDERS, name="a"), None, TopicRecord()),
            Ownership(replace(ORDERS, name="b"), TopicRecord(), TopicRecord(partitions=1)),
            Ownership(replace(ORDERS, name="c"), TopicRecord(), None),
        ),
    )
    assert count_adopted(changed) == 1


def test_format_target_names_cluster_once() -> None:
    assert format_target(make_plan()) == "payments/sandbox on 127.0.0.1:19092"
    assert format_target(make_plan(cluster=ClusterRef("abc", "sandbox"))) == "payments/sandbox on cluster abc"


def test_run_with_denial_and_all_done_is_partially_applied() -> None:
    plan = SAMPLES["judged"]
    outcome = run_outcome(ApplyResult("r", plan, make_results(plan)))
    assert (outcome.status, outcome.exit_code) == ("denied", ExitCode.DENIED)
    assert outcome.headline.startswith("Partially applied to ")
    assert outcome.headline.endswith(": 2 done, 2 denied.")
    assert outcome.gist == "partially applied: 2 done, 2 denied"


def test_gist_of_other_runs_is_their_status() -> None:
    plan = SAMPLES["judged"]
    nothing = run_outcome(ApplyResult(None, replace(plan, operations=()), {}))
    assert (nothing.status, nothing.gist) == ("denied", "denied")
