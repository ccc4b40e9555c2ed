"""The texts of an audit for a terminal and for an issue."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kdeclare.fleet.audit_summary import Audit
from kdeclare.fleet.findings import FindingKind, FindingSeverity
from kdeclare.report.elements.terminal import Style
from kdeclare.report.fleet.audit_markdown import render_audit_markdown
from kdeclare.report.fleet.audit_page import render_audit_page
from kdeclare.report.fleet.audit_text import render_audit_text
from kdeclare.report.fleet.audit_wording import (
    format_change,
    format_headline,
    format_unchanged,
    group_equal_findings,
    sort_worst_first,
)
from kdeclare.report.plan.plan_markdown import MAX_COMMENT_LENGTH
from tests.browser.sample_audits import (
    HOSTILE,
    build_big_audit,
    build_cluster,
    build_quiet_audit,
    build_row,
    build_small_audit,
    build_summary,
)
from tests.unit.report.golden_files import check_golden

PARSER = MarkdownIt("commonmark").enable("table")
SECRET = {"secret": "pbkdf2$5a17$c0ffee", "reference": "${file:/run/secret}"}


def test_small_audit_matches_golden_files() -> None:
    check_golden("audit", render_audit_text(build_small_audit()))
    check_golden("audit", render_audit_markdown(build_small_audit()), "md")


def test_audit_without_findings_matches_golden_files() -> None:
    check_golden("audit-quiet", render_audit_text(build_quiet_audit()))
    check_golden("audit-quiet", render_audit_markdown(build_quiet_audit()), "md")


def test_big_audit_text_is_shortened() -> None:
    audit = replace(build_big_audit(), left_out=5_000)
    check_golden("audit-many", render_audit_text(audit))
    text = render_audit_text(audit)
    shown = sum(len(group.rows) for group in group_equal_findings(sort_worst_first(audit.rows))[:20])
    assert shown > 20
    assert f"  … and {15_000 - shown:,} more findings\n" in text
    assert len(text.splitlines()) < 110


def test_audit_tells_how_many_clusters_were_not_compared_again() -> None:
    audit = build_small_audit()
    first, *others = audit.summary.clusters
    some = replace(audit.summary, clusters=(replace(first, unchanged=True), *others))
    assert format_unchanged(audit.summary) == ""
    expected = (
        f"1 of {len(some.clusters)} clusters did not change since the previous audit. "
        "Their findings were carried over."
    )
    assert format_unchanged(some) == expected
    for render in (render_audit_text, render_audit_markdown):
        assert expected in render(replace(audit, summary=some))
    every = replace(some, clusters=tuple(replace(item, unchanged=True) for item in some.clusters))
    assert format_unchanged(every) == (
        "No cluster has changed since the previous audit. All findings were carried over."
    )


def test_headline_does_not_claim_unread_clusters_are_clean() -> None:
    unread = build_summary([], [build_cluster("eu-1"), build_cluster("eu-2", "refused")])
    assert format_headline(unread) == (
        "No drift found, but not everything could be read: 1 of 2 clusters of production not read."
    )
    lost = build_row(FindingKind.UNREACHABLE, "eu-2", "orders")
    assert format_headline(build_summary([lost], [build_cluster("eu-1"), build_cluster("eu-2")])) == (
        "No drift found, but not everything could be read: 1 resource in 2 clusters of production not read."
    )
    found = [lost, build_row(FindingKind.MISSING, "eu-1", "orders")]
    assert format_headline(
        build_summary(found, [build_cluster("eu-1"), build_cluster("eu-2", "refused")])
    ) == ("Drift in 1 of 2 clusters of production, 1 not read: 1 missing.")
    assert format_headline(build_quiet_audit().summary).startswith("No drift in ")


def test_headline_separates_partially_read_clusters() -> None:
    partly = replace(
        build_cluster("eu-2"), topics=4_999, declared=5_000, error="1 of its resources could not be read."
    )
    unread = replace(build_cluster("eu-3"), topics=0, error="No broker answered.")
    assert format_headline(build_summary([], [build_cluster("eu-1"), partly])) == (
        "No drift found, but not everything could be read: 1 of 2 clusters of production only partially read."
    )
    assert format_headline(build_summary([], [unread, partly])) == (
        "No drift found, but not everything could be read: "
        "1 of 2 clusters of production not read, 1 only partially read."
    )
    found = [build_row(FindingKind.MISSING, "eu-2", "orders")]
    assert format_headline(build_summary(found, [unread, partly])) == (
        "Drift in 1 of 2 clusters of production, 1 not read, 1 only partially read: 1 missing."
    )


def test_audit_colors_change_no_text() -> None:
    painted = render_audit_text(build_small_audit(), Style(on=True))
    assert re.sub(r"\x1b\[\d+m", "", painted) == render_audit_text(build_small_audit())


def test_audit_text_removes_control_characters() -> None:
    evil = "a\x1b[2Jb\r\nc"
    rows = [build_row(FindingKind.CHANGED, evil, evil, f"configs.{evil}", "SET", (evil, evil), message=evil)]
    text = render_audit_text(Audit(build_summary(rows, [build_cluster(evil, evil)], fleet=evil), tuple(rows)))
    assert "\x1b" not in text
    assert "\r" not in text


def test_rows_are_sorted_worst_and_new_first() -> None:
    rows = sort_worst_first(build_big_audit(500).rows)
    severities, kinds = list(FindingSeverity), list(FindingKind)
    ranks = [(severities.index(r.severity), kinds.index(r.finding), r.status != "new") for r in rows]
    assert ranks == sorted(ranks)


@pytest.mark.parametrize("report", [render_audit_text, render_audit_markdown, render_audit_page])
def test_audit_reports_hide_hashes_of_secrets(report) -> None:  # type: ignore[no-untyped-def]
    rows = (
        build_row(FindingKind.CHANGED, "eu-1", "a", "configs.sasl.jaas.config", "SET", (SECRET, SECRET)),
        build_row(
            FindingKind.MISSING, "eu-1", "b", None, "create", (None, {"configs": {"password": SECRET}})
        ),
    )
    text = report(Audit(build_summary(rows, [build_cluster("eu-1")]), rows))
    assert "sensitive" in text
    assert "c0ffee" not in text
    assert "/run/secret" not in text


def test_format_change_shows_invalid_json_unchanged() -> None:
    odd = replace(build_row(FindingKind.CHANGED, "c", "t", "configs.x", "SET"), before="{no json", after="1")
    assert format_change(odd) == "{no json → 1"


def test_audit_markdown_of_many_rows_fits_limit() -> None:
    audit = build_big_audit()
    text = render_audit_markdown(audit)
    assert len(text) <= MAX_COMMENT_LENGTH
    assert text.endswith("\n")
    left = int(re.findall(r"… and ([\d,]+) more findings", text)[0].replace(",", ""))
    shown = re.findall(r"\n- \*\*(?:high|medium|low)\*\*.*?</code> <code>(?:([\d,]+) × )?", text)
    assert sum(int(count.replace(",", "") or "1") for count in shown) + left == len(audit.rows)


def test_audit_markdown_of_long_names_fits_limit() -> None:
    long = "|`<" * 80_000
    rows = tuple(
        build_row(FindingKind.CHANGED, f"{n}{long}", long, long, "SET", (long, long), message=long)
        for n in range(60)
    )
    clusters = [build_cluster(r.cluster, long) for r in rows]
    assert (
        len(render_audit_markdown(Audit(build_summary(rows, clusters, fleet=long), rows, 10**9)))
        <= MAX_COMMENT_LENGTH
    )


names = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30))


@given(st.lists(st.tuples(names, names, st.none() | names), min_size=1, max_size=6, unique=True))
def test_audit_markdown_keeps_structure_for_any_names(
    found: list[tuple[str, str, str | None]],
) -> None:
    rows = tuple(
        build_row(
            FindingKind.CHANGED,
            where,
            name,
            path,
            "SET",
            (name, where),
            message=name,
            labels={"team": name or "x"},
        )
        for where, name, path in found
    )
    clusters = [build_cluster(where) for where in dict.fromkeys(where for where, _, _ in found)]
    tokens = PARSER.parse(render_audit_markdown(Audit(build_summary(rows, clusters), rows)))
    kinds = [token.type for token in tokens]
    assert kinds.count("list_item_open") == len(rows)
    assert kinds.count("table_open") == 2
    teams = {name or "x" for _, name, _ in found}
    assert kinds.count("tr_open") == 2 + len(clusters) + len(teams)
    html = "".join(token.content for token in tokens if token.type == "html_block")
    assert set(re.findall(r"</?(\w+)", html)) == {"details", "summary"}
    inline = "".join(c.content for t in tokens for c in t.children or () if c.type == "html_inline")
    assert set(re.findall(r"<[^>]*>", inline)) <= {"<code>", "</code>", "<br>"}
    assert not any(c.type in ("link_open", "image") for t in tokens for c in t.children or ())
