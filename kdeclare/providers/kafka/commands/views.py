"""What ad hoc commands show of topics and configs: to people as text, to scripts as it is here."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

from pydantic import Field, PlainSerializer

from kdeclare.core.documents import Diagnostics, Hidden, OneOf, build_document, publish_schemas
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, PartitionCondition


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """One key of one resource."""

    key: str
    value: Annotated[str | None, Field(description="Null where there is none, and where it is sensitive.")]
    source: Annotated[ConfigSource, Field(description="As Kafka's DescribeConfigs has it.")]
    sensitive: bool
    read_only: bool
    beneath: Annotated[
        str | None, Field(description="Of a key set on a broker: what would hold there without it.")
    ]


def _dump_configs(entries: Mapping[str, ConfigEntry] | None) -> tuple[ConfigDocument, ...] | None:
    """Keys by name; a sensitive value is null, as nobody is told it."""
    if entries is None:
        return None
    return tuple(
        build_document(ConfigDocument, entry, key=key, value=None if entry.sensitive else entry.value)
        for key, entry in sorted(entries.items())
    )


_Configs = Annotated[
    Mapping[str, ConfigEntry], PlainSerializer(_dump_configs, return_type=tuple[ConfigDocument, ...])
]
_ConfigsIfKnown = Annotated[
    Mapping[str, ConfigEntry] | None,
    PlainSerializer(_dump_configs, return_type=tuple[ConfigDocument, ...] | None),
]
_Bytes = Annotated[int | None, Field(description="Null where a broker does not say, or there is no leader.")]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of a topic.

    data: None where a broker does not say, or there is no leader to ask. on_disk: also of what is on its way
    into another log directory.
    """

    schema_name = "SizesDocument"

    data: Annotated[_Bytes, Field(description="Of the leaders' replicas.")]
    on_disk: Annotated[_Bytes, Field(description="Of all replicas.")]


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition."""

    schema_name = "PartitionDocument"

    index: Annotated[int, Field(serialization_alias="partition")]
    leader: Annotated[int | None, Field(description="Null where there is none: the partition is offline.")]
    replicas: Annotated[
        tuple[int, ...],
        Field(description="As metadata lists them; during a move the old and the new ones."),
    ]
    isr: Annotated[
        tuple[int, ...],
        Field(
            description="The replicas in sync as their leader sees it; without one, as the last one saw it."
        ),
    ]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    target: Annotated[
        tuple[int, ...], Field(description="Replicas after the move; the first is the preferred leader.")
    ]
    conditions: tuple[PartitionCondition, ...] = ()
    sizes: Annotated[
        tuple[int | None, ...] | None,
        Field(
            description="Bytes of each of replicas, in order, null for one that its broker does not tell; "
            "null as a whole where not asked for."
        ),
    ] = None

    @property
    def data(self) -> int | None:
        """Bytes of the leader's replica; None where it is not known."""
        if self.sizes is None or self.leader not in self.replicas:
            return None
        return self.sizes[self.replicas.index(self.leader)]


@dataclass(frozen=True, slots=True)
class CountsDocument:
    """How many partitions are what; one can be several of these."""

    offline: Annotated[int, Field(description="Partitions without a leader.")]
    under_min_isr: Annotated[
        int, Field(description="0 where configs were not read.", serialization_alias="under-min-isr")
    ]
    under_replicated: Annotated[int, Field(serialization_alias="under-replicated")]
    at_min_isr: Annotated[
        int, Field(description="0 where configs were not read.", serialization_alias="at-min-isr")
    ]
    not_preferred_leader: Annotated[int, Field(serialization_alias="not-preferred-leader")]
    moving: int


