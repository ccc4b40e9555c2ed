"""A Kafka cluster, a store and the engine between them, without files or a command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.policy_gate import PolicyGate
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.evaluation import ProjectPolicyGate
from kdeclare.providers.connect.client.connectors_port import ConnectCluster
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.plan_options import KafkaPlanOptions
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.testing import world
from kdeclare.testing.world import Secrets, TestClock, declare
from kdeclare.testing.world import report_nothing as nothing
from kdeclare.testing.world import require_consistent as consistent
from kdeclare.testing.world import seal_desired as sealed
from tests.connections import connections_to

__all__ = ["Secrets", "TestClock", "World", "consistent", "desired", "nothing", "sealed", "topic"]


def desired(kind: str, name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> DesiredResource:
    """Build a declared resource as the loader would; the spec must be valid."""
    return declare(kind, name, spec, labels)


def topic(name: str, **spec: Any) -> DesiredResource:
    """Build a declared topic."""
    return desired("Topic", name, **spec)


@dataclass
class World(world.World):
    """A project's engine with an in-memory cluster.

    workers: Connect workers by their URLs. connect_clusters: Connect clusters by name.
    """

    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    workers: dict[tuple[str, ...], ConnectWorkers] = field(default_factory=dict, kw_only=True)
    connect_clusters: dict[str, ConnectCluster] = field(default_factory=dict, kw_only=True)
    pace: Pace = field(default_factory=Pace, kw_only=True)
    policies: tuple[ConfiguredPolicy, ...] = field(default=(), kw_only=True)

    def connect(self) -> Connections:
        """Return connections to the current cluster."""
        return connections_to(self.cluster, self.workers, self.connect_clusters)

    def find_policy_gate(self) -> PolicyGate:
        """Return the policies of the project."""
        return ProjectPolicyGate(self.policies)

    def plan_rollback(
        self,
        run_id: str | None = None,
        *,
        delete_by_name: bool = False,
        allow_acl_lockout: bool = False,
        **options: Any,
    ) -> Plan:
        """Plan the rollback of a run (default: the last one)."""
        kafka = KafkaPlanOptions(delete_by_name=delete_by_name, allow_acl_lockout=allow_acl_lockout)
        return super().plan_rollback(run_id, options=PlanOptions(kafka, self.pace), **options)

    def overrides(self, name: str) -> dict[str, str]:
        """Return the overrides of a topic."""
        found: dict[str, str] = self.cluster.overrides(ConfigResource(ConfigScope.TOPIC, name))
        return found

    def set(self, name: str, **values: str) -> None:
        """Set configs on a topic as another client; underscores represent dots."""
        resource = ConfigResource(ConfigScope.TOPIC, name)
        given = {key.replace("_", "."): value for key, value in values.items()}
        self.cluster.set_overrides(resource, {**self.overrides(name), **given})

    def _build_request(self, declared: Sequence[DesiredResource], scope: PlanScope) -> PlanRequest:
        return super()._build_request(declared, replace(scope, options=scope.options.with_part(self.pace)))
