"""Topics and partitions through the `Cluster` protocol."""

import pytest

from kdeclare.core.live.faults import CreatedObject
from kdeclare.providers.kafka.collector import TopicExistence, check_existence
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Partition, Topic
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic
from tests.beds import AnyBed, all_created, get_error, get_message, topic_resource


def create_refused(bed: AnyBed, new: NewTopic) -> tuple[str | None, str]:
    """Return the fault of a topic that CreateTopics refuses."""
    answer = bed.cluster.create_topics([new])[new.topic]
    assert new.topic not in bed.cluster.topics([new.topic])
    return get_error(answer), get_message(answer)


def topic_with_counts(name: str, partitions: int | None, factor: int | None, **configs: str) -> NewTopic:
    """A new topic with counts."""
    return NewTopic(name, partitions, factor, None, {k.replace("_", "."): v for k, v in configs.items()})


def topic_with_assignments(name: str, *replicas: tuple[int, ...]) -> NewTopic:
    """A new topic with assignments."""
    return NewTopic(name, None, None, dict(enumerate(replicas)), {})


def test_create_with_counts(bed: AnyBed) -> None:
    topic = bed.topic(bed.create(partitions=4, factor=2))
    assert len(topic.partitions) == 4
    for partition in topic.partitions:
        assert len(set(partition.replicas)) == 2
        assert partition.leader == partition.replicas[0]
        assert sorted(partition.isr) == sorted(partition.replicas)
    assert topic.topic_id
    assert not topic.internal


def test_create_with_assignments(bed: AnyBed) -> None:
    topic = bed.topic(bed.create({0: (3, 1), 1: (2, 3)}))
    assert [p.replicas for p in topic.partitions] == [(3, 1), (2, 3)]
    assert [p.leader for p in topic.partitions] == [3, 2]


def test_create_with_broker_defaults(bed: AnyBed) -> None:
    topic = bed.topic(bed.create(partitions=None, factor=None))
    assert [len(p.replicas) for p in topic.partitions] == [1]


def test_placement_spreads_over_racks(bed: AnyBed) -> None:
    topic = bed.topic(bed.create(partitions=3, factor=3))
    assert all(set(p.replicas) == {1, 2, 3} for p in topic.partitions)
    assert {p.leader for p in topic.partitions} == {1, 2, 3}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "the empty string is not allowed"),
        ("..", "'..' is not allowed"),
        ("a b", "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("x" * 250, "is longer than the max allowed length 249"),
    ],
)
def test_illegal_names_are_refused(bed: AnyBed, name: str, words: str) -> None:
    answer = bed.cluster.create_topics([topic_with_counts(name, 1, 1)])[name]
    assert get_error(answer) == "INVALID_TOPIC_EXCEPTION"
    assert words in get_message(answer)


def test_cluster_metadata_topic_is_refused(bed: AnyBed) -> None:
    answer = bed.cluster.create_topics([topic_with_counts("__cluster_metadata", 1, 1)])["__cluster_metadata"]
    assert get_error(answer) == "INVALID_REQUEST"


def test_names_collide_with_existing_topics_only(bed: AnyBed) -> None:
    one, two = bed.delete_at_end(f"{bed.prefix}.x"), bed.delete_at_end(f"{bed.prefix}_x")
    both = bed.cluster.create_topics([topic_with_counts(one, 1, 1), topic_with_counts(two, 1, 1)])
    assert all_created(both)
    three = f"{bed.prefix}.y"
    bed.create(name=bed.delete_at_end(f"{bed.prefix}_y"))
    name, words = create_refused(bed, topic_with_counts(three, 1, 1))
    assert name == "INVALID_TOPIC_EXCEPTION"
    assert words == f"Topic '{three}' collides with existing topic: {bed.prefix}_y"


def test_existence_is_checked_before_factor(bed: AnyBed) -> None:
    name = bed.create()
    answer = bed.cluster.create_topics([topic_with_counts(name, 1, 9)])[name]
    assert (get_error(answer), get_message(answer)) == (
        "TOPIC_ALREADY_EXISTS",
        f"Topic '{name}' already exists.",
    )


