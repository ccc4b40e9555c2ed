"""Which partitions reject records during outages, compared with a simulation of each outage."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.impact.writability import (
    ReplicaSet,
    compare_places,
    find_critical_brokers,
    find_critical_racks,
)

Partitions = Mapping[TopicPartition, ReplicaSet]


def accepts_records(partition: ReplicaSet, down: Collection[int]) -> bool:
    """Whether the leader appends a record of a producer with acks=all while the brokers are down.

    All other replicas are in sync. See `tests/kafka/test_min_isr.py` for what real brokers do.
    """
    in_sync = [broker for broker in partition.replicas if broker not in down]
    if not in_sync:
        return False  # no leader
    effective_min_isr = min(partition.min_isr, len(partition.replicas))
    return len(in_sync) >= effective_min_isr


def list_rejecting(partitions: Partitions, down: Collection[int]) -> set[TopicPartition]:
    return {name for name, partition in partitions.items() if not accepts_records(partition, down)}


@dataclass(frozen=True)
class Case:
    """Brokers with their racks, and the same partitions before and after a plan."""

    racks: Mapping[int, str | None]
    before: Partitions
    after: Partitions

    @property
    def known_racks(self) -> Mapping[int, str]:
        return {broker: rack for broker, rack in self.racks.items() if rack is not None}

    def list_racks(self) -> Sequence[Sequence[int]]:
        """Return the brokers of each rack."""
        names = sorted(set(self.known_racks.values()))
        return [[b for b, rack in self.racks.items() if rack == name] for name in names]


@st.composite
def draw_case(draw: st.DrawFn) -> Case:
    racks = draw(st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=7))
    brokers = range(1, len(racks) + 1)
    replicas = st.lists(st.sampled_from(brokers), min_size=1, max_size=5, unique=True).map(tuple)
    one = st.builds(ReplicaSet, replicas, st.integers(1, 5))
    pairs = draw(st.lists(st.tuples(one, one), max_size=6))
    names = [TopicPartition("t", number) for number in range(len(pairs))]
    return Case(
        dict(zip(brokers, racks, strict=True)),
        {name: before for name, (before, _) in zip(names, pairs, strict=True)},
        {name: after for name, (_, after) in zip(names, pairs, strict=True)},
    )


@pytest.mark.slow
@settings(max_examples=200)
@given(case=draw_case())
def test_outage_of_one_broker_matches_simulation(case: Case) -> None:
    outages = [[broker] for broker in case.racks]
    before = set().union(*(list_rejecting(case.before, down) for down in outages))
    after = set().union(*(list_rejecting(case.after, down) for down in outages))
    change = compare_places(
        {name: find_critical_brokers(each) for name, each in case.before.items()},
        {name: find_critical_brokers(each) for name, each in case.after.items()},
    )
    assert (change.total, change.before, change.after) == (len(case.before), len(before), len(after))
    assert set(change.newly) == after - before
    assert change.relieved == len(before - after)
    for name, places in change.newly.items():
        assert places == {b for b in case.racks if name in list_rejecting(case.after, [b])}
    if change.newly:
        worst, affected = change.find_worst_place()
        counts = {b: len(list_rejecting(case.after, [b]) - before) for b in case.racks}
        assert set(affected) == list_rejecting(case.after, [worst]) - before
        assert counts[worst] == max(counts.values())


@pytest.mark.slow
@settings(max_examples=200)
@given(case=draw_case())
def test_outage_of_one_rack_matches_simulation(case: Case) -> None:
    outages = case.list_racks()
    # Nothing is said about partitions with a replica on a broker without a rack.
    judged = {
        name
        for name in case.before
        if all(case.racks[b] for each in (case.before, case.after) for b in each[name].replicas)
    }
    before = set().union(*(list_rejecting(case.before, down) for down in outages)) & judged
    after = set().union(*(list_rejecting(case.after, down) for down in outages)) & judged
    racks = case.known_racks
    change = compare_places(
        {name: find_critical_racks(case.before[name], racks) for name in judged},
        {name: find_critical_racks(case.after[name], racks) for name in judged},
    )
    assert (change.before, change.after) == (len(before), len(after))
    assert set(change.newly) == after - before
    assert change.relieved == len(before - after)


@pytest.mark.slow
@settings(max_examples=200)
@given(case=draw_case())
def test_partition_with_broker_without_rack_has_no_critical_rack(case: Case) -> None:
    for partition in case.before.values():
        if any(case.racks[broker] is None for broker in partition.replicas):
            assert find_critical_racks(partition, case.known_racks) == frozenset()


@pytest.mark.parametrize(
    ("replicas", "min_isr", "critical_racks"),
    [
        ((1, 2, 3), 2, set()),  # one replica in each of the racks a, b and c
        ((1, 4, 2), 2, {"a"}),  # two replicas in rack a
        ((1, 4), 1, {"a"}),
        ((1, 2), 2, {"a", "b"}),
        ((1,), 3, {"a"}),
    ],
)
def test_critical_racks(replicas: tuple[int, ...], min_isr: int, critical_racks: set[str]) -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: "a"}
    assert find_critical_racks(ReplicaSet(replicas, min_isr), racks) == critical_racks


def test_worst_place_is_the_one_with_most_partitions() -> None:
    names = [TopicPartition("t", number) for number in range(3)]
    before: dict[TopicPartition, frozenset[str]] = dict.fromkeys(names, frozenset())
    after = {names[0]: frozenset({"b"}), names[1]: frozenset({"a", "b"}), names[2]: frozenset({"c"})}
    assert compare_places(before, after).find_worst_place() == ("b", [names[0], names[1]])
