"""What plans say about the topics that inherit a changed broker config."""

import time
from collections.abc import Callable

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.impact import impact_reader, inherited_loss
from kdeclare.providers.kafka.impact.topic_settings import find_topic_key
from kdeclare.providers.kafka.testing.definitions import DYNAMIC_KEYS, MILLISECONDS_PER_UNIT, SYNONYMS
from tests.engine.impacts import find_figures, list_texts, observe
from tests.engine.world import World, desired, topic

HOUR = 3_600_000
DAY = str(24 * HOUR)
REQUESTS = {"topics", "configs", "list_offsets", "log_dirs", "list_groups", "acls", "quotas"}


@pytest.fixture
def world() -> World:
    """Three topics with a record per hour for 100 hours. The topic 'kept' has an override."""
    world = World()
    roll = {"segment.ms": str(HOUR)}
    for name, configs in (("orders", roll), ("payments", roll), ("kept", {"retention.ms": "-1"})):
        world.apply(topic(name, partitions=1, replicationFactor=3, configs=configs))
        world.cluster.produce(name, 100)
        now_ms = int(time.time() * 1000)
        times = [now_ms - (100 - number) * HOUR + 60_000 for number in range(100)]
        world.cluster.set_log(TopicPartition(name, 0), times=times)
    world.apply(desired("BrokerConfig", "cluster-default", configs={"log.retention.ms": str(200 * HOUR)}))
    return world


def brokers(name: str = "cluster-default", /, **configs: str) -> DesiredResource:
    """Declare broker configs; underscores represent dots."""
    given = {key.replace("_", "."): value for key, value in configs.items()}
    return desired("BrokerConfig", name, configs=given)


def test_lower_retention_names_topics_and_deleted_records(world: World) -> None:
    observations = observe(world, brokers(log_retention_ms=DAY))
    assert list_texts(observations, "inherited-config") == [
        "BrokerConfig/cluster-default: effect: 2 topics inherit retention.ms: orders, payments."
    ]
    assert list_texts(observations, "deletable-records") == [
        "BrokerConfig/cluster-default: loss: Kafka deletes 148 to 152 of 200 records (up to 76%, about "
        "148.4 KiB) of 2 topics (orders, payments)."
    ]
    assert find_figures(observations, "deletable-records")["topics_total"] == 2
    assert {item.path for item in observations} == {"configs.log.retention.ms"}


def test_higher_retention_deletes_nothing(world: World) -> None:
    observations = observe(world, brokers(log_retention_ms=str(300 * HOUR)))
    assert [item.code for item in observations] == ["inherited-config"]
    assert world.cluster.requests("list_offsets") == []


def test_topics_without_old_records_lose_none(world: World) -> None:
    observations = observe(world, brokers(log_retention_ms=str(150 * HOUR)))
    assert list_texts(observations, "deletable-records") == [
        "BrokerConfig/cluster-default: info: No records of these topics currently exceed the new limits."
    ]


def test_only_some_topics_are_read_for_records(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inherited_loss, "MAX_READ_TOPICS", 1)
    (text,) = list_texts(observe(world, brokers(log_retention_ms=DAY)), "deletable-records")
    assert "Of 2 topics, kdeclare read 1. Kafka deletes 74 to 76 of 100 records" in text


def test_override_in_the_same_plan_keeps_records(world: World) -> None:
    kept = {"segment.ms": str(HOUR), "retention.ms": "-1"}
    orders = topic("orders", partitions=1, replicationFactor=3, configs=kept)
    observations = observe(world, brokers(log_retention_ms=DAY), orders)
    assert list_texts(observations, "inherited-config") == [
        "BrokerConfig/cluster-default: effect: 1 topic inherits retention.ms: payments."
    ]


def test_change_without_inheriting_topics_is_said() -> None:
    world = World()
    world.apply(topic("kept", configs={"retention.ms": "-1"}))
    assert list_texts(observe(world, brokers(log_retention_ms=DAY)), "inherited-config") == [
        "BrokerConfig/cluster-default: info: No topic inherits retention.ms: all of them have overrides."
    ]


def test_one_broker_deletes_from_partitions_that_it_leads(world: World) -> None:
    leader = world.cluster.topics(["orders"])["orders"].partitions[0].leader
    assert leader is not None
    (text,) = list_texts(observe(world, brokers(str(leader), log_retention_ms=DAY)), "inherited-config")
    assert f"with replicas on broker {leader} inherit" in text
    observations = observe(world, brokers(str(leader), log_retention_ms=DAY))
    led = sum(
        world.cluster.topics([name])[name].partitions[0].leader == leader for name in ("orders", "payments")
    )
    assert find_figures(observations, "deletable-records")["records_total"] == 100 * led


