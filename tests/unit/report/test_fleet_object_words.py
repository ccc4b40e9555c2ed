"""Headlines and columns count the objects of any provider, and Kafka's topics as before."""

from dataclasses import replace

from kdeclare.fleet.audit_summary import Audit, ClusterSummary
from kdeclare.fleet.findings import FindingKind
from kdeclare.fleet.object_counts import ObjectCount
from kdeclare.report.fleet.audit_page import render_audit_page
from kdeclare.report.fleet.audit_text import render_audit_text
from kdeclare.report.fleet.audit_wording import format_headline, format_object_counts
from kdeclare.report.fleet.snapshot_text import render_snapshot_text
from tests.browser.sample_audits import build_cluster, build_row, build_summary
from tests.unit.report.page_reader import Reader
from tests.unit.report.test_snapshot_text import WHOLE, make_record

KETTLES = ObjectCount("kettle", "kettles", 5, internal=2)
JARS = ObjectCount("jar", "jars", 1)


def make_kitchen_summary(name: str, *, topics: int = 0, error: str | None = None) -> ClusterSummary:
    return replace(build_cluster(name), topics=topics, others=(KETTLES, JARS), read=6, error=error)


def test_headline_counts_objects_by_sort() -> None:
    without = format_headline(build_summary([], [make_kitchen_summary("eu-1"), make_kitchen_summary("eu-2")]))
    assert without == "No drift in 2 clusters of production with 6 kettles, 2 jars."
    mixed = format_headline(build_summary([], [make_kitchen_summary("eu-1", topics=7)]))
    assert mixed == "No drift in 1 cluster of production with 7 topics, 3 kettles, 1 jar."
    only_internal = replace(build_cluster("eu-1"), topics=0, others=(ObjectCount("kettle", "kettles", 2, 2),))
    assert format_headline(build_summary([], [only_internal])) == (
        "No drift in 1 cluster of production with 0 topics."
    )


def test_object_counts_combine_rare_sorts() -> None:
    others = [(word, f"{word}s", number) for number, word in enumerate(("cup", "pan", "pot", "jar", "lid"))]
    assert format_object_counts(9, others) == "9 topics, 1 pan, 2 pots, 7 other objects"
    assert format_object_counts(0, others) == "1 pan, 2 pots, 3 jars, 4 other objects"


def test_snapshot_text_counts_internal_objects() -> None:
    here = replace(WHOLE, topics=0, resources=6, others=(KETTLES, JARS))
    text = render_snapshot_text(make_record(here), "out")
    assert "Read 1 cluster of production: 5 kettles, 1 jar, 6 resources." in text


def test_cluster_table_column_is_named_after_counted_objects() -> None:
    rows = (build_row(FindingKind.MISSING, "eu-1", "tea", kind="Kettle"),)
    for here, name, count in (
        (replace(make_kitchen_summary("eu-1"), others=(KETTLES,)), "kettles", 3),
        (make_kitchen_summary("eu-1"), "objects", 4),
        (make_kitchen_summary("eu-1", topics=7), "objects", 11),
        (build_cluster("eu-1"), "topics", 200),
    ):
        audit = Audit(build_summary(rows, [here]), rows)
        header, line = render_audit_text(audit).split("\n\n")[1].splitlines()[:2]
        assert header.split()[-2:] == [name.upper(), "DECLARED"]
        assert line.split()[-2:] == [str(count), "120"]
        data = Reader(render_audit_page(audit)).data
        assert [name, f"{count:,}"] in data["facts"]


def test_cluster_without_topics_can_be_partially_read() -> None:
    partly = make_kitchen_summary("eu-1", error="Nothing was read of Jars: no power.")
    assert partly.is_partial
    assert format_headline(build_summary([], [partly])) == (
        "No drift found, but not everything could be read: 1 of 1 cluster of production only partially read."
    )
    assert not replace(partly, read=0).is_partial
