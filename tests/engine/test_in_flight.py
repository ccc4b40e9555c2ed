"""Reassignments that another client has started, misleading describes, and undoing moves in flight."""

from collections import UserDict
from collections.abc import ItemsView
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError, Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import Status
from kdeclare.core.provider.plan_options import choose_options
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import ClusterInfo, KafkaState, Move
from kdeclare.providers.kafka.reassignment.move_checks import add_await_steps
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome, run_outcome
from tests.engine.moving import (
    MovingWorld,
    call_at_poll,
    create_topics,
    find_result,
    list_codes,
    list_leaders,
    list_moves_in_flight,
    list_replicas,
    list_throttles,
    list_verbs,
    move_as_other_client,
    reassignment,
)
from tests.engine.world import World, desired, topic

AWAIT = PlanScope(options=choose_options(await_reassignments=True))
OVERRIDE = PlanScope(options=choose_options(override_reassignments=True))

TEN: dict[int, str | None] = dict.fromkeys(range(10))


def start_foreign_move(held: bool = True) -> tuple[MovingWorld, list[DesiredResource]]:
    """Move t-0 from [1, 2, 3] to [2, 3, 4]."""
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3], [1, 2, 3]])
    if held:
        world.hold_moves()
    else:
        world.slow_moves(20)
    move_as_other_client(world, "t-0", [2, 3, 4])
    return world, kept


def reassignment_to_five(**more: Any) -> DesiredResource:
    return reassignment(("t-0", [1, 3, 5]), **more)


def find_target_replicas(world: World, name: str, number: int = 0) -> tuple[int, ...]:
    """Return where a partition is or is moving to, according to the controller."""
    state = world.cluster.partition(TopicPartition(name, number))
    return tuple(r for r in state.replicas if r not in state.removing)


# Denied.


@pytest.mark.parametrize(
    "wanted",
    [
        reassignment_to_five(),
        desired("Reassignment", "drain", topics=["t"], drain=[4]),
        topic("t", partitions=2, replicationFactor=2),
        topic("t", partitions=3),
    ],
    ids=["partitions", "rule", "factor", "more partitions"],
)
def test_move_of_another_client_is_denied_by_default(wanted: DesiredResource) -> None:
    world, kept = start_foreign_move()
    declared = [wanted] if wanted.id.kind == "Topic" else [*kept, wanted]
    plan = world.plan(*declared)
    assert "move-in-flight" in list_codes(plan)
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    assert plan.operations == ()
    world.cluster.calls.clear()
    assert run_outcome(world.run(plan)).exit_code is ExitCode.DENIED
    assert world.cluster.requests() == []
    assert find_target_replicas(world, "t") == (2, 3, 4)


def test_denied_move_does_not_block_other_resources() -> None:
    world, kept = start_foreign_move()
    world.cluster.move_ticks = 0
    plan = world.plan(*kept, reassignment_to_five(), reassignment(("t-1", [1, 2, 5]), name="other"))
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    world.run(plan)
    assert list_replicas(world)[1] == (1, 2, 5)
    assert list_moves_in_flight(world.cluster) == {"t-0"}


def test_move_of_another_client_to_declared_target_needs_no_change() -> None:
    world, kept = start_foreign_move()
    plan = world.plan(*kept, reassignment(("t-0", [2, 3, 4])))
    assert (plan.changes, plan.operations) == ((), ())
    assert plan_outcome(plan).exit_code is ExitCode.OK


# Waited for.


def test_await_waits_for_move_and_continues() -> None:
    world, kept = start_foreign_move(held=False)
    plan = world.plan(*kept, reassignment_to_five(), scope=AWAIT)
    (diagnostic,) = (d for d in plan.diagnostics if d.code == "move-in-flight")
    assert diagnostic.severity is Severity.WARNING
    assert "waits until the reassignment is finished" in diagnostic.hint
    assert list_verbs(plan)[0] == "moves.await"
    ended: list[bool] = []
    world.cluster.faults.run_before(
        lambda other: ended.append(not list_moves_in_flight(other)), method="reassign"
    )
    run = world.run(plan)
    assert run.complete
    assert ended == [True]
    assert list_replicas(world)[0] == (1, 3, 5)
    assert not world.plan(*kept, reassignment_to_five()).has_changes


