"""Placement: examples, invariants, and optimal results for small inputs."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.providers.kafka.live import Broker
from kdeclare.providers.kafka.reassignment.placement import FewerPartitions, Load, NotEnoughBrokers
from kdeclare.providers.kafka.reassignment.placement import place_replicas as place_topics
from kdeclare.providers.kafka.reassignment.placement_request import PlacementError, PlacementRequest

Replicas = tuple[int, ...]


def place(
    brokers: Sequence[Broker],
    current: Sequence[Replicas],
    partitions: int,
    factor: int,
    load: Mapping[int, int] | None = None,
) -> tuple[Replicas, ...]:
    """Return the placement of one topic."""
    return place_topics(brokers, {"t": current}, PlacementRequest(partitions, factor), Load(load or {}))["t"]


def make_brokers(*racks: str | None, fenced: Iterable[int] = ()) -> list[Broker]:
    return [Broker(i, f"host-{i}", 9092, rack, i in fenced) for i, rack in enumerate(racks)]


THREE = make_brokers("a", "b", "c")
SIX = make_brokers("a", "a", "b", "b", "c", "c")


def test_place_keeps_valid_placement() -> None:
    assert place(THREE, [(2, 0), (1, 2)], 2, 2) == ((2, 0), (1, 2))


def test_raised_factor_adds_replicas_on_other_racks() -> None:
    assert place(THREE, [(0,), (1,), (2,)], 3, 3) == ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    placed = place(SIX, [(0,), (2,), (4,)], 3, 3)
    assert [r[0] for r in placed] == [0, 2, 4]
    assert all(sorted(b // 2 for b in r) == [0, 1, 2] for r in placed)


def test_lowered_factor_keeps_leader_and_racks() -> None:
    assert place(SIX, [(0, 1, 2)], 1, 2) == ((0, 2),)
    assert place(SIX, [(2, 0, 1, 4)], 1, 3) in {((2, 0, 4),), ((2, 1, 4),)}


def test_lowered_factor_drops_fenced_brokers_first() -> None:
    brokers = make_brokers("a", "a", "b", fenced=[2])
    assert place(brokers, [(0, 2, 1)], 1, 2) == ((0, 1),)
    assert place(brokers, [(2, 0, 1)], 1, 2)[0][0] == 2


def test_changed_partition_drops_unregistered_broker() -> None:
    assert place(THREE, [(9, 0), (9, 1)], 2, 2) == ((9, 0), (9, 1))
    assert place(THREE, [(9, 0)], 1, 3) == ((0, 1, 2),)
    assert place(THREE, [(1, 9, 0)], 1, 2) == ((1, 0),)
    assert place(THREE, [(9,)] * 3, 3, 2)[0] != (9,)


def test_new_partitions_balance_existing_ones() -> None:
    placed = place(THREE, [(0, 1), (0, 1), (0, 2)], 6, 2)
    assert placed[:3] == ((0, 1), (0, 1), (0, 2))
    assert Counter(b for r in placed for b in r) == {0: 4, 1: 4, 2: 4}
    assert Counter(r[0] for r in placed)[0] == 3


def test_leaders_stay_even_while_topic_grows() -> None:
    for brokers in (SIX, make_brokers(*[None] * 7)):
        placed: tuple[Replicas, ...] = ()
        for partitions in range(1, 60):
            placed = place(brokers, placed, partitions, 3)
            assert compute_gap(Counter(b for r in placed for b in r), range(len(brokers))) <= 1
            assert compute_gap(Counter(r[0] for r in placed), range(len(brokers))) <= 2


def test_fenced_brokers_get_no_new_replicas() -> None:
    brokers = make_brokers("a", "b", "c", fenced=[1])
    assert place(brokers, [(1,)], 1, 3) == ((1, 2, 0),)
    assert all(1 not in r for r in place(brokers, [], 4, 2))


def test_less_loaded_broker_is_preferred() -> None:
    assert place(THREE, [], 1, 1, {0: 7, 1: 0, 2: 7}) == ((1,),)
    assert place(THREE, [], 1, 1, {0: 7, 1: 7}) == ((2,),)


def test_replicas_are_spread_over_all_pairs_of_brokers() -> None:
    shared = Counter(
        pair for r in place(make_brokers(*[None] * 9), [], 90, 3) for pair in combinations(sorted(r), 2)
    )
    assert len(shared) == 36  # every two brokers share a partition
    assert max(shared.values()) < 25  # no two brokers share nearly all of their 30 partitions


def test_brokers_without_rack_count_as_one_rack() -> None:
    brokers = make_brokers("a", "a", None, None)
    assert all(len({b // 2 for b in r}) == 2 for r in place(brokers, [], 8, 2))


def test_place_without_enough_brokers_is_rejected() -> None:
    with pytest.raises(NotEnoughBrokers) as few:
        place(make_brokers("a", "b", "c", fenced=[2]), [(0, 1), (2, 1)], 3, 3)
    assert (few.value.replication_factor, few.value.usable, few.value.partition) == (3, (0, 1), 0)
    assert "Partition 0 of t cannot have 3 replicas: only 2 brokers can get new replicas (0, 1)" in str(
        few.value
    )
    with pytest.raises(FewerPartitions) as fewer:
        place(THREE, [(0,), (1,)], 1, 1)
    assert (fewer.value.wanted, fewer.value.current) == (1, 2)
    with pytest.raises(PlacementError):
        place(THREE, [(0,)], 1, 0)
    assert place(THREE, [], 0, 3) == ()


@pytest.mark.parametrize("count", [3, 7, 12, 30])
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_new_topic_is_even(count: int, factor: int) -> None:
    brokers = make_brokers(*(f"r{i % 3}" for i in range(count)))
    for partitions in (1, count - 1, 2 * count, 50):
        placed = place(brokers, [], partitions, factor)
        assert all(len({b % 3 for b in r}) == factor for r in placed)
        if count % 3 == 0:
            assert compute_gap(Counter(b for r in placed for b in r), range(count)) <= 1
            assert compute_gap(Counter(r[0] for r in placed), range(count)) <= 1


@pytest.mark.slow
def test_place_10000_partitions_is_fast() -> None:
    brokers = make_brokers(*(f"r{i % 5}" for i in range(100)))
    start = time.process_time()
    one = place(brokers, [], 10_000, 1)
    three = place(brokers, one, 10_000, 3)
    place(brokers, three, 10_000, 2)
    assert time.process_time() - start < 6  # minimum CPU time of three runs; the target is 2 s for each


def compute_gap(counts: Counter[int], ids: Iterable[int]) -> int:
    numbers = [counts[i] for i in ids]
    return max(numbers) - min(numbers)


Case = tuple[list[Broker], list[Replicas], int, int]


@st.composite
def draw_case(draw: st.DrawFn, most_brokers: int = 9, most_partitions: int = 12) -> Case:
    """Any brokers, any current replicas (also on fenced and unregistered brokers), and any request."""
    racks = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=most_brokers))
    fenced = draw(st.sets(st.sampled_from(range(len(racks))), max_size=1))
    brokers = make_brokers(*racks, fenced=fenced)
    ids = st.sampled_from(range(len(racks) + draw(st.integers(0, 1))))
    replicas = st.lists(ids, min_size=1, max_size=4, unique=True).map(tuple)
    current = draw(st.lists(replicas, max_size=most_partitions - 1))
    partitions = draw(st.integers(len(current), most_partitions))
    return brokers, current, partitions, draw(st.integers(1, 4))


def list_optimal_sets(brokers: Sequence[Broker], replicas: Replicas, factor: int) -> list[frozenset[int]]:
    """Return all sets of replicas that are optimal for a single partition, as documented."""
    if len(replicas) == factor:
        return [frozenset(replicas)]
    registered = {b.id: b for b in brokers}
    stay = [r for r in replicas if r in registered]
    if len(stay) > factor:
        sets = [frozenset([stay[0], *rest]) for rest in combinations(stay[1:], factor - 1)]
    else:
        free = [b.id for b in brokers if not b.fenced and b.id not in stay]
        sets = [frozenset([*stay, *more]) for more in combinations(free, factor - len(stay))]

    def compute_badness(chosen: frozenset[int]) -> tuple[int, int]:
        racks = Counter(registered[b].rack for b in chosen)
        return sum(registered[b].fenced for b in chosen), sum(n * n for n in racks.values())

    best = min(map(compute_badness, sets), default=None)
    return [chosen for chosen in sets if compute_badness(chosen) == best]


@given(draw_case())
def test_placement_is_valid_for_any_input(case: Case) -> None:
    brokers, current, partitions, factor = case
    before = [*current, *[()] * (partitions - len(current))]
    allowed = [list_optimal_sets(brokers, replicas, factor) for replicas in before]
    if not all(allowed):
        with pytest.raises(NotEnoughBrokers):
            place(*case)
        return
    placed = place(*case)
    assert len(placed) == partitions
    ids = {b.id for b in brokers}
    serving = {b.id for b in brokers if not b.fenced}
    for old, new, sets in zip(before, placed, allowed, strict=True):
        assert len(set(new)) == len(new) == factor
        assert frozenset(new) in sets
        kept = [r for r in old if r in new]
        assert list(new[: len(kept)]) == kept
        assert set(new) - set(old) <= serving
        stay = [r for r in old if r in ids or len(old) == factor]
        if stay:
            assert new[0] == stay[0]
        if len(stay) <= factor:
            assert kept == stay
    assert place(*case) == placed
    assert place(brokers, placed, partitions, factor) == placed


def compute_unevenness(counts: Counter[int]) -> int:
    return sum(n * n for n in counts.values())


@given(draw_case(most_brokers=5, most_partitions=4))
def test_placement_of_small_topics_is_optimal(case: Case) -> None:
    brokers, current, partitions, factor = case
    before = [*current, *[()] * (partitions - len(current))]
    allowed = [list_optimal_sets(brokers, replicas, factor) for replicas in before]
    if not all(allowed):
        return
    placed = place(*case)
    ids = sorted({b.id for b in brokers} | {b for r in placed for b in r})
    possible = [Counter(b for chosen in choice for b in chosen) for choice in product(*allowed)]
    replicas = Counter(b for r in placed for b in r)
    assert compute_unevenness(replicas) == min(map(compute_unevenness, possible))
    assert compute_gap(replicas, ids) == min(compute_gap(counts, ids) for counts in possible)

    known = {b.id for b in brokers}
    free = [not any(r in known for r in old) and old != new for old, new in zip(before, placed, strict=True)]
    leaders = [new if any_one else new[:1] for new, any_one in zip(placed, free, strict=True)]
    assert compute_unevenness(Counter(r[0] for r in placed)) == min(
        compute_unevenness(Counter(choice)) for choice in product(*leaders)
    )


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(0, 60), st.data())
def test_placement_without_existing_replicas_is_even(
    racks: int, each: int, factor: int, partitions: int, data: st.DataObject
) -> None:
    brokers = make_brokers(*(f"r{i % racks}" for i in range(racks * each)))
    if factor > len(brokers):
        return
    placed = place(brokers, [], partitions, factor)
    grown = place(brokers, placed, partitions + data.draw(st.integers(0, 20)), factor)
    ids = range(len(brokers))
    for replicas in (placed, grown):
        assert compute_gap(Counter(b for r in replicas for b in r), ids) <= 1
        assert all(len({b % racks for b in r}) == min(racks, factor) for r in replicas)
    assert compute_gap(Counter(r[0] for r in placed), ids) <= 1
