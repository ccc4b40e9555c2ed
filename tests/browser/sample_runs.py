"""A real plan and a run of it, made by the engine on an in-memory cluster."""

from dataclasses import dataclass, replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

from kdeclare.app.history import show_run
from kdeclare.app.workspace import Workspace
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.plan import ClusterRef, Plan, PlanBase
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.plan_document import compute_plan_id
from kdeclare.engine.planning.request import PlanScope
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.rules import PartitionBounds
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.run.views import RunDetail
from tests.engine.world import TestClock, World, desired, topic

RACKS: dict[int, str | None] = {1: "eu-1a", 2: "eu-1b", 3: "eu-1c", 4: "eu-1a", 5: "eu-1b", 6: "eu-1c"}
DAY_MS = 86_400_000
RUN_ID = "20260101T000001Z-0a1b2c3d"
COMMAND = "kdeclare apply it.plan --yes"
BUSY = "The controller is busy with another change of it."

_TOPICS = (
    "payments.captured",
    "payments.refunds",
    "payments.disputes",
    "payments.ledger",
    "checkout.carts",
    "checkout.orders",
    "checkout.prices",
    "search.clicks",
    "search.queries",
)
_COUNTS = {"checkout.orders": 12, "search.clicks": 96}
"""The declared number of partitions, more than exist; the policy allows at most 48."""


@dataclass
class SlowClock(TestClock):
    """A clock that advances with every request."""

    def __init__(self) -> None:
        super().__init__()

    def now(self) -> datetime:
        self._elapsed_s += 0.15
        return super().now()


def build_real_plan() -> Plan:
    """Build a plan with changes of every kind and a denial."""
    return _rename_context(_build_world().plan(*_declare_changes(), scope=PlanScope(allow_deletes=True)))


def build_real_run() -> RunDetail:
    """Run the plan; one request fails."""
    world = _build_world()
    world.cluster.move_ticks = 6
    world.cluster.faults.fail(
        Fault("INVALID_PARTITIONS", BUSY), method="create_partitions", nth=None, item="checkout.orders"
    )
    run = world.apply(*_declare_changes(), scope=PlanScope(allow_deletes=True, preflight=False))
    assert run.run_id is not None
    found = show_run(cast(Workspace, SimpleNamespace(store=world.store)), run.run_id)
    plan = _rename_context(found.plan)
    id_ = compute_plan_id(plan)
    return replace(found, run_id=RUN_ID, plan_id=id_, user="ann@laptop", command=COMMAND, plan=plan)


def _rename_context(plan: Plan) -> Plan:
    """Build a context with realistic names."""
    cluster = ClusterRef("5L6g3nShT-eMCtK--X86sw", "eu-1")
    return replace(plan, project="shop", env="production", cluster=cluster, base=PlanBase("b1946ac9", 7))


def _build_world() -> World:
    """Build a project that was applied once, when there were only three of the six brokers."""
    bounds = PartitionBounds()
    bounds.configure({"max": 48})
    pace = Pace(throttle=50_000_000, batch_size=4)
    policies = (ConfiguredPolicy("partition-bounds", bounds),)
    world = World(MemoryCluster(RACKS), clock=SlowClock(), pace=pace, policies=policies)
    world.apply(*_declare_first())
    return world


def _declare_first() -> list[DesiredResource]:
    legacy = topic("legacy.events", partitions=2, configs={"retention.ms": 1000})
    return [
        _build_topic(n, name, {"assignments": _place_on_racks(n, 3 + n % 3, 3)})
        for n, name in enumerate(_TOPICS)
    ] + [legacy]


def _declare_changes() -> list[DesiredResource]:
    """Declare other configs, more partitions, replicas on all six brokers, new topics, and remove a topic."""
    found = []
    for n, name in enumerate(_TOPICS):
        placed: dict[str, Any] = {"assignments": _place_on_racks(n, 3 + n % 3, 6)}
        if name in _COUNTS:
            placed = {"partitions": _COUNTS[name]}
        compacted = {"cleanup.policy": ["compact", "delete"]} if n % 3 else {}
        found.append(
            _build_topic(n, name, placed, {"retention.ms": DAY_MS * (1 + n + n % 2 * 6), **compacted})
        )
    for n, name in enumerate(("payments.fees", "checkout.coupons", "search.embeddings")):
        new = {"min.insync.replicas": 2, "compression.type": "zstd"}
        found.append(_build_topic(n, name, {"assignments": _place_on_racks(n, 6, 6)}, new))
    return [*found, desired("BrokerConfig", "cluster-default", configs={"log.cleaner.threads": 2})]


def _build_topic(
    n: int, name: str, placed: dict[str, Any], configs: dict[str, Any] | None = None
) -> DesiredResource:
    wanted = {"retention.ms": DAY_MS * (1 + n), "cleanup.policy": ["delete"]} if configs is None else configs
    return topic(name, labels={"team": name.partition(".")[0]}, **placed, configs=wanted)


def _place_on_racks(n: int, partitions: int, brokers: int) -> dict[int, list[int]]:
    """Place replicas on three racks, starting one broker later for every topic and partition."""
    step = brokers // 3
    return {p: [1 + (n + p + step * r) % brokers for r in range(3)] for p in range(partitions)}
