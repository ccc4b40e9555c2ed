"""The page of an audit without a browser: the embedded data matches the audit."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from kdeclare.fleet.audit_summary import Audit
from kdeclare.fleet.findings import FindingKind, FindingSeverity
from kdeclare.report.fleet.audit_page import render_audit_page
from kdeclare.report.fleet.audit_wording import sort_worst_first
from tests.browser.sample_audits import HOSTILE, build_big_audit, build_cluster, build_row, build_summary
from tests.jsontypes import Json
from tests.unit.report.page_reader import Reader


def read_cell(data: Json, column: str, number: int) -> str | None:
    place = data["rows"][column][number]
    return None if place < 0 else data["strings"][place]


def test_audit_page_lists_every_row_worst_first() -> None:
    audit = build_big_audit(2_000)
    data = Reader(render_audit_page(audit)).data
    kinds = [name for name, _ in data["kinds"]]
    for number, one in enumerate(sort_worst_first(audit.rows)):
        assert kinds[data["rows"]["finding"][number]] == one.finding.value
        assert read_cell(data, "cluster", number) == one.cluster
        assert read_cell(data, "name", number) == one.name
        assert read_cell(data, "path", number) == one.path
        before = read_cell(data, "before", number)
        assert (before and json.loads(before)) == (one.before and json.loads(one.before))
    heat = data["heat"]
    counts = {
        (data["clusters"][c]["name"], heat["paths"][p]): n
        for c, p, n in zip(heat["cluster"], heat["path"], heat["count"], strict=True)
    }
    assert counts == {(c.cluster, c.path): c.count for c in audit.summary.heat}


def render_named(name: str, where: str = "eu-1") -> str:
    """Render a page that contains a name in all places, in parts with and without scripts."""
    high = FindingSeverity.HIGH
    rows = (
        build_row(
            FindingKind.CHANGED, where, name, name or "a", "SET", (name, where), message="m", severity=high
        ),
        build_row(FindingKind.CHANGED, where, name, "configs.a", message=name or "m", severity=high),
        build_row(FindingKind.UNUSED, where, name, labels={"team": name}),
    )
    cluster = build_cluster(where, name or "failed")
    return render_audit_page(Audit(build_summary(rows, [cluster], fleet=name), rows))


names = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30))


@given(names, names)
def test_audit_page_escapes_names(where: str, name: str) -> None:
    text = render_named(name, where)
    read = Reader(text)
    assert [tag for tag, _ in read.tags].count("script") == 2
    assert [tag for tag, _ in read.tags] == [tag for tag, _ in Reader(render_named("plain")).tags]
    assert all(not key.startswith("on") for _, attributes in read.tags for key in attributes)
    assert read_cell(read.data, "name", 0) == name
    assert read.data["clusters"][0]["error"] == (name or "failed")
    assert not re.search("[\u2028\u2029]", text)


def test_audit_page_loads_nothing_external() -> None:
    read = Reader(render_audit_page(build_big_audit(50, 20)))
    policy = next(a["content"] for tag, a in read.tags if tag == "meta" and "http-equiv" in a) or ""
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    links = [a.get(key) for _, a in read.tags for key in ("src", "href") if a.get(key)]
    assert set(links) == {"#", "data:,"}


def test_audit_page_is_deterministic() -> None:
    assert render_audit_page(build_big_audit(300)) == render_audit_page(build_big_audit(300))
