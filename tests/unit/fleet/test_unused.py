"""Audits report unused topics if the fleet file asks for them."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kdeclare.cli.main import main
from kdeclare.core.live.faults import Fault
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.tables.rows import FINDINGS
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset, GroupMember, GroupType
from kdeclare.providers.kafka.fleet import unused_topics
from kdeclare.providers.kafka.fleet.unused_topics import list_unused_topics
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.usage.topic_usage import ClusterUsage, TopicUsage, Unknown

DAY = 86_400_000
NAMES = ("orders", "read", "legacy", "stray", "app-store-changelog", "__consumer_offsets")
FLEET = """\
apiVersion: kdeclare/v1
kind: Fleet
metadata: {name: shop}
spec:
  unused: {after: 90d}
  clusters: [{name: eu-1, bootstrapServers: 'eu-1:9092', manifests: [all.yaml]}]
"""
TOPIC = """\
---
apiVersion: kdeclare/v1
kind: Topic
metadata: {{name: {name}, labels: {{team: checkout}}}}
spec: {{partitions: 1, replicationFactor: 1}}
"""
ACCEPTED = """\
---
apiVersion: kdeclare/v1
kind: AcceptedDrift
metadata: {name: archive}
spec:
  reason: Kept for auditors.
  expires: '2999-12-31'
  findings: [unused]
  resources: [{kind: Topic, names: [legacy]}]
"""


class Shop:
    """A fleet of one cluster: topics in use, an old declared topic, an old stray topic, and internal ones."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "fleet.yaml"
        self.cluster = MemoryCluster({1: "a"}, cluster_id="id-eu-1")
        self.cluster.create_topics([NewTopic(name, 1, 1, None, {}) for name in NAMES])
        self.cluster.mark_internal("__consumer_offsets")
        now_ms = int(time.time() * 1000)
        for name, age_days in (("orders", 1), ("read", 400), ("legacy", 400), ("app-store-changelog", 400)):
            self.cluster.produce(name, 5)
            self.cluster.set_log(TopicPartition(name, 0), times=[now_ms - age_days * DAY] * 5)
        self.cluster.groups.alter_offsets({"audit": {TopicPartition("legacy", 0): CommittedOffset(3)}})
        self.cluster.set_members("mail", GroupMember("m", "c", "h", None, (TopicPartition("read", 0),)))
        self.file.write_text(FLEET)
        (folder / "all.yaml").write_text(TOPIC.format(name="orders") + TOPIC.format(name="legacy"))

    def audit(self, *options: str, engine: str = "local", out: str = "audits") -> dict[str, Any]:
        """Audit the fleet, and return the summary."""
        line = ["fleet", "audit", str(self.file), "--out", str(self.folder / out), "--engine", engine]
        assert main([*line, *options]) == 0
        summary: dict[str, Any] = json.loads((self.folder / out / "summary.json").read_text())
        return summary

    def read_unused(self, summary: dict[str, Any], table: str = "findings") -> dict[str, dict[str, Any]]:
        """Return the findings about unused topics, by the name of the topic."""
        path = f"{table}/audit_id={summary['audit_id']}"
        rows = read_rows(LocalStorage(self.folder / "audits"), path, FINDINGS)
        return {row["name"]: row for row in rows if row["finding"] == "unused"}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    shop = Shop(tmp_path)
    monkeypatch.setattr(connection, "connect_cluster", lambda *_: shop.cluster)
    return shop


