"""``kdeclare usage`` and ``kdeclare impact`` with real brokers."""

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kafka
import pytest
from kafka.admin import KafkaAdminClient

from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.commands import run_here
from tests.kafka.group_consumers import join_group
from tests.kafka.test_group_rights import Shop, shop  # noqa: F401
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

DAY = 86_400_000
UNLIMITED = {"retention.ms": "-1", "segment.ms": str(DAY)}


@dataclass
class Store:
    """Topics with different users, and commands in a folder without a project."""

    cluster: KafkaCluster
    bootstrap: str
    folder: Path
    prefix: str

    def name(self, short: str) -> str:
        """Return the name of a topic or group that only this test uses."""
        return f"{self.prefix}{short}"

    def read(self, *arguments: str) -> dict[str, dict[str, Any]]:
        """Return the topics in the JSON document of ``kdeclare usage``, by short name."""
        topics = f"{self.prefix}.*"
        ran = run_here(
            self.folder, "usage", topics, *arguments, "--format", "json", "--bootstrap-server", self.bootstrap
        )
        assert ran.code == 0, ran.err
        return {item["name"].removeprefix(self.prefix): item for item in json.loads(ran.out)["topics"]}

    def commit(self, group: str, topic: str, *offsets: int) -> None:
        """Commit an offset for each partition; the first commit of a cluster creates the topic of offsets."""
        changes = {
            TopicPartition(self.name(topic), number): CommittedOffset(offset)
            for number, offset in enumerate(offsets)
        }
        asked = {self.name(group): changes}
        wait_for(
            lambda: not any(self.cluster.groups.alter_offsets(asked).values()),
            every=0.5,
            problem="the offsets cannot be committed",
        )


@pytest.fixture
def store(sandbox: SandboxStatus, tmp_path: Path) -> Iterator[Store]:
    """``orders`` is written and read, ``old`` was written long ago, and ``purged`` has lost its records."""
    cluster = connect(sandbox.bootstrap, {})
    bed = KafkaBed(cluster, sandbox.bootstrap)
    made = Store(cluster, sandbox.bootstrap, tmp_path, f"usage-{uuid.uuid4().hex[:8]}-")
    names = {"orders": 3, "old": 1, "purged": 1, "untouched": 2, "app-store-changelog": 1}
    for short, partitions in names.items():
        bed.create(name=made.name(short), partitions=partitions, configs=UNLIMITED)
    producer = kafka.KafkaProducer(bootstrap_servers=sandbox.bootstrap, enable_idempotence=True)
    now_ms = int(time.time() * 1000)
    for number in range(30):
        producer.send(made.name("orders"), b"x" * 100, partition=number % 3)
    for short in ("old", "purged", "app-store-changelog"):
        for number in range(10):
            producer.send(made.name(short), b"x", timestamp_ms=now_ms - (60 + number) * DAY)
    producer.flush()
    producer.close()
    admin = KafkaAdminClient(bootstrap_servers=sandbox.bootstrap)
    admin.delete_records({kafka.TopicPartition(made.name("purged"), 0): 10})
    admin.close()
    made.commit("billing", "orders", 4, 10, 0)
    made.commit("audit", "old", 10)
    try:
        yield made
    finally:
        cluster.delete_topics({made.name(short): None for short in names})
        cluster.groups.delete_groups([made.name(short) for short in ("billing", "audit", "mail")])
        cluster.close()


