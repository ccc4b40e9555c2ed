"""A run that is stopped while another one takes over: which of its requests still reach the cluster.

A stopped process (SIGSTOP, a suspended machine) can continue at any time. If it is stopped before the check
of the lease, it sends nothing more. If it is stopped between the check and the request, one request is late,
and is recorded.
"""

from collections.abc import Callable

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.executor.entries import read_lock_losses, read_run
from kdeclare.engine.state.shared.store import SharedStore
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.engine.team import Team
from tests.engine.world import topic
from tests.jsontypes import untyped

STOPPED_S = 3600.0


def make_target(retention: str = "2") -> list[DesiredResource]:
    return [
        topic("edit", partitions=3, replicationFactor=1, configs={"retention.ms": retention}),
        *(topic(f"new-{n}", partitions=1, replicationFactor=1) for n in range(3)),
    ]


def make_team() -> Team:
    team = Team()
    team.open_world().apply(topic("edit", partitions=1, replicationFactor=1, configs={"retention.ms": "1"}))
    team.cluster.calls.clear()
    return team


def list_changes(cluster: MemoryCluster) -> list[str]:
    """Return the requests for changes that reached the cluster."""
    return [call.method for call in cluster.calls if call.is_mutating]


CHANGES = ["alter_configs", "create_partitions", "create_topics", "create_topics", "create_topics"]


def test_uninterrupted_run_sends_these_changes() -> None:
    team = make_team()
    assert team.open_world().apply(*make_target(), batch=1).complete
    assert list_changes(team.cluster) == CHANGES


def test_lease_is_renewed_during_a_long_run() -> None:
    team = make_team()
    world = team.open_world()
    team.cluster.faults.run_before(lambda _: team.clock.sleep(STOPPED_S), nth=3)
    assert world.apply(*make_target(), batch=1).complete
    assert not world.store.is_takeover


class StoppingStore(SharedStore):
    """A store whose process is stopped at one request: before the lease is checked for it, or after that."""

    def __init__(self, team: Team, stop_at: int, after_check: bool, stop: Callable[[], None]) -> None:
        super().__init__(lambda: team.objects, team.timing)
        self._stop_at = 2 * stop_at - 1  # each request is checked once more when it was answered
        self._after_check = after_check
        self._stop = stop
        self._checks = 0

    def check_lock(self) -> None:
        self._checks += 1
        if self._checks != self._stop_at:
            super().check_lock()
        elif self._after_check:
            super().check_lock()
            self._stop()
        else:
            self._stop()
            super().check_lock()


@pytest.mark.slow
@pytest.mark.parametrize("position", range(1, len(CHANGES) + 1))
@pytest.mark.parametrize("after_check", [False, True], ids=["before the check", "after the check"])
def test_stopped_run_sends_at_most_the_checked_request(position: int, after_check: bool) -> None:
    team = make_team()
    other = team.open_world(elsewhere=True)
    stopped = team.open_world()
    sent_before: list[str] = []

    def take_over() -> None:
        sent_before.extend(list_changes(stopped.cluster))
        team.clock.running = [untyped(other.store)]
        team.clock.sleep(STOPPED_S)
        assert other.apply(*make_target(retention="3"), batch=1).complete

    stopped.store = untyped(StoppingStore(team, position, after_check, take_over))
    with pytest.raises(KdeclareError) as caught:
        stopped.apply(*make_target(), batch=1)

    assert caught.value.exit_code is ExitCode.LOCKED
    assert len(sent_before) == position - 1
    assert len(list_changes(stopped.cluster)) == position - 1 + int(after_check)
    run_id = stopped.store.runs()[1]
    (loss,) = read_lock_losses(other.store, run_id)
    assert len(loss.operations) == 1
    # the other run has determined the outcome of everything that this run began
    record = read_run(other.store, run_id)
    assert record.is_over
    assert record.results[loss.operations[0]].status is not Status.UNKNOWN
    # the next run finds a change that arrived late, and repairs it
    is_late_change_visible = after_check and CHANGES[position - 1] == "alter_configs"
    assert other.plan(*make_target(retention="3")).has_changes == is_late_change_visible
    assert other.apply(*make_target(retention="3"), batch=1).complete
    assert other.overrides("edit") == {"retention.ms": "3"}
    assert set(team.cluster.topics()) == {"edit", "new-0", "new-1", "new-2"}
