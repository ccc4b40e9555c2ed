"""What a connected cluster has, as rows of `rows.LIVE`.

In part: a resource whose configs cannot be read has its error in place of its body, and the rest is there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from typing import Any

import pyarrow as pa

from kdeclare.cluster.consistent import topics_and_moves
from kdeclare.cluster.port import Cluster, ConfigQuery, Fault
from kdeclare.fleet.bodies import asked_keys
from kdeclare.fleet.encoding import Origin, Row, broker_row, cluster_row, topic_row, unread_row
from kdeclare.fleet.rows import CLUSTER, LIVE
from kdeclare.kinds.broker_config import CLUSTER_DEFAULT
from kdeclare.model.ids import ConfigResource, ConfigScope
from kdeclare.model.live import ClusterInfo, ConfigEntry

ROWS_A_BATCH = 5_000
_TOPICS_AT_ONCE = 5_000
"""Topics whose configs are asked for together: bounds what is held, not the size of a request."""
_EXTRA_REQUESTS = 200
"""How often at most a cluster is asked again to find out which of many topics cannot be read."""
_THREADS = 8
_LOST = ("NETWORK_EXCEPTION", "REQUEST_TIMED_OUT")
"""What is no answer of any broker."""

_Entries = Mapping[str, ConfigEntry]


def live_rows(cluster: Cluster, name: str, labels: Mapping[str, str], now: datetime) -> Iterator[Row]:
    """All that a cluster has: itself, then its topics, then its brokers' configs.

    name, labels: the cluster's in its fleet. now: when this began.
    Raises Fault before the first row, and never after it: what is lost later on is said row by row.
    """
    info = cluster.describe()
    topics, moves = topics_and_moves(cluster, None, None)
    origin = Origin(now, name, info.id, labels)
    yield cluster_row(origin, info, info.version)
    reading = _Topics(cluster)
    names = iter(sorted(topics))
    while part := [ConfigResource(ConfigScope.TOPIC, topic) for topic in islice(names, _TOPICS_AT_ONCE)]:
        for topic, found in reading.configs(part):
            if isinstance(found, Fault):
                yield unread_row(origin, "Topic", topic.name, _unread(found))
            else:
                yield topic_row(origin, topics[topic.name], found, moves)
    for broker, found in _brokers(cluster, info):
        named = broker.name or CLUSTER_DEFAULT
        if isinstance(found, Fault):
            yield unread_row(origin, "BrokerConfig", named, _unread(found))
        else:
            yield broker_row(origin, named, found)


def unreachable_row(name: str, labels: Mapping[str, str], now: datetime, reason: str) -> Row:
    """The one row of a cluster that could not be read."""
    return unread_row(Origin(now, name, None, labels), CLUSTER, name, reason)


def record_batches(rows: Iterable[Row], schema: pa.Schema = LIVE) -> Iterator[pa.RecordBatch]:
    """Rows of one of the tables, a bounded number of them in a batch."""
    rows = iter(rows)
    while part := list(islice(rows, ROWS_A_BATCH)):
        yield pa.RecordBatch.from_pylist([_mapped(row) for row in part], schema)


def _mapped(row: Row) -> dict[str, Any]:
    """As Arrow takes maps."""
    return {**row, "labels": list(row["labels"].items())}


def _query(resource: ConfigResource) -> ConfigQuery:
    return ConfigQuery(resource, asked_keys(resource.scope), overrides=True)


def _brokers(cluster: Cluster, info: ClusterInfo) -> Iterator[tuple[ConfigResource, _Entries | Fault]]:
    """The cluster-wide default and the brokers, together if all of them answer, else each alone."""
    fenced = [ConfigResource(ConfigScope.BROKER, str(b.id)) for b in info.brokers if b.fenced]
    serving = [ConfigResource(ConfigScope.BROKER, str(b.id)) for b in info.brokers if not b.fenced]
    serving.insert(0, ConfigResource(ConfigScope.BROKER, ""))
    together = _asked(cluster, serving)
    alone = [*serving, *fenced] if isinstance(together, Fault) else fenced
    if not isinstance(together, Fault):
        yield from together.items()
    if not alone:
        return
    # at the same time, as one that is down takes long to say so
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="broker") as pool:
        for resource, found in zip(alone, pool.map(lambda r: _asked(cluster, [r]), alone), strict=True):
            if isinstance(found, Fault) or resource in found:
                yield resource, found if isinstance(found, Fault) else found[resource]


def _asked(
    cluster: Cluster, resources: Sequence[ConfigResource]
) -> Mapping[ConfigResource, _Entries] | Fault:
    try:
        return cluster.configs([_query(resource) for resource in resources])
    except Fault as fault:
        return fault


class _Topics:
    """The configs of many topics from a cluster that may refuse some of them.

    lost: why it answers no more, once it does not.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.lost: Fault | None = None
        self._cluster = cluster
        self._patience = _EXTRA_REQUESTS

    def configs(self, topics: Sequence[ConfigResource]) -> Iterator[tuple[ConfigResource, _Entries | Fault]]:
        """What each has, or why that is not known, in order. What is gone meanwhile is left out.

        One refusal fails its whole request, so a request that failed is halved, as often as there is
        patience for it: then all that is left of it counts as refused.
        """
        found = self.lost or _asked(self._cluster, topics)
        if not isinstance(found, Fault):
            yield from ((topic, found[topic]) for topic in topics if topic in found)
        elif found.error in _LOST:
            self.lost = found
            yield from ((topic, found) for topic in topics)
        elif len(topics) > 1 and self._patience > 0:
            self._patience -= 2
            middle = len(topics) // 2
            yield from self.configs(topics[:middle])
            yield from self.configs(topics[middle:])
        else:
            why = found if len(topics) == 1 else _of_many(len(topics), found)
            yield from ((topic, why) for topic in topics)


def _of_many(count: int, fault: Fault) -> Fault:
    return Fault(fault.error, f"at least one of {count} asked for together is refused: {fault.message}")


def _unread(fault: Fault) -> str:
    said = fault.message.strip().rstrip(".") or "no reason given"
    return f"Its configs cannot be read: {said} ({fault.error})."