@pytest.mark.parametrize(
    ("wanted", "sizes"),
    [
        (topic("t", partitions=2, replicationFactor=2), [2, 2]),
        (topic("t", partitions=3, replicationFactor=3), [3, 3, 3]),
        (topic("t", partitions=3, replicationFactor=4), [4, 4, 4]),
    ],
    ids=["factor", "more partitions", "both"],
)
def test_await_applies_to_topic_changes(wanted: DesiredResource, sizes: list[int]) -> None:
    world, _ = start_foreign_move(held=False)
    assert world.apply(wanted, scope=AWAIT).complete
    assert [len(r) for r in list_replicas(world)] == sizes
    assert not world.plan(wanted).has_changes


def test_await_scans_moves_once_for_all_operations() -> None:
    """One request for all: a cluster can have tens of thousands of partitions in flight."""

    class Moves(UserDict[TopicPartition, Move]):
        looks = 0

        def items(self) -> ItemsView[TopicPartition, Move]:
            self.looks += 1
            return super().items()

    names = [f"t{n}" for n in range(10)]
    moves = Moves({TopicPartition(name, 0): Move((1, 2), (2,), (1,)) for name in names})
    more = [
        Operation(
            f"more:{name}", "partitions.increase", ResourceId("Topic", name), NewPartitions(name, 2), {}
        )
        for name in [*names, "still"]
    ]
    live = KafkaState(ClusterInfo("c", ()), moves=moves)
    planned = add_await_steps(more, [op.resource for op in more], live)
    waits = {op.resource.name: op.id for op in planned if op.verb != "partitions.increase"}
    assert sorted(waits) == names
    needs = {op.resource.name: [*op.needs] for op in planned if op.verb == "partitions.increase"}
    assert needs == {"still": [], **{name: [waits[name]] for name in names}}
    assert moves.looks == 1


def test_await_ignores_unrelated_moves() -> None:
    world, kept = start_foreign_move()
    world.cluster.move_ticks = 0
    plan = world.plan(*kept, reassignment(("t-1", [1, 2, 5])), scope=AWAIT)
    assert "moves.await" not in list_verbs(plan)
    assert world.run(plan).complete
    assert list_moves_in_flight(world.cluster) == {"t-0"}


def test_await_is_stale_when_move_ends_elsewhere() -> None:
    world, kept = start_foreign_move()
    plan = world.plan(*kept, reassignment_to_five(throttle=1000), scope=AWAIT)
    call_at_poll(world, 5, lambda _: move_as_other_client(world, "t-0", None))
    run = world.run(plan)
    move = find_result(run, "partitions.reassign")
    assert move.status is Status.STALE
    assert "[2,3,4]" in move.message
    assert list_replicas(world)[0] == (2, 3, 1)  # as the cancellation left it
    assert run_outcome(run).exit_code is ExitCode.PARTIAL
    assert list_throttles(world.cluster) == {}


def test_await_times_out() -> None:
    world, kept = start_foreign_move()
    run = world.apply(*kept, reassignment_to_five(throttle=1000), scope=AWAIT, move_timeout_s=30)
    waited = find_result(run, "moves.await")
    assert (waited.status, waited.error) == (Status.STARTED, "move-timeout")
    assert "t-0 waits for broker 4" in waited.message
    assert find_result(run, "partitions.reassign").status is Status.SKIPPED
    assert world.clock.monotonic() < 90
    assert find_target_replicas(world, "t") == (2, 3, 4)
    world.finish_moves()
    world.recover()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


def test_await_ends_on_interrupt() -> None:
    world, kept = start_foreign_move()
    call_at_poll(world, 6, lambda _: world.stop.set())
    run = world.apply(*kept, reassignment_to_five(), scope=AWAIT)
    assert run.interrupted
    assert world.clock.monotonic() < 20
    assert find_target_replicas(world, "t") == (2, 3, 4)


