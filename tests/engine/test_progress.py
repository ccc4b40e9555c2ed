"""The progress of reassignments, what they wait for, and that no run waits forever."""

from typing import Any

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.plans.run import MoveProgress, PendingPart, Status
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.kafka.collector import KafkaSelection, observe
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.reassignment.completion import (
    STALLED_AFTER_S,
    MoveMeter,
    explain_pending_part,
    read_replica_sizes,
)
from tests.engine.moving import (
    MovingWorld,
    call_at_poll,
    create_topics,
    find_result,
    list_moves_in_flight,
    list_replicas,
    list_throttles,
    move_as_other_client,
    reassignment,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def make_world_with_records(records: int = 100) -> tuple[MovingWorld, list[DesiredResource]]:
    """Two partitions of 50,000 bytes each."""
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3], [1, 2, 3]])
    world.cluster.produce("t", records)
    return world, kept


def reassignment_of_both(**more: Any) -> DesiredResource:
    return reassignment(("t-0", [1, 2, 4]), ("t-1", [1, 5, 4]), **more)


class MeteredWorld:
    """Two moves on a cluster whose time advances only when the test says so."""

    def __init__(self) -> None:
        self.world, _ = make_world_with_records()
        self.world.hold_moves()
        move_as_other_client(self.world, "t-0", [1, 2, 4])
        move_as_other_client(self.world, "t-1", [1, 2, 5])
        self.movement = MoveMeter(self.world.cluster, self.world.clock)

    def look(self, seconds: float = 0.0, ticks: int = 0) -> MoveProgress:
        """Advance the time, and copy this many hundredths."""
        self.world.clock.sleep(seconds)
        self.world.cluster.tick(ticks)
        live = observe(self.world.cluster, KafkaSelection(frozenset({"t"})))
        return self.movement.look(live, [T0, T1])


# Figures.


def test_progress_counts_bytes_and_partitions() -> None:
    followed = MeteredWorld()
    first = followed.look()
    assert (first.partitions, first.partitions_total) == (0, 2)
    assert (first.bytes, first.bytes_total) == (0, 100_000)
    half = followed.look(10, ticks=50)
    assert (half.partitions, half.bytes, half.bytes_total) == (0, 50_000, 100_000)
    over = followed.look(10, ticks=50)
    assert (over.partitions, over.bytes, over.bytes_total) == (2, 100_000, 100_000)


def test_rate_is_computed_from_recent_polls() -> None:
    followed = MeteredWorld()
    first = followed.look()
    assert (first.rate, first.left_s) == (None, None)
    second = followed.look(10, ticks=10)
    assert second.rate == pytest.approx(1000)
    assert second.left_s == pytest.approx(90)
    third = followed.look(10, ticks=20)
    assert third.rate == pytest.approx(1500)
    assert third.left_s == pytest.approx(70_000 / 1500)


def test_rate_is_none_after_stall() -> None:
    followed = MeteredWorld()
    followed.look()
    assert followed.look(10, ticks=10).rate is not None
    last = followed.look()
    for _ in range(20):
        last = followed.look(3)
    assert (last.rate, last.left_s) == (None, None)


def test_replica_sizes_are_read_at_intervals() -> None:
    followed = MeteredWorld()
    for _ in range(40):
        followed.look(0.5)
    assert 9 <= len(followed.world.cluster.requests("log_dirs")) <= 11


def test_run_completes_without_replica_sizes() -> None:
    world, kept = make_world_with_records()
    world.slow_moves(20)
    world.cluster.faults.fail(Fault("CLUSTER_AUTHORIZATION_FAILED", "No."), method="log_dirs", nth=None)
    assert read_replica_sizes(world.cluster, ["t"]) == {}
    assert world.apply(*kept, reassignment_of_both()).complete
    assert {m.bytes_total for m in world.progress_reports} == {0}
    assert world.progress_reports[-1].partitions == 2


def test_run_reports_progress_until_completion() -> None:
    world, kept = make_world_with_records()
    world.slow_moves(60)
    assert world.apply(*kept, reassignment_of_both()).complete
    bytes_ = [m.bytes for m in world.progress_reports]
    assert bytes_ == sorted(bytes_)
    assert len(set(bytes_)) > 5
    assert {m.bytes_total for m in world.progress_reports} == {150_000}  # three copies
    assert (world.progress_reports[0].partitions, world.progress_reports[-1].partitions) == (0, 2)
    assert world.progress_reports[-1].bytes == 150_000
    assert any(m.rate and m.left_s for m in world.progress_reports)


def test_progress_total_covers_all_batches() -> None:
    world, kept = make_world_with_records()
    world.slow_moves(20)
    assert world.apply(*kept, reassignment_of_both(batchSize=1)).complete
    assert {(m.partitions_total, m.bytes_total) for m in world.progress_reports} == {(2, 150_000)}
    done = [m.partitions for m in world.progress_reports]
    assert done == sorted(done)
    assert set(done) >= {0, 1, 2}


