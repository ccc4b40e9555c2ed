"""List the topics that no group reads and no client writes to, as ``kdeclare usage --unused`` does."""

from collections.abc import Iterator
from datetime import UTC, datetime

from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.live.unused_objects import UnusedListing, UnusedObject
from kdeclare.core.progress import ignore_progress
from kdeclare.core.units import format_count, format_size
from kdeclare.providers.kafka.fleet.facts import TOPIC
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.usage.topic_usage import (
    ClusterUsage,
    TopicUsage,
    Unknown,
    explain_unknown_groups,
    get_known,
    read_usage,
)

_HIDDEN_GROUPS = "groups may be hidden from kdeclare, because it lacks the Describe permission on the cluster"


def list_unused_topics(cluster: Cluster, unused_for_s: float, read_at: datetime) -> UnusedListing:
    """Return the unused topics. Raises Fault.

    Internal topics, and topics whose names show that another system uses them, are never reported as unused.
    If the principal cannot see all groups, kdeclare cannot be certain that a topic is unused.
    """
    topics = {name: topic for name, topic in sorted(cluster.topics().items()) if not topic.internal}
    usage = read_usage(cluster, topics, ignore_progress)
    since_ms = int((read_at.timestamp() - unused_for_s) * 1000)
    unused: list[UnusedObject] = []
    undetermined: dict[str, list[LiveKey]] = {}
    for topic in usage.topics:
        if topic.purpose is not None:
            continue
        answer = topic.check_unused(since_ms)
        if answer is True and not usage.all_groups_visible:
            answer = Unknown(_HIDDEN_GROUPS)
        key = LiveKey(TOPIC, topic.name)
        if isinstance(answer, Unknown):
            undetermined.setdefault(answer.reason, []).append(key)
        elif answer:
            unused.append(_build_object(key, topic))
    return UnusedListing(unused, undetermined, tuple(_list_warnings(usage)))


def _list_warnings(usage: ClusterUsage) -> Iterator[str]:
    if usage.unknown_groups:
        yield f"Topics that are reported as unused may be in use: {explain_unknown_groups(usage)}."


def _build_object(key: LiveKey, topic: TopicUsage) -> UnusedObject:
    readers = 0 if isinstance(topic.groups, Unknown) else len(topic.groups)
    return UnusedObject(
        key,
        " ".join(_describe(topic, readers)),
        get_known(topic.records),
        get_known(topic.size),
        get_known(topic.newest_ms),
        readers,
    )


def _describe(topic: TopicUsage, readers: int) -> Iterator[str]:
    yield "No group has members that read the topic."
    records, size, newest_ms = map(get_known, (topic.records, topic.size, topic.newest_ms))
    if newest_ms is None:
        yield "No record was ever written to the topic."
    else:
        day = datetime.fromtimestamp(newest_ms / 1000, UTC).date()
        yield f"{_name_newest_record(records, size)} is from {day}."
    if readers:
        verb = "has" if readers == 1 else "have"
        yield f"{format_count(readers, 'group')} {verb} committed offsets for the topic."


def _name_newest_record(records: int | None, size: int | None) -> str:
    """Return the subject of a sentence about the newest record of a topic.

    records, size: how many records and bytes the topic contains; None if unknown.
    """
    of_size = "" if size is None else f" ({format_size(size)})"
    if records == 1:
        return f"The topic's only record{of_size}"
    if records is not None:
        return f"The newest of the topic's {format_count(records, 'record')}{of_size}"
    return f"The newest of the topic's records{of_size}" if of_size else "The topic's newest record"