# Sent elsewhere.


def test_override_redirects_move() -> None:
    world, kept = start_foreign_move()
    plan = world.plan(*kept, reassignment_to_five(), scope=OVERRIDE)
    (diagnostic,) = (d for d in plan.diagnostics if d.code == "move-in-flight")
    assert (diagnostic.severity, "redirects the partitions" in diagnostic.hint) == (Severity.WARNING, True)
    world.run(plan, wait=False)
    assert find_target_replicas(world, "t") == (1, 3, 5)
    world.finish_moves()
    world.recover()
    assert list_replicas(world)[0] == (1, 3, 5)
    assert list_leaders(world)[0] == 1


def test_override_to_original_replicas_cancels_move() -> None:
    """Kafka would ignore the original list and continue, so the move is canceled first."""
    world, kept = start_foreign_move()
    assert world.apply(*kept, reassignment(("t-0", [1, 2, 3])), scope=OVERRIDE).complete
    assert not list_moves_in_flight(world.cluster)
    assert list_replicas(world)[0] == (1, 2, 3)
    assert list_leaders(world)[0] == 1


def test_override_does_not_allow_partition_increase() -> None:
    """An override concerns the current replicas; Kafka sizes new partitions by the union."""
    world, _ = start_foreign_move()
    plan = world.plan(topic("t", partitions=3, replicationFactor=3), scope=OVERRIDE)
    assert "move-in-flight" in list_codes(plan)
    assert plan_outcome(plan).exit_code is ExitCode.DENIED


def test_override_is_stale_after_move_is_redirected() -> None:
    world, kept = start_foreign_move()
    plan = world.plan(*kept, reassignment_to_five(), scope=OVERRIDE)
    move_as_other_client(world, "t-0", [2, 4, 5])
    with pytest.raises(KdeclareError) as caught:
        world.run(plan)
    assert caught.value.exit_code is ExitCode.STALE
    assert find_target_replicas(world, "t") == (2, 4, 5)


def test_move_started_before_request_is_not_overridden() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3]])
    world.hold_moves()
    plan = world.plan(*kept, reassignment_to_five(throttle=1000))
    begun: list[str] = []

    def begin(other: MemoryCluster) -> None:
        # After the throttle is set, before the move.
        if list_throttles(other) and not begun:
            begun.append("t-0")
            move_as_other_client(world, "t-0", [2, 3, 4])

    world.cluster.faults.run_before(begin, method="moves", nth=None)
    run = world.run(plan, move_timeout_s=30)
    assert begun
    move = find_result(run, "partitions.reassign")
    assert move.status in (Status.STALE, Status.FAILED)
    assert find_target_replicas(world, "t") == (2, 3, 4)
    world.finish_moves()
    world.recover()
    assert list_throttles(world.cluster) == {}


def test_move_seen_at_last_check_is_not_overridden() -> None:
    """Expectations are not checked anymore at this point, and Kafka would accept the request."""

    def make_world_and_plan() -> tuple[MovingWorld, Plan]:
        world = MovingWorld()
        kept = create_topics(world, t=[[1, 2, 3]])
        world.hold_moves()
        plan = world.plan(*kept, reassignment_to_five())
        world.cluster.calls.clear()
        return world, plan

    rehearsal, plan = make_world_and_plan()
    rehearsal.run(plan, wait=False)
    methods = [call.method for call in rehearsal.cluster.calls]
    last = methods[: methods.index("reassign")].count("moves")
    world, plan = make_world_and_plan()
    world.cluster.faults.run_before(
        lambda _: move_as_other_client(world, "t-0", [2, 3, 4]), method="moves", nth=last
    )
    move = find_result(world.run(plan), "partitions.reassign")
    assert (move.status, move.error) == (Status.FAILED, "MOVE_IN_FLIGHT")
    assert "[2, 3, 4]" in move.message
    assert find_target_replicas(world, "t") == (2, 3, 4)


# Describes that show too much (KIP-860).