# Which replicas are waited for.


def test_stalled_partition_is_reported_after_delay() -> None:
    followed = MeteredWorld()
    followed.world.cluster.stalled.add(4)
    assert followed.look(ticks=1).waiting == ()
    assert followed.look(STALLED_AFTER_S - 5, ticks=1).waiting == ()
    assert followed.look(10, ticks=1).waiting == (PendingPart("t-0", (4,), (), stalled=True),)
    followed.world.cluster.stalled.clear()
    assert followed.look(10, ticks=1).waiting == ()


def test_partition_waiting_for_fenced_broker_is_reported_first() -> None:
    followed = MeteredWorld()
    followed.world.cluster.stalled.add(4)
    followed.look()
    followed.world.cluster.fence(5)
    assert followed.look(1).waiting == (PendingPart("t-1", (5,), (5,)),)
    names = [item.partition for item in followed.look(STALLED_AFTER_S).waiting]
    assert names == ["t-1", "t-0"]
    followed.world.cluster.fence(5, fenced=False)
    followed.world.cluster.stalled.clear()
    followed.look(1)
    assert followed.look(5, ticks=2).waiting == ()


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (PendingPart("t-0", (4,)), "t-0 waits for broker 4"),
        (PendingPart("t-0", (4, 5), (5,)), "t-0 waits for broker 4, broker 5 (down)"),
        (PendingPart("t-0", ()), "the move of t-0 is about to finish"),
    ],
)
def test_pending_part_explanation(item: PendingPart, text: str) -> None:
    assert explain_pending_part(item) == text


def test_run_progress_names_pending_partitions() -> None:
    world, kept = make_world_with_records()
    world.slow_moves(10)
    world.cluster.stalled.add(4)
    world.cluster.fence(5)
    world.apply(*kept, reassignment_of_both(), move_timeout_s=90)
    assert world.progress_reports[-1].waiting == (
        PendingPart("t-1", (4, 5), (5,), stalled=True),
        PendingPart("t-0", (4,), (), stalled=True),
    )


# No run waits forever.


def test_move_timeout_names_partitions_and_brokers() -> None:
    world, kept = make_world_with_records()
    world.slow_moves(10)
    world.cluster.stalled.add(4)
    world.cluster.fence(5)
    run = world.apply(*kept, reassignment_of_both(throttle=1000), move_timeout_s=120)
    move = find_result(run, "partitions.reassign")
    assert (move.status, move.error) == (Status.STARTED, "move-timeout")
    assert "after 120 s" in move.message
    assert "t-0 waits for broker 4;" in move.message
    assert "t-1 waits for broker 4, broker 5 (down)" in move.message
    assert 120 <= world.clock.monotonic() < 150
    assert len(world.cluster.requests("moves")) < 250
    assert list_moves_in_flight(world.cluster) == {"t-0", "t-1"}


def test_move_timeout_names_few_of_many_partitions() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3]] * 10)
    world.slow_moves(10)
    world.cluster.stalled.add(4)
    wanted = reassignment(*((f"t-{n}", [1, 2, 4]) for n in range(10)))
    message = find_result(world.apply(*kept, wanted, move_timeout_s=30), "partitions.reassign").message
    assert message.count("waits for broker 4") == 3
    assert "and 7 more partitions" in message


def test_run_gives_up_on_unreachable_brokers() -> None:
    world, kept = make_world_with_records()
    world.hold_moves()
    plan = world.plan(*kept, reassignment_of_both(throttle=1000))

    def silence(_: object) -> None:
        gone = Fault("NETWORK_EXCEPTION", "gone", FaultKind.RETRIABLE)
        world.cluster.faults.fail(gone, method="moves", nth=None)
        world.cluster.faults.fail(gone, method="describe", nth=None)

    call_at_poll(world, 4, silence)
    run = world.run(plan, move_timeout_s=60)
    move = find_result(run, "partitions.reassign")
    assert (move.status, move.error) == (Status.STARTED, "move-timeout")
    assert find_result(run, "throttle.clear").status is Status.STARTED
    assert world.clock.monotonic() < 90
    world.cluster.faults.clear()
    world.finish_moves()
    world.recover()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


def test_run_waits_for_temporarily_unreachable_brokers() -> None:
    world, kept = make_world_with_records()
    world.slow_moves(30)
    plan = world.plan(*kept, reassignment_of_both())
    gone = Fault("NETWORK_EXCEPTION", "gone", FaultKind.RETRIABLE)
    for nth in range(8, 12):
        world.cluster.faults.fail(gone, method="describe", nth=nth)
    assert world.run(plan).complete
    assert list_replicas(world) == [(1, 2, 4), (1, 5, 4)]


def test_zero_timeout_polls_once() -> None:
    world, kept = make_world_with_records()
    world.hold_moves()
    run = world.apply(*kept, reassignment_of_both(timeout="0s"))
    assert find_result(run, "partitions.reassign").error == "move-timeout"
    assert world.clock.monotonic() < 5
