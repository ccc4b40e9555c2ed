"""Derive the purpose of a topic from its name."""

import re
from enum import StrEnum

from kdeclare.providers.kafka.live import Topic


class TopicPurpose(StrEnum):
    """The system, such as Kafka Connect, that keeps its own data in a topic."""

    KAFKA = "kafka"
    STREAMS = "kafka-streams"
    CONNECT = "kafka-connect"
    MIRROR_MAKER = "mirror-maker"
    SCHEMA_REGISTRY = "schema-registry"

    @property
    def label(self) -> str:
        """The name of the system, as messages show it."""
        return _LABELS[self]


_LABELS = {
    TopicPurpose.KAFKA: "Kafka",
    TopicPurpose.STREAMS: "Kafka Streams",
    TopicPurpose.CONNECT: "Kafka Connect",
    TopicPurpose.MIRROR_MAKER: "MirrorMaker",
    TopicPurpose.SCHEMA_REGISTRY: "Schema Registry",
}

_PATTERNS = (
    (TopicPurpose.KAFKA, r"__(consumer_offsets|transaction_state|share_group_state|remote_log_metadata)"),
    (
        TopicPurpose.STREAMS,
        r".+-(changelog|repartition)|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-[0-9]+-topic",
    ),
    (
        TopicPurpose.MIRROR_MAKER,
        r"mm2-(configs|offsets|status|offset-syncs)\..+\.internal|.+\.checkpoints\.internal|(.+\.)?heartbeats",
    ),
    # The names of these topics are settings of the workers. The pattern matches the usual ones.
    (TopicPurpose.CONNECT, r"(.+[._-])?connect(-.+)?[._-](configs?|offsets?|status(es)?)"),
    (TopicPurpose.SCHEMA_REGISTRY, r"_schemas"),
)
"""Patterns for the names of topics in which other systems keep their own data.

The patterns match the default names, and the names that the systems themselves generate. See
`org.apache.kafka.streams.processor.internals.InternalTopologyBuilder` and
`org.apache.kafka.connect.mirror.DefaultReplicationPolicy`.
"""
_COMPILED = tuple((purpose, re.compile(pattern)) for purpose, pattern in _PATTERNS)


def find_purpose(topic: Topic) -> TopicPurpose | None:
    """Return the system that a topic belongs to, or None if its name does not reveal one."""
    if topic.internal:
        return TopicPurpose.KAFKA
    return next((purpose for purpose, pattern in _COMPILED if pattern.fullmatch(topic.name)), None)