def make_ten_brokers() -> tuple[MovingWorld, list[DesiredResource]]:
    world = MovingWorld(MemoryCluster(TEN))
    return world, create_topics(world, t=[[1, 2, 3]])


def show_union(world: MovingWorld) -> None:
    """KIP-860, example 2: the move has ended, and describe still shows old and new replicas together."""
    world.hold_moves()
    move_as_other_client(world, "t-0", [4, 5, 6])
    world.cluster.stale_reads = 1000
    world.cluster.create_topics([NewTopic("x", 1, 1, None, {})])
    world.finish_moves()
    world.cluster.move_ticks = 0
    assert world.cluster.topics(["t"])["t"].partitions[0].replicas == (4, 5, 6, 1, 2, 3)
    assert not list_moves_in_flight(world.cluster)


RULES = [
    desired("Reassignment", "drain", topics=["t"], drain=[5]),
    desired("Reassignment", "drain", topics=["t"], drain=[5], allowReplicationFactorChange=True),
    desired("Reassignment", "even", topics=["t"], rebalance=True),
    desired("Reassignment", "to", topics=["t"], targetBrokers=[0, 1, 2, 3, 7, 8]),
    reassignment(("t-0", [4, 5, 7])),
    reassignment(("t-0", [4, 5, 7]), allowReplicationFactorChange=True),
    reassignment(("t-0", [1, 2, 3, 4, 5, 6])),
    topic("t", partitions=1, replicationFactor=3),
]
NAMES = ["drain", "drain free", "even", "to", "three", "three free", "six", "topic"]


@pytest.mark.parametrize("wanted", RULES, ids=NAMES)
def test_stale_union_never_raises_factor(wanted: DesiredResource) -> None:
    world, kept = make_ten_brokers()
    show_union(world)
    plan = world.plan(*([wanted] if wanted.id.kind == "Topic" else [*kept, wanted]))
    world.run(plan, skip_stale=True)
    assert len(find_target_replicas(world, "t")) == 3


def test_broker_guard_refuses_stale_union() -> None:
    world, kept = make_ten_brokers()
    show_union(world)
    run = world.apply(*kept, RULES[0])
    move = find_result(run, "partitions.reassign")
    assert move.error == "INVALID_REPLICATION_FACTOR"
    assert "from 3 to 6" in move.message
    assert list_replicas(world) == [(4, 5, 6)]


@pytest.mark.parametrize("wanted", RULES, ids=NAMES)
def test_plan_reads_topic_again_if_move_ends_meanwhile(wanted: DesiredResource) -> None:
    """KIP-860, example 1: a describe shows the union, and the list of moves does not contain the move."""
    world, kept = make_ten_brokers()
    world.hold_moves()
    move_as_other_client(world, "t-0", [4, 5, 6])
    world.cluster.faults.run_before(lambda other: other.tick(200), method="moves")
    plan = world.plan(*([wanted] if wanted.id.kind == "Topic" else [*kept, wanted]))
    world.cluster.faults.clear()
    world.cluster.move_ticks = 0
    assert not list_moves_in_flight(world.cluster)
    sizes = {len(r) for op in plan.operations for r in op.expect.values() if isinstance(r, list)}
    assert sizes <= {3}
    world.run(plan)
    assert len(find_target_replicas(world, "t")) == 3


def test_move_started_after_describe_is_detected() -> None:
    """The other half of example 1: three replicas are described, and they are already being moved."""
    world, kept = make_ten_brokers()
    world.hold_moves()
    world.cluster.faults.run_before(lambda _: move_as_other_client(world, "t-0", [4, 5, 6]), method="moves")
    plan = world.plan(*kept, reassignment(("t-0", [1, 2, 7])))
    assert "move-in-flight" in list_codes(plan)
    assert plan.operations == ()


def test_run_with_stale_describes_completes() -> None:
    world = MovingWorld(MemoryCluster(TEN))
    world.apply(topic("t", partitions=2, replicationFactor=2))
    world.cluster.stale_reads = 3
    wanted = topic("t", partitions=2, replicationFactor=3)
    world.slow_moves(3)
    assert world.apply(wanted).complete
    assert [len(r) for r in list_replicas(world)] == [3, 3]
    assert not world.plan(wanted).has_changes


