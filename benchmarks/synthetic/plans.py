"""Build a large plan with the engine on the in-memory cluster: new topics, configs, partitions and moves."""

from collections.abc import Mapping

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Plan
from kdeclare.core.progress import ignore_progress
from kdeclare.core.provider.registry import KINDS, OPERATION_TYPES
from kdeclare.core.resources.adoption import allow_adoption
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.request import PlanRequest
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.testing import MemoryCluster

RACKS: dict[int, str | None] = {n: f"rack-{'abc'[n % 3]}" for n in range(1, 10)}
_TEAMS = ("payments", "checkout", "search", "ledger", "identity", "logistics", "risk", "growth")
_WORDS = ("orders", "invoices", "clicks", "shipments", "logins", "prices", "refunds", "alerts")


def big_plan(count: int) -> Plan:
    """Build a plan with ``count`` changes.

    A third of them create topics. The others change configs, and some of these also add partitions or move
    replicas.
    """
    cluster = MemoryCluster(RACKS)
    names = [f"{_TEAMS[n % 8]}.{_WORDS[n // 8 % 8]}.v{n:05}" for n in range(count)]
    there = [(n, name) for n, name in enumerate(names) if n % 3]
    first = _plan([_declared(name, {"assignments": _spread(n, 3)}) for n, name in there], cluster)
    OPERATION_TYPES["topic.create"].execute(
        Connections(KafkaConnection(cluster)), first.operations, NoSecrets(), validate_only=False
    )
    return _plan([_declared(name, _wanted(n)) for n, name in enumerate(names)], cluster)


def _wanted(n: int) -> dict[str, object]:
    configs = {
        "retention.ms": 86_400_000 * (1 + n % 30),
        "cleanup.policy": ["compact", "delete"] if n % 2 else ["compact"],
        "min.insync.replicas": 2,
        "max.message.bytes": 1_048_576 * (1 + n % 7),
    }
    if not n % 3:
        return {"assignments": _spread(n, 3), "configs": configs}
    if not n % 5:
        return {"assignments": _spread(n + 1, 3), "configs": configs}
    if not n % 4:
        return {"partitions": 6, "configs": configs}
    return {"configs": configs}


def _spread(n: int, partitions: int) -> dict[int, list[int]]:
    brokers = sorted(RACKS)
    return {p: [brokers[(n + p + r) % 9] for r in range(3)] for p in range(partitions)}


def _declared(name: str, spec: Mapping[str, object]) -> DesiredResource:
    kind = KINDS["Topic"]
    body, problems = kind.parse(name, kind.spec.model_validate(spec))
    assert not [p for p in problems if p.diagnostic.is_error], problems
    team = name.partition(".")[0]
    declared = DesiredResource(
        ResourceId("Topic", name), body, {"team": team}, SourcePosition(f"manifests/{team}.yaml", 1, 1)
    )
    return allow_adoption(declared)


def _plan(desired: list[DesiredResource], cluster: MemoryCluster) -> Plan:
    request = PlanRequest("shop", "production", "kafka-1.example:9092", tuple(desired), None)
    return build_plan(request, Connections(KafkaConnection(cluster)), NoSecrets(), ignore_progress)


class NoSecrets:
    """A stub for plans without secrets."""

    def reveal(self, secret: object) -> str:
        """Never called, because the plans have no secrets."""
        raise AssertionError(secret)
