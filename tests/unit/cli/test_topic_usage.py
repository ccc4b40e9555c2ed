"""``kdeclare usage`` on the command line: what it reads, selects and says about what it cannot read."""

import json
import time
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset, GroupMember, GroupType
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.request_values import ActiveProducer, NewTopic
from tests.unit.cli.command_line import CommandLine

DAY = 86_400_000
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
REFUND, LEGACY, PURGED = (
    TopicPartition("refunds", 0),
    TopicPartition("legacy", 0),
    TopicPartition("purged", 0),
)
NOT_AUTHORIZED = "Not authorized."


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """Topics that are read, written, old, never written, emptied by retention, and internal."""
    cluster = kdeclare.cluster
    names = ("orders", "refunds", "legacy", "empty", "purged", "app-store-changelog", "__consumer_offsets")
    cluster.create_topics([NewTopic(name, 2 if name == "orders" else 1, 1, None, {}) for name in names])
    cluster.mark_internal("__consumer_offsets")
    now_ms = int(time.time() * 1000)
    cluster.produce("orders", 200)
    cluster.set_log(FIRST, start=20, times=[now_ms - 5 * 60_000] * 100)
    cluster.set_log(SECOND, times=[now_ms - 10 * 60_000] * 100)
    cluster.produce("refunds", 7)
    cluster.set_log(REFUND, times=[now_ms - 3 * DAY] * 7)
    cluster.produce("legacy", 50)
    cluster.set_log(LEGACY, times=[now_ms - 400 * DAY] * 50)
    cluster.produce("purged", 5)
    cluster.set_log(PURGED, start=5)
    cluster.produce("app-store-changelog", 3)  # written in 1970
    cluster.set_producers(FIRST, ActiveProducer(1, now_ms), ActiveProducer(2, now_ms - 2 * DAY))
    billing = {FIRST: CommittedOffset(60), SECOND: CommittedOffset(100), REFUND: CommittedOffset(7)}
    cluster.groups.alter_offsets({"billing": billing, "audit": {LEGACY: CommittedOffset(10)}})
    cluster.set_members("mail", GroupMember("m-1", "c", "h", None, (FIRST, SECOND)))
    return kdeclare


def read(shop: CommandLine, *arguments: str) -> dict[str, Any]:
    """Return the JSON document of the command."""
    ran = shop("usage", *arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    document: dict[str, Any] = json.loads(ran.out)
    return document


def list_names(document: dict[str, Any]) -> list[str]:
    """Return the names of the topics in a document."""
    return [topic["name"] for topic in document["topics"]]


def test_usage_lists_all_topics_but_internal_ones(shop: CommandLine) -> None:
    ran = shop("usage")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "6 topics on lab:9092: 1 with active consumers, 1 with active producers."
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[3:9]}
    assert rows == {
        "app-store-changelog": f"1 3 2.9 KiB {int(time.time() // 86400):,} d ago 0 - Kafka Streams",
        "empty": "1 0 0 B - 0 -",
        "legacy": "1 50 48.8 KiB 400 d ago 0 audit (40 unread)",
        "orders": "2 180 195.3 KiB 5 min ago 1 mail (1 member, 180 unread), billing (40 unread)",
        "purged": "1 0 4.9 KiB - 0 -",
        "refunds": "1 7 6.8 KiB 3 d ago 0 billing",
    }


def test_usage_of_one_topic_shows_its_groups(shop: CommandLine) -> None:
    ran = shop("usage", "orders")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[:3] == ["orders on lab:9092", "  partitions     2", "  records        180 (195.3 KiB)"]
    assert lines[3].startswith("  newest record  20")
    assert lines[3].endswith(" UTC (5 min ago)")
    assert lines[4:] == [
        "  producers      1 wrote within the last hour",
        "  groups         2, 1 with members",
        "",
        "  GROUP    STATE   MEMBERS  UNREAD",
        "  mail     Stable        1     180",
        "  billing  Empty         0      40",
    ]


def test_names_and_expressions_select_topics(shop: CommandLine) -> None:
    assert list_names(read(shop, "refunds", "l.*y")) == ["refunds", "legacy"]
    assert list_names(read(shop, "--topic", "__consumer_offsets")) == ["__consumer_offsets"]
    assert "__consumer_offsets" not in list_names(read(shop, ".*", "--exclude-internal"))
    assert read(shop, "__consumer_offsets")["topics"][0]["purpose"] == "kafka"
    ran = shop("usage", "order")
    assert (ran.code, ran.out) == (1, "")
    assert "Did you mean 'orders'?" in ran.err
    assert read(shop, "order", "--if-exists")["topics"] == []


