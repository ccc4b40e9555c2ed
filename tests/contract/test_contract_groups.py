"""Groups through the `Cluster` protocol: lists, members, offsets, deletions, and the offsets of logs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.providers.kafka.consumer_group.group import (
    CommittedOffset,
    GroupMember,
    GroupType,
    ListedGroup,
)
from kdeclare.providers.kafka.consumer_group.port import Groups, OffsetChanges
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Partition, Topic
from kdeclare.providers.kafka.request_values import EARLIEST, LATEST
from tests.beds import AnyBed, KafkaBed, MemoryBed, get_error
from tests.kafka.group_consumers import join_group


class GroupBed:
    """Creates groups and members for a test, and deletes the groups at the end."""

    def __init__(self, bed: AnyBed) -> None:
        self.bed = bed
        self._names: set[str] = set()

    @property
    def groups(self) -> Groups:
        return self.bed.cluster.groups

    def name(self) -> str:
        """Return the name of a new group."""
        name = self.bed.name("-group")
        self._names.add(name)
        return name

    def alter(self, group: str, changes: OffsetChanges) -> dict[TopicPartition, Result]:
        """Change offsets of one group. A coordinator that is still loading is asked again."""
        results: list[dict[TopicPartition, Result]] = []

        def send() -> None:
            answers = self.groups.alter_offsets({group: changes})
            results.append({where: result for (_, where), result in answers.items()})
            retriable = {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}
            assert not retriable.intersection(map(get_error, results[-1].values()))

        self.bed.eventually(send)
        return results[-1]

    def commit(self, group: str, where: TopicPartition, offset: int) -> None:
        """Commit one offset, which must succeed."""
        assert self.alter(group, {where: CommittedOffset(offset)}) == {where: None}

    def offsets(self, group: str) -> dict[TopicPartition, int]:
        """Return the committed offsets of a group. The first request creates the coordinators."""
        found: list[dict[TopicPartition, int]] = []

        def fetch() -> None:
            offsets = self.groups.fetch_offsets([group])[group]
            found.append({where: item.offset for where, item in offsets.items()})

        self.bed.eventually(fetch)
        return found[-1]

    def listed(self, group: str) -> ListedGroup | None:
        """Return a group as it is listed, or None."""
        return self.groups.list_groups().get(group)

    @contextmanager
    def active(self, group: str, topic: str, protocol: str = "classic") -> Iterator[None]:
        """Keep a member of the group running that is assigned partition 0 of a topic."""
        if isinstance(self.bed, MemoryBed):
            memory = self.bed.memory
            memory.add_group(group, GroupType(protocol))
            memory.set_members(group, GroupMember("m", "c", "/127.0.0.1", None, (TopicPartition(topic, 0),)))
            yield
            memory.set_members(group)
            return
        assert isinstance(self.bed, KafkaBed)
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            bootstrap_servers=self.bed._bootstrap, group_id=group, client_id="c", enable_auto_commit=False
        )
        try:
            join_group(consumer, topic)
            yield
        finally:
            consumer.close()

    def produce_at(self, topic: str, *times_ms: int) -> None:
        """Write records with these timestamps to partition 0 of a topic."""
        if isinstance(self.bed, MemoryBed):
            self.bed.produce(topic, len(times_ms))
            self.bed.memory.set_log(TopicPartition(topic, 0), times=times_ms)
            return
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=self.bed._bootstrap)
        for at in times_ms:
            producer.send(topic, b"x", partition=0, timestamp_ms=at)
        producer.flush()
        producer.close()

    def clean(self) -> None:
        there = self._names & self.groups.list_groups().keys()
        self.groups.delete_groups(sorted(there))


@pytest.fixture
def group_bed(bed: AnyBed) -> Iterator[GroupBed]:
    made = GroupBed(bed)
    yield made
    made.clean()


def test_first_commit_creates_empty_classic_group(group_bed: GroupBed) -> None:
    topic, group = group_bed.bed.create(partitions=2), group_bed.name()
    assert group_bed.listed(group) is None
    assert group_bed.offsets(group) == {}
    group_bed.commit(group, TopicPartition(topic, 1), 5)
    assert group_bed.listed(group) == ListedGroup(group, GroupType.CLASSIC, "", "Empty")
    assert group_bed.offsets(group) == {TopicPartition(topic, 1): 5}
    described = group_bed.groups.describe_groups([group, f"{group}-absent"])
    assert {id_: found.members for id_, found in described.items()} == {group: ()}


def test_offsets_of_several_groups_are_fetched_together(group_bed: GroupBed) -> None:
    topic = group_bed.bed.create(partitions=3)
    names = [group_bed.name() for _ in range(5)]
    for number, name in enumerate(names):
        group_bed.commit(name, TopicPartition(topic, number % 3), number)
    found = group_bed.groups.fetch_offsets([*names, "absent"])
    assert {name: {where: item.offset for where, item in found[name].items()} for name in found} == {
        **{name: {TopicPartition(topic, n % 3): n} for n, name in enumerate(names)},
        "absent": {},
    }
    assert set(names) <= group_bed.groups.list_groups().keys()


def test_metadata_and_epoch_are_kept(group_bed: GroupBed) -> None:
    where, group = TopicPartition(group_bed.bed.create(), 0), group_bed.name()
    committed = CommittedOffset(7, 3, "from the test")
    assert group_bed.alter(group, {where: committed}) == {where: None}
    assert group_bed.groups.fetch_offsets([group]) == {group: {where: committed}}


def test_offsets_beyond_the_log_are_accepted(group_bed: GroupBed) -> None:
    where, group = TopicPartition(group_bed.bed.create(), 0), group_bed.name()
    group_bed.commit(group, where, 1_000_000)
    assert group_bed.offsets(group) == {where: 1_000_000}


def test_unknown_partition_is_refused_alone(group_bed: GroupBed) -> None:
    where, group = TopicPartition(group_bed.bed.create(), 0), group_bed.name()
    missing = TopicPartition(group_bed.bed.name(), 0)
    results = group_bed.alter(group, {where: CommittedOffset(1), missing: CommittedOffset(1)})
    assert {item: get_error(result) for item, result in results.items()} == {
        where: None,
        missing: "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_single_offset_is_deleted(group_bed: GroupBed) -> None:
    topic, group = group_bed.bed.create(partitions=2), group_bed.name()
    kept, deleted = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert get_error(group_bed.alter(group, {deleted: None})[deleted]) == "GROUP_ID_NOT_FOUND"
    for where in (kept, deleted):
        group_bed.commit(group, where, 3)
    assert group_bed.alter(group, {deleted: None}) == {deleted: None}
    assert group_bed.alter(group, {deleted: None}) == {deleted: None}
    assert group_bed.offsets(group) == {kept: 3}


def test_deleted_group_has_no_offsets(group_bed: GroupBed) -> None:
    where, group, absent = TopicPartition(group_bed.bed.create(), 0), group_bed.name(), group_bed.name()
    group_bed.commit(group, where, 3)
    results = group_bed.groups.delete_groups([group, absent])
    assert {id_: get_error(result) for id_, result in results.items()} == {
        group: None,
        absent: "GROUP_ID_NOT_FOUND",
    }
    assert group_bed.listed(group) is None
    assert group_bed.offsets(group) == {}


def test_active_group_refuses_changes(group_bed: GroupBed) -> None:
    topic, group = group_bed.bed.create(partitions=1), group_bed.name()
    where = TopicPartition(topic, 0)
    with group_bed.active(group, topic):
        (described,) = group_bed.groups.describe_groups([group]).values()
        assert described.group == ListedGroup(group, GroupType.CLASSIC, "consumer", "Stable")
        assert described.group.is_active
        assert described.members is not None
        (member,) = described.members
        assert (member.client_id, member.host, member.partitions) == ("c", "/127.0.0.1", (where,))
        assert get_error(group_bed.alter(group, {where: CommittedOffset(1)})[where]) == "UNKNOWN_MEMBER_ID"
        assert get_error(group_bed.alter(group, {where: None})[where]) == "GROUP_SUBSCRIBED_TO_TOPIC"
        assert get_error(group_bed.groups.delete_groups([group])[group]) == "NON_EMPTY_GROUP"
    listed = group_bed.listed(group)
    assert listed is not None
    assert not listed.is_active
    assert listed.protocol == "consumer"
    group_bed.commit(group, where, 1)


def test_offsets_of_deleted_topic_are_gone(group_bed: GroupBed) -> None:
    topic, group = group_bed.bed.create(), group_bed.name()
    group_bed.commit(group, TopicPartition(topic, 0), 3)
    group_bed.bed.cluster.delete_topics({topic: None})

    def check() -> None:
        assert group_bed.offsets(group) == {}

    group_bed.bed.eventually(check)
    group_bed.bed.create(name=topic)
    check()


def test_log_offsets_at_bounds(group_bed: GroupBed) -> None:
    bed = group_bed.bed
    topic, empty = bed.create(partitions=3), bed.create(partitions=1)
    bed.produce(topic, 8)
    assert bed.cluster.list_offsets([topic, empty, bed.name()], [EARLIEST, LATEST]) == {
        TopicPartition(topic, 0): (0, 3),
        TopicPartition(topic, 1): (0, 3),
        TopicPartition(topic, 2): (0, 2),
        TopicPartition(empty, 0): (0, 0),
    }


def test_log_offset_at_time_is_first_record_at_or_after_it(group_bed: GroupBed) -> None:
    topic = group_bed.bed.create(partitions=1)
    now = int(time.time() * 1000)
    group_bed.produce_at(topic, now - 3000, now - 2000, now - 1000)
    times = [0, now - 3000, now - 2500, now - 1000, now - 999]
    assert group_bed.bed.cluster.list_offsets([topic], times) == {TopicPartition(topic, 0): (0, 0, 1, 2, -1)}


def test_log_positions_have_timestamps_of_their_records(group_bed: GroupBed) -> None:
    topic = group_bed.bed.create(partitions=1)
    now = int(time.time() * 1000)
    group_bed.produce_at(topic, now - 3000, now - 2000, now - 1000)
    times = [EARLIEST, now - 2500, now, LATEST]
    assert group_bed.bed.cluster.list_positions({topic: times}) == {
        TopicPartition(topic, 0): ((0, -1), (1, now - 2000), (-1, -1), (3, -1))
    }


@pytest.mark.parametrize("known_leader", [None, 1, 2, 3, 9])
def test_log_positions_are_found_if_the_known_leader_is_outdated(
    group_bed: GroupBed, known_leader: int | None
) -> None:
    bed = group_bed.bed
    topic, deleted, other = bed.create({0: (2,)}), bed.name(), bed.create(partitions=1)
    bed.produce(topic, 4)
    bed.produce(other, 2)
    partition = Partition((2,), known_leader, (2,))
    known = {name: Topic(name, "", (partition,), internal=False) for name in (topic, deleted)}
    times = dict.fromkeys([topic, deleted, other], (EARLIEST, LATEST))
    assert bed.cluster.list_positions(times, known=known) == {
        TopicPartition(topic, 0): ((0, -1), (4, -1)),
        TopicPartition(other, 0): ((0, -1), (2, -1)),
    }


def test_log_positions_are_read_at_the_times_of_each_topic(group_bed: GroupBed) -> None:
    bed = group_bed.bed
    topic, other, empty = bed.create(partitions=2), bed.create(partitions=1), bed.create(partitions=1)
    now = int(time.time() * 1000)
    group_bed.produce_at(topic, now - 3000)
    group_bed.produce_at(other, now - 3000, now - 2000)
    times = {
        topic: [EARLIEST, now - 3000, now, LATEST],
        bed.name(): [EARLIEST],
        other: [now - 2500, LATEST],
        empty: [LATEST],
    }
    assert bed.cluster.list_positions(times) == {
        TopicPartition(topic, 0): ((0, -1), (0, now - 3000), (-1, -1), (1, -1)),
        TopicPartition(topic, 1): ((0, -1), (-1, -1), (-1, -1), (0, -1)),
        TopicPartition(other, 0): ((1, now - 2000), (2, -1)),
        TopicPartition(empty, 0): ((0, -1),),
    }


def test_log_offset_at_negative_time_is_refused(group_bed: GroupBed) -> None:
    topic = group_bed.bed.create(partitions=1)
    with pytest.raises(Fault) as caught:
        group_bed.bed.cluster.list_offsets([topic], [-1000])
    assert (caught.value.error, caught.value.kind) == ("UNSUPPORTED_VERSION", FaultKind.REFUSED)