@pytest.mark.parametrize(
    ("partitions", "factor", "name", "words"),
    [
        (0, 1, "INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value."),
        (-2, 1, "INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value."),
        (1, 0, "INVALID_REPLICATION_FACTOR", "Replication factor must be larger than 0"),
        (
            1,
            4,
            "INVALID_REPLICATION_FACTOR",
            "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be "
            "reached because only 3 broker(s) are registered",
        ),
    ],
)
def test_impossible_counts_are_refused(
    bed: AnyBed, partitions: int, factor: int, name: str, words: str
) -> None:
    got, text = create_refused(bed, topic_with_counts(bed.name(), partitions, factor))
    assert got == name
    assert words in text


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        (((),), "includes an empty replica list."),
        (((1, 9),), "includes broker 9, but no such broker is registered."),
        (((1, 2, 2),), "includes the broker 2 more than once."),
        (
            ((1, 2, 3), (1, 2)),
            "includes a partition with 2 replica(s), but this is not consistent with previous partitions, "
            "which have 3 replica(s).",
        ),
    ],
)
def test_impossible_assignments_are_refused(
    bed: AnyBed, lists: tuple[tuple[int, ...], ...], words: str
) -> None:
    name, text = create_refused(bed, topic_with_assignments(bed.name(), *lists))
    assert name == "INVALID_REPLICA_ASSIGNMENT"
    assert words in text


def test_assignments_must_be_numbered_from_zero(bed: AnyBed) -> None:
    new = NewTopic(bed.name(), None, None, {0: (1,), 2: (1,)}, {})
    assert create_refused(bed, new) == (
        "INVALID_REPLICA_ASSIGNMENT",
        "partitions should be a consecutive 0-based integer sequence",
    )


@pytest.mark.parametrize(
    ("partitions", "factor", "what"), [(1, None, "numPartitions"), (None, 1, "replication factor")]
)
def test_assignments_with_counts_are_refused(
    bed: AnyBed, partitions: int | None, factor: int | None, what: str
) -> None:
    name, text = create_refused(bed, NewTopic(bed.name(), partitions, factor, {0: (1,)}, {}))
    assert name == "INVALID_REQUEST"
    assert text == f"A manual partition assignment was specified, but {what} was not set to -1."


def test_topic_with_invalid_configs_is_not_created(bed: AnyBed) -> None:
    name, text = create_refused(bed, topic_with_counts(bed.name(), 1, 1, no_such="1"))
    assert (name, text) == ("INVALID_CONFIG", "Unknown topic config name: no.such")
    name, text = create_refused(bed, topic_with_counts(bed.name(), 1, 1, retention_ms="-2"))
    assert name == "INVALID_CONFIG"


def test_duplicate_topic_is_refused(bed: AnyBed) -> None:
    name = bed.name()
    answer = bed.cluster.create_topics([topic_with_counts(name, 1, 1), topic_with_counts(name, 2, 1)])[name]
    assert (get_error(answer), get_message(answer)) == ("INVALID_REQUEST", "Duplicate topic name.")
    assert name not in bed.cluster.topics([name])


def test_invalid_topic_does_not_stop_another(bed: AnyBed) -> None:
    bad, good = bed.name(), bed.name()
    results = bed.cluster.create_topics([topic_with_counts(bad, 1, 9), topic_with_counts(good, 1, 1)])
    assert get_error(results[bad]) == "INVALID_REPLICATION_FACTOR"
    assert isinstance(results[good], CreatedObject)


def test_validate_only_creates_nothing(bed: AnyBed) -> None:
    name = bed.name()
    assert bed.cluster.create_topics([topic_with_counts(name, 1, 1)], validate_only=True) == {name: None}
    answer = bed.cluster.create_topics([topic_with_counts(name, 1, 4)], validate_only=True)[name]
    assert get_error(answer) == "INVALID_REPLICATION_FACTOR"
    assert name not in bed.cluster.topics([name])


