"""What the cluster has of the topics that a command names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kdeclare.core.diagnostics import Diagnostic, Place
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.topic_selection import chosen, is_pattern, not_there


@dataclass(frozen=True, slots=True)
class There:
    """topics: at least those that are meant and there. names: all there are, where some is missing."""

    topics: Mapping[str, Topic]
    names: frozenset[str] = frozenset()

    def meant(self, text: str) -> tuple[str, ...]:
        """The topics that a name or an expression stands for; what stands for none, for itself."""
        return chosen([text], self.topics.keys()).found or (text,)

    def missing(self, text: str, place: Place | None = None) -> Diagnostic:
        """What to say of a name that stands for no topic."""
        return replace(not_there(text, self.names), place=place, resource=f"Topic/{text}")


def look_for(cluster: Cluster, texts: Sequence[str]) -> There:
    """Look for what is named. Raises KdeclareError for what is no regular expression, and Fault."""
    everything = any(map(is_pattern, texts))
    topics = cluster.topics(None if everything else list(dict.fromkeys(texts)))
    missing = chosen(texts, topics.keys()).missing
    if not missing:
        return There(topics)
    return There(topics, frozenset(topics if everything else cluster.topics()))
