"""Read the client quotas of a Kafka cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Collector, CollectResult, ExpectedObjects
from kdeclare.core.live.faults import Fault, UnsupportedFault
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.client_quota.entity import LiveLimit, QuotaEntity, to_plan_limit
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.error_names import (
    CLUSTER_AUTHORIZATION_FAILED,
    UNAVAILABLE,
    UNSUPPORTED_VERSION,
)


@dataclass(frozen=True, slots=True)
class QuotaSelection:
    """The quota entities whose limits a plan needs."""

    entities: frozenset[QuotaEntity] = frozenset()

    def merge(self, others: Sequence["QuotaSelection"]) -> "QuotaSelection":
        """See `Selection`."""
        return QuotaSelection(self.entities.union(*(other.entities for other in others)))


@dataclass(frozen=True, slots=True)
class QuotaState:
    """The limits by quota entity and quota key. Entities without limits are not included.

    fault: why the limits cannot be read; None if they can be read. If there is a fault, ``limits`` is empty.
    """

    limits: Mapping[QuotaEntity, Mapping[str, LiveLimit]] = field(default_factory=dict)
    fault: Fault | None = None

    @property
    def is_visible(self) -> bool:
        """Whether the limits can be read."""
        return self.fault is None

    def of(self, entity: QuotaEntity) -> Mapping[str, LiveLimit]:
        """Return the limits of one entity. The mapping is empty if the entity has no limits."""
        return self.limits.get(entity, {})


def _collect(connections: Connections, selection: QuotaSelection) -> QuotaState:
    return read_quotas(connections, sorted(selection.entities, key=lambda entity: entity.key))


def _collect_expected(
    connections: Connections, selection: QuotaSelection, expected: ExpectedObjects
) -> CollectResult:
    """Read the selected quotas, or all quotas if the plan counts unmanaged objects."""
    if expected.reads_all_names:
        return CollectResult(read_quotas(connections))
    return CollectResult(_collect(connections, selection))


def read_quotas(connections: Connections, entities: Sequence[QuotaEntity] | None = None) -> QuotaState:
    """Return the limits of these entities, or of all entities if ``entities`` is None. Raises Fault."""
    try:
        limits_by_entity = connections.get(KafkaConnection).cluster.quotas(entities)
    except Fault as fault:
        if fault.error not in UNAVAILABLE:
            raise
        return QuotaState(fault=fault)
    return QuotaState(
        {
            entity: {key: to_plan_limit(value) for key, value in limits.items()}
            for entity, limits in limits_by_entity.items()
        }
    )


def require_visible(state: QuotaState) -> QuotaState:
    """Return ``state``. Raises Fault if the limits cannot be read."""
    if state.fault is not None and state.fault.error == UNSUPPORTED_VERSION:
        raise UnsupportedFault(UNSUPPORTED_VERSION, "the brokers do not support client quotas")
    if not state.is_visible:
        reason = "reading quotas requires the DescribeConfigs permission on the cluster"
        raise Fault(CLUSTER_AUTHORIZATION_FAILED, reason)
    return state


QUOTAS = Collector(QuotaSelection, _collect, read_expected=_collect_expected)
"""The collector of quotas. A plan without quotas needs no permission to read quotas."""