def test_unused_topics_have_no_members_and_no_recent_records(shop: CommandLine) -> None:
    document = read(shop, "--unused")
    assert list_names(document) == ["empty", "legacy"]
    changelog, purged = document["undetermined"]
    assert "the name suggests that Kafka Streams uses the topic" in changelog["reason"]
    assert purged == {"name": "purged", "reason": "all records of partition 0 were deleted"}
    assert list_names(read(shop, "--unused", "--older-than", "2d")) == [*list_names(document), "refunds"]
    shop.cluster.set_members("old", GroupMember("m-2", "c", "h", None, (LEGACY,)))
    assert list_names(read(shop, "--unused")) == ["empty"]


def test_unused_topics_in_text_show_what_they_hold(shop: CommandLine) -> None:
    lines = shop("usage", "--unused").out.splitlines()
    assert lines[:2] == [
        "2 of 6 topics on lab:9092 are unused (no members, no active producers, no records newer than 30 d).",
        "They hold 50 records (48.8 KiB).",
    ]
    assert lines[-3] == "kdeclare could not determine whether 2 topics are unused:"
    assert lines[-1:] == [
        "  purged: all records of partition 0 were deleted",
    ]
    assert shop("usage", "orders", "--unused").out == (
        "0 of 1 topic on lab:9092 is unused (no members, no active producers, no records newer than 30 d).\n"
    )


def test_topic_with_active_producer_is_not_unused(shop: CommandLine) -> None:
    """A producer with an open transaction can have written its last record long ago."""
    shop.cluster.set_producers(LEGACY, ActiveProducer(1, 0, in_transaction=True))
    assert "legacy" not in list_names(read(shop, "--unused"))


def test_wrong_options_are_usage_errors(shop: CommandLine) -> None:
    assert shop("usage", "--older-than", "3d").code == 64
    ran = shop("usage", "--unused", "--older-than", "month")
    assert ran.code == 64
    assert "'month' is not a duration of at most 100 years." in ran.err


def test_missing_rights_are_unknown_and_named(shop: CommandLine) -> None:
    faults = shop.cluster.faults
    denied = Fault("TOPIC_AUTHORIZATION_FAILED", NOT_AUTHORIZED)
    faults.fail(denied, method="producers", item="legacy", nth=None)
    faults.fail(Fault("CLUSTER_AUTHORIZATION_FAILED", NOT_AUTHORIZED), method="log_dirs", nth=None)
    faults.fail(Fault("GROUP_AUTHORIZATION_FAILED", NOT_AUTHORIZED), method="fetch_offsets", nth=None)
    ran = shop("usage", "legacy", "refunds")
    assert ran.code == 0
    assert [line.split()[1:] for line in ran.out.splitlines()[3:5]] == [
        ["1", "50", "?", "400", "d", "ago", "?", "?"],
        ["1", "7", "?", "3", "d", "ago", "0", "?"],
    ]
    assert "the producers of 1 topic (legacy): kdeclare lacks the Read permission on the topic." in ran.err
    assert "the groups of 2 topics (legacy, refunds): kdeclare lacks the Describe permission on" in ran.err
    assert "the size of 2 topics (legacy, refunds): kdeclare lacks the Describe permission" in ran.err
    (topic,) = read(shop, "legacy")["topics"]
    assert (topic["bytes"], topic["active_producers"], topic["groups"]) == (None, None, None)
    assert [item["fields"] for item in topic["unknown"]] == [["bytes"], ["active_producers"], ["groups"]]
    details = shop("usage", "legacy").out
    assert "  records        50 (unknown size)\n" in details
    assert "  unknown        active producers: kdeclare lacks the Read permission on the topic\n" in details


def test_unreadable_groups_leave_unused_undetermined(shop: CommandLine) -> None:
    fault = Fault("GROUP_AUTHORIZATION_FAILED", NOT_AUTHORIZED)
    shop.cluster.faults.fail(fault, method="list_groups", nth=None)
    document = read(shop, "legacy", "refunds", "orders", "--unused")
    assert document["topics"] == []
    assert [item["name"] for item in document["undetermined"]] == ["legacy"]


def test_topic_without_leader_is_unknown(shop: CommandLine) -> None:
    (broker,) = shop.cluster.topics(["legacy"])["legacy"].partitions[0].replicas
    shop.cluster.fence(broker)
    (topic,) = read(shop, "legacy")["topics"]
    assert (topic["records"], topic["newest_record_ms"]) == (None, None)
    assert topic["groups"] == [{"id": "audit", "state": "Empty", "members": 0, "unread": None}]
    assert topic["unknown"][0]["reason"] == "partition 0 has no leader"
    assert "list_offsets" not in {call.method for call in shop.cluster.calls[-6:]}


