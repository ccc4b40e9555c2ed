"""Build a plan with thousands of changes on the in-memory cluster."""

from collections.abc import Sequence

from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Plan
from kdeclare.core.progress import ignore_progress
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.request import PlanRequest
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.testing import MemoryCluster


def changes(count: int) -> tuple[Plan, MemoryCluster, dict[str, dict[str, str]]]:
    """Build a plan that creates one half of the topics and changes the other half."""
    cluster = MemoryCluster({1: "a", 2: "b", 3: "c"})
    labels = {f"topic-{n:05}": _labels(n) for n in range(count)}
    names = sorted(labels)
    specs = {name: {"partitions": 3 + n % 3, "replicationFactor": 3} for n, name in enumerate(names)}
    first = [_declared(name, labels[name], {**specs[name], "configs": {}}) for name in names[::2]]
    _apply(_plan(first, cluster), cluster)
    configs = {"retention.ms": 86400000, "min.insync.replicas": 2, "compression.type": "zstd"}
    second = [_declared(name, labels[name], {**specs[name], "configs": configs}) for name in names]
    return _plan(second, cluster), cluster, labels


def _labels(n: int) -> dict[str, str]:
    return {"team": f"team-{n % 40}", "tier": "bronze" if n % 7 == 0 else "gold", "keyed": "false"}


def _declared(name: str, labels: dict[str, str], spec: dict[str, object]) -> DesiredResource:
    kind = KINDS["Topic"]
    body, _ = kind.parse(name, kind.spec.model_validate(spec))
    return DesiredResource(ResourceId("Topic", name), body, labels)


def _plan(desired: Sequence[DesiredResource], cluster: MemoryCluster) -> Plan:
    request = PlanRequest("bench", "default", "memory", tuple(desired), None)
    return build_plan(request, Connections(KafkaConnection(cluster)), _NoSecrets(), ignore_progress)


def _apply(plan: Plan, cluster: MemoryCluster) -> None:
    from kdeclare.core.provider.registry import OPERATION_TYPES

    OPERATION_TYPES["topic.create"].execute(
        Connections(KafkaConnection(cluster)), plan.operations, _NoSecrets(), validate_only=False
    )


class _NoSecrets:
    def reveal(self, secret: object) -> str:
        """Never called, because the plans have no secrets."""
        raise AssertionError(secret)