# Undoing.


def test_rollback_of_completed_move_restores_replica_order() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[3, 1, 2]])
    world.apply(*kept, reassignment(("t-0", [4, 2, 3])))
    assert list_replicas(world) == [(4, 2, 3)]
    assert world.rollback().complete
    assert list_replicas(world) == [(3, 1, 2)]
    assert list_leaders(world) == [3]


def test_rollback_of_move_in_flight_restores_replica_order() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[3, 2, 1]], u=[[3, 2, 1]])
    world.hold_moves()
    run = world.apply(*kept, reassignment(("t-0", [4, 2, 1]), throttle=1000), wait=False)
    move_as_other_client(world, "u-0", [4, 2, 1])
    move_as_other_client(world, "u-0", None)
    assert list_replicas(world, "u") == [(2, 1, 3)]
    assert world.rollback(run.run_id).complete
    assert list_replicas(world) == [(3, 2, 1)]
    assert list_moves_in_flight(world.cluster) == frozenset()
    world.recover()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


def override_own_move() -> tuple[MovingWorld, list[DesiredResource], str, str]:
    """[0, 1] -> [2, 3] and, while this is in progress, -> [4, 5]: two of the project's runs."""
    world = MovingWorld(MemoryCluster(TEN))
    kept = create_topics(world, t=[[0, 1]])
    world.hold_moves()
    first = world.apply(*kept, reassignment(("t-0", [2, 3])), wait=False)
    second = world.apply(*kept, reassignment(("t-0", [4, 5])), scope=OVERRIDE, wait=False)
    assert list_replicas(world) == [(4, 5, 0, 1, 2, 3)]
    return world, kept, str(first.run_id), str(second.run_id)


def test_rollback_of_override_restores_earlier_target() -> None:
    world, _, first, second = override_own_move()
    world.cluster.tick_on_poll = True
    world.cluster.move_ticks = 2
    assert world.rollback(second).complete
    assert list_replicas(world) == [(2, 3)]  # and no union of four
    assert world.rollback(first).complete
    assert list_replicas(world) == [(0, 1)]
    assert list_leaders(world) == [0]


def test_rollback_of_completed_override_restores_earlier_target() -> None:
    world, _, first, second = override_own_move()
    world.finish_moves()
    world.recover()
    assert list_replicas(world) == [(4, 5)]
    world.cluster.tick_on_poll = True
    assert world.rollback(second).complete
    assert list_replicas(world) == [(2, 3)]
    assert world.rollback(first).complete
    assert list_replicas(world) == [(0, 1)]


def test_rollback_after_redirect_by_another_client_is_conflict() -> None:
    world = MovingWorld(MemoryCluster(TEN))
    kept = create_topics(world, t=[[0, 1]])
    world.hold_moves()
    run = world.apply(*kept, reassignment(("t-0", [2, 3])), wait=False)
    move_as_other_client(world, "t-0", [4, 5])
    plan = world.plan_rollback(run.run_id)
    assert list_codes(plan) == ["conflict"]
    assert plan.operations == ()
    world.finish_moves()
    assert list_replicas(world) == [(4, 5)]


def test_rollback_of_factor_increase_in_flight_restores_factor() -> None:
    world = MovingWorld()
    create_topics(world, t=[[2, 1]])
    world.hold_moves()
    run = world.apply(topic("t", partitions=1, replicationFactor=3), wait=False)
    assert len(find_target_replicas(world, "t")) == 3
    assert world.rollback(run.run_id).complete
    assert list_replicas(world) == [(2, 1)]
    assert not list_moves_in_flight(world.cluster)


def test_rollback_of_override_restores_move_of_another_client() -> None:
    world, kept = start_foreign_move()
    run = world.apply(*kept, reassignment_to_five(), scope=OVERRIDE, wait=False)
    world.cluster.tick_on_poll = True
    world.cluster.move_ticks = 2
    assert world.rollback(run.run_id).complete
    assert list_replicas(world)[0] == (2, 3, 4)
