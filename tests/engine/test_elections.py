"""Preferred leader election: only where a reassignment makes another broker the preferred leader."""

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.report.outcome import run_outcome
from tests.engine.moving import (
    Moving,
    during,
    existing,
    leaders,
    reassignment,
    replicas,
    result,
    someone_moves,
    verbs,
)
from tests.engine.world import topic


def world_with_t(*lists: list[int]) -> tuple[Moving, list[DesiredResource]]:
    world = Moving()
    kept = existing(world, t=lists or ([1, 2, 3],))
    return world, kept


def elections(world: Moving) -> list[str]:
    """Return the partitions of election requests, request by request."""
    return [item for call in world.cluster.requests("elect_leaders") for item in call.items]


def test_reordered_replicas_trigger_election() -> None:
    world, kept = world_with_t([1, 2, 3], [1, 2, 3], [2, 1, 3])
    wanted = reassignment(("t-0", [3, 2, 1]), ("t-1", [1, 3, 2]))
    plan = world.plan(*kept, wanted)
    assert verbs(plan) == ["partitions.reassign", "leaders.elect"]
    assert world.run(plan).complete
    assert leaders(world) == [3, 1, 2]
    assert elections(world) == ["t-0"]
    assert not world.plan(*kept, wanted).has_changes


def test_factor_increase_triggers_no_election() -> None:
    world, _ = world_with_t([1, 2], [2, 1])
    world.slow(3)
    plan = world.plan(topic("t", partitions=2, replicationFactor=3))
    assert "leaders.elect" not in verbs(plan)
    assert world.run(plan).complete
    assert leaders(world) == [1, 2]
    assert elections(world) == []


def test_rollback_of_reordering_triggers_election() -> None:
    world, kept = world_with_t()
    world.apply(*kept, reassignment(("t-0", [3, 2, 1])))
    assert leaders(world) == [3]
    assert world.rollback().complete
    assert replicas(world) == [(1, 2, 3)]
    assert leaders(world) == [1]


def test_election_follows_completed_move() -> None:
    world, kept = world_with_t()
    world.slow(4)
    led: list[int | None] = []
    world.cluster.faults.run_before(lambda _: led.extend(leaders(world)), method="elect_leaders")
    assert world.apply(*kept, reassignment(("t-0", [4, 1, 2]))).complete
    assert led == [1]
    assert leaders(world) == [4]


@pytest.mark.parametrize("how", ["no wait", "ctrl-c", "time-out"])
def test_election_is_run_by_later_command_after_unwaited_move(how: str) -> None:
    world, kept = world_with_t()
    world.hold()
    if how == "ctrl-c":
        during(world, 2, lambda _: world.stop.set())
    run = world.apply(*kept, reassignment(("t-0", [4, 1, 2])), wait=how != "no wait", move_timeout_s=30)
    assert result(run, "leaders.elect").status is Status.STARTED
    assert world.left.elections == {"t-0": 4}
    world.go_on()
    world.cluster.faults.clear()
    world.recover()
    assert elections(world) == []
    world.finish()
    assert leaders(world) == [1]
    world.recover()
    assert leaders(world) == [4]
    assert not world.left
    world.recover()
    assert elections(world) == ["t-0"]


def test_election_of_unavailable_leader_fails() -> None:
    world, kept = world_with_t()
    plan = world.plan(*kept, reassignment(("t-0", [3, 2, 1])))
    world.cluster.faults.run_before(lambda _: world.cluster.fence(3), method="elect_leaders")
    run = world.run(plan)
    election = result(run, "leaders.elect")
    assert (election.status, election.error) == (Status.FAILED, "PREFERRED_LEADER_NOT_AVAILABLE")
    assert "t-0" in election.message
    assert run_outcome(run).exit_code is ExitCode.PARTIAL
    assert replicas(world) == [(3, 2, 1)]
    assert leaders(world) == [1]


def test_election_of_unavailable_leader_is_retried_by_next_command() -> None:
    world, kept = world_with_t()
    world.hold()
    world.apply(*kept, reassignment(("t-0", [4, 1, 2])), wait=False)
    world.finish()
    world.cluster.fence(4)
    assert world.recover().run is None  # nothing can be done before the broker is back
    assert world.left.elections == {"t-0": 4}
    world.cluster.fence(4, fenced=False)
    world.cluster.tick()
    world.recover()
    assert leaders(world) == [4]
    assert not world.left


def test_refused_move_triggers_no_election() -> None:
    world, kept = world_with_t()
    plan = world.plan(*kept, reassignment(("t-0", [4, 1, 2])))
    world.cluster.faults.fail(Fault("INVALID_REPLICA_ASSIGNMENT", "No."), method="reassign", item="t-0")
    world.run(plan)
    assert elections(world) == []
    assert leaders(world) == [1]


def test_overridden_move_triggers_no_election() -> None:
    world, kept = world_with_t()
    world.hold()
    during(world, 2, lambda _: someone_moves(world, "t-0", [2, 1, 5]))
    during(world, 5, lambda other: other.tick(200))
    run = world.apply(*kept, reassignment(("t-0", [4, 1, 2])))
    assert result(run, "partitions.reassign").error == "move-overridden"
    assert elections(world) == []
    assert (replicas(world), leaders(world)) == ([(2, 1, 5)], [1])


@pytest.mark.parametrize("after", [False, True])
def test_timed_out_election_is_retried(after: bool) -> None:
    world, kept = world_with_t([1, 2, 3], [2, 1, 3])
    plan = world.plan(*kept, reassignment(("t-0", [4, 1, 2]), ("t-1", [5, 1, 3])))
    world.cluster.faults.time_out(after_effect=after, method="elect_leaders")
    assert world.run(plan).complete
    assert leaders(world) == [4, 5]


def test_removed_leader_needs_no_election_request() -> None:
    """Kafka elects a leader when the current one is removed, so another election request succeeds, too."""
    world, kept = world_with_t()
    assert world.apply(*kept, reassignment(("t-0", [4, 5, 2]))).complete
    assert leaders(world) == [4]
    assert elections(world) == []
