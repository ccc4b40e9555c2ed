"""summary.json can be read back unchanged, and other files are rejected."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.documents import dump_document
from kdeclare.fleet.audit_summary import (
    AuditSummary,
    ClusterSummary,
    HeatCell,
    Since,
    TrendPoint,
    dump_summary,
    parse_summary,
)
from kdeclare.fleet.findings import FindingKind
from tests.browser.sample_audits import build_big_audit, build_small_audit
from tests.unit.report.golden_files import check_golden

texts = st.text(max_size=20)
whole = st.integers(0, 10**12)
times = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
counts = st.dictionaries(st.sampled_from(FindingKind), st.integers(1, 10**9))
clusters = st.builds(
    ClusterSummary,
    texts,
    st.dictionaries(texts, texts, max_size=3),
    st.none() | texts,
    st.none() | texts,
    st.none() | times,
    whole,
    whole,
    counts,
    st.none() | texts,
    st.none() | texts,
)
summaries = st.builds(
    AuditSummary,
    texts,
    texts,
    times,
    st.floats(0, 1e9),
    st.lists(clusters, max_size=3).map(tuple),
    counts,
    st.dictionaries(texts, counts, max_size=3),
    st.lists(st.builds(HeatCell, texts, st.none() | texts, whole), max_size=3).map(tuple),
    st.none() | st.builds(Since, texts, times, whole, whole, whole),
    counts,
    st.lists(st.builds(TrendPoint, texts, times, whole, counts), max_size=3).map(tuple),
)


@given(summaries)
def test_audit_summary_round_trips(summary: AuditSummary) -> None:
    text = dump_summary(summary)
    assert parse_summary(text) == summary
    assert dump_summary(parse_summary(text)) == text


def test_small_audit_summary_matches_golden_file() -> None:
    check_golden("audit-summary", dump_summary(build_small_audit().summary), "json")
    big = build_big_audit().summary
    assert parse_summary(dump_summary(big)) == big


def test_audit_summary_times_are_utc() -> None:
    east = datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))
    summary = AuditSummary("a", "f", east, 1, (), {})
    assert dump_document(summary)["taken_at"] == "2026-01-31T12:00:00Z"


def dump_broken(change: dict[str, object]) -> str:
    return json.dumps(dump_document(build_small_audit().summary) | change)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"format_version": "1.0"}',
        "[" * 100_000,
        dump_broken({"clusters": [{}]}),
        dump_broken({"found": {"changed": "5"}}),
        dump_broken({"found": {"lost": 5}}),
        dump_broken({"taken_at": "yesterday"}),
        dump_broken({"teams": None}),
        dump_broken({"clusters": "eu-1"}),
    ],
)
def test_parse_summary_rejects_invalid_text(text: str) -> None:
    with pytest.raises(KdeclareError) as caught:
        parse_summary(text, "audits/x/summary.json")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "bad-audit"
    assert (
        "audits/x/summary.json was not written by 'kdeclare fleet audit', or is damaged." in diagnostic.detail
    )


def test_parse_summary_names_unsupported_format_version() -> None:
    with pytest.raises(KdeclareError) as caught:
        parse_summary(dump_broken({"format_version": "2.0"}))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "bad-audit"
    assert "format version 2.0" in diagnostic.detail
