"""What to observe, so that many resources can be read in one batch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kdeclare.cluster.port import ConfigQuery
from kdeclare.model.ids import ConfigResource


@dataclass(frozen=True, slots=True)
class Query:
    """The topics (with their moves) and config keys that something touches."""

    topics: frozenset[str] = frozenset()
    configs: Mapping[ConfigResource, ConfigQuery] = field(default_factory=dict)


def merge(queries: Iterable[Query]) -> Query:
    """One query that answers all of them."""
    topics: set[str] = set()
    configs: dict[ConfigResource, ConfigQuery] = {}
    for query in queries:
        topics |= query.topics
        for resource, wanted in query.configs.items():
            known = configs.get(resource)
            configs[resource] = wanted if known is None else _both(known, wanted)
    return Query(frozenset(topics), configs)


def _both(a: ConfigQuery, b: ConfigQuery) -> ConfigQuery:
    return ConfigQuery(a.resource, a.keys | b.keys, a.overrides or b.overrides)