def _dump_counts(counts: Mapping[PartitionCondition, int]) -> CountsDocument:
    return CountsDocument(*(counts.get(condition, 0) for condition in PartitionCondition))


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic as a whole.

    topic_id: None where the brokers have none.
    configs: overrides, and ``min.insync.replicas`` wherever it comes from; None where they were not asked
        for or may not be read. overrides: those of them that are set on the topic itself.
    """

    schema_name = "TopicDocument"

    name: str
    topic_id: Annotated[str | None, Field(description="As Kafka's tools write it.")]
    internal: bool
    partition_count: int
    replication_factor: Annotated[int | None, Field(description="Null while partitions differ.")] = field(
        init=False, default=None
    )
    factors: Annotated[
        tuple[int, ...],
        Field(
            description="All there are, sorted. Of a partition that is moving, the one after it.",
            serialization_alias="replication_factors",
        ),
    ]
    counts: Annotated[Mapping[PartitionCondition, int], PlainSerializer(_dump_counts)] = field(
        default_factory=Counter
    )
    overrides: Annotated[_ConfigsIfKnown, Field(description="Null where not asked for, or not readable.")] = (
        field(init=False, default=None)
    )
    sizes: Annotated[Sizes | None, Field(description="Null where not asked for.")] = None
    configs: Hidden[Mapping[str, ConfigEntry] | None] = None

    def __post_init__(self) -> None:
        if len(self.factors) == 1:
            object.__setattr__(self, "replication_factor", self.factors[0])
        if self.configs is not None:
            own_entries = {
                key: entry for key, entry in self.configs.items() if entry.source is ConfigSource.TOPIC
            }
            object.__setattr__(self, "overrides", own_entries)


@dataclass(frozen=True, slots=True)
class TopicListView:
    """The topics of a cluster.

    Sorted by name, or as they were asked for. with_configs, with_sizes: whether these were asked for.
    diagnostics: what could not be read.
    """

    cluster: str
    topics: tuple[TopicView, ...]
    with_configs: Hidden[bool] = False
    with_sizes: Hidden[bool] = False
    diagnostics: Diagnostics = ()


@dataclass(frozen=True, slots=True)
class TopicDetail(TopicView):
    """One topic with its partitions, those that were asked for."""

    schema_name = "TopicDetailDocument"

    configs: Annotated[
        _ConfigsIfKnown,
        Field(description="Overrides, and min.insync.replicas wherever it comes from; null if not readable."),
    ] = None
    partitions: tuple[PartitionView, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicsView:
    """Topics in full.

    only: a topic without any such partition is left out. overridden: only topics with overrides were asked
    for.
    """

    cluster: str
    only: Annotated[
        tuple[PartitionCondition, ...],
        Field(description="Partitions that are any of these were asked for; none: all of them."),
    ]
    of_topics: Annotated[int, Field(serialization_alias="topics_looked_at")]
    of_partitions: Annotated[int, Field(serialization_alias="partitions_looked_at")]
    topics: tuple[TopicDetail, ...]
    overridden: Hidden[bool] = False
    with_sizes: Hidden[bool] = False
    diagnostics: Diagnostics = ()


@dataclass(frozen=True, slots=True)
class ResourceConfigs:
    """Keys of one resource."""

    schema_name = "ResourceConfigsDocument"

    entity_type: Annotated[str, OneOf("topics", "brokers")] = field(init=False, default="topics")
    entity_name: Annotated[str | None, Field(description="Null: the cluster-wide defaults of brokers.")] = (
        field(init=False, default=None)
    )
    resource: Hidden[ConfigResource]
    entries: Annotated[_Configs, Field(serialization_alias="configs")]

    def __post_init__(self) -> None:
        object.__setattr__(self, "entity_name", self.resource.name or None)
        if self.resource.scope is ConfigScope.BROKER:
            object.__setattr__(self, "entity_type", "brokers")


@dataclass(frozen=True, slots=True)
class ConfigsView:
    """Configs of topics or brokers.

    everything: also what is not set on the resource itself was asked for.
    diagnostics: what could not be read.
    """

    cluster: str
    resources: tuple[ResourceConfigs, ...]
    everything: Hidden[bool] = False
    diagnostics: Diagnostics = ()


def build_document_schemas() -> dict[str, dict[str, Any]]:
    """By name; see `publish_schemas`."""
    return publish_schemas(
        {"config-describe": ConfigsView, "topic-describe": TopicsView, "topic-list": TopicListView}
    )
