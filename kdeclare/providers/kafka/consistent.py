"""Reading what takes more than one request as it was at one time, as far as Kafka lets."""

from collections.abc import Mapping, Sequence

from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move, Topic
from kdeclare.providers.kafka.port import Cluster


def topics_and_moves(
    cluster: Cluster, names: Sequence[str] | None, among: Sequence[str] | None
) -> tuple[Mapping[str, Topic], Mapping[TopicPartition, Move]]:
    """Topics, and the moves under way; None is all of them, and of no topics nothing is asked.

    names: the topics to read. among: those whose moves to read, which `names` should have as well.
    Moves before and after: what ended in between left a union in the topics, so those are read again.
    KIP-860 shows that no order of the two reads is free of races; the guard of a request is what holds.
    Raises Fault when the cluster does not answer.
    """
    asks = among is None or len(among) > 0
    before = cluster.moves(among) if asks else {}
    topics = cluster.topics(names)
    moves = cluster.moves(among) if asks else {}
    ended = sorted({partition.topic for partition in before if partition not in moves})
    if ended:
        topics = {**topics, **cluster.topics(ended)}
    return topics, moves
