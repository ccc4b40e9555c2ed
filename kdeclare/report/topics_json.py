"""What scripts read of ``topic list`` and ``topic describe``."""

from typing import Any

from kdeclare.core.diagnostics import in_order
from kdeclare.engine.planning.plan_document import diagnostic_document
from kdeclare.providers.kafka.health import Condition
from kdeclare.report.configs_json import FORMAT_VERSION, config_documents
from kdeclare.report.topic_views import PartitionView, TopicDetail, TopicListView, TopicsView, TopicView


def topic_list_document(view: TopicListView) -> dict[str, Any]:
    """The topics, each as a whole (docs/schemas/topic-list.schema.json)."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": view.cluster,
        "topics": [_topic(topic) for topic in view.topics],
        "diagnostics": [diagnostic_document(d) for d in in_order(view.diagnostics)],
    }


def topics_document(view: TopicsView) -> dict[str, Any]:
    """The topics with their partitions (docs/schemas/topic-describe.schema.json)."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": view.cluster,
        "only": [condition.value for condition in view.only],
        "topics_looked_at": view.of_topics,
        "partitions_looked_at": view.of_partitions,
        "topics": [_detail(detail) for detail in view.topics],
        "diagnostics": [diagnostic_document(d) for d in in_order(view.diagnostics)],
    }


def _topic(topic: TopicView) -> dict[str, Any]:
    overrides, sizes = topic.overrides, topic.sizes
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "internal": topic.internal,
        "partition_count": topic.partitions,
        "replication_factor": topic.factors[0] if len(topic.factors) == 1 else None,
        "replication_factors": list(topic.factors),
        "counts": {condition.value: topic.counts.get(condition, 0) for condition in Condition},
        "overrides": None if overrides is None else config_documents(overrides),
        "sizes": sizes and {"data": sizes.data, "on_disk": sizes.on_disk},
    }


def _detail(detail: TopicDetail) -> dict[str, Any]:
    configs = detail.topic.configs
    return _topic(detail.topic) | {
        "configs": None if configs is None else config_documents(configs),
        "partitions": [_partition(partition) for partition in detail.partitions],
    }


def _partition(partition: PartitionView) -> dict[str, Any]:
    return {
        "partition": partition.index,
        "leader": partition.leader,
        "replicas": partition.replicas,
        "isr": partition.isr,
        "adding": partition.adding,
        "removing": partition.removing,
        "target": partition.target,
        "conditions": [condition.value for condition in partition.conditions],
        "sizes": partition.sizes,
    }
