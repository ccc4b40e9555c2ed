"""Running test cases: policies are evaluated as in a plan, but a policy that fails never passes a case."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.policy.configured_policy import ConfiguredPolicy, Selector
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicActionsPolicy
from kdeclare.policy.testing.case_requests import CaseRequest, CaseState
from kdeclare.policy.testing.case_run import CaseResult, check_case_policies, run_cases
from kdeclare.policy.testing.cases import Case

ALLOW, WARN, DENY = VerdictOutcome
HERE = SourcePosition("it.yaml", 7, 13)
POST = CaseState("post", 3, 2, overrides={})


class CallingPolicy(TopicActionsPolicy):
    """A policy that calls a function."""

    def __init__(self, ask: Callable[[RequestMetadata], object]) -> None:
        self._ask = ask

    def validate(self, request: RequestMetadata) -> None:
        self._ask(request)


class ReturningPolicy(TopicActionsPolicy):
    """A mistake: returns its verdict instead of raising."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def validate(self, request: RequestMetadata) -> Any:
        return self._answer


def configure_asking_policy(
    name: str, ask: Callable[[RequestMetadata], object], **more: Any
) -> ConfiguredPolicy:
    return ConfiguredPolicy(name, CallingPolicy(ask), **more)


def require_minimum(name: str, field: str, least: int, **more: Any) -> ConfiguredPolicy:
    """Return a policy that requires a minimum of a number in the state after the change."""

    def ask(request: RequestMetadata) -> None:
        if getattr(request.post_request_state, field) < least:
            raise PolicyViolation(f"at least {least} {name} are required")

    return configure_asking_policy(name, ask, **more)


def make_case(expect: VerdictOutcome = DENY, **more: Any) -> Case:
    """Return a case for the creation of a topic with 3 partitions and 2 replicas."""
    request = more.pop("request", CaseRequest(Action.CREATE, "orders", post_request_state=POST))
    policy, message = more.pop("policy", None), more.pop("message", None)
    return Case("test", "it", request, expect, policy, message, HERE, HERE)


def run_case(*policies: ConfiguredPolicy, of: Case, limit_s: float = 30.0) -> CaseResult:
    [result] = run_cases(policies, [of], limit_s)
    return result


def refuse(request: RequestMetadata) -> None:
    raise PolicyViolation("Never.")


def allow(request: RequestMetadata) -> None:
    return None


REPLICAS = require_minimum("replicas", "replication_factor", 3)
PARTITIONS = require_minimum("partitions", "num_partitions", 4, outcome=WARN)


@pytest.mark.parametrize(
    ("policies", "outcome"),
    [
        ((), ALLOW),
        ((configure_asking_policy("a", allow),), ALLOW),
        ((PARTITIONS, configure_asking_policy("a", allow)), WARN),
        ((PARTITIONS, REPLICAS, configure_asking_policy("a", allow)), DENY),
        ((configure_asking_policy("other", refuse, selector=Selector(("payments",))),), ALLOW),
        ((configure_asking_policy("other", refuse, actions=frozenset({Action.DELETE})),), ALLOW),
    ],
)
def test_case_outcome_is_worst_verdict(
    policies: tuple[ConfiguredPolicy, ...], outcome: VerdictOutcome
) -> None:
    for expected in VerdictOutcome:
        result = run_case(*policies, of=make_case(expected))
        assert result.outcome is outcome
        assert result.passed is (expected is outcome)
        assert result.problems == ()


def test_case_verdicts_have_form_of_plan_verdicts() -> None:
    result = run_case(REPLICAS, PARTITIONS, of=make_case())
    assert result.verdicts == (
        Verdict("replicas", "Topic/orders", DENY, "at least 3 replicas are required"),
        Verdict("partitions", "Topic/orders", WARN, "at least 4 partitions are required"),
    )


def test_case_with_policy_name_runs_only_that_policy() -> None:
    result = run_case(REPLICAS, PARTITIONS, of=make_case(WARN, policy="partitions"))
    assert result.passed
    assert [v.policy for v in result.verdicts] == ["partitions"]


@pytest.mark.parametrize(
    ("message", "passed"), [("3 replicas", True), ("4 partitions", False), ("nonsense", False)]
)
def test_case_message_must_match_deciding_verdict(message: str, passed: bool) -> None:
    result = run_case(REPLICAS, PARTITIONS, of=make_case(message=message))
    assert (result.outcome, result.passed) == (DENY, passed)
    assert result.problems == (() if passed else (f"no message contains '{message}'",))


