"""Conformance cases for reassignments."""

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move
from kdeclare.providers.kafka.testing import OLD_BROKER, MemoryCluster, PartitionState
from tests.beds import SET, AnyBed, MemoryBed, get_error, get_message, topic_resource
from tests.cases import case

Ids = tuple[int, ...]


class MoveCase:
    """One partition on brokers 0 to 9 whose reassignments take one tick."""

    def __init__(self, *replicas: int) -> None:
        self.bed = MemoryBed(MemoryCluster(dict.fromkeys(range(10)), move_ticks=1))
        self.cluster = self.bed.memory
        self.name = self.bed.create({0: replicas})
        self.where = TopicPartition(self.name, 0)

    def reassign(self, *target: int, grow: bool = False) -> str | None:
        """Reassign, and return the name of the error."""
        return get_error(self.bed.move(self.name, 0, target, grow=grow))

    @property
    def move(self) -> Move | None:
        """The reassignment as the cluster lists it; None if there is none."""
        return self.cluster.moves().get(self.where)

    @property
    def state(self) -> PartitionState:
        """The current state of the partition."""
        return self.cluster.partition(self.where)


@case("REA-01")
def test_move_in_flight_lists_union_of_replicas() -> None:
    moved = MoveCase(3, 2, 1, 0)
    assert moved.reassign(7, 3, 1, 9) is None
    assert moved.move == Move((7, 3, 1, 9, 0, 2), (7, 9), (0, 2))


@case("REA-06")
def test_move_to_disjoint_brokers_completes() -> None:
    moved = MoveCase(0, 1, 2)
    assert moved.reassign(3, 4, 5) is None
    assert moved.state.isr == (0, 1, 2)
    moved.cluster.tick()
    assert moved.move is None
    assert (moved.state.replicas, moved.state.isr) == ((3, 4, 5), (3, 4, 5))


@case("REA-08")
def test_removal_of_lagging_replica_is_immediate() -> None:
    moved = MoveCase(1, 2, 3, 4)
    moved.cluster.fence(3)
    assert moved.state.isr == (1, 2, 4)
    assert moved.reassign(1, 2, 4, grow=True) is None
    assert moved.move is None
    assert (moved.state.replicas, moved.state.isr, moved.state.leader) == ((1, 2, 4), (1, 2, 4), 1)


@case("REA-12")
def test_move_overrides_another_move() -> None:
    moved = MoveCase(0, 1)
    assert moved.reassign(2, 3) is None
    assert moved.move == Move((2, 3, 0, 1), (2, 3), (0, 1))
    assert moved.reassign(4, 5) is None
    assert moved.move == Move((4, 5, 0, 1, 2, 3), (4, 5), (0, 1, 2, 3))
    moved.cluster.tick()
    assert (moved.state.replicas, moved.state.leader) == ((4, 5), 4)


@case("REA-14")
def test_target_equal_to_union_changes_nothing() -> None:
    moved = MoveCase(1, 2, 3)
    assert moved.reassign(4, 5, 6) is None
    assert moved.reassign(1, 2, 3, 4, 5, 6, grow=True) is None
    assert moved.move == Move((1, 2, 3, 4, 5, 6), (4, 5, 6), (1, 2, 3))
    moved.cluster.tick()
    assert moved.state.replicas == (4, 5, 6)


@case("RFG-02")
def test_guard_compares_with_target_of_move_in_flight() -> None:
    moved = MoveCase(0, 1, 2)
    assert moved.reassign(1, 2, 3) is None
    assert moved.move == Move((1, 2, 3, 0), (3,), (0,))
    answer = moved.bed.move(moved.name, 0, (0, 1))
    assert get_error(answer) == "INVALID_REPLICATION_FACTOR"
    assert get_message(answer) == "The replication factor is changed from 3 to 2"


@case("RFG-04")
def test_guard_refuses_target_from_stale_describe() -> None:
    moved = MoveCase(1, 2, 3)
    assert moved.reassign(4, 5, 6) is None
    answer = moved.bed.move(moved.name, 0, (1, 2, 3, 4, 5, 6))
    assert get_message(answer) == "The replication factor is changed from 3 to 6"
    assert moved.move == Move((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))


@case("RFG-06")
def test_cancel_is_not_guarded(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (3,), grow=True) is None
    assert bed.move(name, 0, None) is None
    assert not bed.cluster.moves([name])


@case("RFG-08")
def test_guarded_move_on_old_broker_is_not_sent() -> None:
    cluster = MemoryCluster(rf_guard=False)
    bed = MemoryBed(cluster)
    name = bed.create({0: (1, 2)})
    where = TopicPartition(name, 0)
    before = cluster.dump()
    with pytest.raises(Fault) as caught:
        cluster.reassign({where: (1, 3)}, allow_replication_factor_change=False)
    assert caught.value.error == "UNSUPPORTED_VERSION"
    assert caught.value.message == OLD_BROKER
    assert not cluster.requests("reassign")
    assert cluster.dump() == before
    checked = cluster.reassign({where: (1, 3)}, allow_replication_factor_change=False, unguarded=True)
    assert checked == {where: None}
    assert cluster.reassign({where: (1,)}, allow_replication_factor_change=True) == {where: None}


@case("RFG-11")
def test_validity_is_checked_before_guard(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2, 3)})
    assert get_error(bed.move(name, 0, (1, 9))) == "INVALID_REPLICA_ASSIGNMENT"


@case("CAN-01")
def test_cancel_keeps_replica_order() -> None:
    moved = MoveCase(3, 2, 1)
    assert moved.reassign(0, 2, 1) is None
    assert moved.move == Move((0, 2, 1, 3), (0,), (3,))
    assert moved.bed.move(moved.name, 0, None) is None
    assert (moved.state.replicas, moved.state.leader) == ((2, 1, 3), 3)


@case("CAN-03")
def test_cancel_with_lagging_replicas_restores_replicas() -> None:
    moved = MoveCase(4, 3, 2)
    moved.cluster.set_partition(
        moved.where,
        PartitionState((1, 2, 3, 4, 0), (4, 1, 2, 0), 4, adding=(0, 1), removing=()),
    )
    assert moved.bed.move(moved.name, 0, None) is None
    assert (moved.state.replicas, moved.state.isr, moved.state.leader) == ((2, 3, 4), (4, 2), 4)


@case("CAN-05")
def test_cancel_that_would_lose_data_is_refused() -> None:
    moved = MoveCase(1, 2, 3)
    state = PartitionState((4, 5, 3, 2, 1), (4, 5), 4, adding=(4, 5), removing=(2,))
    moved.cluster.set_partition(moved.where, state)
    answer = moved.bed.move(moved.name, 0, None)
    assert get_error(answer) == "INVALID_REPLICA_ASSIGNMENT"
    assert "unclean leader election" in get_message(answer)
    assert moved.state == state
    topic = topic_resource(moved.name)
    assert moved.bed.alter(topic, ("unclean.leader.election.enable", SET, "true")) is None
    assert moved.bed.move(moved.name, 0, None) is None
    assert (moved.state.replicas, moved.state.isr) == ((3, 2, 1), (3,))


@case("LST-01")
def test_move_list_omits_missing_topics(bed: AnyBed) -> None:
    name = bed.create({0: (1,), 1: (1,)})
    bed.hold_moves(name)
    assert bed.move(name, 1, (2,)) is None
    where = TopicPartition(name, 1)
    assert where in bed.cluster.moves()
    assert list(bed.cluster.moves([name])) == [where]
    assert dict(bed.cluster.moves(["bar-that-is-not-there"])) == {}
    bed.release_moves()
