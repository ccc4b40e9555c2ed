"""Batches of records through the `Cluster` protocol: their sizes, and which records have keys."""

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import RecordBatch
from tests.beds import AnyBed

MIB = 1024 * 1024


def fetch(
    bed: AnyBed, where: TopicPartition, offset: int, max_bytes: int = MIB, max_records: int = 1000
) -> tuple[RecordBatch, ...] | Fault:
    """Fetch from one partition."""
    return bed.cluster.fetch_batches({where: offset}, max_bytes=max_bytes, max_records=max_records)[where]


def list_keys(batches: tuple[RecordBatch, ...] | Fault) -> list[tuple[int, int, int]]:
    """Return the numbers of records, of inspected records, and of records with keys of each batch."""
    assert not isinstance(batches, Fault)
    assert [batch.problem for batch in batches] == [None] * len(batches)
    return [(batch.records, batch.inspected, batch.keyed) for batch in batches]


def fill(bed: AnyBed) -> TopicPartition:
    """Create a topic with a batch of five small records, three with keys, and a large record without key."""
    topic = bed.create({0: (1,)})
    bed.produce_batch(topic, records=5, keyed=3, value_bytes=100)
    bed.produce_batch(topic, records=1, keyed=0, value_bytes=50_000)
    return TopicPartition(topic, 0)


def test_batches_show_sizes_and_keys(bed: AnyBed) -> None:
    batches = fetch(bed, fill(bed), 0)
    assert list_keys(batches) == [(5, 5, 3), (1, 1, 0)]
    assert not isinstance(batches, Fault)
    assert 500 < batches[0].size < 700
    assert 50_000 < batches[1].size < 50_100


def test_first_batch_contains_the_offset(bed: AnyBed) -> None:
    where = fill(bed)
    assert list_keys(fetch(bed, where, 2)) == [(5, 5, 3), (1, 1, 0)]
    assert list_keys(fetch(bed, where, 5)) == [(1, 1, 0)]
    assert fetch(bed, where, 6) == ()


def test_batch_that_exceeds_the_limit_shows_its_size(bed: AnyBed) -> None:
    where = fill(bed)
    batches = fetch(bed, where, 0, max_bytes=5000)
    assert list_keys(batches) == [(5, 5, 3), (1, 0, 0)]
    assert not isinstance(batches, Fault)
    assert 50_000 < batches[1].size < 50_100


def test_first_batch_is_complete_even_if_it_exceeds_the_limit(bed: AnyBed) -> None:
    """That holds for each of several partitions with the same leader."""
    first, second = fill(bed), fill(bed)
    found = bed.cluster.fetch_batches({first: 5, second: 5}, max_bytes=1000, max_records=10)
    assert {where: list_keys(batches) for where, batches in found.items()} == {
        first: [(1, 1, 0)],
        second: [(1, 1, 0)],
    }


def test_number_of_inspected_records_is_limited(bed: AnyBed) -> None:
    assert list_keys(fetch(bed, fill(bed), 0, max_records=2)) == [(5, 2, 2), (1, 0, 0)]


def test_offset_outside_the_log_is_refused(bed: AnyBed) -> None:
    found = fetch(bed, fill(bed), 7)
    assert isinstance(found, Fault)
    assert found.error == "OFFSET_OUT_OF_RANGE"


def test_missing_partitions_are_refused_alone(bed: AnyBed) -> None:
    where = fill(bed)
    missing = TopicPartition(where.topic, 1), TopicPartition(bed.name(), 0)
    positions = {where: 0, **dict.fromkeys(missing, 0)}
    found = dict(bed.cluster.fetch_batches(positions, max_bytes=MIB, max_records=1000))
    assert list_keys(found.pop(where)) == [(5, 5, 3), (1, 1, 0)]
    assert [fault.error for fault in found.values() if isinstance(fault, Fault)] == [
        "UNKNOWN_TOPIC_OR_PARTITION"
    ] * 2