def test_audit_reports_unused_topics(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    first = shop.audit()
    text = capsys.readouterr().out
    unused = shop.read_unused(first)
    assert unused.keys() == {"legacy", "stray"}
    legacy = unused["legacy"]
    figures = json.loads(legacy["before"])
    assert (figures["records"], figures["groups"]) == (5, 1)
    assert dict(legacy["labels"]) == {"team": "checkout"}
    assert legacy["source"].startswith("all.yaml:")
    assert legacy["severity"] == "low"
    assert "1 group has committed offsets for the topic." in legacy["message"]
    assert unused["stray"]["message"].endswith("No record was ever written to the topic.")
    assert "Unused, largest first:" in text
    assert "  eu-1     Topic/legacy  5" in text
    assert "Unused, largest first" in (shop.folder / "audits" / "report.md").read_text()
    again = shop.audit()
    assert again["since"]["new"] == again["since"]["mended"] == 0
    assert again["clusters"][0]["unchanged"]
    assert shop.read_unused(again)["legacy"]["id"] == legacy["id"]


@pytest.mark.parametrize(
    ("records", "size", "sentence"),
    [
        (5, 2048, "The newest of the topic's 5 records (2 KiB) is from 2020-01-02."),
        (5, Unknown("no size"), "The newest of the topic's 5 records is from 2020-01-02."),
        (1, 70, "The topic's only record (70 B) is from 2020-01-02."),
        (Unknown("no records"), 2048, "The newest of the topic's records (2 KiB) is from 2020-01-02."),
        (Unknown("no records"), Unknown("no size"), "The topic's newest record is from 2020-01-02."),
    ],
)
def test_age_of_newest_record_is_a_complete_sentence(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, records: int | Unknown, size: int | Unknown, sentence: str
) -> None:
    """The number of records and their size are left out if they are unknown."""
    newest = datetime(2020, 1, 2, 12, tzinfo=UTC)
    newest_ms = int(newest.timestamp() * 1000)
    usage = TopicUsage("old", 1, None, records, size, newest_ms, newest_ms, 0, ())
    monkeypatch.setattr(unused_topics, "read_usage", lambda *_: ClusterUsage((usage,)))
    (unused,) = list_unused_topics(shop.cluster, 90 * 86_400, newest + timedelta(days=100)).unused
    assert unused.message == f"No group has members that read the topic. {sentence}"


def test_audit_without_setting_reads_no_usage(shop: Shop) -> None:
    shop.file.write_text(FLEET.replace("  unused: {after: 90d}\n", ""))
    shop.cluster.calls.clear()
    assert "unused" not in shop.audit()["found"]
    assert not {call.method for call in shop.cluster.calls} & {"list_offsets", "describe_log_dirs"}


def test_new_topic_of_the_project_is_not_unused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka does not tell when a topic was created, but the journals of the project do."""
    monkeypatch.chdir(shop.folder)
    (shop.folder / "kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\n"
        "spec: {manifests: [all.yaml], environments: {lab: {bootstrapServers: 'eu-1:9092'}}}\n"
    )
    entry = "{name: eu-1, project: kdeclare.yaml, env: lab}"
    shop.file.write_text(f"{FLEET[: FLEET.index('  clusters')]}  clusters: [{entry}]\n")
    with (shop.folder / "all.yaml").open("a") as manifests:
        manifests.write(TOPIC.format(name="fresh"))
    assert main(["apply", "--yes", "--adopt"]) == 0
    assert "fresh" in shop.cluster.topics()
    first = shop.audit()
    assert shop.read_unused(first).keys() == {"legacy", "stray"}
    (run,) = (file.parent for file in shop.folder.rglob("journal.jsonl"))
    run.rename(run.with_name(f"2020{run.name[4:]}"))  # as if the topic had been created in 2020
    second = shop.audit()
    assert shop.read_unused(second).keys() == {"legacy", "stray", "fresh"}
    assert second["since"]["new"] == 1
    assert not second["clusters"][0]["unchanged"]


def test_topic_that_is_read_again_is_fixed(shop: Shop) -> None:
    shop.audit()
    shop.cluster.set_members("audit", GroupMember("m", "c", "h", None, (TopicPartition("legacy", 0),)))
    second = shop.audit()
    assert shop.read_unused(second).keys() == {"stray"}
    assert second["since"]["mended"] == 1


def test_unused_topics_can_be_accepted_and_selected(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    (shop.folder / "accepted.yaml").write_text(ACCEPTED)
    shop.file.write_text(FLEET.replace("spec:\n", "spec:\n  acceptedDrift: [accepted.yaml]\n"))
    summary = shop.audit()
    assert (summary["found"]["unused"], summary["accepted"][0]["count"]) == (1, 1)
    capsys.readouterr()
    line = ["fleet", "report", "--out", str(shop.folder / "audits"), "--engine", "local", "--format", "json"]
    assert main([*line, "--where", "unused"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [finding["name"] for finding in document["findings"]] == ["stray"]


@pytest.mark.parametrize("reason", ["hidden groups", "groups not readable"])
def test_missing_knowledge_is_said_and_never_an_unused_topic(
    shop: Shop, reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = shop.read_unused(shop.audit())
    if reason == "hidden groups":
        monkeypatch.setattr(type(shop.cluster), "find_cluster_rights", lambda _: frozenset())
    else:
        fault = Fault("CLUSTER_AUTHORIZATION_FAILED", "Not authorized.")
        monkeypatch.setattr(type(shop.cluster.groups), "list_groups", lambda *_, **__: raise_fault(fault))
    capsys.readouterr()
    summary = shop.audit()
    assert shop.read_unused(summary) == {}
    assert shop.read_unused(summary, "unseen").keys() == before.keys()
    assert summary["since"]["mended"] == 0
    text = capsys.readouterr().out
    assert "Checks that could not be completed:" in text
    assert "It is unknown whether" in text


def test_share_group_is_a_warning(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.cluster.add_group("queue", GroupType.SHARE)
    assert shop.audit()["found"]["unused"] == 2
    assert "kdeclare does not know which topics 1 group reads (queue)." in capsys.readouterr().out


def raise_fault(fault: Fault) -> None:
    raise fault


def test_snapshot_without_usage_is_still_readable(shop: Shop) -> None:
    plain = FLEET.replace("  unused: {after: 90d}\n", "")
    shop.file.write_text(plain)
    snapshots = str(shop.folder / "snapshots")
    assert main(["fleet", "snapshot", str(shop.file), "--out", snapshots, "--engine", "local"]) == 0
    shop.file.write_text(FLEET)
    assert "unused" not in shop.audit("--snapshot", snapshots)["found"]
    assert main(["fleet", "snapshot", str(shop.file), "--out", snapshots, "--engine", "local"]) == 0
    assert shop.audit("--snapshot", snapshots)["found"]["unused"] == 2
