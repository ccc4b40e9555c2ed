"""How a partition is, from what metadata and the controller say of it."""

from enum import StrEnum

from kdeclare.providers.kafka.live import Move, Partition


class Condition(StrEnum):
    """What a partition can be that somebody may look for."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under-min-isr"
    UNDER_REPLICATED = "under-replicated"
    AT_MIN_ISR = "at-min-isr"
    NOT_PREFERRED = "not-preferred-leader"
    MOVING = "moving"


def conditions(partition: Partition, move: Move | None, min_isr: int | None) -> tuple[Condition, ...]:
    """All that holds of a partition, in the order of `Condition`.

    move: its ongoing reassignment. Replicas that are only being added are not missed in the ISR yet.
    min_isr: the topic's effective ``min.insync.replicas``; of None, nothing is said about it.
    As `org.apache.kafka.tools.TopicCommand.PartitionDescription` has it; that a leader is preferred is
    judged by the replicas that the partition will have after its move.
    """
    settled = partition.replicas if move is None else move.origin
    target = partition.replicas if move is None else move.target
    leader, in_sync = partition.leader, len(partition.isr)
    found = []
    if leader is None:
        found.append(Condition.OFFLINE)
    if min_isr is not None and (leader is None or in_sync < min_isr):
        found.append(Condition.UNDER_MIN_ISR)
    if in_sync < len(settled):
        found.append(Condition.UNDER_REPLICATED)
    if in_sync == min_isr:
        found.append(Condition.AT_MIN_ISR)
    if leader is not None and target and leader != target[0]:
        found.append(Condition.NOT_PREFERRED)
    if move is not None:
        found.append(Condition.MOVING)
    return tuple(found)
