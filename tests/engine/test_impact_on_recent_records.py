"""What plans say about records like the recent ones: their keys, and the sizes of their batches."""

from collections.abc import Mapping, Sequence

import pytest

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.acl.binding import ALLOW, LITERAL, TOPIC, Binding
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.impact import impact_reader, record_sample
from kdeclare.providers.kafka.request_values import RecordBatch
from tests.engine.world import World, topic

MIB = 1024 * 1024
FIRST = TopicPartition("t", 0)
MOVED = (
    "With 4 partitions instead of 2, half of the keys of new records map to a different partition than "
    "before. Consumers can then read the new records of a key before its old records."
)
REJECTED = "Once the topic is compacted, brokers reject such records."
MISSING_READ = "kdeclare lacks the Read permission on the topic."
Configs = Mapping[str, JsonValue]


def build_world(
    records: int = 0, batches: Sequence[RecordBatch] = (), configs: Configs | None = None
) -> World:
    """Return a topic ``t`` with two partitions, each with half of the records. batches: of the first one."""
    world = World()
    world.apply(declare(2, configs or {}))
    world.cluster.produce("t", records)
    world.cluster.set_batches(FIRST, *batches)
    return world


def declare(partitions: int, configs: Configs) -> DesiredResource:
    """Declare the topic."""
    return topic("t", partitions=partitions, replicationFactor=3, configs=dict(configs))


def batch(records: int, keyed: int = 0, size: int = 500) -> RecordBatch:
    """Return a batch whose records were all inspected."""
    return RecordBatch(size, records, records, keyed)


def observe(world: World, partitions: int = 2, configs: Configs | None = None) -> tuple[Observation, ...]:
    """Return the observations of a plan with another number of partitions or other configs."""
    return world.plan(declare(partitions, configs or {}), scope=PlanScope(impact=True)).observations


def list_lines(observations: Sequence[Observation]) -> list[str]:
    """Return the observations as lines of text."""
    return [f"{item.level.value}: {item.text}" for item in observations]


# more partitions


@pytest.mark.parametrize(
    ("keyed", "line"),
    [
        (80, f"effect: 80 of 100 sampled recent records have keys. {MOVED}"),
        (1, f"effect: 1 of 100 sampled recent records has a key. {MOVED}"),
        (100, f"effect: All 100 sampled recent records have keys. {MOVED}"),
        (
            0,
            "info: None of the 100 sampled recent records has a key. "
            "Adding partitions does not affect records without keys.",
        ),
    ],
)
def test_growth_tells_whether_records_have_keys(keyed: int, line: str) -> None:
    world = build_world(200, [batch(60, min(keyed, 60)), batch(40, max(0, keyed - 60))])
    world.cluster.set_log(TopicPartition("t", 1), start=100)  # empty
    (observation,) = observe(world, 4)
    assert list_lines([observation]) == [line]
    assert observation.figures == {
        "partitions_before": 2,
        "partitions_after": 4,
        "records_sampled": 100,
        "records_with_keys": keyed,
    }


def test_growth_of_empty_topic_moves_no_keys() -> None:
    world = build_world()
    assert list_lines(observe(world, 4)) == [
        "info: The topic holds no records, so no key has records in several partitions."
    ]
    assert world.cluster.requests("fetch_batches") == []


def test_growth_with_a_single_record() -> None:
    world = build_world(1, [batch(1, 1)])
    (observation,) = observe(world, 4)
    assert observation.text.startswith(
        "The only sampled recent record has a key. With 4 partitions instead of 2, half of the keys"
    )