def test_deletion_removes_configs_and_recreation_changes_id(bed: AnyBed) -> None:
    name = bed.create(configs={"retention.ms": "7"})
    before = bed.topic(name).topic_id
    assert bed.cluster.delete_topics({name: None}) == {name: None}

    def check_gone() -> None:
        assert name not in bed.cluster.topics([name])
        assert bed.describe(topic_resource(name), "retention.ms") == {}

    bed.eventually(check_gone)
    bed.create(name=name, partitions=2)
    bed.expect_overrides(topic_resource(name), {})
    assert bed.topic(name).topic_id != before


def test_deletion_of_missing_topic_is_refused(bed: AnyBed) -> None:
    name = bed.create()
    results = bed.cluster.delete_topics(dict.fromkeys([name, "not-there"]))
    assert results[name] is None
    assert get_error(results["not-there"]) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_topics_returns_all_or_existing_topics(bed: AnyBed) -> None:
    one, two = bed.create(), bed.create()
    assert {one, two} <= set(bed.cluster.topics())
    assert set(bed.cluster.topics([two, "not-there"])) == {two}
    assert dict(bed.cluster.topics([])) == {}


def test_record_counts_of_topics(bed: AnyBed) -> None:
    full, empty = bed.create(partitions=3), bed.create()
    bed.produce(full, 5)
    assert bed.cluster.record_counts([full, empty, "not-there"]) == {full: 5, empty: 0}


def test_last_write_of_each_partition(bed: AnyBed) -> None:
    full, empty = bed.create(partitions=2), bed.create()
    bed.produce(full, 3)
    found = bed.cluster.find_last_writes([full, empty, "not-there"])
    assert set(found) == {TopicPartition(full, 0), TopicPartition(full, 1), TopicPartition(empty, 0)}
    assert found[TopicPartition(empty, 0)] is None
    assert all(found[TopicPartition(full, number)] is not None for number in range(2))


def test_producers_are_listed_for_each_partition(bed: AnyBed) -> None:
    name = bed.create(partitions=2)
    bed.produce(name, 3)
    found = bed.cluster.list_producers([name, "not-there"])
    assert set(found) == {TopicPartition(name, 0), TopicPartition(name, 1)}


@pytest.mark.parametrize("known_leader", [None, 1, 2, 3, 9])
def test_producers_are_listed_if_the_known_leader_is_outdated(bed: AnyBed, known_leader: int | None) -> None:
    name, deleted = bed.create({0: (2,)}), bed.name()
    bed.produce(name, 3)
    known = {
        item: Topic(item, "", (Partition((2,), known_leader, (2,)),), internal=False)
        for item in (name, deleted)
    }
    found = bed.cluster.list_producers([name, deleted], known=known)
    assert set(found) == {TopicPartition(name, 0)}


# partitions


def test_partitions_are_added(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    assert bed.add_partitions(name, 3) is None

    def check() -> None:
        found = bed.topic(name).partitions
        assert found[0].replicas == (1, 2)
        assert [len(p.replicas) for p in found] == [2, 2, 2]

    bed.eventually(check)
    assert bed.add_partitions(name, 5, ((2, 3), (3, 1))) is None

    def check_assigned() -> None:
        assert [p.replicas for p in bed.topic(name).partitions[3:]] == [(2, 3), (3, 1)]

    bed.eventually(check_assigned)


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (2, "Topic already has 2 partition(s)."),
        (1, "currently has 2 partition(s); 1 would not be an increase."),
        (0, "currently has 2 partition(s); 0 would not be an increase."),
    ],
)
def test_equal_or_lower_partition_count_is_refused(bed: AnyBed, total: int, words: str) -> None:
    name = bed.create(partitions=2)
    answer = bed.add_partitions(name, total)
    assert get_error(answer) == "INVALID_PARTITIONS"
    assert words in get_message(answer)