def test_case_message_is_not_checked_for_other_outcome() -> None:
    assert run_case(PARTITIONS, of=make_case(message="nonsense")).problems == ()


@pytest.mark.parametrize("expect", VerdictOutcome)
def test_missing_case_field_fails_case(expect: VerdictOutcome) -> None:
    result = run_case(configure_asking_policy("racks", lambda r: r.racks), REPLICAS, of=make_case(expect))
    assert (result.outcome, result.passed) == (None, False)
    assert result.problems == ("policy racks reads 'racks', which the case does not set",)
    assert [v.policy for v in result.verdicts] == ["replicas"]


@pytest.mark.parametrize("ask", [lambda r: r.racks, lambda r: r.pre_request_state.configs])
@pytest.mark.parametrize("denies", [False, True])
def test_missing_case_field_fails_case_after_bare_except(
    ask: Callable[[RequestMetadata], object], denies: bool
) -> None:
    def ask_and_catch(request: RequestMetadata) -> None:
        try:
            ask(request)
        except:  # noqa: E722  as somebody will write it
            if denies:
                raise PolicyViolation("Never.") from None

    request = CaseRequest(Action.MODIFY, "orders", None, {}, CaseState("pre"), POST)
    result = run_case(
        configure_asking_policy("careless", ask_and_catch), REPLICAS, of=make_case(request=request)
    )
    assert (result.outcome, result.passed) == (None, False)
    assert len(result.problems) == 1
    assert "policy careless reads" in result.problems[0]
    assert [v.policy for v in result.verdicts] == ["replicas"]


def test_policy_return_value_does_not_pass_expected_denial() -> None:
    result = run_case(ConfiguredPolicy("slip", ReturningPolicy(False)), of=make_case())
    assert (result.outcome, result.passed) == (None, False)
    assert result.problems[0].startswith("Policy 'slip' returned False, but")


def test_policy_failure_does_not_pass_expected_denial() -> None:
    result = run_case(configure_asking_policy("broken", lambda r: 1 / 0), of=make_case())
    assert (result.outcome, result.passed) == (None, False)
    [problem] = result.problems
    assert problem.startswith("Policy 'broken' failed, so the request is denied: ZeroDivisionError")


def test_policy_time_out_fails_only_its_own_cases() -> None:
    slow = configure_asking_policy("slow", lambda r: time.sleep(5))
    results = run_cases(
        [slow, REPLICAS], [make_case(), make_case(policy="slow"), make_case(policy="replicas")], 0.5
    )
    assert [result.passed for result in results] == [False, False, True]
    assert results[0].problems == ("Policy 'slow' timed out after 0.5 s.",)
    assert "is not called again" in results[1].problems[0]


def test_missing_field_of_partial_state_is_named() -> None:
    request = CaseRequest(
        Action.MODIFY,
        "orders",
        pre_request_state=CaseState("pre", 3, overrides={}),
        post_request_state=POST,
    )
    assert run_case(
        configure_asking_policy("all", lambda r: r.changed), of=make_case(ALLOW, request=request)
    ).problems == ("policy all reads 'pre.replicationFactor', which the case does not set",)


def test_unknown_policy_names_are_reported_with_hint() -> None:
    cases = [make_case(policy="replica"), make_case(policy="replicas"), make_case(), make_case(policy="else")]
    found = check_case_policies(cases, [REPLICAS])
    assert [(d.code, d.place, d.hint) for d in found] == [
        ("unknown-policy", HERE, "Did you mean 'replicas'?"),
        ("unknown-policy", HERE, "Use one of replicas."),
    ]
    assert check_case_policies([make_case(policy="a")], [])[0].hint == "Add the policy to the project."


@pytest.mark.parametrize(
    ("asked", "labels", "problems"),
    [
        (True, {"tier": "gold"}, ()),
        (
            True,
            {"teir": "gold"},
            ("policy p does not apply to this case, because of the policy's actions or selector",),
        ),
        (False, {"teir": "gold"}, ()),
        (False, {"tier": "gold"}, ("p applies to this case, although 'asked' is false",)),
        (None, {"teir": "gold"}, ()),
    ],
)
def test_case_checks_whether_policy_applies(
    asked: bool | None, labels: dict[str, str], problems: tuple[str, ...]
) -> None:
    fine = configure_asking_policy("p", lambda request: None, selector=Selector(labels={"tier": "gold"}))
    request = CaseRequest(Action.CREATE, "orders", given_labels=labels, post_request_state=POST)
    [result] = run_cases([fine], [replace(make_case(ALLOW, request=request, policy="p"), asked=asked)])
    assert (result.problems, result.passed) == (problems, not problems)