@pytest.mark.parametrize(
    ("ids", "shown", "noun"),
    [(["flink"], "group 'flink'", "group"), (["flink", "spark"], "groups flink, spark", "groups")],
)
def test_growth_names_groups_whose_clients_choose_their_partitions(
    ids: list[str], shown: str, noun: str
) -> None:
    """Clients that join a group get new partitions, whether the group has members at the moment or not."""
    world = build_world()
    for id_ in (*ids, "joined"):
        world.cluster.add_group(id_, protocol="consumer" if id_ == "joined" else "")
        world.cluster.groups.alter_offsets({id_: {FIRST: CommittedOffset(0)}})
    assert [line for line in list_lines(observe(world, partitions=4)) if "joining" in line] == [
        f"effect: Clients commit offsets for {shown} without joining the {noun}. If they choose their "
        "partitions themselves, they do not read the new partitions."
    ]


def test_growth_with_unreadable_groups_is_unknown() -> None:
    world = build_world()
    fault = Fault("COORDINATOR_NOT_AVAILABLE", "The coordinator is not available.")
    world.cluster.faults.fail(fault, method="list_groups", nth=None)
    assert [line for line in list_lines(observe(world, partitions=4)) if "choose" in line] == [
        "unknown: kdeclare could not determine which groups have consumers that choose their partitions "
        "themselves: COORDINATOR_NOT_AVAILABLE: The coordinator is not available."
    ]


def test_growth_without_read_permission_names_it() -> None:
    world = build_world(200, [batch(100, 100)])
    world.cluster.principal, world.cluster.is_super_user = "User:ci", False
    assert list_lines(observe(world, 4)) == [
        f"effect: {MOVED}",
        f"unknown: kdeclare could not determine whether recent records have keys: {MISSING_READ}",
    ]
    world.cluster.is_super_user = True
    world.cluster.create_acls([Binding(TOPIC, "t", LITERAL, "User:ci", "*", "READ", ALLOW)])
    world.cluster.is_super_user = False
    assert observe(world, 4)[0].text.startswith("100 of 200 sampled")


