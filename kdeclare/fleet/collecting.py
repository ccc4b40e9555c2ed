"""What a connected cluster has, as rows of `rows.LIVE`.

In part: a resource whose configs cannot be read has its error in place of its body, and the rest is there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import pyarrow as pa

from kdeclare.core.faults import Fault
from kdeclare.fleet.bodies import asked_keys
from kdeclare.fleet.encoding import Origin, Row, broker_row, cluster_row, topic_row, unread_row
from kdeclare.fleet.rows import CLUSTER, LIVE
from kdeclare.providers.kafka.broker_config import CLUSTER_DEFAULT
from kdeclare.providers.kafka.consistent import topics_and_moves
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.port import Cluster, ConfigQuery, Configs

ROWS_A_BATCH = 5_000
_AT_ONCE = 5_000
"""Resources whose configs are asked for together: bounds what is held, not the size of a request."""
_LOST = ("NETWORK_EXCEPTION", "REQUEST_TIMED_OUT")
"""What is no answer of any broker."""


def live_rows(cluster: Cluster, name: str, labels: Mapping[str, str], now: datetime) -> Iterator[Row]:
    """All that a cluster has: itself, then its topics, then its brokers' configs.

    name, labels: the cluster's in its fleet. now: when this began.
    Raises Fault before the first row, and never after it: what is lost later on is said row by row.
    """
    info = cluster.describe()
    topics, moves = topics_and_moves(cluster, None, None)
    origin = Origin(now, name, info.id, labels)
    yield cluster_row(origin, info, info.version)
    for topic, found in _configs(cluster, (ConfigResource(ConfigScope.TOPIC, n) for n in sorted(topics))):
        if isinstance(found, Fault):
            yield unread_row(origin, "Topic", topic.name, _unread(found))
        else:
            yield topic_row(origin, topics[topic.name], found, moves)
    names = ["", *(str(broker.id) for broker in info.brokers)]
    for broker, found in _configs(cluster, (ConfigResource(ConfigScope.BROKER, name) for name in names)):
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


def _configs(
    cluster: Cluster, resources: Iterable[ConfigResource]
) -> Iterator[tuple[ConfigResource, Configs | Fault]]:
    """What each has, or why that is not known, in order. What is gone meanwhile is left out.

    A cluster that answers no more is not asked on and on.
    """
    lost: Fault | None = None
    resources = iter(resources)
    while part := list(islice(resources, _AT_ONCE)):
        found = lost or _asked(cluster, part)
        if isinstance(found, Fault):
            lost = found if found.error in _LOST else None
            yield from ((resource, found) for resource in part)
        else:
            yield from ((resource, found[resource]) for resource in part if resource in found)


def _asked(
    cluster: Cluster, resources: Sequence[ConfigResource]
) -> Mapping[ConfigResource, Configs | Fault] | Fault:
    queries = [ConfigQuery(item, asked_keys(item.scope), overrides=True) for item in resources]
    try:
        return cluster.configs_in_part(queries)
    except Fault as fault:
        return fault


def _unread(fault: Fault) -> str:
    said = fault.message.strip().rstrip(".") or "no reason given"
    return f"Its configs cannot be read: {said} ({fault.error})."
