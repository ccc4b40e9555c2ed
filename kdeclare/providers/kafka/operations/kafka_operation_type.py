"""What all operation types on a Kafka cluster have in common."""

from kdeclare.core.faults import Explanation, Fault, FaultCause
from kdeclare.core.footprint import Access, Footprint, Touch
from kdeclare.core.ids import ResourceId
from kdeclare.core.operation_type import OperationType
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.collector import select_topics
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.port import POLICY_VIOLATION, QUOTA_EXCEEDED, QUOTA_HINT, TOPIC_EXISTS
from kdeclare.providers.kafka.topic_effects import find_effects

_CAUSES = {
    POLICY_VIOLATION: FaultCause.DENIED_BY_POLICY,
    TOPIC_EXISTS: FaultCause.EXISTS,
    # also what an increase to fewer partitions answers, which the view then tells apart
    "INVALID_PARTITIONS": FaultCause.DONE_ALREADY,
    "UNKNOWN_TOPIC_OR_PARTITION": FaultCause.GONE_ALREADY,
}


TOPIC = "Topic"
"""The sort of topics in footprints; their keys are their names."""


class KafkaOperationType(OperationType):
    """An operation on a Kafka cluster.

    has_timeout: whether its request says for how long the brokers may work on it.
    """

    is_shown_late = True
    has_timeout: bool = False

    def find_right(self, op: Operation) -> str:
        """Return the right of Kafka's ACLs that it needs, and on what; empty where nothing asks."""
        return ""

    def footprint(self, op: Operation) -> Footprint:
        """The topics that it looks at, which must exist."""
        return [Touch(TOPIC, topic, Access.UPDATE) for topic in sorted(self.find_subjects(op))]

    def find_deadline_s(self, connections: Connections) -> float | None:
        """See `core.operation_type`."""
        return connections.get(KafkaConnection).cluster.deadline_s() if self.has_timeout else None

    def find_subjects(self, op: Operation) -> frozenset[str]:
        """The topics that it looks at."""
        return select_topics(self.select(op))

    def find_changed(self, op: Operation) -> frozenset[ResourceId]:
        """The topics that it changes."""
        return frozenset(ResourceId("Topic", topic) for topic in find_effects(op))

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """By the name of Kafka's error (`org.apache.kafka.common.protocol.Errors`)."""
        if fault.error.endswith("AUTHORIZATION_FAILED"):
            return Explanation(FaultCause.NOT_AUTHORIZED, self.find_right(op))
        if fault.error == QUOTA_EXCEEDED:
            return Explanation(FaultCause.OVER_QUOTA, hint=QUOTA_HINT)
        return Explanation(_CAUSES.get(fault.error, FaultCause.OTHER))
