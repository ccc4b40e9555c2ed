"""What tests about moves have in common: topics and brokers, throttle entries, and watching a run at work."""

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
class Looked:
    """What there was when the run asked for moves: partitions in flight, and throttles."""

    flying: frozenset[str]
    throttles: Throttles
    at: float


@dataclass
class Moving(World):
    """A world of five brokers that remembers the progress that runs tell of."""

    cluster: MemoryCluster = field(default_factory=lambda: MemoryCluster(RACKS))
    told: list[MoveProgress] = field(default_factory=list)

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
            self.told.append(moves)

    def slow(self, ticks: int = 5) -> None:
        """From now on a move takes so many looks of the run."""
        self.cluster.move_ticks = ticks

    def hold(self) -> None:
        """From now on a move goes on until `finish`."""
        self.cluster.tick_on_poll = False
        self.cluster.move_ticks = 100

    def finish(self) -> None:
        """All moves are over."""
        self.cluster.tick(200)

    def go_on(self) -> None:
        """Nobody presses Ctrl-C any more."""
        self.stop = Event()

    @property
    def left(self) -> PendingMoveCleanup:
        """What runs have left to be tidied up."""
        state = self.store.read()
        return get_move_cleanup(state)


def assigned(name: str, *replicas: Sequence[int], **more: Any) -> DesiredResource:
    """A topic with its replicas written out."""
    return topic(name, assignments={n: list(r) for n, r in enumerate(replicas)}, **more)


def reassignment(*wanted: tuple[str, Sequence[int]], name: str = "move", **more: Any) -> DesiredResource:
    """Each ``wanted`` is ``topic-partition`` and its replicas."""
    partitions = []
    for text, replicas in wanted:
        where = TopicPartition.parse(text)
        partitions.append({"topic": where.topic, "partition": where.partition, "replicas": list(replicas)})
    return desired("Reassignment", name, partitions=partitions, **more)


def existing(world: World, **topics: Sequence[Sequence[int]]) -> list[DesiredResource]:
    """Topics that are there, and their manifests without a word about replicas."""
    world.apply(*(assigned(name, *replicas) for name, replicas in topics.items()))
    return [topic(name) for name in topics]


def replicas(world: World, name: str = "t") -> list[tuple[int, ...]]:
    """Of each partition, as the controller holds them: a union during a move."""
    count = len(world.cluster.elsewhere().topics([name])[name].partitions)
    return [world.cluster.partition(TopicPartition(name, n)).replicas for n in range(count)]


def leaders(world: World, name: str = "t") -> list[int | None]:
    """Who leads each partition."""
    return [p.leader for p in world.cluster.elsewhere().topics([name])[name].partitions]


def flying(cluster: MemoryCluster) -> frozenset[str]:
    """The partitions that are being moved; looking lets no time pass."""
    return frozenset(
        f"{name}-{n}"
        for name, found in cluster.elsewhere().topics().items()
        for n in range(len(found.partitions))
        if cluster.partition(TopicPartition(name, n)).moving
    )


def throttles(cluster: MemoryCluster) -> Throttles:
    """All that is set and throttles, by resource."""
    found: Throttles = {}
    for resource, values in cluster.overrides().items():
        mine = {key: value for key, value in values.items() if "replication.throttled" in key}
        if mine:
            found[f"{resource.scope}/{resource.name}"] = mine
    return found


def rates(rate: int, *brokers: int) -> Throttles:
    """Both rates on each of the brokers."""
    return {f"BROKER/{b}": {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)} for b in brokers}


def set_on(world: World, entity: str, values: Mapping[str, str]) -> None:
    """Somebody else sets configs on ``TOPIC/t`` or ``BROKER/1``."""
    scope, _, name = entity.partition("/")
    resource = ConfigResource(ConfigScope(scope), name)
    world.cluster.set_overrides(resource, {**world.cluster.overrides(resource), **values})


def someone_moves(world: World, where: str, target: Sequence[int] | None) -> None:
    """Another client starts a move, or cancels one."""
    aim = None if target is None else tuple(target)
    answers = world.cluster.elsewhere().reassign(
        {TopicPartition.parse(where): aim}, allow_replication_factor_change=True
    )
    assert set(answers.values()) == {None}


def watched(world: World) -> list[Looked]:
    """What there is at each look that the run takes at moves; filled while it runs."""
    seen: list[Looked] = []

    def look(other: MemoryCluster) -> None:
        seen.append(Looked(flying(other), throttles(other), world.clock.monotonic()))

    world.cluster.faults.run_before(look, method="moves", nth=None)
    return seen


def during(world: World, nth: int, what: Callable[[MemoryCluster], object]) -> None:
    """Do something once the n-th look at moves comes at which some are in flight."""
    count = 0

    def look(other: MemoryCluster) -> None:
        nonlocal count
        if flying(other):
            count += 1
            if count == nth:
                what(other)

    world.cluster.faults.run_before(look, method="moves", nth=None)


def result(run: ApplyResult, start: str) -> OperationResult:
    """The one result whose id begins so."""
    (found,) = (r for r in run.results.values() if r.id.startswith(start))
    return found


def results(run: ApplyResult, start: str) -> list[OperationResult]:
    """The results whose ids begin so, in the plan's order."""
    return [r for r in run.results.values() if r.id.startswith(start)]


def verbs(plan: Plan) -> list[str]:
    """What the plan does, in order."""
    return [op.verb for op in plan.operations]


def codes(plan: Plan) -> list[str]:
    """What the plan says."""
    return [d.code for d in plan.diagnostics]