def test_broker_without_replicas_affects_no_topic(world: World) -> None:
    world.cluster.set_broker(9)
    (text,) = list_texts(observe(world, brokers("9", log_retention_ms=DAY)), "inherited-config")
    assert "No topic with replicas on broker 9 inherits retention.ms" in text


def test_removed_default_has_an_unknown_effect(world: World) -> None:
    observations = observe(world, desired("BrokerConfig", "cluster-default", configs={}))
    assert list_texts(observations, "not-determined") == [
        "BrokerConfig/cluster-default: unknown: kdeclare could not determine which records of these topics "
        "are deleted: the plan removes the config, so brokers will use a value that kdeclare does not know, "
        "such as the one in their properties file."
    ]


def test_default_compaction_names_topics_and_producers(world: World) -> None:
    observations = observe(
        world,
        desired(
            "BrokerConfig",
            "cluster-default",
            configs={"log.retention.ms": str(200 * HOUR), "log.cleanup.policy": ["delete", "compact"]},
        ),
    )
    (text,) = list_texts(observations, "keys-required")
    assert text.startswith(
        "BrokerConfig/cluster-default: loss: 3 topics (kept, orders, payments) are compacted:"
    )


def test_two_limits_are_computed_together(world: World) -> None:
    """The topic 'kept' only inherits the limit on sizes, which deletes nothing."""
    change = brokers(log_retention_ms=DAY, log_retention_bytes="1000000000")
    observations = observe(world, change)
    assert len(list_texts(observations, "inherited-config")) == 2
    assert [
        (item.path, item.figures["records_at_most"])
        for item in observations
        if item.code == "deletable-records"
    ] == [("configs.log.retention.ms", 152), ("configs.log.retention.bytes", 0)]


def test_missing_permission_on_topics_is_named(world: World) -> None:
    fault = Fault("TOPIC_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="configs", item="TOPIC/orders", nth=None)
    observations = observe(world, brokers(log_retention_ms=DAY))
    assert list_texts(observations, "not-determined") == [
        "BrokerConfig/cluster-default: unknown: kdeclare could not determine whether 1 topic (orders) "
        "inherits retention.ms: kdeclare lacks the DescribeConfigs permission on the topic."
    ]


def test_partition_without_leader_is_named(world: World) -> None:
    for broker in (1, 2, 3):
        world.cluster.fence(broker)
    observations = observe(world, brokers(log_retention_ms=DAY))
    assert list_texts(observations, "not-determined") == [
        "BrokerConfig/cluster-default: unknown: kdeclare could not determine which records of 2 topics "
        "(orders, payments) are deleted: partition 0 has no leader."
    ]


def test_slow_cluster_ends_the_reading(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impact_reader, "_TIME_LIMIT_S", -1.0)
    (observation,) = observe(world, brokers(log_retention_ms=DAY))
    assert observation.text == (
        "kdeclare could not determine which topics inherit retention.ms: TOO_SLOW: reading the cluster took "
        "too long."
    )


def test_every_dynamic_default_of_topics_is_known() -> None:
    """The in-memory cluster has the synonyms of Kafka's ServerTopicConfigSynonyms."""
    expected = {
        name: key
        for key, names in SYNONYMS.items()
        for name in names
        if name in DYNAMIC_KEYS and name not in MILLISECONDS_PER_UNIT
    }
    assert {name: find_topic_key(name) for name in DYNAMIC_KEYS if find_topic_key(name)} == expected


@pytest.mark.parametrize(
    ("change", "requests"),
    [
        (lambda: brokers(log_retention_ms=DAY), {"topics", "configs", "list_offsets", "log_dirs"}),
        (lambda: brokers(log_retention_ms=str(200 * HOUR), compression_type="lz4"), {"topics", "configs"}),
        (lambda: brokers(log_retention_ms=str(200 * HOUR), log_cleaner_threads="2"), set()),
    ],
    ids=["shorter retention", "compression", "no default of topics"],
)
def test_only_what_a_broker_config_needs_is_read(
    world: World, change: Callable[[], DesiredResource], requests: set[str]
) -> None:
    world.cluster.calls.clear()
    world.plan(change())
    without = [call.method for call in world.cluster.calls]
    world.cluster.calls.clear()
    observe(world, change())
    more = [call.method for call in world.cluster.calls]
    assert {method for method in REQUESTS if more.count(method) > without.count(method)} == requests
