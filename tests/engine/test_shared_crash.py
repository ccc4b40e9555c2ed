"""Kill a run with a shared state before and after each write to its storage. Another member takes over."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Literal

import pytest

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.storage.conditional_objects import ConditionalObjects, ObjectVersion, StoredObject
from kdeclare.engine.executor.entries import read_run
from kdeclare.engine.state.shared.lease import LEASE_KEY
from kdeclare.engine.state.shared.memory_objects import MemoryObjects
from tests.engine.team import DURATION_S, Team
from tests.engine.world import World, topic

When = Literal["before", "after"]


class Killed(BaseException):
    """The process dies."""


class FailingObjects:
    """The storage as one process sees it. One of its writes fails, before or after its effect.

    With an exception that is no error of the storage, the process is dead, and no further request succeeds.
    """

    def __init__(self, objects: MemoryObjects, n: int, when: When, make_error: type[BaseException]) -> None:
        self._objects = objects
        self._n, self._when, self._make_error = n, when, make_error
        self._dead = False
        self.writes = 0

    @property
    def max_object_bytes(self) -> int:
        return self._objects.max_object_bytes

    def get(self, key: str) -> StoredObject | None:
        self._require_alive()
        return self._objects.get(key)

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        self._require_alive()
        return self._objects.list_keys(prefix)

    def create(self, key: str, data: bytes) -> ObjectVersion:
        self._fail_if_due("before")
        version = self._objects.create(key, data)
        self._fail_if_due("after")
        return version

    def replace(self, key: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        self._fail_if_due("before")
        new_version = self._objects.replace(key, data, version)
        self._fail_if_due("after")
        return new_version

    def delete(self, keys: Iterable[str]) -> None:
        self._fail_if_due("before")
        self._objects.delete(keys)
        self._fail_if_due("after")

    def get_location(self, key: str) -> str:
        return self._objects.get_location(key)

    def close(self) -> None:
        self._objects.close()

    def _require_alive(self) -> None:
        if self._dead:
            raise self._make_error

    def _fail_if_due(self, when: When) -> None:
        self._require_alive()
        self.writes += when == "before"
        if (self.writes, when) == (self._n, self._when):
            self._dead = self._make_error is Killed
            raise self._make_error


class NoResponse(KdeclareError):
    """The storage does not respond to one request."""

    def __init__(self) -> None:
        super().__init__(error("state-storage", "No response", "The storage does not respond."))


def make_target() -> list[DesiredResource]:
    return [
        topic("edit", partitions=3, replicationFactor=1, configs={"retention.ms": "2"}),
        *(topic(f"new-{n}", partitions=1, replicationFactor=1) for n in range(2)),
    ]


def run_with_failure(n: int, when: When, make_error: type[BaseException]) -> tuple[Team, FailingObjects]:
    """Apply the target. The nth write of the process fails. Return the team afterwards."""
    team = Team()
    team.open_world().apply(topic("edit", partitions=1, replicationFactor=1, configs={"retention.ms": "1"}))
    opened: list[FailingObjects] = []

    def open_objects(objects: MemoryObjects) -> ConditionalObjects:
        opened.append(FailingObjects(objects, n, when, make_error))
        return opened[0]

    team.clock.running.clear()
    world = team.open_world(open_objects=open_objects)
    with contextlib.suppress(make_error):
        world.apply(*make_target(), batch=1)
    team.clock.running.clear()
    return team, opened[0]


def check_next_member(team: Team) -> None:
    """Let another member apply the same manifests, and check that everything is as declared."""
    team.clock.sleep(DURATION_S)
    other: World = team.open_world(elsewhere=True)
    assert other.apply(*make_target(), batch=1).complete
    assert not other.plan(*make_target()).has_changes
    assert {name: len(t.partitions) for name, t in team.cluster.topics().items()} == {
        "edit": 3,
        "new-0": 1,
        "new-1": 1,
    }
    assert other.overrides("edit") == {"retention.ms": "2"}
    assert set(other.owned()) == {"Topic/edit", "Topic/new-0", "Topic/new-1"}
    assert all(read_run(other.store, run_id).is_over for run_id in other.store.runs())
    record = other.store._lease.read_record()  # type: ignore[attr-defined]
    assert record is not None
    assert record.status == "released"
    assert LEASE_KEY in team.objects.list_keys("")


WRITES = 16
"""The number of writes of an undisturbed run; fixed, because all workers must collect the same tests."""


def list_positions() -> Iterator[tuple[int, When]]:
    for n in range(1, WRITES + 1):
        yield n, "before"
        yield n, "after"


def test_position_count_covers_all_writes() -> None:
    assert run_with_failure(1000, "before", Killed)[1].writes == WRITES


@pytest.mark.slow
@pytest.mark.parametrize(("n", "when"), list(list_positions()))
def test_run_killed_at_write_is_taken_over(n: int, when: When) -> None:
    check_next_member(run_with_failure(n, when, Killed)[0])


@pytest.mark.slow
@pytest.mark.parametrize(("n", "when"), list(list_positions()))
def test_write_without_response_loses_nothing(n: int, when: When) -> None:
    check_next_member(run_with_failure(n, when, NoResponse)[0])
