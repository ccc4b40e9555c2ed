"""What the names of Kafka's errors mean for operations."""

from kdeclare.core.faults import Explanation, Fault, FaultCause
from kdeclare.providers.kafka.port import POLICY_VIOLATION, QUOTA_EXCEEDED, QUOTA_HINT, TOPIC_EXISTS

_CAUSES = {
    POLICY_VIOLATION: FaultCause.DENIED_BY_POLICY,
    TOPIC_EXISTS: FaultCause.EXISTS,
    # also what an increase to fewer partitions answers, which the view then tells apart
    "INVALID_PARTITIONS": FaultCause.DONE_ALREADY,
    "UNKNOWN_TOPIC_OR_PARTITION": FaultCause.GONE_ALREADY,
}


def explain_fault(fault: Fault, right: str = "") -> Explanation:
    """Return what one of Kafka's errors means (`org.apache.kafka.common.protocol.Errors`).

    right: what the operation takes of Kafka's ACLs, and on what; for those that are checked while planning.
    """
    if fault.error.endswith("AUTHORIZATION_FAILED"):
        return Explanation(FaultCause.NOT_AUTHORIZED, right)
    if fault.error == QUOTA_EXCEEDED:
        return Explanation(FaultCause.OVER_QUOTA, hint=QUOTA_HINT)
    return Explanation(_CAUSES.get(fault.error, FaultCause.OTHER))
