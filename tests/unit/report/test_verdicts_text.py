"""What policies said, in words."""

from dataclasses import replace

from kdeclare.core.plans.plan import SYSTEM_POLICY, Verdict
from kdeclare.report.elements.diagnostics_text import (
    HINT,
    hint_of,
    policies_line,
    policies_text,
    spoken,
    verdict_lines,
)
from kdeclare.report.plan.plan_text import plan_text
from tests.unit.report.sample_plans import ALLOW, DENY, ORDERS, SAMPLES, WARN, plan

DENIED = Verdict("bounds", str(ORDERS), DENY, "too many")
BROKERS = Verdict(SYSTEM_POLICY, str(ORDERS), DENY, "not today")
ALLOWED = Verdict("naming", str(ORDERS), ALLOW)
WARNED = Verdict("naming", str(ORDERS), WARN, "no team")
OVERRIDDEN = Verdict("factor", str(ORDERS), WARN, "one replica", override="only a test")


def test_denials_come_first_and_what_allows_says_nothing() -> None:
    assert spoken([WARNED, ALLOWED, OVERRIDDEN, BROKERS, DENIED]) == [BROKERS, DENIED, OVERRIDDEN, WARNED]


def test_the_brokers_are_not_counted() -> None:
    assert policies_line([ALLOWED, replace(ALLOWED, policy="x"), DENIED, BROKERS, OVERRIDDEN]) == (
        "Policies: 4 asked, 2 of 4 verdicts allow."
    )
    assert policies_line([ALLOWED]) == "Policies: 1 asked, 1 of 1 verdict allows."
    assert policies_line([DENIED]) == "Policies: 1 asked, 0 of 1 verdicts allow."
    assert policies_line([ALLOWED, DENIED]).endswith(" 1 of 2 verdicts allow.")
    assert policies_line([BROKERS]) == policies_line([]) == ""


def test_the_hint_is_for_what_can_be_overridden() -> None:
    assert hint_of(plan(verdicts=(DENIED,))) == HINT
    assert HINT in policies_text([DENIED], [], hint=HINT)
    for other in (BROKERS, WARNED, OVERRIDDEN, ALLOWED):
        assert hint_of(plan(verdicts=(other,))) == ""


def test_the_hint_stands_once() -> None:
    many = plan(verdicts=(DENIED, replace(DENIED, policy="other"), replace(DENIED, resource="Topic/x")))
    assert plan_text(many).count(HINT) == 1
    assert HINT not in plan_text(SAMPLES["create"])


def test_brokers_alone_have_a_title_too() -> None:
    assert policies_text([BROKERS], [BROKERS]) == (
        "Policies:\n  Topic/orders: denied by a policy of the brokers: not today\n"
    )
    assert policies_text([], []) == ""


def test_lines() -> None:
    assert verdict_lines([replace(DENIED, topic="o\x1b", message="")]) == [
        "denied by policy bounds on topic o\\x1b"
    ]
    assert verdict_lines([OVERRIDDEN], resource=True) == [
        "Topic/orders: overridden policy factor: one replica",
        "  reason: only a test",
    ]
    assert verdict_lines([replace(WARNED, message="a\nb\x1b")]) == [
        "warned by policy naming: a",
        "  b\\x1b",
    ]


def test_of_very_many_some_are_shown() -> None:
    lines = verdict_lines([replace(DENIED, topic=f"t{n}") for n in range(1000)])
    assert len(lines) == 21
    assert lines[-1] == "… and 980 more verdicts"
