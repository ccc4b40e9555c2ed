"""The JSON documents of ad hoc commands that only read: what they hold, and how they are made."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.core.diagnostics import in_order
from kdeclare.engine.planning.plan_document import diagnostic_document
from kdeclare.engine.planning.planfile_schema import CLOSED, DiagnosticDocument
from kdeclare.providers.kafka.commands.views import (
    ConfigsView,
    PartitionView,
    TopicDetail,
    TopicListView,
    TopicsView,
    TopicView,
)
from kdeclare.providers.kafka.health import Condition
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry
from kdeclare.report.schemas import schemas_of

Kind = Literal[
    "offline",
    "under-min-isr",
    "under-replicated",
    "at-min-isr",
    "not-preferred-leader",
    "moving",
]
Bytes = Annotated[int | None, Field(description="Null where a broker does not say, or there is no leader.")]


@with_config(CLOSED)
class ConfigDocument(TypedDict):
    """One key of one resource."""

    key: str
    value: Annotated[str | None, Field(description="Null where there is none, and where it is sensitive.")]
    source: Annotated[
        Literal[
            "DYNAMIC_TOPIC_CONFIG",
            "DYNAMIC_BROKER_CONFIG",
            "DYNAMIC_DEFAULT_BROKER_CONFIG",
            "STATIC_BROKER_CONFIG",
            "DEFAULT_CONFIG",
            "DYNAMIC_BROKER_LOGGER_CONFIG",
            "UNKNOWN_CONFIG",
        ],
        Field(description="As Kafka's DescribeConfigs has it."),
    ]
    sensitive: bool
    read_only: bool
    beneath: Annotated[
        str | None, Field(description="Of a key set on a broker: what would hold there without it.")
    ]


@with_config(CLOSED)
class SizesDocument(TypedDict):
    """Bytes of a topic."""

    data: Annotated[Bytes, Field(description="Of the leaders' replicas.")]
    on_disk: Annotated[Bytes, Field(description="Of all replicas.")]


CountsDocument = TypedDict(
    "CountsDocument",
    {
        "offline": Annotated[int, Field(description="Partitions without a leader.")],
        "under-min-isr": Annotated[int, Field(description="0 where configs were not read.")],
        "under-replicated": int,
        "at-min-isr": Annotated[int, Field(description="0 where configs were not read.")],
        "not-preferred-leader": int,
        "moving": int,
    },
)
CountsDocument.__doc__ = "How many partitions are what; one can be several of these."
with_config(CLOSED)(CountsDocument)


@with_config(CLOSED)
class TopicDocument(TypedDict):
    """One topic as a whole."""

    name: str
    topic_id: Annotated[str | None, Field(description="As Kafka's tools write it.")]
    internal: bool
    partition_count: int
    replication_factor: Annotated[int | None, Field(description="Null while partitions differ.")]
    replication_factors: Annotated[
        list[int],
        Field(description="All there are, sorted. Of a partition that is moving, the one after it."),
    ]
    counts: CountsDocument
    overrides: Annotated[
        list[ConfigDocument] | None, Field(description="Null where not asked for, or not readable.")
    ]
    sizes: Annotated[SizesDocument | None, Field(description="Null where not asked for.")]


@with_config(CLOSED)
class PartitionDocument(TypedDict):
    """One partition."""

    partition: int
    leader: Annotated[int | None, Field(description="Null where there is none: the partition is offline.")]
    replicas: Annotated[
        list[int], Field(description="As metadata lists them; during a move the old and the new ones.")
    ]
    isr: Annotated[
        list[int],
        Field(
            description="The replicas in sync as their leader sees it; without one, as the last one saw it."
        ),
    ]
    adding: list[int]
    removing: list[int]
    target: Annotated[
        list[int], Field(description="Replicas after the move; the first is the preferred leader.")
    ]
    conditions: list[Kind]
    sizes: Annotated[
        list[int | None] | None,
        Field(
            description="Bytes of each of replicas, in order, null for one that its broker does not tell; "
            "null as a whole where not asked for."
        ),
    ]


@with_config(CLOSED)
class TopicDetailDocument(TopicDocument):
    """One topic with its partitions, those that were asked for."""

    configs: Annotated[
        list[ConfigDocument] | None,
        Field(description="Overrides, and min.insync.replicas wherever it comes from; null if not readable."),
    ]
    partitions: list[PartitionDocument]


@with_config(CLOSED)
class TopicListDocument(TypedDict):
    """The topics of a cluster."""

    format_version: Literal["1.0"]
    cluster: str
    topics: list[TopicDocument]
    diagnostics: list[DiagnosticDocument]


@with_config(CLOSED)
class TopicDescribeDocument(TypedDict):
    """Topics in full."""

    format_version: Literal["1.0"]
    cluster: str
    only: Annotated[
        list[Kind], Field(description="Partitions that are any of these were asked for; none: all of them.")
    ]
    topics_looked_at: int
    partitions_looked_at: int
    topics: list[TopicDetailDocument]
    diagnostics: list[DiagnosticDocument]


@with_config(CLOSED)
class ResourceConfigsDocument(TypedDict):
    """Keys of one resource."""

    entity_type: Literal["topics", "brokers"]
    entity_name: Annotated[str | None, Field(description="Null: the cluster-wide defaults of brokers.")]
    configs: list[ConfigDocument]


@with_config(CLOSED)
class ConfigDescribeDocument(TypedDict):
    """Configs of topics or brokers."""

    format_version: Literal["1.0"]
    cluster: str
    resources: list[ResourceConfigsDocument]
    diagnostics: list[DiagnosticDocument]


def document_schemas() -> dict[str, dict[str, Any]]:
    """By name; see `schemas_of`."""
    return schemas_of(
        {
            "config-describe": ConfigDescribeDocument,
            "topic-describe": TopicDescribeDocument,
            "topic-list": TopicListDocument,
        }
    )


FORMAT_VERSION = "1.0"
_ENTITY_TYPES: Mapping[ConfigScope, str] = {ConfigScope.TOPIC: "topics", ConfigScope.BROKER: "brokers"}


def configs_document(view: ConfigsView) -> dict[str, Any]:
    """Configs of resources (docs/schemas/config-describe.schema.json)."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": view.cluster,
        "resources": [
            {
                "entity_type": _ENTITY_TYPES[item.resource.scope],
                "entity_name": item.resource.name or None,
                "configs": config_documents(item.entries),
            }
            for item in view.resources
        ],
        "diagnostics": [diagnostic_document(d) for d in in_order(view.diagnostics)],
    }


def config_documents(entries: Mapping[str, ConfigEntry]) -> list[dict[str, Any]]:
    """Keys by name; a sensitive value is null, as nobody is told it."""
    return [
        {
            "key": key,
            "value": None if entry.sensitive else entry.value,
            "source": entry.source.value,
            "sensitive": entry.sensitive,
            "read_only": entry.read_only,
            "beneath": entry.beneath,
        }
        for key, entry in sorted(entries.items())
    ]


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
