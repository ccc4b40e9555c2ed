"""Texts, compared with reviewed golden files."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import Diagnostic, Severity, SourcePosition, denied, error, warning
from kdeclare.core.plans.plan import Summary
from kdeclare.core.resources.changes import Action, Change, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.planning.planfile import build_plan_document
from kdeclare.report.elements.diagnostics_text import format_severity_counts, render_diagnostics
from kdeclare.report.elements.terminal import Style, measure_width
from kdeclare.report.plan.plan_graph import list_levels
from kdeclare.report.plan.plan_text import get_icon, plan_text
from kdeclare.report.run.history_text import (
    compare_plans,
    render_history_diff_text,
    render_history_text,
    render_run_detail_text,
)
from kdeclare.report.run.run_text import render_run_text
from kdeclare.report.run.status_text import render_status_text
from tests.unit.report.golden_files import check_golden
from tests.unit.report.sample_plans import (
    CREATE_ORDERS,
    SAMPLES,
    UPDATE_PAYMENTS,
    make_config_change,
    make_operation,
    make_plan,
)
from tests.unit.report.sample_runs import BUSY, DETAIL, HISTORY, QUIET, RUNS

TYPED = st.characters(categories=("L", "N", "P", "S", "Zs"), exclude_characters="…")


@pytest.mark.parametrize("name", SAMPLES)
def test_plan_text_matches_golden_file(name: str) -> None:
    check_golden(f"plan-{name}", plan_text(SAMPLES[name], graph=name == "everything"))


@pytest.mark.parametrize("name", RUNS)
def test_run_text_matches_golden_file(name: str) -> None:
    check_golden(f"run-{name}", render_run_text(RUNS[name], seconds=1.43))


def test_status_text_matches_golden_files() -> None:
    check_golden("status-quiet", render_status_text(QUIET))
    check_golden("status-busy", render_status_text(BUSY))


def test_history_text_matches_golden_files() -> None:
    check_golden("history", render_history_text(HISTORY))
    check_golden("history-80", render_history_text(HISTORY, width=80))
    assert render_history_text(HISTORY, width=200) == render_history_text(HISTORY)
    check_golden("history-run", render_run_detail_text(DETAIL, with_steps=True))
    assert render_history_text(()) == "No runs yet.\n"


@given(st.text(TYPED, max_size=200), st.text(TYPED, max_size=40), st.integers(65, 250))
def test_history_text_fits_terminal_width(command: str, user: str, width: int) -> None:
    runs = [replace(run, command=f"kdeclare {command}", user=user) for run in HISTORY]
    text = render_history_text(runs, width=width)
    assert all(measure_width(line) <= width for line in text.splitlines())
    assert all(run.run_id in text for run in runs), "ids are there to be typed"
    assert ("…:" in text) == any("…" in line for line in text.replace("…:", "").splitlines())


def test_run_detail_shortens_many_overrides() -> None:
    one = replace(DETAIL.overrides[0], principal=None)
    text = render_run_detail_text(replace(DETAIL, overrides=(one,) * 23))
    assert "Overridden by ann@laptop (not authenticated by the brokers):" in text
    assert text.count("policy bounds on Topic/payments: agreed on Monday") == 20
    assert "… and 3 more" in text


def test_run_detail_names_principal_per_system() -> None:
    ours = replace(DETAIL.overrides[0], principal="User:ann")
    others = [
        replace(ours, resource=name, principal=who) for name, who in (("Flag/a", "ann"), ("Door/b", None))
    ]
    text = render_run_detail_text(replace(DETAIL, overrides=(ours, *others)))
    assert "Overridden by ann@laptop:\n" in text
    assert "policy bounds on Topic/payments as User:ann: agreed on Monday" in text
    assert "policy bounds on Flag/a as ann: agreed on Monday" in text
    assert "policy bounds on Door/b without authentication: agreed on Monday" in text


def test_history_diff_text_matches_golden_file() -> None:
    other = replace(UPDATE_PAYMENTS, fields=(make_config_change("retention.ms", "86400000", "3600000"),))
    a = build_plan_document(make_plan(changes=(CREATE_ORDERS, UPDATE_PAYMENTS)))
    b = build_plan_document(make_plan(changes=(other,), undoes="20260131-120000-a1b2"))
    check_golden("history-diff", render_history_diff_text(compare_plans(a, b, "first", "second.plan.json")))
    assert (
        render_history_diff_text(compare_plans(a, a, "first", "second"))
        == "No differences between first and second.\n"
    )


def test_history_diff_ignores_source_positions() -> None:
    a = build_plan_document(make_plan(changes=(CREATE_ORDERS, UPDATE_PAYMENTS)))
    b = build_plan_document(
        make_plan(changes=(UPDATE_PAYMENTS, replace(CREATE_ORDERS, source=SourcePosition("x", 1, 2))))
    )
    assert render_history_diff_text(compare_plans(a, b, "a", "b")).startswith("No differences")


MANY = [
    error("unknown-field", "Unknown field", f"'{n}' is no field.", place=SourcePosition("a.yaml", n, 1))
    for n in range(1, 31)
]


def test_diagnostics_text_matches_golden_file() -> None:
    others = [
        warning(
            "w", "Careful", "First line\nsecond line.", hint="Do this\nor that.", resource="Topic/orders"
        ),
        denied("guard", "You may not", resource="Topic/x", place=SourcePosition("b.yaml", 3, 5)),
        Diagnostic(Severity.INFO, "i", "By the way", "Nothing \x1b[31mbad."),
    ]
    check_golden("diagnostics", render_diagnostics([*others, *MANY]))
    assert format_severity_counts([*others, *MANY]) == "30 errors, 1 denial, 1 warning"
    assert render_diagnostics([]) == format_severity_counts([]) == ""


def test_diagnostics_text_shows_twenty_of_one_code() -> None:
    assert render_diagnostics(MANY[:20]).count("error:") == 20
    assert "… and 11 more of the same (unknown-field)" in render_diagnostics(MANY[:21])


@pytest.mark.parametrize("name", SAMPLES)
def test_plan_colors_change_no_text(name: str) -> None:
    import re

    coloured = plan_text(SAMPLES[name], Style(on=True), graph=True)
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plan_text(SAMPLES[name], graph=True)
    assert "\x1b" not in plan_text(SAMPLES[name])


def test_plan_text_starts_with_no_changes() -> None:
    for name in ("no-changes", "adopting", "orphans", "nothing-to-undo"):
        assert plan_text(SAMPLES[name]).startswith("No changes.")


def test_plan_text_hides_secrets() -> None:
    secret = {"secret": "pbkdf2$abc", "reference": "${env.PASSWORD}"}
    change = Change(
        ResourceId("BrokerConfig", "1"),
        Action.UPDATE,
        Reason.CHANGED,
        Risk.SAFE,
        (make_config_change("ssl.key.password", None, secret),),
    )
    text = plan_text(make_plan(changes=(change,)))
    assert "(unset) → (sensitive)" in text
    assert "pbkdf2" not in text


def test_get_icon_returns_icon_of_each_change() -> None:
    everything = {str(c.id): get_icon(c) for c in SAMPLES["everything"].changes}
    assert everything == {
        "BrokerConfig/cluster-default": "~",
        "Reassignment/drain-broker-3": "↻",
        "Topic/legacy.events": "-",
        "Topic/orders": "+",
        "Topic/payments": "~",
        "Topic/refunds": "~",
        "Topic/scratch": "○",
        "Topic/zombie": "·",
    }


def test_list_levels_follows_longest_path_and_reports_cycles() -> None:
    t = ResourceId("Topic", "t")
    a, b, c = (
        make_operation("a", t),
        make_operation("b", t, {"a:Topic/t": ""}),
        make_operation("c", t, {"a:Topic/t": "", "b:Topic/t": ""}),
    )
    assert [[o.verb for o in level] for level in list_levels((c, b, a))] == [["a"], ["b"], ["c"]]
    x, y = make_operation("x", t, {"y:Topic/t": ""}), make_operation("y", t, {"x:Topic/t": ""})
    assert [[o.verb for o in level] for level in list_levels((x, a, y))] == [["a"], ["x", "y"]]


def test_plan_text_of_five_thousand_changes_is_fast() -> None:
    changes = tuple(replace(UPDATE_PAYMENTS, id=ResourceId("Topic", f"t{n}")) for n in range(5000))
    begin = time.process_time()
    text = plan_text(make_plan(changes=changes, summary=Summary(update=5000)))
    assert time.process_time() - begin < 2.0  # takes 0.3 s on an idle core; the limit allows for a busy one
    assert text.count("manifest changed") == 5000
