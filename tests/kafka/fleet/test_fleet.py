"""Three real clusters of 2,000 topics, drift of every kind by another hand, and what the fleet commands say.

One story in the order of the tests: each begins with the clusters as the one before has left them.
"""

import json
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from kdeclare import sandbox
from tests.browser.pictures import Picture, take_picture
from tests.browser.watched import WatchedPage
from tests.kafka.fleet.fleet_folder import (
    CLUSTERS,
    FleetFolder,
    OtherClient,
    RunningClusters,
    build_topic_spec,
    dump_manifest,
    parse_valid_output,
    write_document,
)
from tests.thoroughness import pick

pytestmark = [pytest.mark.kafka, pytest.mark.sampled]

LABELS = {
    "eu-1": {"region": "eu", "tier": "gold"},
    "eu-2": {"region": "eu", "tier": "gold"},
    "lab": {"region": "lab", "tier": "canary"},
}
TEAMS = ("payments", "checkout", "search", "ledger", "identity")
THINGS = ("events", "requests", "alerts", "invoices", "clicks", "audit")
TOPICS = pick(500, 2_000)
LAST = TOPICS - 100
WEEK, BY_HAND = "604800000", "3600000"
SEGMENT_BYTES, SEGMENT_BY_HAND = "104857600", "1073741824"
RETENTION, CLEANUP, MESSAGE = "configs.retention.ms", "configs.cleanup.policy", "configs.max.message.bytes"
SEGMENT = "configs.segment.bytes"
BACKOFF = "log.cleaner.backoff.ms"
TOUCHED = {"eu-1": range(0, LAST, 61), "eu-2": range(1, LAST, 97), "lab": range(2, LAST, 137)}
"""Of the many topics, those that other hands are at."""
DELETED_IN_LAB = range(7, LAST, 190)
WAYS = (
    ("changed", RETENTION, "SET", BY_HAND, WEEK),
    ("changed", SEGMENT, "SET", SEGMENT_BY_HAND, SEGMENT_BYTES),
    ("unmanaged", MESSAGE, None, "2000000", None),
    ("changed", RETENTION, "SET", BY_HAND, WEEK),
)
"""And what they do there, as it is found."""


class Finding(NamedTuple):
    """A row of the table, without times and words; ``before`` and ``after`` as data."""

    cluster: str
    kind: str
    name: str
    finding: str
    path: str | None = None
    op: str | None = None
    before: Any = None
    after: Any = None
    team: str = ""


