"""The text of policy verdicts."""

from dataclasses import replace

from kdeclare.core.plans.plan import SYSTEM_POLICY, Verdict
from kdeclare.report.elements.diagnostics_text import (
    DENIAL_HINT,
    find_denial_hint,
    format_policy_counts,
    render_policies,
    render_verdict_lines,
    select_notable_verdicts,
)
from kdeclare.report.plan.plan_text import plan_text
from tests.unit.report.sample_plans import ALLOW, DENY, ORDERS, SAMPLES, WARN, make_plan

DENIED = Verdict("bounds", str(ORDERS), DENY, "too many")
BROKERS = Verdict(SYSTEM_POLICY, str(ORDERS), DENY, "not today")
ALLOWED = Verdict("naming", str(ORDERS), ALLOW)
WARNED = Verdict("naming", str(ORDERS), WARN, "no team")
OVERRIDDEN = Verdict("factor", str(ORDERS), WARN, "one replica", override="only a test")


def test_notable_verdicts_omit_allow_and_start_with_denials() -> None:
    assert select_notable_verdicts([WARNED, ALLOWED, OVERRIDDEN, BROKERS, DENIED]) == [
        BROKERS,
        DENIED,
        OVERRIDDEN,
        WARNED,
    ]


def test_policy_counts_omit_brokers() -> None:
    assert format_policy_counts([ALLOWED, replace(ALLOWED, policy="x"), DENIED, BROKERS, OVERRIDDEN]) == (
        "Policies: 4 evaluated. Verdicts: 2 allow, 1 overridden, 1 deny."
    )
    assert format_policy_counts([ALLOWED]) == "Policies: 1 evaluated. Verdicts: 1 allow."
    assert format_policy_counts([DENIED]) == "Policies: 1 evaluated. Verdicts: 1 deny."
    assert format_policy_counts([ALLOWED, WARNED, WARNED]).endswith(" 1 allow, 2 warn.")
    assert format_policy_counts([BROKERS]) == format_policy_counts([]) == ""


def test_denial_hint_is_given_for_overridable_denials_only() -> None:
    assert find_denial_hint(make_plan(verdicts=(DENIED,))) == DENIAL_HINT
    assert DENIAL_HINT in render_policies([DENIED], [], hint=DENIAL_HINT)
    for other in (BROKERS, WARNED, OVERRIDDEN, ALLOWED):
        assert find_denial_hint(make_plan(verdicts=(other,))) == ""


def test_denial_hint_is_shown_once() -> None:
    many = make_plan(verdicts=(DENIED, replace(DENIED, policy="other"), replace(DENIED, resource="Topic/x")))
    assert plan_text(many).count(DENIAL_HINT) == 1
    assert DENIAL_HINT not in plan_text(SAMPLES["create"])


def test_broker_verdicts_alone_have_title() -> None:
    assert render_policies([BROKERS], [BROKERS]) == (
        "Policies:\n  Topic/orders: denied by a broker policy: not today\n"
    )
    assert render_policies([], []) == ""


def test_verdict_lines_show_resource_reason_and_message() -> None:
    assert render_verdict_lines([replace(DENIED, topic="o\x1b", message="")]) == [
        "denied by policy bounds on topic o\\x1b"
    ]
    assert render_verdict_lines([OVERRIDDEN], with_resource=True) == [
        "Topic/orders: overridden policy factor: one replica",
        "  reason: only a test",
    ]
    assert render_verdict_lines([replace(WARNED, message="a\nb\x1b")]) == [
        "warned by policy naming: a",
        "  b\\x1b",
    ]


def test_verdict_lines_shorten_many_verdicts() -> None:
    lines = render_verdict_lines([replace(DENIED, topic=f"t{n}") for n in range(1000)])
    assert len(lines) == 21
    assert lines[-1] == "… and 980 more verdicts"
