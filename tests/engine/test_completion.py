"""Work of a provider that continues after the request: a run waits for it without knowing its nature."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from kdeclare.core.clock import Clock
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.completion import Completion, WorkProgress, WorkTracker
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.operations.operation_type import OperationType, View
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import WORK_FAILED, MoveProgress, OperationResult, Status
from kdeclare.core.provider import registry
from kdeclare.core.provider.registry import OPERATION_TYPES, UnknownOperationType
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.executor.progress_tracker import ProgressTracker, RunOptions, build_started_result
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.engine.world import TestClock

KETTLE, TEA = ResourceId("Kettle", "kitchen"), ResourceId("Tea", "green")


@dataclass
class Kitchen:
    """The system: kettles by name, each with its temperature, and those that are on or broken."""

    heat: dict[str, int] = field(default_factory=dict)
    on: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class KettleArgs(Arguments):
    kettle: str


def get_kettle(op: Operation) -> str:
    return get_arguments(op, KettleArgs).kettle


class Heating(Completion):
    """A kettle heats up until it is off."""

    def __init__(self, kitchen: Kitchen, limit_s: float | None = None) -> None:
        self.kitchen, self.limit_s = kitchen, limit_s
        self.settle_s = self.settle_failure_s = 0.0
        self.tracked: list[list[str]] = []

    def is_ongoing(self, op: Operation, live: LiveState) -> bool:
        return get_kettle(op) in self.kitchen.on

    def find_failure(self, op: Operation, live: LiveState) -> OperationResult | None:
        if get_kettle(op) not in self.kitchen.broken:
            return None
        return OperationResult(op.id, Status.FAILED, WORK_FAILED, "It is broken.")

    def find_settle_s(self, op: Operation, *, has_failed: bool) -> float:
        return self.settle_failure_s if has_failed else self.settle_s

    def find_limit_s(self, op: Operation) -> float | None:
        return self.limit_s

    def report_started(self, op: Operation) -> OperationResult:
        return OperationResult(op.id, Status.STARTED, None, "It heats on.")

    def report_timeout(self, op: Operation, limit_s: float, live: LiveState | None) -> OperationResult:
        return OperationResult(op.id, Status.STARTED, "lukewarm", f"Not hot after {limit_s:g} s.")

    def report_overridden(self, op: Operation) -> OperationResult:
        return OperationResult(op.id, Status.FAILED, "went-cold", "Somebody has switched it off.")

    def start_tracking(
        self, connections: Connections, clock: Clock, operations: Sequence[Operation]
    ) -> WorkTracker:
        self.tracked.append([op.id for op in operations])
        return Thermometer(self.kitchen)


@dataclass
class Thermometer:
    kitchen: Kitchen

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        kettles = [get_kettle(op) for op in working]
        hot = sum(kettle not in self.kitchen.on for kettle in kettles)
        return WorkProgress("Heating", MoveProgress(hot, len(kettles), 0, 0)) if kettles else None


class HeatKettle(UnknownOperationType):
    """The view is the temperature of the kettle."""

    def __init__(self, completion: Heating) -> None:
        super().__init__("kettle.heat")
        self.completion = completion

    def compute_view(self, op: Operation, live: LiveState) -> View:
        assert isinstance(self.completion, Heating)
        return {"heat": self.completion.kitchen.heat.get(get_kettle(op))}

    def expected_state(self, op: Operation) -> View:
        return {"heat": 100}


class MakeTea(UnknownOperationType):
    """Starts when the kettle is off."""

    def __init__(self, completion: Heating) -> None:
        super().__init__("tea.make")
        self.awaits = completion


@pytest.fixture
def kitchen(monkeypatch: pytest.MonkeyPatch) -> Kitchen:
    return Kitchen()


@pytest.fixture
def heating(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> Heating:
    completion = Heating(kitchen)
    known: Mapping[str, OperationType] = {
        **OPERATION_TYPES,
        "kettle.heat": HeatKettle(completion),
        "tea.make": MakeTea(completion),
    }
    monkeypatch.setattr(registry, "OPERATION_TYPES", known)
    return completion


def make_operation(verb: str, resource: ResourceId, kettle: str = "kitchen") -> Operation:
    return Operation(f"{verb}:{kettle}", verb, resource, KettleArgs(kettle), {})


HEAT, MAKE = make_operation("kettle.heat", KETTLE), make_operation("tea.make", TEA)


@dataclass
class TrackerHarness:
    """A progress tracker, and the progress that it reported."""

    clock: TestClock = field(default_factory=TestClock)
    progress: list[tuple[str, int, int]] = field(default_factory=list)
    options: RunOptions = field(default_factory=lambda: RunOptions(move_timeout_s=60))

    def __post_init__(self) -> None:
        self.tracker = ProgressTracker(
            connections_to(MemoryCluster()), self.clock, self.options, self._tell, [HEAT, MAKE]
        )

    def _tell(self, what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
        self.progress.append((what, done, total))


def test_tracker_follows_work_until_completion(kitchen: Kitchen, heating: Heating) -> None:
    watched = TrackerHarness()
    kitchen.on.add("kitchen")
    watched.tracker.follow([HEAT])
    assert watched.tracker.look(give_up=False) == []
    kitchen.on.clear()
    kitchen.heat["kitchen"] = 100
    (result,) = watched.tracker.look(give_up=False)
    assert (result.id, result.status) == (HEAT.id, Status.DONE)
    assert watched.tracker.is_idle
    assert watched.progress == [("Heating", 0, 1), ("Heating", 1, 1)]
    assert heating.tracked == [[HEAT.id, MAKE.id]]


def test_tracker_reports_overridden_work_after_repeated_polls(kitchen: Kitchen, heating: Heating) -> None:
    watched = TrackerHarness()
    watched.tracker.follow([HEAT])
    looks = 0
    while not (ended := watched.tracker.look(give_up=False)):
        looks += 1
    assert looks > 1  # observations may lag behind
    assert [(r.status, r.error) for r in ended] == [(Status.FAILED, "went-cold")]


def test_tracker_reports_failed_work_although_it_is_ongoing(kitchen: Kitchen, heating: Heating) -> None:
    watched = TrackerHarness()
    kitchen.on.add("kitchen")
    watched.tracker.follow([HEAT])
    assert watched.tracker.look(give_up=False) == []
    kitchen.broken.add("kitchen")
    (result,) = watched.tracker.look(give_up=False)
    assert (result.status, result.error, result.message) == (Status.FAILED, WORK_FAILED, "It is broken.")
    assert result.is_partial
    assert result.had_effect
    assert watched.tracker.is_idle


def test_tracker_waits_until_end_of_work_has_settled(kitchen: Kitchen, heating: Heating) -> None:
    heating.settle_s = 2.0
    watched = TrackerHarness()
    kitchen.heat["kitchen"] = 100
    watched.tracker.follow([HEAT])
    assert watched.tracker.look(give_up=False) == []
    watched.clock.sleep(1.5)
    kitchen.on.add("kitchen")  # it starts again
    assert watched.tracker.look(give_up=False) == []
    kitchen.on.clear()
    watched.clock.sleep(1.5)
    assert watched.tracker.look(give_up=False) == []  # the time starts anew
    watched.clock.sleep(2.0)
    assert [r.status for r in watched.tracker.look(give_up=False)] == [Status.DONE]


def test_tracker_waits_longer_until_failure_has_settled(kitchen: Kitchen, heating: Heating) -> None:
    heating.settle_failure_s = 5.0
    watched = TrackerHarness()
    kitchen.heat["kitchen"] = 100
    kitchen.broken.add("kitchen")  # the state from before the operation
    watched.tracker.follow([HEAT])
    watched.clock.sleep(4.0)
    assert watched.tracker.look(give_up=False) == []
    kitchen.broken.clear()
    assert [r.status for r in watched.tracker.look(give_up=False)] == [Status.DONE]


@pytest.mark.parametrize(("own", "limit"), [(None, 60), (5.0, 5)])
def test_tracker_reports_timeout(kitchen: Kitchen, heating: Heating, own: float | None, limit: float) -> None:
    heating.limit_s = own
    watched = TrackerHarness()
    kitchen.on.add("kitchen")
    watched.tracker.follow([HEAT])
    watched.clock.sleep(limit - 1)
    assert watched.tracker.look(give_up=False) == []
    watched.clock.sleep(2)
    (result,) = watched.tracker.look(give_up=False)
    assert (result.error, result.message) == ("lukewarm", f"Not hot after {limit:g} s.")


def test_tracker_releases_waiting_operation_after_completion(kitchen: Kitchen, heating: Heating) -> None:
    watched = TrackerHarness()
    kitchen.on.add("kitchen")
    assert watched.tracker.holds(MAKE, [])
    watched.tracker.look(give_up=False)
    assert watched.tracker.holds(MAKE, [])
    kitchen.on.clear()
    watched.tracker.look(give_up=False)
    assert not watched.tracker.holds(MAKE, [])
    assert watched.progress == []  # the run has no ongoing work of its own


def test_tracker_giving_up_reports_started_operations(kitchen: Kitchen, heating: Heating) -> None:
    watched = TrackerHarness()
    kitchen.on.add("kitchen")
    watched.tracker.follow([HEAT])
    assert watched.tracker.holds(MAKE, [])
    results = watched.tracker.look(give_up=True)
    assert {r.id: (r.status, r.message) for r in results} == {
        HEAT.id: (Status.STARTED, "It heats on."),
        MAKE.id: (Status.STARTED, "It heats on."),
    }


def test_operation_without_completion_is_started_only() -> None:
    other = Operation("lamp.on:kitchen", "lamp.on", ResourceId("Lamp", "kitchen"), KettleArgs("none"), {})
    assert build_started_result(other) == OperationResult(
        other.id, Status.STARTED, None, "The next apply completes this operation."
    )
