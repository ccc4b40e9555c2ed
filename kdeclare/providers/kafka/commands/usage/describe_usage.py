"""Determine who writes and reads the topics that a command selects, without changing anything."""

from datetime import UTC, datetime

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.progress import Progress
from kdeclare.providers.kafka.commands.topic_selection import (
    is_topic_pattern,
    report_unknown_topic,
    select_named_topics,
)
from kdeclare.providers.kafka.commands.usage.usage_views import UsageView, build_usage_view
from kdeclare.providers.kafka.connection import CONNECTION, KafkaConnection
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.usage.topic_usage import read_usage


def describe_usage(
    workspace: Workspace,
    names: tuple[str, ...],
    progress: Progress,
    *,
    if_exists: bool = False,
    exclude_internal: bool = False,
    unused_for_s: float | None = None,
) -> UsageView:
    """Return who writes and reads the topics. Raises KdeclareError.

    names: exact names and regular expressions (see `topic_selection`). If empty, all topics except Kafka's
        internal ones are selected.
    if_exists: whether to ignore a name that matches no topic.
    exclude_internal: whether to exclude Kafka's internal topics even if a name matches them.
    unused_for_s: see `build_usage_view`.
    """
    with workspace.open_connections({"kafka": CONNECTION}) as connections:
        cluster = connections.get(KafkaConnection).cluster
        topics = _select_topics(cluster, names, if_exists=if_exists)
        if exclude_internal or not names:
            topics = {name: topic for name, topic in topics.items() if not topic.internal}
        read_at = datetime.now(UTC)
        usage = read_usage(cluster, topics, progress)
    return build_usage_view(workspace.cluster_name, read_at, usage, unused_for_s)


def _select_topics(cluster: Cluster, names: tuple[str, ...], *, if_exists: bool) -> dict[str, Topic]:
    has_exact_names = bool(names) and not any(map(is_topic_pattern, names))
    topics = cluster.topics(list(dict.fromkeys(names)) if has_exact_names else None)
    selection = select_named_topics(names, topics.keys())
    if selection.missing and not if_exists:
        existing_names = sorted(cluster.topics() if has_exact_names else topics)
        raise KdeclareError(*(report_unknown_topic(name, existing_names) for name in selection.missing))
    return {name: topics[name] for name in selection.found}