def test_usage_shows_producers_groups_and_last_writes(store: Store) -> None:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=store.bootstrap, group_id=store.name("mail"), enable_auto_commit=False
    )
    try:
        join_group(consumer, store.name("orders"))
        topics = store.read()
    finally:
        consumer.close()
    assert {short: item["records"] for short, item in topics.items()} == {
        "app-store-changelog": 10,
        "old": 10,
        "orders": 30,
        "purged": 0,
        "untouched": 0,
    }
    # The producers of old timestamps are not active.
    assert {short: item["active_producers"] for short, item in topics.items()} == {
        "app-store-changelog": 0,
        "old": 0,
        "orders": 1,
        "purged": 0,
        "untouched": 0,
    }
    assert topics["orders"]["groups"] == [
        {"id": store.name("mail"), "state": "Stable", "members": 1, "unread": 30},
        {"id": store.name("billing"), "state": "Empty", "members": 0, "unread": 16},
    ]
    assert topics["old"]["groups"] == [
        {"id": store.name("audit"), "state": "Empty", "members": 0, "unread": 0}
    ]
    assert topics["orders"]["bytes"] > 3000
    assert abs(topics["orders"]["newest_record_ms"] - time.time() * 1000) < 300_000
    assert 59 * DAY < time.time() * 1000 - topics["old"]["newest_record_ms"] < 61 * DAY
    assert (topics["purged"]["newest_record_ms"], topics["untouched"]["newest_record_ms"]) == (None, None)
    assert topics["app-store-changelog"]["purpose"] == "kafka-streams"
    assert [item["unknown"] for item in topics.values()] == [[]] * 5


def test_unused_topics_are_old_or_untouched(store: Store) -> None:
    assert set(store.read("--unused")) == {"old", "untouched"}
    assert set(store.read("--unused", "--older-than", "90d")) == {"untouched"}


def test_impact_of_hypothetical_change(store: Store) -> None:
    reach = ("--bootstrap-server", store.bootstrap)
    orders, old = (f"Topic/{store.name(short)}" for short in ("orders", "old"))
    deleted = run_here(store.folder, "impact", orders, "--delete", *reach)
    assert deleted.code == 0, deleted.err
    assert "loss: The topic holds 30 records (" in deleted.out
    assert f"loss: Group '{store.name('billing')}' has not read 16 of these records." in deleted.out
    assert "impact: 1 producer wrote to the topic within the last hour." in deleted.out
    shorter = run_here(store.folder, "impact", old, "--add-config", "retention.ms=30d", *reach)
    assert shorter.code == 0, shorter.err
    assert "loss: Kafka deletes 10 of 10 records (100%" in shorter.out
    assert set(store.read()) >= {"orders", "old"}
    assert not any(store.folder.iterdir())


def test_missing_rights_are_named(shop: Shop) -> None:  # noqa: F811
    """The reader may describe topics and the cluster, but no group, and may not read topics."""
    ran = shop("usage", shop.orders, "--format", "json", "--command-config", str(shop.client))
    assert ran.code == 0, ran.err
    (topic,) = json.loads(ran.out)["topics"]
    assert (topic["groups"], topic["active_producers"]) == (None, None)
    reasons = {item["fields"][0]: item["reason"] for item in topic["unknown"]}
    assert reasons == {
        "active_producers": "kdeclare lacks the Read permission on the topic",
        "groups": "kdeclare lacks the Describe permission on the groups",
    }


def test_fleet_audit_reports_unused_topics(store: Store) -> None:
    """Like ``kdeclare usage --unused``: the topic with old records, and the one without any."""
    (store.folder / "fleet.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Fleet\nmetadata: {name: shop}\nspec:\n  unused: {after: 30d}\n"
        f"  clusters: [{{name: one, bootstrapServers: '{store.bootstrap}', manifests: []}}]\n"
    )
    line = ["fleet", "audit", "fleet.yaml", "--out", "audits", "--engine", "local"]
    ran = run_here(store.folder, *line)
    assert ran.code == 0, ran.err
    ran = run_here(
        store.folder, "fleet", "report", "--out", "audits", "--where", "unused", "--format", "json"
    )
    assert ran.code == 0, ran.err
    found = {item["name"] for item in json.loads(ran.out)["findings"]}
    assert {name.removeprefix(store.prefix) for name in found if name.startswith(store.prefix)} == {
        "old",
        "untouched",
    }