def test_growth_of_unreadable_partition_uses_the_others() -> None:
    world = build_world(200, [batch(100, 100)])
    fault = Fault("TOPIC_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="fetch_batches", item="t-1", nth=None)
    (observation,) = observe(world, 4)
    assert observation.text.startswith("All 100 sampled recent records have keys.")


def test_growth_with_unknown_compression_is_unknown() -> None:
    problem = "records are compressed with lz4, and the Python package lz4 is not installed"
    world = build_world(200, [RecordBatch(500, 100, problem=problem)])
    world.cluster.set_batches(TopicPartition("t", 1), RecordBatch(500, 100, problem=problem))
    assert list_lines(observe(world, 4)) == [
        f"effect: {MOVED}",
        f"unknown: kdeclare could not determine whether recent records have keys: {problem}.",
    ]


@pytest.mark.parametrize(("keyed", "first"), [(10, "10 of 100 sampled recent records have keys. "), (0, "")])
def test_growth_with_partly_unknown_compression(keyed: int, first: str) -> None:
    """If no known record has a key, the unknown ones still can."""
    problem = "records are compressed with lz4, and the Python package lz4 is not installed"
    world = build_world(200, [batch(100, keyed)])
    world.cluster.set_batches(TopicPartition("t", 1), RecordBatch(500, 100, problem=problem))
    assert list_lines(observe(world, 4)) == [
        f"effect: {first}{MOVED}",
        f"unknown: kdeclare could not determine whether other recent records have keys: {problem}.",
    ]


def test_topic_without_leader_is_unknown_and_sends_nothing() -> None:
    world = build_world(200, configs={"max.message.bytes": 2 * MIB})
    for broker in (1, 2, 3):
        world.cluster.fence(broker)
    (observation,) = observe(world, configs={"max.message.bytes": MIB})
    assert "partition 0 has no leader" in observation.text
    assert not world.cluster.requests("list_offsets")


def test_growth_of_topics_whose_records_all_have_keys_reads_no_records() -> None:
    world = build_world(200, configs={"cleanup.policy": ["compact"]})
    observations = observe(world, 4, configs={"cleanup.policy": ["compact"]})
    assert [item.text for item in observations if item.code == "keys-move"] == [MOVED]
    assert [item.code for item in observations] == ["keys-move", "stale-keys"]
    assert world.cluster.requests("fetch_batches") == []


# smaller batches


def test_smaller_limit_counts_batches_that_brokers_reject() -> None:
    """The sample ends with the third batch, of which brokers return only the beginning."""
    sizes = (400_000, 500_000, 1_887_437, 2_000_000)
    world = build_world(8, [batch(1, size=size) for size in sizes], configs={"max.message.bytes": 2 * MIB})
    world.cluster.set_log(TopicPartition("t", 1), start=4)
    (observation,) = observe(world, configs={"max.message.bytes": MIB})
    assert list_lines([observation]) == [
        "loss: Brokers reject batches of more than 1 MiB: 1 of 3 sampled recent batches is larger (up to 1.8 "
        "MiB)."
    ]
    assert observation.path == "configs.max.message.bytes"
    assert observation.figures == {
        "batches_sampled": 3,
        "batches_over_limit": 1,
        "single_records_over_limit": 1,
        "largest_batch_bytes": 1_887_437,
        "limit_bytes": MIB,
    }


def test_smaller_limit_above_all_batches() -> None:
    world = build_world(
        4, [batch(1, size=300_000), batch(1, size=200_000)], configs={"max.message.bytes": 2 * MIB}
    )
    world.cluster.set_log(TopicPartition("t", 1), start=2)
    (observation,) = observe(world, configs={"max.message.bytes": MIB})
    assert list_lines([observation]) == [
        "info: None of 2 sampled recent batches is larger than 1 MiB. The largest has 293 KiB."
    ]
    assert observation.figures == {
        "batches_sampled": 2,
        "batches_over_limit": 0,
        "single_records_over_limit": 0,
        "largest_batch_bytes": 300_000,
        "limit_bytes": MIB,
    }


def test_smaller_limit_of_empty_topic_has_no_impact() -> None:
    world = build_world(configs={"max.message.bytes": 2 * MIB})
    assert observe(world, configs={"max.message.bytes": MIB}) == ()


def test_sizes_that_round_to_the_same_text_are_shown_in_bytes() -> None:
    world = build_world(2, [batch(1, size=1_048_600)], configs={"max.message.bytes": 2 * MIB})
    world.cluster.set_log(TopicPartition("t", 1), start=1)
    (observation,) = observe(world, configs={"max.message.bytes": 1_048_588})
    assert list_lines([observation]) == [
        "loss: Brokers reject batches of more than 1,048,588 bytes: the only sampled recent batch has "
        "1,048,600 bytes."
    ]


def test_removed_limit_uses_the_default_of_the_brokers() -> None:
    world = build_world(2, [batch(1, size=600_000)], configs={"max.message.bytes": 2 * MIB})
    for broker in (1, 2, 3):
        resource = ConfigResource(ConfigScope.BROKER, str(broker))
        world.cluster.set_overrides(resource, {"message.max.bytes": "500000"})
    (observation,) = observe(world)
    assert (observation.level, observation.figures["limit_bytes"]) == ("loss", 500_000)


def test_unreadable_default_of_the_limit_is_unknown() -> None:
    world = build_world(2, configs={"max.message.bytes": 2 * MIB})
    fault = Fault("CLUSTER_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="configs", item=f"{ConfigScope.BROKER.value}/1", nth=None)
    (observation,) = observe(world)
    assert "do not show their default of max.message.bytes" in observation.text
    assert world.cluster.requests("fetch_batches") == []


def test_smaller_limit_without_read_permission_names_it() -> None:
    world = build_world(2, configs={"max.message.bytes": 2 * MIB})
    world.cluster.is_super_user = False
    assert list_lines(observe(world, configs={"max.message.bytes": MIB})) == [
        "unknown: kdeclare could not determine whether brokers reject batches like the recent ones: "
        f"{MISSING_READ}"
    ]


def test_larger_limit_has_no_impact() -> None:
    world = build_world(2, [batch(1, size=600_000)])
    assert observe(world, configs={"max.message.bytes": 2 * MIB}) == ()


# compaction


@pytest.mark.parametrize("policy", [["compact"], ["compact", "delete"]])
def test_added_compaction_counts_records_without_keys(policy: list[JsonValue]) -> None:
    world = build_world(200, [batch(100, 100)])
    lines = list_lines(observe(world, configs={"cleanup.policy": policy}))
    line = f"100 of 200 sampled recent records have no keys. {REJECTED}"
    assert f"loss: {line}" in lines


def test_added_compaction_of_topic_with_keys_only() -> None:
    world = build_world(200, [batch(100, 100)])
    world.cluster.set_batches(TopicPartition("t", 1), batch(100, 100))
    lines = list_lines(observe(world, configs={"cleanup.policy": ["compact"]}))
    assert "info: All 200 sampled recent records have keys." in lines


def test_added_compaction_of_topic_without_keys() -> None:
    lines = list_lines(observe(build_world(200), configs={"cleanup.policy": ["compact"]}))
    line = f"None of the 200 sampled recent records has a key. {REJECTED}"
    assert f"loss: {line}" in lines


END = (
    "effect: Kafka no longer compacts the topic. It keeps tombstones and all new records of a key, not only "
    "the latest one,"
)
NO_EFFECT = "delete.retention.ms no longer has an effect."


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (
            {"cleanup.policy": ["compact"]},
            {"cleanup.policy": ["delete"]},
            f"{END} until they exceed the retention limits. It then deletes even the latest record of a "
            f"key. {NO_EFFECT}",
        ),
        (
            {"cleanup.policy": ["compact", "delete"]},
            {"cleanup.policy": ["delete"]},
            f"{END} until they exceed the retention limits. {NO_EFFECT}",
        ),
        (
            {"cleanup.policy": ["compact"], "retention.ms": "-1"},
            {"cleanup.policy": ["delete"], "retention.ms": "-1"},
            f"{END} without any limit. {NO_EFFECT}",
        ),
    ],
    ids=["compact to delete", "compact removed", "without limits"],
)
def test_removed_compaction_says_what_changes(before: Configs, after: Configs, line: str) -> None:
    world = build_world(200, configs=before)
    observations = observe(world, configs=after)
    assert [each for each in list_lines(observations) if "compacts" in each] == [line]
    assert world.cluster.requests("fetch_batches") == []


