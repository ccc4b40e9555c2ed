"""What to observe, so that many resources can be read in one batch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.port import ConfigQuery


@dataclass(frozen=True, slots=True)
class Query:
    """The topics (with their moves) and config keys that something touches.

    every_topic: all of them with their moves, as patterns are about topics that only the cluster knows.
    log_dirs: topics of which also the log directories of the replicas are needed.
    workers: Connect workers, with their overrides and certificates.
    """

    topics: frozenset[str] = frozenset()
    configs: Mapping[ConfigResource, ConfigQuery] = field(default_factory=dict)
    every_topic: bool = False
    log_dirs: frozenset[str] = frozenset()
    workers: frozenset[WorkerGroup] = frozenset()


def merge(queries: Iterable[Query]) -> Query:
    """One query that answers all of them."""
    topics: set[str] = set()
    configs: dict[ConfigResource, ConfigQuery] = {}
    every_topic = False
    log_dirs: set[str] = set()
    workers: set[WorkerGroup] = set()
    for query in queries:
        topics |= query.topics
        log_dirs |= query.log_dirs
        workers |= query.workers
        every_topic = every_topic or query.every_topic
        for resource, wanted in query.configs.items():
            known = configs.get(resource)
            configs[resource] = wanted if known is None else _both(known, wanted)
    return Query(frozenset(topics), configs, every_topic, frozenset(log_dirs), frozenset(workers))


def _both(a: ConfigQuery, b: ConfigQuery) -> ConfigQuery:
    return ConfigQuery(a.resource, a.keys | b.keys, a.overrides or b.overrides, a.optional and b.optional)
