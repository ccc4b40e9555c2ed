"""The results of plans and applies of a fleet, and reading overview.json."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.documents import dump_document
from kdeclare.core.plans.plan import Summary
from kdeclare.fleet.overview import (
    AppliedCluster,
    AppliedStatus,
    FleetApply,
    FleetPlan,
    PlanExit,
    PlannedCluster,
    parse_overview,
)
from kdeclare.report.fleet.cluster_table import render_cluster_table
from kdeclare.report.fleet.fleet_runs import (
    NextCommands,
    render_fleet_apply_text,
    render_fleet_plan_text,
    render_waves_text,
)
from tests.browser.sample_audits import NOON
from tests.unit.report.golden_files import check_golden

PLANS = FleetPlan(
    "production",
    NOON,
    12.3,
    False,
    (
        PlannedCluster("eu-1", "0123456789abcdef" * 4, Summary(create=2, update=11), 13, PlanExit.CHANGES),
        PlannedCluster("eu-2", "fedcba9876543210" * 4, Summary(unchanged=40), 0, PlanExit.NO_CHANGES),
        PlannedCluster(
            "eu-3", None, Summary(), 0, PlanExit.ERROR, "No broker of eu-3:9092 answered in 10 s."
        ),
        PlannedCluster("us-1", "00ff" * 16, Summary(update=1, blocked=1), 1, PlanExit.DENIED),
    ),
)
APPLIED = FleetApply(
    "production",
    93.0,
    "2 clusters failed, and 1 is allowed to.",
    (
        AppliedCluster("eu-1", 1, AppliedStatus.DONE, "20260131-120000-a1b2", 14, 14),
        AppliedCluster("eu-2", 0, AppliedStatus.NOTHING),
        AppliedCluster(
            "eu-3", 2, AppliedStatus.FAILED, None, 0, 6, "No broker of eu-3:9092 answered in 10 s."
        ),
        AppliedCluster("us-1", 2, AppliedStatus.PARTIAL, "20260131-120011-c3d4", 3, 5, "2 operations failed"),
        AppliedCluster("us-2", 3, AppliedStatus.NOT_BEGUN, operations=9),
    ),
)


COMMANDS = NextCommands(
    "kdeclare fleet apply fleet.yaml --out plans", "kdeclare fleet plan fleet.yaml --out plans"
)
PLAN_AGAIN = f"Plan the fleet again to continue with a: {COMMANDS.plan}"


def test_fleet_plan_text_matches_golden_file() -> None:
    check_golden("fleet-plan", render_fleet_plan_text(PLANS, "plans"))
    quiet = replace(PLANS, clusters=PLANS.clusters[1:2])
    assert render_fleet_plan_text(quiet, "plans").startswith(
        "No changes. 1 cluster of production up to date.\n"
    )


def test_fleet_plan_text_shortens_many_clusters() -> None:
    changed = PLANS.clusters[0]
    many = replace(PLANS, clusters=tuple(replace(changed, name=f"c{n}") for n in range(300)))
    text = render_fleet_plan_text(many, "plans")
    assert text.startswith("Plans for 300 clusters of production: 300 with changes.\n")
    assert "  … and 250 more\n" in text


def test_fleet_apply_text_matches_golden_files() -> None:
    check_golden("fleet-apply", render_fleet_apply_text(APPLIED, COMMANDS))
    check_golden("fleet-apply", json.dumps(dump_document(APPLIED), indent=1) + "\n", "json")
    good = replace(APPLIED, clusters=APPLIED.clusters[:2], stopped=None)
    text = render_fleet_apply_text(good, COMMANDS)
    assert text.startswith("Applied to 2 clusters of production in 1 min 33 s: 1 done, 1 unchanged.\n")
    assert "next:" not in text


def test_waves_text_lists_clusters_by_wave() -> None:
    text = render_waves_text(PLANS, [["eu-1"], ["eu-2", "us-1"]])
    assert text == (
        "To apply: 14 changes in 3 clusters of production.\n\n"
        "Wave 1\n  eu-1  13 changes\n\n"
        "Wave 2\n  eu-2  ownership records\n  us-1  1 change\n"
    )
    assert render_waves_text(PLANS, [["eu-2"]]).startswith("To apply: ownership records in 1 cluster of ")
    assert render_waves_text(PLANS, []) == "No changes left to apply.\n"


def test_fleet_apply_text_lists_every_failure() -> None:
    good = tuple(AppliedCluster(f"good-{n}", 1, AppliedStatus.DONE) for n in range(200))
    bad = tuple(AppliedCluster(f"bad-{n}", 1, AppliedStatus.FAILED, message="refused") for n in range(100))
    text = render_fleet_apply_text(replace(APPLIED, clusters=(*good, *bad)), COMMANDS)
    assert all(f"bad-{n} " in text for n in range(100))
    assert "  … and 150 more that succeeded\n" in text


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        ([("a", 1, "locked", None), ("b", 2, "not-begun", None)], f"continue with a, b: {COMMANDS.apply}"),
        ([("a", 1, "failed", None), ("b", 1, "done", "r")], f"continue with a: {COMMANDS.apply}"),
        ([("a", 1, "failed", "r")], PLAN_AGAIN),
        ([("a", 1, "stale", None), ("b", 2, "not-begun", None)], PLAN_AGAIN),
        ([("a", 1, "partial", "r"), ("b", 1, "locked", None)], PLAN_AGAIN),
        ([("a", 0, "not-begun", None)], PLAN_AGAIN),
        ([("a", 1, "denied", "r"), ("b", 2, "not-begun", None)], PLAN_AGAIN),
        ([("a", 1, "denied", "r"), ("b", 2, "locked", None)], f"continue with b: {COMMANDS.apply}"),
        ([("a", 1, "denied", "r"), ("b", 0, "nothing", None)], ""),
    ],
)  # fmt: skip
def test_next_line_names_the_command_that_works(
    clusters: list[tuple[str, int, str, str | None]], expected: str
) -> None:
    applied = tuple(
        AppliedCluster(name, wave, AppliedStatus(status), run) for name, wave, status, run in clusters
    )
    text = render_fleet_apply_text(replace(APPLIED, clusters=applied), COMMANDS)
    _, _, shown = text.partition("next: ")
    assert shown.strip().endswith(expected)
    assert bool(shown) is bool(expected)


def test_cluster_table_omits_columns_of_zeros() -> None:
    lines = list(render_cluster_table(("A", "B", "C"), [("x", 0, 1_000), ("yy", 0, 0)]))
    assert lines == ["A       C", "x   1,000", "yy"]


texts = st.text(max_size=12)
planned = st.builds(
    PlannedCluster,
    texts,
    st.none() | texts,
    st.builds(Summary, *[st.integers(0, 10**9)] * 10),
    st.integers(0, 10**9),
    st.sampled_from(PlanExit),
    st.none() | texts,
)


@given(st.lists(planned, max_size=4), texts)
def test_overview_round_trips(clusters: list[PlannedCluster], fleet: str) -> None:
    plans = FleetPlan(fleet, NOON, 1.5, False, tuple(clusters))
    assert parse_overview(json.dumps(dump_document(plans)), "overview.json") == plans


def test_parse_overview_defaults_adopt_to_false() -> None:
    document = {key: value for key, value in dump_document(PLANS).items() if key != "adopt"}
    assert parse_overview(json.dumps(document), "overview.json") == PLANS


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"format_version": "9"}, "format version 9"),
        ({"clusters": [{}]}, "was not written by 'kdeclare fleet plan', or is damaged"),
        ({"clusters": [{"name": 1}]}, "was not written by 'kdeclare fleet plan', or is damaged"),
        ({"taken_at": "x"}, "was not written by 'kdeclare fleet plan', or is damaged"),
        ({"clusters": None}, "was not written by 'kdeclare fleet plan', or is damaged"),
    ],
)
def test_parse_overview_rejects_unsupported_document(change: dict[str, object], detail: str) -> None:
    with pytest.raises(KdeclareError, match=detail) as caught:
        parse_overview(json.dumps(dump_document(PLANS) | change), "overview.json")
    assert caught.value.diagnostics[0].code == "bad-overview"


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense", "[" * 100_000])
def test_parse_overview_rejects_invalid_text(text: str) -> None:
    with pytest.raises(KdeclareError):
        parse_overview(text, "overview.json")
