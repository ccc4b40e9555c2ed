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


class Asks(TopicActionsPolicy):
    """A policy that calls a function."""

    def __init__(self, ask: Callable[[RequestMetadata], object]) -> None:
        self._ask = ask

    def validate(self, request: RequestMetadata) -> None:
        self._ask(request)


class Returns(TopicActionsPolicy):
    """A mistake: returns its verdict instead of raising."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def validate(self, request: RequestMetadata) -> Any:
        return self._answer


def held(name: str, ask: Callable[[RequestMetadata], object], **more: Any) -> ConfiguredPolicy:
    return ConfiguredPolicy(name, Asks(ask), **more)


def at_least(name: str, field: str, least: int, **more: Any) -> ConfiguredPolicy:
    """Return a policy that requires a minimum of a number in the state after the change."""

    def ask(request: RequestMetadata) -> None:
        if getattr(request.post_request_state, field) < least:
            raise PolicyViolation(f"at least {least} {name} are required")

    return held(name, ask, **more)


def case(expect: VerdictOutcome = DENY, **more: Any) -> Case:
    """Return a case for the creation of a topic with 3 partitions and 2 replicas."""
    request = more.pop("request", CaseRequest(Action.CREATE, "orders", post_request_state=POST))
    policy, message = more.pop("policy", None), more.pop("message", None)
    return Case("test", "it", request, expect, policy, message, HERE, HERE)


def run(*policies: ConfiguredPolicy, of: Case, limit_s: float = 30.0) -> CaseResult:
    [result] = run_cases(policies, [of], limit_s)
    return result


def refuse(request: RequestMetadata) -> None:
    raise PolicyViolation("Never.")


def allow(request: RequestMetadata) -> None:
    return None


REPLICAS = at_least("replicas", "replication_factor", 3)
PARTITIONS = at_least("partitions", "num_partitions", 4, outcome=WARN)


@pytest.mark.parametrize(
    ("policies", "outcome"),
    [
        ((), ALLOW),
        ((held("a", allow),), ALLOW),
        ((PARTITIONS, held("a", allow)), WARN),
        ((PARTITIONS, REPLICAS, held("a", allow)), DENY),
        ((held("other", refuse, selector=Selector(("payments",))),), ALLOW),
        ((held("other", refuse, actions=frozenset({Action.DELETE})),), ALLOW),
    ],
)
def test_the_worst_verdict_decides(policies: tuple[ConfiguredPolicy, ...], outcome: VerdictOutcome) -> None:
    for expected in VerdictOutcome:
        result = run(*policies, of=case(expected))
        assert result.outcome is outcome
        assert result.passed is (expected is outcome)
        assert result.problems == ()


def test_the_verdicts_are_those_of_a_plan() -> None:
    result = run(REPLICAS, PARTITIONS, of=case())
    assert result.verdicts == (
        Verdict("replicas", "Topic/orders", DENY, "at least 3 replicas are required"),
        Verdict("partitions", "Topic/orders", WARN, "at least 4 partitions are required"),
    )


def test_one_policy_alone() -> None:
    result = run(REPLICAS, PARTITIONS, of=case(WARN, policy="partitions"))
    assert result.passed
    assert [v.policy for v in result.verdicts] == ["partitions"]


@pytest.mark.parametrize(
    ("message", "passed"), [("3 replicas", True), ("4 partitions", False), ("nonsense", False)]
)
def test_the_message_of_a_deciding_verdict(message: str, passed: bool) -> None:
    result = run(REPLICAS, PARTITIONS, of=case(message=message))
    assert (result.outcome, result.passed) == (DENY, passed)
    assert result.problems == (() if passed else (f"no message contains '{message}'",))


def test_a_message_where_the_outcome_is_another_says_nothing_more() -> None:
    assert run(PARTITIONS, of=case(message="nonsense")).problems == ()


@pytest.mark.parametrize("expect", VerdictOutcome)
def test_what_a_policy_asks_for_and_is_not_given_fails_the_case(expect: VerdictOutcome) -> None:
    result = run(held("racks", lambda r: r.racks), REPLICAS, of=case(expect))
    assert (result.outcome, result.passed) == (None, False)
    assert result.problems == ("policy racks reads 'racks', which the case does not set",)
    assert [v.policy for v in result.verdicts] == ["replicas"]


@pytest.mark.parametrize("ask", [lambda r: r.racks, lambda r: r.pre_request_state.configs])
@pytest.mark.parametrize("denies", [False, True])
def test_what_is_not_given_is_not_hidden_by_a_policy_that_catches_everything(
    ask: Callable[[RequestMetadata], object], denies: bool
) -> None:
    def careless(request: RequestMetadata) -> None:
        try:
            ask(request)
        except:  # noqa: E722  as somebody will write it
            if denies:
                raise PolicyViolation("Never.") from None

    request = CaseRequest(Action.MODIFY, "orders", None, {}, CaseState("pre"), POST)
    result = run(held("careless", careless), REPLICAS, of=case(request=request))
    assert (result.outcome, result.passed) == (None, False)
    assert len(result.problems) == 1
    assert "policy careless reads" in result.problems[0]
    assert [v.policy for v in result.verdicts] == ["replicas"]


def test_a_policy_that_returns_something_is_no_denial_that_was_expected() -> None:
    result = run(ConfiguredPolicy("slip", Returns(False)), of=case())
    assert (result.outcome, result.passed) == (None, False)
    assert result.problems[0].startswith("Policy 'slip' returned False, but")


def test_a_policy_that_fails_is_no_denial_that_was_expected() -> None:
    result = run(held("broken", lambda r: 1 / 0), of=case())
    assert (result.outcome, result.passed) == (None, False)
    [problem] = result.problems
    assert problem.startswith("Policy 'broken' failed, so the request is denied: ZeroDivisionError")


def test_a_policy_that_does_not_end_fails_its_cases_and_no_others() -> None:
    slow = held("slow", lambda r: time.sleep(5))
    results = run_cases([slow, REPLICAS], [case(), case(policy="slow"), case(policy="replicas")], 0.05)
    assert [result.passed for result in results] == [False, False, True]
    assert results[0].problems == ("Policy 'slow' timed out after 0.05 s.",)
    assert "is not called again" in results[1].problems[0]


def test_states_that_are_only_half_given() -> None:
    request = CaseRequest(
        Action.MODIFY,
        "orders",
        pre_request_state=CaseState("pre", 3, overrides={}),
        post_request_state=POST,
    )
    assert run(held("all", lambda r: r.changed), of=case(ALLOW, request=request)).problems == (
        "policy all reads 'pre.replicationFactor', which the case does not set",
    )


def test_names_of_policies_that_are_not_there() -> None:
    cases = [case(policy="replica"), case(policy="replicas"), case(), case(policy="else")]
    found = check_case_policies(cases, [REPLICAS])
    assert [(d.code, d.place, d.hint) for d in found] == [
        ("unknown-policy", HERE, "Did you mean 'replicas'?"),
        ("unknown-policy", HERE, "Use one of replicas."),
    ]
    assert check_case_policies([case(policy="a")], [])[0].hint == "Add the policy to the project."


@pytest.mark.parametrize(
    ("asked", "labels", "problems"),
    [
        (True, {"tier": "gold"}, ()),
        (
            True,
            {"teir": "gold"},
            ("policy p does not apply to this case, because of its actions or its selector",),
        ),
        (False, {"teir": "gold"}, ()),
        (False, {"tier": "gold"}, ("p applies to this case",)),
        (None, {"teir": "gold"}, ()),
    ],
)
def test_whether_a_policy_is_asked_at_all(
    asked: bool | None, labels: dict[str, str], problems: tuple[str, ...]
) -> None:
    fine = held("p", lambda request: None, selector=Selector(labels={"tier": "gold"}))
    request = CaseRequest(Action.CREATE, "orders", given_labels=labels, post_request_state=POST)
    [result] = run_cases([fine], [replace(case(ALLOW, request=request, policy="p"), asked=asked)])
    assert (result.problems, result.passed) == (problems, not problems)
