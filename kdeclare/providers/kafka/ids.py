"""Identifiers of Kafka objects: config resources, broker ids and topic partitions."""

from enum import StrEnum
from typing import NamedTuple

from kdeclare.core.resources.ids import ResourceId

_MAX_INT = 2**31 - 1


class ConfigScope(StrEnum):
    """The types of Kafka config resources that kdeclare uses (ConfigResource.Type)."""

    TOPIC = "TOPIC"
    BROKER = "BROKER"
    GROUP = "GROUP"
    CLIENT_METRICS = "CLIENT_METRICS"

    @property
    def entity_type(self) -> str:
        """The entity type in Kafka's tools: ``topics``, ``brokers``, ``groups`` or ``client-metrics``."""
        return f"{self.value.lower().replace('_', '-').removesuffix('s')}s"

    @property
    def noun(self) -> str:
        """The name of the type in messages."""
        return self.value.lower().replace("_", " ")

    __hash__ = str.__hash__  # Every config lookup hashes a scope, and Enum.__hash__ is slow.


class ConfigResource(NamedTuple):
    """A Kafka resource that has configs.

    A ``BROKER`` resource with an empty name is the cluster-wide default.
    """

    scope: ConfigScope
    name: str


def parse_broker_id(text: str) -> int | None:
    """Parse a broker id in Kafka's format: ASCII digits of an INT32 without leading zeros.

    Return None for any other string, such as ``²`` or ``01``. Kafka rejects such a string, or treats it as a
    different name: ``01`` is not ``1``.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_MAX_INT))):
        return None
    number = int(text)
    return number if str(number) == text and number <= _MAX_INT else None


def is_topic(resource: ResourceId) -> bool:
    """Return whether the resource is a topic."""
    return resource.kind == "Topic"


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "TopicPartition":
        """Parse ``topic-partition``. The topic name can contain dashes."""
        topic, _, partition = text.rpartition("-")
        return cls(topic, int(partition))
