"""Names of things that Kafka knows by type and name."""

from enum import StrEnum
from typing import NamedTuple

from kdeclare.core.resources.ids import ResourceId

_MAX_INT = 2**31 - 1


class ConfigScope(StrEnum):
    """The types of Kafka config resource in use (ConfigResource.Type)."""

    TOPIC = "TOPIC"
    BROKER = "BROKER"

    __hash__ = str.__hash__  # that of enums is written in Python, and every look at configs takes one


class ConfigResource(NamedTuple):
    """What a config belongs to. A BROKER with the empty name is the cluster-wide default."""

    scope: ConfigScope
    name: str


def parse_broker_id(text: str) -> int | None:
    """The broker id that ``text`` is, as Kafka writes it: ASCII digits of an INT32, no leading zero.

    None for anything else, such as ``²`` and ``01``: Kafka would take those for other names, or refuse them.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_MAX_INT))):
        return None
    number = int(text)
    return number if str(number) == text and number <= _MAX_INT else None


def is_topic(resource: ResourceId) -> bool:
    """Whether a resource is itself the topic of its name."""
    return resource.kind == "Topic"


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "TopicPartition":
        """Read ``topic-partition``; the topic itself may hold dashes."""
        topic, _, partition = text.rpartition("-")
        return cls(topic, int(partition))