# limits


def test_sample_is_spread_over_partitions_and_begins_before_the_end() -> None:
    world = World()
    world.apply(topic("t", partitions=10))
    world.cluster.produce("t", 100_000)
    observations = world.plan(topic("t", partitions=20), scope=PlanScope(impact=True)).observations
    (call,) = world.cluster.requests("fetch_batches")
    assert call.items == ("t-0", "t-2", "t-5", "t-7")
    # each record has 1,000 bytes, and the last of each partition does not fit into the limit
    assert observations[0].figures["records_sampled"] == 4 * (record_sample.BYTES_PER_PARTITION // 1000)


def test_plan_with_many_topics_is_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_sample, "BYTES_PER_PLAN", 3_000)
    world = World()
    names = [f"t{number}" for number in range(5)]
    world.apply(*(topic(name, partitions=1) for name in names))
    for name in names:
        world.cluster.produce(name, 2)
    observations = world.plan(*(topic(name, partitions=2) for name in names), scope=PlanScope(impact=True))
    unknown = [item for item in observations.observations if item.code == "not-determined"]
    assert len(world.cluster.requests("fetch_batches")) == 2
    assert [item.resource for item in unknown] == ["Topic/t2", "Topic/t3", "Topic/t4"]
    assert "kdeclare samples at most 32 MiB of records for a plan" in unknown[0].text


def test_slow_samples_end_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impact_reader, "_TIME_LIMIT_S", -1.0)
    world = build_world(200)
    observations = observe(world, 4)
    assert "took too long" in observations[1].text
    assert world.cluster.requests("fetch_batches") == []
