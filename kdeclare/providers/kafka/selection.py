"""What to read of a Kafka cluster, so that many resources can be read in one batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.port import ConfigQuery


@dataclass(frozen=True, slots=True)
class KafkaSelection:
    """The topics (with their moves) and config keys that something touches.

    every_topic: all of them with their moves, as patterns are about topics that only the cluster knows.
    log_dirs: topics of which also the log directories of the replicas are needed.
    """

    topics: frozenset[str] = frozenset()
    configs: Mapping[ConfigResource, ConfigQuery] = field(default_factory=dict)
    every_topic: bool = False
    log_dirs: frozenset[str] = frozenset()

    def merge(self, others: Sequence["KafkaSelection"]) -> "KafkaSelection":
        """See `core.collector.Selection`."""
        topics: set[str] = set()
        configs: dict[ConfigResource, ConfigQuery] = {}
        log_dirs: set[str] = set()
        for selection in (self, *others):
            topics |= selection.topics
            log_dirs |= selection.log_dirs
            for resource, query in selection.configs.items():
                earlier = configs.get(resource)
                configs[resource] = query if earlier is None else _merge_queries(earlier, query)
        every_topic = self.every_topic or any(other.every_topic for other in others)
        return KafkaSelection(frozenset(topics), configs, every_topic, frozenset(log_dirs))


def _merge_queries(a: ConfigQuery, b: ConfigQuery) -> ConfigQuery:
    return ConfigQuery(a.resource, a.keys | b.keys, a.overrides or b.overrides, a.optional and b.optional)