def test_groups_that_can_read_any_topic_are_named(shop: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.cluster.add_group("queue", GroupType.SHARE)
    shop.cluster.set_members("audit", GroupMember("m-3", "c", "h"))  # it is rebalancing
    monkeypatch.setattr(type(shop.cluster), "find_cluster_rights", lambda _: frozenset())
    ran = shop("usage", "legacy", "--unused")
    assert "kdeclare does not know which topics 2 groups read (audit, queue)." in ran.err
    assert "share groups, Kafka Streams groups with members, groups of an unknown type" in ran.err
    assert "Groups that are not shown may also read these topics: without the Describe" in ran.err
    assert "  legacy: the members of group 'audit' have no partitions at the moment\n" in ran.out
    document = read(shop, "legacy")
    assert (document["all_groups_visible"], document["unknown_groups"]) == (False, ["audit", "queue"])
    assert document["topics"][0]["groups"][0]["members"] is None


def test_groups_that_can_read_any_topic_qualify_the_headline(shop: CommandLine) -> None:
    shop.cluster.add_group("queue", GroupType.SHARE)
    ran = shop("usage", "--unused", "--quiet")
    assert "\nHowever, 1 group might be reading some of these topics (see the warnings).\n" in ran.out


def test_clusters_with_too_many_groups_have_unknown_groups(
    shop: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdeclare.providers.kafka.impact.group_members.MAX_GROUPS", 1)
    assert "the groups of 1 topic (legacy): the cluster has more than" in shop("usage", "legacy").err


def test_old_brokers_do_not_tell_the_newest_record(shop: CommandLine) -> None:
    fault = Fault("UNSUPPORTED_VERSION", "ListOffsets v7")
    shop.cluster.faults.fail(fault, method="last_writes", nth=None)
    before = len(shop.cluster.requests("last_writes"))
    document = read(shop, "--unused")
    assert {item["name"] for item in document["undetermined"]} >= {"legacy", "refunds"}
    assert len(shop.cluster.requests("last_writes")) == before + 1


def test_sizes_of_tiered_topics_are_unknown(shop: CommandLine) -> None:
    resource = ConfigResource(ConfigScope.TOPIC, "legacy")
    shop.cluster.set_overrides(resource, {"remote.storage.enable": "true"})
    (topic,) = read(shop, "legacy")["topics"]
    assert topic["bytes"] is None
    assert "tiered storage" in topic["unknown"][0]["reason"]
    fault = Fault("TOPIC_AUTHORIZATION_FAILED", NOT_AUTHORIZED)
    shop.cluster.faults.fail(fault, method="configs", item=f"{ConfigScope.TOPIC.value}/refunds", nth=None)
    assert (
        "whether tiered storage is used for 1 topic (refunds): kdeclare lacks" in shop("usage", "refunds").err
    )


def test_size_that_no_broker_reports_is_unknown(shop: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(shop.cluster), "log_dirs", lambda *_, **_known: {})
    (topic,) = read(shop, "legacy")["topics"]
    assert (topic["bytes"], topic["records"]) == (None, 50)
    assert topic["unknown"][0]["reason"] == "a broker did not report the size of a partition"


def test_requests_do_not_grow_with_topics(shop: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if some of them may not be read, or cannot be."""
    cluster = shop.cluster
    cluster.calls.clear()
    shop("usage")
    few = [call.method for call in cluster.calls]
    cluster.create_topics([NewTopic(f"t{number}", 1, 1, None, {}) for number in range(400)])
    for number in range(0, 400, 2):
        fault = Fault("TOPIC_AUTHORIZATION_FAILED", NOT_AUTHORIZED)
        cluster.faults.fail(fault, method="producers", item=f"t{number}", nth=None)
    cluster.calls.clear()
    document = read(shop)
    assert len(document["topics"]) == 406
    assert sum(topic["active_producers"] is None for topic in document["topics"]) == 200
    assert [call.method for call in cluster.calls] == few
    monkeypatch.setattr("kdeclare.providers.kafka.usage.topic_usage.TOPICS_PER_STEP", 100)
    cluster.calls.clear()
    assert read(shop)["topics"] == document["topics"]
    steps = 5
    assert len(cluster.calls) == len(few) + (steps - 1) * 5


def test_one_unreadable_topic_costs_few_requests(shop: CommandLine) -> None:
    cluster = shop.cluster
    cluster.create_topics([NewTopic(f"t{number}", 1, 1, None, {}) for number in range(250)])
    cluster.calls.clear()
    fault = Fault("KAFKA_STORAGE_ERROR", "disk")
    cluster.faults.time_out(after_effect=False, fault=fault, method="list_offsets", item="t77", nth=None)
    document = read(shop)
    assert [topic["name"] for topic in document["topics"] if topic["records"] is None] == ["t77"]
    assert len(cluster.requests("list_offsets")) <= 20
