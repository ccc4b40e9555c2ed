"""Helpers for tests of reassignments: topics and brokers, throttle entries, and observing a run at work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult, MoveProgress, OperationResult
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.executor.apply import Applier
from kdeclare.policy.evaluation import ProjectPolicyGate
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import PendingMoveCleanup, get_move_cleanup
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.engine.world import World, desired, topic

LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"

RACKS: dict[int, str | None] = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}

Throttles = dict[str, dict[str, str]]


@dataclass
class PollSnapshot:
    """The state when the run polled reassignments: partitions in flight, and throttles."""

    in_flight: frozenset[str]
    throttles: Throttles
    at: float


@dataclass
class MovingWorld(World):
    """A world of five brokers that records the progress that runs report."""

    cluster: MemoryCluster = field(default_factory=lambda: MemoryCluster(RACKS))
    progress_reports: list[MoveProgress] = field(default_factory=list)

    def _make_applier(self) -> Applier:
        return Applier(
            self.store,
            connections_to(self.cluster),
            self.secrets,
            self._tell,
            "me@here",
            "test",
            ProjectPolicyGate(self.policies),
            self.clock,
            self.stop,
        )

    def _tell(self, what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
        if moves is not None:
            self.progress_reports.append(moves)

    def slow_moves(self, ticks: int = 5) -> None:
        """Let each reassignment take this many polls of the run from now on."""
        self.cluster.move_ticks = ticks

    def hold_moves(self) -> None:
        """Keep reassignments in flight from now on until `finish_moves`."""
        self.cluster.tick_on_poll = False
        self.cluster.move_ticks = 100

    def finish_moves(self) -> None:
        """Finish all reassignments."""
        self.cluster.tick(200)

    def clear_interrupt(self) -> None:
        """Clear the interruption that simulates Ctrl-C."""
        self.stop = Event()

    @property
    def pending_cleanup(self) -> PendingMoveCleanup:
        """The cleanup that runs have left pending."""
        state = self.store.read()
        return get_move_cleanup(state)


def assigned_topic(name: str, *replicas: Sequence[int], **more: Any) -> DesiredResource:
    """Declare a topic with explicit replica assignments."""
    return topic(name, assignments={n: list(r) for n, r in enumerate(replicas)}, **more)


def reassignment(*wanted: tuple[str, Sequence[int]], name: str = "move", **more: Any) -> DesiredResource:
    """Declare a reassignment. Each item of ``wanted`` is ``topic-partition`` with its replicas."""
    partitions = []
    for text, replicas in wanted:
        where = TopicPartition.parse(text)
        partitions.append({"topic": where.topic, "partition": where.partition, "replicas": list(replicas)})
    return desired("Reassignment", name, partitions=partitions, **more)


def create_topics(world: World, **topics: Sequence[Sequence[int]]) -> list[DesiredResource]:
    """Create topics, and return manifests for them that do not mention replicas."""
    world.apply(*(assigned_topic(name, *replicas) for name, replicas in topics.items()))
    return [topic(name) for name in topics]


def list_replicas(world: World, name: str = "t") -> list[tuple[int, ...]]:
    """Return the replicas of each partition according to the controller: a union during a move."""
    count = len(world.cluster.elsewhere().topics([name])[name].partitions)
    return [world.cluster.partition(TopicPartition(name, n)).replicas for n in range(count)]


def list_leaders(world: World, name: str = "t") -> list[int | None]:
    """Return the leader of each partition."""
    return [p.leader for p in world.cluster.elsewhere().topics([name])[name].partitions]


def list_moves_in_flight(cluster: MemoryCluster) -> frozenset[str]:
    """Return the partitions in flight without advancing time."""
    return frozenset(
        f"{name}-{n}"
        for name, found in cluster.elsewhere().topics().items()
        for n in range(len(found.partitions))
        if cluster.partition(TopicPartition(name, n)).moving
    )


def list_throttles(cluster: MemoryCluster) -> Throttles:
    """Return all throttle configs, by resource."""
    found: Throttles = {}
    for resource, values in cluster.overrides().items():
        mine = {key: value for key, value in values.items() if "replication.throttled" in key}
        if mine:
            found[f"{resource.scope}/{resource.name}"] = mine
    return found


def build_rates(rate: int, *brokers: int) -> Throttles:
    """Return both rates for each of the brokers."""
    return {f"BROKER/{b}": {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)} for b in brokers}


def set_configs(world: World, entity: str, values: Mapping[str, str]) -> None:
    """Set configs on ``TOPIC/t`` or ``BROKER/1`` as another client."""
    scope, _, name = entity.partition("/")
    resource = ConfigResource(ConfigScope(scope), name)
    world.cluster.set_overrides(resource, {**world.cluster.overrides(resource), **values})


def move_as_other_client(world: World, where: str, target: Sequence[int] | None) -> None:
    """Start or cancel a reassignment as another client."""
    aim = None if target is None else tuple(target)
    answers = world.cluster.elsewhere().reassign(
        {TopicPartition.parse(where): aim}, allow_replication_factor_change=True
    )
    assert set(answers.values()) == {None}


def record_polls(world: World) -> list[PollSnapshot]:
    """Record the state at each poll of reassignments by the run; the list is filled while it runs."""
    seen: list[PollSnapshot] = []

    def record(other: MemoryCluster) -> None:
        seen.append(PollSnapshot(list_moves_in_flight(other), list_throttles(other), world.clock.monotonic()))

    world.cluster.faults.run_before(record, method="moves", nth=None)
    return seen


def call_at_poll(world: World, nth: int, what: Callable[[MemoryCluster], object]) -> None:
    """Call ``what`` at the n-th poll that finds reassignments in flight."""
    count = 0

    def record(other: MemoryCluster) -> None:
        nonlocal count
        if list_moves_in_flight(other):
            count += 1
            if count == nth:
                what(other)

    world.cluster.faults.run_before(record, method="moves", nth=None)


def find_result(run: ApplyResult, start: str) -> OperationResult:
    """Return the only result whose id starts with ``start``."""
    (found,) = (r for r in run.results.values() if r.id.startswith(start))
    return found


def find_results(run: ApplyResult, start: str) -> list[OperationResult]:
    """Return the results whose ids start with ``start``, in the plan's order."""
    return [r for r in run.results.values() if r.id.startswith(start)]


def list_verbs(plan: Plan) -> list[str]:
    """Return the verbs of the plan's operations, in order."""
    return [op.verb for op in plan.operations]


def list_codes(plan: Plan) -> list[str]:
    """Return the codes of the plan's diagnostics."""
    return [d.code for d in plan.diagnostics]
