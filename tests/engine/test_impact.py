"""What plans say about the records and consumers of topics, and what they read for it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.planfile import parse_plan_file, render_plan_file
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset, GroupMember, GroupType
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.impact import topic_impact, topic_logs
from kdeclare.providers.kafka.port import ActiveProducer
from tests.engine.world import World, topic

HOUR = 3_600_000
FIRST = TopicPartition("orders", 0)
SHORT = {"retention.ms": str(24 * HOUR), "segment.ms": str(HOUR)}


@pytest.fixture
def world() -> World:
    """A topic with one partition and a record per hour for 100 hours, and groups at different positions."""
    world = World()
    world.apply(topic("orders", partitions=1, replicationFactor=3, configs={"segment.ms": str(HOUR)}))
    world.cluster.produce("orders", 100)
    now_ms = int(time.time() * 1000)
    world.cluster.set_log(FIRST, times=[now_ms - (100 - number) * HOUR + 60_000 for number in range(100)])
    for group, offset in (("billing", 40), ("archive", 100)):
        world.cluster.add_group(group)
        world.cluster.groups.alter_offsets({group: {FIRST: CommittedOffset(offset)}})
    return world


def observe(world: World, *declared: DesiredResource) -> tuple[Observation, ...]:
    """Return the observations of a plan for the declared resources. Other resources are deleted."""
    scope = PlanScope(impact=True, allow_deletes=True, allow_empty=True)
    return world.plan(*declared, scope=scope).observations


def list_texts(observations: tuple[Observation, ...]) -> list[str]:
    """Return the observations as lines of text."""
    return [f"{item.level.value}: {item.text}" for item in observations]


def shorten(**configs: str) -> DesiredResource:
    """Declare the topic with other configs."""
    return topic("orders", partitions=1, replicationFactor=3, configs={"segment.ms": str(HOUR), **configs})


def grow(partitions: int) -> DesiredResource:
    """Declare the topic with more partitions."""
    return topic("orders", partitions=partitions, replicationFactor=3, configs={"segment.ms": str(HOUR)})


def test_shorter_retention_names_deleted_and_unread_records(world: World) -> None:
    assert list_texts(observe(world, shorten(**SHORT))) == [
        "loss: Kafka deletes 75 to 76 of 100 records (up to 76 %, about 74.2 KiB).",
        "loss: Group billing has not read 35 to 36 of these records.",
    ]


def test_impact_is_not_read_unless_requested(world: World) -> None:
    assert world.plan(shorten(**SHORT)).observations == ()


def test_longer_retention_has_no_impact(world: World) -> None:
    assert observe(world, shorten(**{"retention.ms": str(10_000 * HOUR)})) == ()


def test_topic_without_old_records_loses_none(world: World) -> None:
    assert list_texts(observe(world, shorten(**{"retention.ms": str(167 * HOUR)}))) == [
        "info: No record of the topic exceeds the new limits now."
    ]


def test_retention_of_compacted_topic_deletes_nothing() -> None:
    world = World()
    compacted = {"cleanup.policy": ["compact"], "retention.ms": str(1000 * HOUR)}
    world.apply(topic("t", partitions=1, configs=compacted))
    world.cluster.produce("t", 10)
    (observation,) = observe(world, topic("t", partitions=1, configs={**compacted, "retention.ms": "1"}))
    assert observation.level is ObservationLevel.INFO


def test_added_delete_policy_names_deleted_records() -> None:
    world = World()
    world.apply(topic("t", partitions=1, configs={"cleanup.policy": ["compact"]}))
    world.cluster.produce("t", 10)  # written in 1970
    observations = observe(world, topic("t", partitions=1, configs={"cleanup.policy": ["compact", "delete"]}))
    assert "Kafka deletes 10 of 10 records (100 %, about 9.8 KiB)." in observations[0].text
    assert observations[1].text == "No group reads the topic."


def test_removed_override_uses_the_default_of_the_brokers() -> None:
    world = World()
    world.apply(topic("t", partitions=1, configs={"retention.ms": "-1"}))
    world.cluster.produce("t", 10)
    observations = observe(world, topic("t", partitions=1))
    assert observations[0].figures["records_at_most"] == 10
    assert observations[0].path == "configs.retention.ms"


def test_smaller_size_limit_has_bounds(world: World) -> None:
    (loss, *_) = observe(world, shorten(**{"retention.bytes": "40000"}))
    assert loss.figures == {
        "records_at_least": 0,
        "records_at_most": 100,
        "records_total": 100,
        "bytes_at_least": 0,
        "bytes_at_most": 60_000,
        "bytes_about": 60_000,
    }


def test_deletion_names_records_and_readers(world: World) -> None:
    world.cluster.set_members("archive", GroupMember("m-1", "c", "h", partitions=(FIRST,)))
    newest = datetime.fromtimestamp((world.cluster.find_last_writes(["orders"])[FIRST] or 0) / 1000, UTC)
    assert list_texts(observe(world)) == [
        "loss: The topic holds 100 records (97.7 KiB).",
        "loss: Group billing has not read 60 of these records.",
        "effect: 1 member of group archive reads the topic.",
        f"info: The newest record has the time {newest:%Y-%m-%d %H:%M} UTC.",
    ]


def test_deletion_names_active_producers(world: World) -> None:
    now_ms = int(time.time() * 1000)
    world.cluster.set_producers(
        FIRST, ActiveProducer(1, now_ms), ActiveProducer(2, now_ms - 60_000), ActiveProducer(3, 0)
    )
    texts = list_texts(observe(world))
    (text,) = [text for text in texts if "producers" in text]
    assert text.startswith("effect: 2 producers wrote to the topic within the last hour. The newest record")


def test_deletion_without_read_permission_names_it(world: World) -> None:
    fault = Fault("TOPIC_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="producers", nth=None)
    texts = list_texts(observe(world))
    (text,) = [text for text in texts if text.startswith("unknown")]
    assert text.startswith("unknown: kdeclare could not determine which producers write to the topic: ")


def test_member_without_committed_offsets_has_read_nothing(world: World) -> None:
    world.cluster.set_members("new", GroupMember("m-1", "c", "h", partitions=(FIRST,)))
    texts = list_texts(observe(world, shorten(**SHORT)))
    assert "loss: Group new has not read 75 to 76 of these records (it has 1 member)." in texts


def test_many_groups_are_counted(world: World) -> None:
    for number in range(8):
        world.cluster.add_group(f"g{number}")
        world.cluster.groups.alter_offsets({f"g{number}": {FIRST: CommittedOffset(50 + number)}})
    texts = list_texts(observe(world, shorten(**SHORT)))
    assert len(texts) == 7
    assert texts[-1] == "loss: 4 other groups have not read up to 22 records either."


def test_groups_of_other_protocols_are_ignored(world: World) -> None:
    world.cluster.add_group("workers", protocol="connect")
    world.cluster.add_group("shared", GroupType.SHARE)
    assert len(observe(world, shorten(**SHORT))) == 2


def test_more_partitions_move_keys(world: World) -> None:
    (observation,) = observe(world, grow(3))
    assert observation.code == "keys-move"
    assert "(3 instead of 1)" in observation.text


def test_more_partitions_of_special_topics() -> None:
    world = World()
    configs = {"cleanup.policy": ["compact"]}
    world.apply(topic("app-store-changelog", partitions=1, configs=configs))
    observations = observe(world, topic("app-store-changelog", partitions=2, configs=configs))
    assert [item.code for item in observations] == ["streams-topic", "keys-move", "stale-keys"]


def test_larger_min_isr_counts_partitions_that_reject_records(world: World) -> None:
    (observation,) = observe(world, shorten(**{"min.insync.replicas": "3"}))
    assert observation.text == (
        "If one broker is down, up to 1 partition of 1 no longer accept records from producers with acks=all "
        "(before the change: 0)."
    )


def test_more_replicas_keep_partitions_writable() -> None:
    world = World()
    world.apply(topic("t", partitions=2, replicationFactor=2))
    larger = topic("t", partitions=2, replicationFactor=3, configs={"min.insync.replicas": "2"})
    assert observe(world, larger) == ()


def test_fewer_replicas_make_partitions_unwritable() -> None:
    world = World()
    configs = {"min.insync.replicas": "2"}
    world.apply(topic("t", partitions=2, replicationFactor=3, configs=configs))
    (observation,) = observe(world, topic("t", partitions=2, replicationFactor=2, configs=configs))
    assert (observation.code, observation.path) == ("not-writable", "replicationFactor")


def test_compaction_requires_keys() -> None:
    world = World()
    world.apply(topic("t", partitions=1))
    world.cluster.produce("t", 10)
    (observation,) = observe(world, topic("t", partitions=1, configs={"cleanup.policy": ["compact"]}))
    assert observation.code == "keys-required"


@pytest.mark.parametrize(
    ("method", "error", "said"),
    [
        ("list_offsets", "TOPIC_AUTHORIZATION_FAILED", "the permissions Describe, DescribeConfigs and"),
        ("list_groups", "GROUP_AUTHORIZATION_FAILED", "which groups have unread records: kdeclare lacks the"),
        ("fetch_offsets", "GROUP_AUTHORIZATION_FAILED", "the permission Describe on the groups"),
    ],
)
def test_missing_permission_is_named(world: World, method: str, error: str, said: str) -> None:
    world.cluster.faults.fail(Fault(error, "Not authorized."), method=method, nth=None)
    observations = observe(world, shorten(**SHORT))
    unknown = [item for item in observations if item.level is ObservationLevel.UNKNOWN]
    assert [said in item.text for item in unknown] == [True]


def test_sizes_are_left_out_without_permission(world: World) -> None:
    fault = Fault("CLUSTER_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="log_dirs", nth=None)
    assert observe(world, shorten(**SHORT))[0].text == "Kafka deletes 75 to 76 of 100 records (up to 76 %)."


def test_hidden_groups_are_mentioned(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(world.cluster), "find_cluster_rights", lambda _: frozenset())
    codes = [item.code for item in observe(world, shorten(**SHORT))]
    assert codes == ["deletable-records", "unread-records", "hidden-groups"]


def test_cluster_with_too_many_groups_is_not_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_logs, "MAX_GROUPS", 1)
    texts = list_texts(observe(world, shorten(**SHORT)))
    assert texts[1].startswith("unknown: kdeclare could not determine which groups have unread records: the")


def test_slow_groups_end_the_reading(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_impact, "_TIME_LIMIT_S", -1.0)
    (observation,) = observe(world, shorten(**SHORT))
    assert observation.level is ObservationLevel.UNKNOWN


IMPACT_REQUESTS = {
    "list_offsets",
    "log_dirs",
    "list_groups",
    "describe_groups",
    "fetch_offsets",
    "cluster_rights",
    "last_writes",
    "producers",
}
"""The requests that no plan sends without impact."""


@pytest.mark.parametrize(
    ("change", "requests"),
    [
        (lambda: shorten(**{"retention.ms": str(10_000 * HOUR)}), set()),
        (lambda: shorten(**{"compression.type": "lz4"}), set()),
        (lambda: shorten(**{"min.insync.replicas": "3"}), set()),
        (
            lambda: topic("orders", partitions=2, replicationFactor=3, configs={"segment.ms": str(HOUR)}),
            set(),
        ),
        (
            lambda: shorten(**SHORT),
            {"list_offsets", "log_dirs", "list_groups", "fetch_offsets", "cluster_rights"},
        ),
    ],
    ids=["longer retention", "compression", "min ISR", "partitions", "shorter retention"],
)
def test_only_what_a_change_needs_is_read(
    world: World, change: Callable[[], DesiredResource], requests: set[str]
) -> None:
    world.cluster.calls.clear()
    observe(world, change())
    assert {call.method for call in world.cluster.calls} & IMPACT_REQUESTS == requests


def test_observations_are_not_part_of_the_id(world: World) -> None:
    plan = world.plan(shorten(**SHORT), scope=PlanScope(impact=True))
    text, plan_id = render_plan_file(plan)
    assert plan_id == render_plan_file(world.plan(shorten(**SHORT)))[1]
    assert parse_plan_file(text, "x.plan").plan == plan
