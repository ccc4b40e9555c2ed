"""Which acknowledged writes brokers do not show yet.

Brokers answer from a copy of the metadata that trails the controller, and apply dynamic configs later still.
"""

from collections.abc import Sequence

from kdeclare.core.faults import Fault
from kdeclare.core.operation_type import View, is_other_object
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.registry import type_of
from kdeclare.core.visibility import PendingWrite
from kdeclare.providers.kafka.client_quota.collector import QUOTAS
from kdeclare.providers.kafka.collector import CLUSTER, select_topics
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.existence import find_existing
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.observe import observe
from kdeclare.providers.kafka.operations.topics import name_topic
from kdeclare.providers.kafka.port import TOPIC_AUTHORIZATION_FAILED
from kdeclare.providers.kafka.selection import KafkaSelection


def find_invisible(connections: Connections, writes: Sequence[PendingWrite]) -> list[PendingWrite]:
    """Return the writes that brokers do not show. Raises Fault when the cluster does not answer."""
    cluster = connections.get(KafkaConnection).cluster
    if writes and cluster.is_caught_up():
        writes = [write for write in writes if _has_broker_configs(write.operation)]
    if not writes:
        return []
    selections = tuple(s for write in writes for s in type_of(write.operation).select(write.operation))
    try:
        live = LiveState(observe(cluster, CLUSTER.merge(selections) or KafkaSelection()))
        quotas = QUOTAS.collect(connections, selections)
        live = live if quotas is None else live.with_part(quotas)
    except Fault as fault:
        if fault.error != TOPIC_AUTHORIZATION_FAILED:
            raise
        # another login wrote them: what this one may not see, it cannot wait for
        hidden = cluster.hidden_topics(sorted(select_topics(selections)))
        return find_invisible(connections, [w for w in writes if hidden.isdisjoint(_topics(w))])
    pending = [write for write in writes if _is_pending(write, live)]
    created = {w.operation.id: name_topic(w.operation) for w in pending if _creates(w.operation)}
    absent = find_existing(cluster, created.values()).absent  # someone else deleted these
    return [write for write in pending if created.get(write.operation.id) not in absent]


def _creates(op: Operation) -> bool:
    return op.verb == "topic.create"


def _topics(write: PendingWrite) -> frozenset[str]:
    return type_of(write.operation).find_subjects(write.operation)


def _has_broker_configs(op: Operation) -> bool:
    """Whether it changes configs that brokers apply later than the rest of the metadata."""
    asked = CLUSTER.merge(type_of(op).select(op))
    return asked is not None and any(resource.scope is ConfigScope.BROKER for resource in asked.configs)


def _is_pending(write: PendingWrite, live: LiveState) -> bool:
    """Whether something is still as before; what is neither as before nor as written, others changed."""
    op = write.operation
    now, after = type_of(op).view(op, live), type_of(op).expected_state(op)
    if is_other_object(op, now):
        return False
    return any(
        element in after and now.get(element) != after[element] and _is_as_before(op, element, now)
        for element in write.elements
    )


def _is_as_before(op: Operation, element: str, now: View) -> bool:
    """Whether it was so before; what takes throttles away expects nothing, and takes away all it finds."""
    return element not in op.expect or bool(now.get(element) == op.expect[element])