@pytest.mark.parametrize(
    ("total", "lists", "words"),
    [
        (3, ((1, 2),), "Attempted to add 2 additional partition(s), but only 1 assignment(s)"),
        (2, ((1, 2), (2, 3)), "Attempted to add 1 additional partition(s), but only 2 assignment(s)"),
        (2, ((1,),), "a partition with 1 replica(s), but this is not consistent with previous partitions"),
        (2, ((1, 9),), "broker 9, but no such broker is registered"),
        (2, ((1, 1),), "the broker 1 more than once"),
    ],
)
def test_impossible_additions_are_refused(
    bed: AnyBed, total: int, lists: tuple[tuple[int, ...], ...], words: str
) -> None:
    name = bed.create({0: (1, 2)})
    answer = bed.add_partitions(name, total, lists)
    assert get_error(answer) == "INVALID_REPLICA_ASSIGNMENT"
    assert words in get_message(answer)
    assert len(bed.topic(name).partitions) == 1


def test_additions_fail_individually(bed: AnyBed) -> None:
    one, two = bed.create(partitions=3), bed.create(partitions=3)
    items = [NewPartitions(one, 4), NewPartitions(two, 2), NewPartitions("not-there", 2)]
    results = bed.cluster.create_partitions(items)
    assert results[one] is None
    assert get_error(results[two]) == "INVALID_PARTITIONS"
    assert get_error(results["not-there"]) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert get_message(results["not-there"]) == ""
    twice = bed.cluster.create_partitions([NewPartitions(two, 5), NewPartitions(two, 6)])[two]
    assert (get_error(twice), get_message(twice)) == ("INVALID_REQUEST", "Duplicate topic name.")


@pytest.mark.parametrize(
    ("total", "code", "words"),
    [
        (
            5,
            "INVALID_REPLICA_ASSIGNMENT",
            "Attempted to add 2 additional partition(s), but only 0 assignment(s)",
        ),
        (3, "INVALID_PARTITIONS", "Topic already has 3 partition(s)."),
        (2, "INVALID_PARTITIONS", "2 would not be an increase."),
    ],
)
def test_additions_with_empty_assignments_are_refused(bed: AnyBed, total: int, code: str, words: str) -> None:
    """Null is a different request, for which Kafka places the partitions."""
    name = bed.create(partitions=3)
    answer = bed.add_partitions(name, total, ())
    assert get_error(answer) == code
    assert words in get_message(answer)
    assert len(bed.topic(name).partitions) == 3
    assert bed.add_partitions(name, 5, None) is None


def test_additions_with_validate_only_change_nothing(bed: AnyBed) -> None:
    name = bed.create()
    assert bed.cluster.create_partitions([NewPartitions(name, 2)], validate_only=True) == {name: None}
    again = bed.cluster.create_partitions([NewPartitions(name, 1)], validate_only=True)[name]
    assert get_error(again) == "INVALID_PARTITIONS"
    assert len(bed.topic(name).partitions) == 1


def test_creation_returns_topic_id_and_deletion_accepts_it(bed: AnyBed) -> None:
    name = bed.name()
    made = bed.cluster.create_topics([topic_with_counts(name, 1, 1)])[name]
    assert isinstance(made, CreatedObject)
    bed.eventually(lambda: _check_id(bed, name, made.id))
    assert bed.cluster.delete_topics({name: made.id}) == {name: None}
    again = bed.cluster.create_topics([topic_with_counts(name, 1, 1)])[name]
    assert isinstance(again, CreatedObject)
    assert again.id != made.id
    assert get_error(bed.cluster.delete_topics({name: made.id})[name]) == "UNKNOWN_TOPIC_ID"
    bed.eventually(lambda: _check_id(bed, name, again.id))


def test_check_existence_separates_existing_and_absent_topics(bed: AnyBed) -> None:
    existing, absent = bed.create(), bed.name()
    assert check_existence(bed.cluster, [existing, absent]) == TopicExistence(
        frozenset({existing}), frozenset({absent})
    )
    assert absent not in bed.cluster.topics([absent])


def _check_id(bed: AnyBed, name: str, topic_id: str) -> None:
    assert bed.topic(name).topic_id == topic_id
