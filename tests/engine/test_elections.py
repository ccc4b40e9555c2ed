"""Preferred leader election: only where a reassignment makes another broker the preferred leader."""

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.report.outcome import run_outcome
from tests.engine.moving import (
    MovingWorld,
    call_at_poll,
    create_topics,
    find_result,
    list_leaders,
    list_replicas,
    list_verbs,
    move_as_other_client,
    reassignment,
)
from tests.engine.world import topic


def make_world(*lists: list[int]) -> tuple[MovingWorld, list[DesiredResource]]:
    world = MovingWorld()
    kept = create_topics(world, t=lists or ([1, 2, 3],))
    return world, kept


def list_elections(world: MovingWorld) -> list[str]:
    """Return the partitions of election requests, request by request."""
    return [item for call in world.cluster.requests("elect_leaders") for item in call.items]


def test_reordered_replicas_trigger_election() -> None:
    world, kept = make_world([1, 2, 3], [1, 2, 3], [2, 1, 3])
    wanted = reassignment(("t-0", [3, 2, 1]), ("t-1", [1, 3, 2]))
    plan = world.plan(*kept, wanted)
    assert list_verbs(plan) == ["partitions.reassign", "leaders.elect"]
    assert world.run(plan).complete
    assert list_leaders(world) == [3, 1, 2]
    assert list_elections(world) == ["t-0"]
    assert not world.plan(*kept, wanted).has_changes


def test_factor_increase_triggers_no_election() -> None:
    world, _ = make_world([1, 2], [2, 1])
    world.slow_moves(3)
    plan = world.plan(topic("t", partitions=2, replicationFactor=3))
    assert "leaders.elect" not in list_verbs(plan)
    assert world.run(plan).complete
    assert list_leaders(world) == [1, 2]
    assert list_elections(world) == []


def test_rollback_of_reordering_triggers_election() -> None:
    world, kept = make_world()
    world.apply(*kept, reassignment(("t-0", [3, 2, 1])))
    assert list_leaders(world) == [3]
    assert world.rollback().complete
    assert list_replicas(world) == [(1, 2, 3)]
    assert list_leaders(world) == [1]


def test_election_follows_completed_move() -> None:
    world, kept = make_world()
    world.slow_moves(4)
    led: list[int | None] = []
    world.cluster.faults.run_before(lambda _: led.extend(list_leaders(world)), method="elect_leaders")
    assert world.apply(*kept, reassignment(("t-0", [4, 1, 2]))).complete
    assert led == [1]
    assert list_leaders(world) == [4]


@pytest.mark.parametrize("how", ["no wait", "ctrl-c", "time-out"])
def test_election_is_run_by_later_command_after_unwaited_move(how: str) -> None:
    world, kept = make_world()
    world.hold_moves()
    if how == "ctrl-c":
        call_at_poll(world, 2, lambda _: world.stop.set())
    run = world.apply(*kept, reassignment(("t-0", [4, 1, 2])), wait=how != "no wait", move_timeout_s=30)
    assert find_result(run, "leaders.elect").status is Status.STARTED
    assert world.pending_cleanup.elections == {"t-0": 4}
    world.clear_interrupt()
    world.cluster.faults.clear()
    world.recover()
    assert list_elections(world) == []
    world.finish_moves()
    assert list_leaders(world) == [1]
    world.recover()
    assert list_leaders(world) == [4]
    assert not world.pending_cleanup
    world.recover()
    assert list_elections(world) == ["t-0"]


def test_election_of_unavailable_leader_fails() -> None:
    world, kept = make_world()
    plan = world.plan(*kept, reassignment(("t-0", [3, 2, 1])))
    world.cluster.faults.run_before(lambda _: world.cluster.fence(3), method="elect_leaders")
    run = world.run(plan)
    election = find_result(run, "leaders.elect")
    assert (election.status, election.error) == (Status.FAILED, "PREFERRED_LEADER_NOT_AVAILABLE")
    assert "t-0" in election.message
    assert run_outcome(run).exit_code is ExitCode.PARTIAL
    assert list_replicas(world) == [(3, 2, 1)]
    assert list_leaders(world) == [1]


def test_election_of_unavailable_leader_is_retried_by_next_command() -> None:
    world, kept = make_world()
    world.hold_moves()
    world.apply(*kept, reassignment(("t-0", [4, 1, 2])), wait=False)
    world.finish_moves()
    world.cluster.fence(4)
    assert world.recover().run is None  # nothing can be done before the broker is back
    assert world.pending_cleanup.elections == {"t-0": 4}
    world.cluster.fence(4, fenced=False)
    world.cluster.tick()
    world.recover()
    assert list_leaders(world) == [4]
    assert not world.pending_cleanup


def test_refused_move_triggers_no_election() -> None:
    world, kept = make_world()
    plan = world.plan(*kept, reassignment(("t-0", [4, 1, 2])))
    world.cluster.faults.fail(Fault("INVALID_REPLICA_ASSIGNMENT", "No."), method="reassign", item="t-0")
    world.run(plan)
    assert list_elections(world) == []
    assert list_leaders(world) == [1]


def test_overridden_move_triggers_no_election() -> None:
    world, kept = make_world()
    world.hold_moves()
    call_at_poll(world, 2, lambda _: move_as_other_client(world, "t-0", [2, 1, 5]))
    call_at_poll(world, 5, lambda other: other.tick(200))
    run = world.apply(*kept, reassignment(("t-0", [4, 1, 2])))
    assert find_result(run, "partitions.reassign").error == "move-overridden"
    assert list_elections(world) == []
    assert (list_replicas(world), list_leaders(world)) == ([(2, 1, 5)], [1])


@pytest.mark.parametrize("after", [False, True])
def test_timed_out_election_is_retried(after: bool) -> None:
    world, kept = make_world([1, 2, 3], [2, 1, 3])
    plan = world.plan(*kept, reassignment(("t-0", [4, 1, 2]), ("t-1", [5, 1, 3])))
    world.cluster.faults.time_out(after_effect=after, method="elect_leaders")
    assert world.run(plan).complete
    assert list_leaders(world) == [4, 5]


def test_removed_leader_needs_no_election_request() -> None:
    """Kafka elects a leader when the current one is removed, so another election request succeeds, too."""
    world, kept = make_world()
    assert world.apply(*kept, reassignment(("t-0", [4, 5, 2]))).complete
    assert list_leaders(world) == [4]
    assert list_elections(world) == []
