"""The ids of topics in views: what tells a topic from a later one of the same name (KIP-516)."""

from collections.abc import Iterable

from kdeclare.core.jsontypes import Json
from kdeclare.core.operation_type import IDENTITY
from kdeclare.providers.kafka.live import KafkaState


def identities(topics: Iterable[str], live: KafkaState) -> dict[str, Json]:
    """The part of a view that tells topics from later ones of the same names."""
    found = {name: live.topics.get(name) for name in sorted(set(topics))}
    return {f"{IDENTITY}{name})": topic.topic_id if topic else None for name, topic in found.items()}


def identity_claims(topics: Iterable[str]) -> dict[str, str]:
    """The claims of those elements; no operation produces them."""
    return {f"{IDENTITY}{name})": f"topic-id/{name}" for name in set(topics)}