@dataclass
class Story(FleetFolder):
    """The clusters, the folder from which commands are run, and what should be found right now."""

    specials: dict[str, dict[str, Any]]
    expected: list[Finding] = field(default_factory=list)

    def apply(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """Run ``fleet apply``; the JSON that it printed."""
        return self.fleet("apply", "plans", "--yes", "--batch-size", "1", *arguments, code=code)

    def each(self, *arguments: str) -> None:
        """Run a command of one cluster for all of them at once; ``{}`` is the cluster's name."""

        def run(cluster: str) -> str:
            where = ("--project", "kdeclare.yaml", "--env", cluster)
            return self.kdeclare(*(a.replace("{}", cluster) for a in arguments), *where)

        with ThreadPoolExecutor() as pool:
            list(pool.map(run, CLUSTERS))

    def declare(self) -> None:
        """Write the special resources."""
        documents = (dump_manifest(name, spec, "orders") for name, spec in self.specials.items())
        (self.folder / "manifests" / "specials.yaml").write_text("---\n".join(documents))


def get_bulk_name(number: int) -> str:
    """The name of one of the many topics."""
    return f"{get_team(number)}.{THINGS[number // len(TEAMS) % len(THINGS)]}.{number:04}"


def get_team(number: int) -> str:
    """Whose it is."""
    return TEAMS[number % len(TEAMS)]


@pytest.fixture(scope="module")
def story(clusters: RunningClusters, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """All is applied; then the manifests were edited, and other hands were at the clusters."""
    story = Story(clusters, tmp_path_factory.mktemp("fleet"), build_first_specials())
    write_project(story)
    story.declare()
    story.each("apply", "--yes", "--quiet")
    edit_manifests(story)
    for cluster in CLUSTERS:
        with story.open_other_client(cluster) as hand:
            make_drift(story, cluster, hand)
    return story


def build_first_specials() -> dict[str, dict[str, Any]]:
    """What is applied first, beside the many topics."""
    return {
        "s.altered": build_topic_spec(retention_ms=1_000_000),
        "s.unset": build_topic_spec(retention_ms=1_000_000, cleanup_policy=["compact"]),
        "s.parts": build_topic_spec(cleanup_policy={"append": ["compact"]}),
        "s.grown": build_topic_spec(),
        "s.tall": {"replicationFactor": 1},
        "s.gone": build_topic_spec(2, retention_ms=1_000_000),
        "s.edited": build_topic_spec(retention_ms=1_000_000),
        "s.same": build_topic_spec(retention_ms=1_000_000),
        "s.dropped": build_topic_spec(retention_ms=1_000_000),
        "s.extra": build_topic_spec(retention_ms=1_000_000),
        "s.placed": build_topic_spec(2, retention_ms=1_000_000) | {"placement": {"strategy": "cross-rack"}},
        "BrokerConfig/cluster-default": {"configs": {BACKOFF: 14_000}},
        "Reassignment/even": {"topics": [r"/.*\.00\d\d/"], "rebalance": True},
    }


def write_project(story: Story) -> None:
    """A project with three environments, the many topics, and the fleet."""
    own = sum("/" not in name for name in story.specials)
    folder = story.folder / "manifests"
    folder.mkdir()
    documents = [
        dump_manifest(
            get_bulk_name(n), build_topic_spec(retention_ms=WEEK, segment_bytes=SEGMENT_BYTES), get_team(n)
        )
        for n in range(TOPICS - own)
    ]
    (folder / "bulk.yaml").write_text("---\n".join(documents))
    bounds = {"name": "bounds", "class": "kdeclare.policy.rules:PartitionBounds", "config": {"max": 4}}
    environments = {name: {"bootstrapServers": story.bootstrap(name)} for name in CLUSTERS}
    spec = {"manifests": ["manifests"], "policies": [bounds], "environments": environments}
    write_document(story.folder / "kdeclare.yaml", "Project", spec)
    clusters = [
        {"name": name, "labels": LABELS[name], "project": "kdeclare.yaml", "env": name} for name in CLUSTERS
    ]
    write_document(story.folder / "fleet.yaml", "Fleet", {"clusters": clusters})


def edit_manifests(story: Story) -> None:
    """Change the manifests after the apply: a key, a new topic, and one that is declared no longer."""
    story.specials["s.edited"] = build_topic_spec(retention_ms=2_000_000)
    story.specials["s.same"] = build_topic_spec(retention_ms=2_000_000)
    story.specials["s.new"] = build_topic_spec(2, retention_ms=1_000_000)
    del story.specials["s.dropped"]
    story.declare()
    created = {"partitions": 2, "replicationFactor": 1, RETENTION: "1000000"}
    for cluster in CLUSTERS:
        story.expected += [
            build_finding(cluster, "s.edited", "pending", RETENTION, "SET", "1000000", "2000000"),
            build_finding(cluster, "s.new", "pending", None, "create", None, created),
        ]
        if cluster != "eu-1":
            story.expected.append(
                build_finding(cluster, "s.same", "pending", RETENTION, "SET", "1000000", "2000000")
            )


def build_finding(cluster: str, name: str, *found: Any) -> Finding:
    """Something found in a special topic."""
    return Finding(cluster, "Topic", name, *found)._replace(team="orders")


def make_drift(story: Story, cluster: str, hand: OtherClient) -> None:
    """Do by hand what is to be found in a cluster."""
    # Kafka's own, set where eligible leader replicas are on
    defaults = ("BrokerConfig", "cluster-default", "unmanaged", "configs.min.insync.replicas")
    story.expected.append(Finding(cluster, *defaults, before="1"))
    {"eu-1": _make_drift_of_eu_1, "eu-2": _make_drift_of_eu_2, "lab": _make_drift_of_lab}[cluster](
        story, hand
    )
    alter_topics(story, cluster, hand, TOUCHED[cluster])


def alter_topics(story: Story, cluster: str, hand: OtherClient, numbers: Iterable[int]) -> None:
    """A key of each of these topics: one of two that are declared, or one that is not."""
    for number in numbers:
        finding, path, op, before, after = WAYS[number % len(WAYS)]
        hand.set(get_bulk_name(number), path.removeprefix("configs."), before)
        found = Finding(
            cluster, "Topic", get_bulk_name(number), finding, path, op, before, after, get_team(number)
        )
        story.expected.append(found)


def delete_topics(story: Story, cluster: str, hand: OtherClient, numbers: Iterable[int]) -> None:
    """Delete these topics."""
    created = {"partitions": 1, "replicationFactor": 1, RETENTION: WEEK, SEGMENT: SEGMENT_BYTES}
    for number in numbers:
        hand.delete(get_bulk_name(number))
        missing = ("missing", None, "create", None, created)
        story.expected.append(Finding(cluster, "Topic", get_bulk_name(number), *missing, get_team(number)))


def _make_drift_of_eu_1(story: Story, hand: OtherClient) -> None:
    hand.set("s.altered", "retention.ms", BY_HAND)
    hand.unset("s.unset", "retention.ms")
    hand.subtract("s.parts", "cleanup.policy", "compact")
    hand.set("s.same", "retention.ms", "2000000")  # as it is declared by now: no finding
    hand.add_partitions("s.grown", 3)
    hand.set("s.extra", "max.message.bytes", "2000000")
    hand.create("stray", 2)
    story.expected += [
        build_finding("eu-1", "s.altered", "changed", RETENTION, "SET", BY_HAND, "1000000"),
        build_finding("eu-1", "s.unset", "changed", RETENTION, "SET", None, "1000000"),
        build_finding("eu-1", "s.parts", "changed", CLEANUP, "APPEND", ["delete"], ["delete", "compact"]),
        build_finding("eu-1", "s.grown", "changed", "partitions", None, 3, 1),
        build_finding("eu-1", "s.extra", "unmanaged", MESSAGE, None, "2000000"),
        build_finding("eu-1", "s.dropped", "orphaned", None, "delete"),
        Finding("eu-1", "Topic", "stray", "unmanaged"),
    ]


def _make_drift_of_eu_2(story: Story, hand: OtherClient) -> None:
    hand.delete("s.gone", "s.dropped")
    hand.set_default(BACKOFF, "13000")
    hand.set("s.placed", "retention.ms", BY_HAND)
    hand.add_partitions("s.tall", 6)
    hand.create("stray.tall", 6)
    created = {"partitions": 2, "replicationFactor": 1, RETENTION: "1000000"}
    broker = ("eu-2", "BrokerConfig", "cluster-default", "changed", f"configs.{BACKOFF}", "SET")
    story.expected += [
        build_finding("eu-2", "s.gone", "missing", None, "create", None, created),
        build_finding("eu-2", "s.dropped", "missing", None, "forget"),
        build_finding("eu-2", "s.placed", "changed", RETENTION, "SET", BY_HAND, "1000000"),
        Finding(*broker, before="13000", after="14000"),
        build_finding("eu-2", "s.tall", "policy", "policies.bounds"),
        Finding("eu-2", "Topic", "stray.tall", "unmanaged"),
        Finding("eu-2", "Topic", "stray.tall", "policy", "policies.bounds"),
    ]


def _make_drift_of_lab(story: Story, hand: OtherClient) -> None:
    delete_topics(story, "lab", hand, DELETED_IN_LAB)
    story.expected.append(build_finding("lab", "s.dropped", "orphaned", None, "delete"))


def convert_row(row: Mapping[str, Any]) -> Finding:
    """A row as it is expected."""
    values = {name: row[name] for name in ("cluster", "kind", "name", "finding", "path", "op")}
    texts = {name: row[name] and json.loads(row[name]) for name in ("before", "after")}
    return Finding(**values, **texts, team=row["labels"].get("team", ""))


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Comparable."""
    return sorted(findings, key=repr)


def expect_findings(story: Story, summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The table has what is expected and nothing else, and the summary says the same; the rows."""
    found = story.read_findings(summary["audit_id"])
    assert sort_findings(map(convert_row, found)) == sort_findings(story.expected)
    assert summary == story.read_summary()
    assert summary["found"] == Counter(f.finding for f in story.expected)
    for cluster in summary["clusters"]:
        assert cluster["found"] == Counter(f.finding for f in story.expected if f.cluster == cluster["name"])
    teams = {f.team for f in story.expected}
    assert summary["teams"] == {
        team: Counter(f.finding for f in story.expected if f.team == team) for team in teams
    }
    return found


def test_fleet_audit_finds_exactly_the_drift(story: Story) -> None:
    """The first audit (thoroughly, on Spark) and the audits below continue each other."""
    engine = pick((), ("--master", "local[2]"))
    summary = story.fleet("audit", "audits", "--detailed-exitcode", *engine, code=2)
    found = expect_findings(story, summary)
    assert all(row["message"] and row["status"] == "new" for row in found)
    (grown,) = (row for row in found if (row["cluster"], row["name"]) == ("eu-1", "s.grown"))
    assert "has 3 partitions, but the manifest declares 1." in grown["message"]
    assert "The manifest of team orders (manifests/specials.yaml:" in grown["message"]
    assert "must be changed: declare at least 3 partitions" in grown["message"]
    assert [c["labels"] for c in summary["clusters"]] == list(LABELS.values())
    assert len({c["cluster_id"] for c in summary["clusters"]}) == 3
    assert [c["topics"] for c in summary["clusters"]] == [
        TOPICS + 1,
        TOPICS - 1,
        TOPICS - len(DELETED_IN_LAB),
    ]
    assert {c["declared"] for c in summary["clusters"]} == {TOPICS + 2}
    assert summary["since"] is None
    audits = story.folder / "audits"
    assert "s.altered" in (audits / "report.md").read_text()
    assert "s.altered" in (audits / "report.html").read_text()
    assert sorted(path.name for path in audits.iterdir()) == [
        *("audits", "audits.json", "findings", "metrics.prom", "report.html", "report.md"),
        *("summary", "summary.json", "unseen"),
    ]


def test_fleet_audit_of_snapshot_tells_new_from_fixed(story: Story) -> None:
    """Nothing but a manifest has changed since the audit before, which read the clusters."""
    record = story.fleet("snapshot", "snapshots")
    assert [c["error"] for c in record["clusters"]] == [None] * 3
    first = story.read_summary()
    story.specials["s.grown"] = build_topic_spec(3)
    story.declare()
    story.expected = [f for f in story.expected if f.name != "s.grown"]
    more = [build_finding(c, "s.grown", "pending", "partitions", "change", 1, 3) for c in ("eu-2", "lab")]
    story.expected += more

    summary = story.fleet("audit", "audits", "--snapshot", "snapshots", "--fail-on", "changed", code=2)
    found = expect_findings(story, summary)
    assert summary["since"]["audit_id"] == first["audit_id"]
    counts = {"new": 2, "known": len(story.expected) - 2, "mended": 1}
    assert summary["since"] | counts == summary["since"]
    assert [point["audit_id"] for point in summary["trend"]] == [first["audit_id"]]
    assert sort_findings(convert_row(row) for row in found if row["status"] == "new") == sort_findings(more)
    times = {repr(convert_row(row)): row["first_seen"] for row in story.read_findings(first["audit_id"])}
    known = [row for row in found if row["status"] == "known"]
    assert all(row["first_seen"] == times[repr(convert_row(row))] for row in known)
    assert "s.grown" in (story.folder / "audits" / "report.md").read_text()


def test_fleet_history_shows_topic_in_snapshots(story: Story) -> None:
    words = ("eu-1", "s.altered", "--out", "snapshots", "--format", "json")
    told = parse_valid_output("fleet-history", story.kdeclare("fleet", "history", *words))
    assert told["snapshots"] == 1
    assert [turn["turn"] for turn in told["history"]] == ["appeared"]


def test_fleet_plan_equals_plans_of_single_clusters(story: Story) -> None:
    overview = story.fleet("plan", "plans", "--allow-deletes", "--detailed-exitcode", code=2)
    assert [c["exit"] for c in overview["clusters"]] == ["changes"] * 3
    story.each("plan", "--allow-deletes", "--out", "{}.json")
    for cluster in overview["clusters"]:
        made = json.loads((story.folder / "plans" / f"{cluster['name']}.plan.json").read_text())
        alone = json.loads((story.folder / f"{cluster['name']}.json").read_text())
        assert made["plan_id"] == alone["plan_id"] == cluster["plan_id"]
        assert {k: v for k, v in made.items() if k != "created_at"} == {
            k: v for k, v in alone.items() if k != "created_at"
        }


def test_fleet_apply_proceeds_in_waves(story: Story) -> None:
    run = story.apply("--canary", "tier=canary")
    assert {c["name"]: (c["wave"], c["status"]) for c in run["clusters"]} == {
        "lab": (1, "done"),
        "eu-1": (2, "done"),
        "eu-2": (3, "done"),
    }
    assert all(c["done"] == c["operations"] > 0 for c in run["clusters"])
    again = story.apply("--canary", "tier=canary")
    assert {c["status"] for c in again["clusters"]} == {"skipped"}
    story.expected = [f for f in story.expected if f.finding in ("unmanaged", "policy")]


def test_fleet_apply_stops_at_stale_plan_unless_failures_allowed(story: Story) -> None:
    del story.specials["s.new"]
    story.declare()
    with story.open_other_client("eu-1") as hand, story.open_other_client("lab") as hand_on_lab:
        hand.set("s.altered", "retention.ms", "6000")
        hand_on_lab.delete("s.new")
    # to change a topic and delete one, only to delete one, and only to let go of one
    overview = story.fleet("plan", "plans", "--allow-deletes")
    assert [c["changes"] for c in overview["clusters"]] == [2, 1, 0]
    with story.open_other_client("eu-1") as hand:
        hand.set("s.altered", "retention.ms", "7000")

    def statuses(*arguments: str, code: int) -> list[str]:
        return [c["status"] for c in story.apply(*arguments, code=code)["clusters"]]

    assert statuses("--max-failures", "0", code=4) == ["stale", "not-begun", "not-begun"]
    assert statuses("--max-failures", "1", code=5) == ["stale", "done", "done"]
    assert statuses("--max-failures", "1", code=4) == ["stale", "skipped", "skipped"]
    story.expected += [
        build_finding("eu-1", "s.altered", "changed", RETENTION, "SET", "7000", "1000000"),
        build_finding("eu-1", "s.new", "orphaned", None, "delete"),
    ]


def test_fleet_audit_reports_unreachable_clusters(story: Story) -> None:
    before = story.read_summary()
    sandbox.stop(story.settings.members[CLUSTERS.index("lab")].folder)
    with story.open_other_client("eu-1") as hand:
        alter_topics(story, "eu-1", hand, range(3, LAST, 83))
    with story.open_other_client("eu-2") as hand:
        alter_topics(story, "eu-2", hand, range(4, LAST, 113))
        delete_topics(story, "eu-2", hand, range(60, LAST, 371))
    (story.folder / "more").mkdir()
    (story.folder / "more" / "topic.yaml").write_text(dump_manifest("other", build_topic_spec(), "orders"))
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        host, port = silent.getsockname()
        fleet = json.loads((story.folder / "fleet.yaml").read_text())["spec"]
        hangs = {"bootstrapServers": f"{host}:{port}", "manifests": ["more"], "labels": {"region": "us"}}
        clusters = [{"name": "us-1", **hangs}, *fleet["clusters"]]
        write_document(story.folder / "more.yaml", "Fleet", {"clusters": clusters})
        summary = story.fleet("audit", "audits", "--timeout", "3", file="more.yaml", code=1)
    lost = [Finding(name, "Cluster", name, "unreachable") for name in ("lab", "us-1")]
    story.expected = [f for f in story.expected if f.cluster != "lab"] + lost
    found = expect_findings(story, summary)
    messages = {row["cluster"]: row["message"] for row in found if row["kind"] == "Cluster"}
    assert story.bootstrap("lab") in messages["lab"]
    assert f"{host}:{port}" in messages["us-1"]
    assert [c["name"] for c in summary["clusters"] if c["error"]] == ["lab", "us-1"]
    assert summary["seconds"] < before["seconds"] + 300, "it costs its time-out"
    earlier = {
        convert_row(row)[:5] for row in story.read_findings(before["audit_id"]) if row["cluster"] != "lab"
    }
    assert summary["since"]["mended"] == len(earlier - {f[:5] for f in story.expected})


def test_fleet_report_shows_all_findings(story: Story, desktop: WatchedPage) -> None:
    summary = story.read_summary()
    page = desktop.open(story.folder / "audits" / "report.html")
    assert page.locator("h1").inner_text() == "Drift in 2 of 4 clusters of shop, 2 not read."
    assert desktop.read_count() == f"{len(story.expected)} of {len(story.expected)} findings"
    known = Counter(summary["found"]) + Counter(summary["unseen"])
    for finding, count in known.items():
        assert page.locator(f".tile[data-kind={finding}] .tile-count").inner_text() == str(count)
    assert page.locator("#unread li").count() == 2
    assert set(page.locator(".team-name").all_inner_texts()) == {*TEAMS, "orders", "(no team)"}
    since = " ".join(page.locator("#since").inner_text().split())
    assert f"{summary['since']['new']} new {summary['since']['known']} known" in since
    assert "3 audits" in page.locator("main").inner_text()


@pytest.mark.parametrize(
    "picture",
    [
        Picture("audit", 1200, 1400, link="#kind=changed,missing&q=payments", opened=get_bulk_name(335)),
        Picture("audit-dark", 1200, 952, "dark"),
        Picture("audit-phone", 390, 1900),
    ],
    ids=lambda picture: picture.name,
)
def test_fleet_report_pictures(story: Story, desktop: WatchedPage, picture: Picture) -> None:
    take_picture(desktop, story.folder / "audits" / "report.html", picture)
