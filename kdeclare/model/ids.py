"""Names of things: resources of a project, and what Kafka knows by type and name."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

_MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True, order=True)
class ResourceId:
    """``Kind/name`` within one cluster."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> "ResourceId":
        """Read ``Kind/name``. Raises ValueError when there is no kind or no name."""
        kind, slash, name = text.partition("/")
        if not (kind and slash and name):
            raise ValueError(f"'{text}' is not of the form KIND/NAME")
        return cls(kind, name)


class ConfigScope(StrEnum):
    """The types of Kafka config resource in use (ConfigResource.Type)."""

    TOPIC = "TOPIC"
    BROKER = "BROKER"


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
