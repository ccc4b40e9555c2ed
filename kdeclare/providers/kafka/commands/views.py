"""The topics and configs that ad hoc commands show. The JSON output has the structure of these classes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

from pydantic import Field, PlainSerializer

from kdeclare.core.documents import Diagnostics, Hidden, OneOf, build_document, publish_schemas
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.commands.acl.acl_views import AccessView, AclListView
from kdeclare.providers.kafka.commands.clients.client_views import ClientConfigsView
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, PartitionCondition


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """One config key of one resource."""

    key: str
    value: Annotated[str | None, Field(description="Null if the key has no value or a sensitive value.")]
    source: Annotated[ConfigSource, Field(description="The config source, as in Kafka's DescribeConfigs.")]
    sensitive: bool
    read_only: bool
    beneath: Annotated[
        str | None, Field(description="The value that would apply if the key were not set on the broker.")
    ]


def _dump_configs(entries: Mapping[str, ConfigEntry] | None) -> tuple[ConfigDocument, ...] | None:
    """Return one document per config key, sorted by key. Kafka hides sensitive values, so they are None."""
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
_Bytes = Annotated[
    int | None, Field(description="Null if a broker did not report the size or a partition has no leader.")
]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of a topic in bytes.

    data: the size of the leader replicas, or None if a broker did not report its sizes or a partition has no
        leader.
    on_disk: the size of all replicas, including copies that are moving between log directories.
    """

    schema_name = "SizesDocument"

    data: Annotated[_Bytes, Field(description="Size of the leader replicas.")]
    on_disk: Annotated[_Bytes, Field(description="Size of all replicas.")]


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition."""

    schema_name = "PartitionDocument"

    index: Annotated[int, Field(serialization_alias="partition")]
    leader: Annotated[int | None, Field(description="Null if the partition is offline.")]
    replicas: Annotated[
        tuple[int, ...],
        Field(description="The replicas in the metadata; during a move, the old and the new replicas."),
    ]
    isr: Annotated[
        tuple[int, ...],
        Field(
            description="The in-sync replicas according to the leader or, without a leader, the last leader."
        ),
    ]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    target: Annotated[
        tuple[int, ...], Field(description="Replicas after the move, starting with the preferred leader.")
    ]
    conditions: tuple[PartitionCondition, ...] = ()
    sizes: Annotated[
        tuple[int | None, ...] | None,
        Field(
            description="The size of each replica in bytes, in the order of `replicas`; null if its broker "
            "did not report the size. Null instead of a list if sizes were not requested."
        ),
    ] = None

    @property
    def data(self) -> int | None:
        """The size of the leader replica in bytes, or None if unknown."""
        if self.sizes is None or self.leader not in self.replicas:
            return None
        return self.sizes[self.replicas.index(self.leader)]


@dataclass(frozen=True, slots=True)
class CountsDocument:
    """The number of partitions by condition. A partition can have several conditions."""

    offline: Annotated[int, Field(description="Partitions without a leader.")]
    under_min_isr: Annotated[
        int, Field(description="0 if configs were not read.", serialization_alias="under-min-isr")
    ]
    under_replicated: Annotated[int, Field(serialization_alias="under-replicated")]
    at_min_isr: Annotated[
        int, Field(description="0 if configs were not read.", serialization_alias="at-min-isr")
    ]
    not_preferred_leader: Annotated[int, Field(serialization_alias="not-preferred-leader")]
    moving: int


def _dump_counts(counts: Mapping[PartitionCondition, int]) -> CountsDocument:
    return CountsDocument(*(counts.get(condition, 0) for condition in PartitionCondition))


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic without its partitions.

    topic_id: None if the brokers do not support topic ids.
    configs: the overrides, and ``min.insync.replicas`` from any source. None if configs were not requested or
        cannot be read.
    overrides: the configs that are set on the topic itself.
    """

    schema_name = "TopicDocument"

    name: str
    topic_id: Annotated[str | None, Field(description="The topic id in the format of Kafka's tools.")]
    internal: bool
    partition_count: int
    replication_factor: Annotated[
        int | None, Field(description="Null while the partitions have different replication factors.")
    ] = field(init=False, default=None)
    factors: Annotated[
        tuple[int, ...],
        Field(
            description="The distinct replication factors of the partitions after all moves, sorted.",
            serialization_alias="replication_factors",
        ),
    ]
    counts: Annotated[Mapping[PartitionCondition, int], PlainSerializer(_dump_counts)] = field(
        default_factory=Counter
    )
    overrides: Annotated[_ConfigsIfKnown, Field(description="Null if not requested or not readable.")] = (
        field(init=False, default=None)
    )
    sizes: Annotated[Sizes | None, Field(description="Null if not requested.")] = None
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

    The topics are sorted by name, or in the requested order.
    with_configs: whether configs were requested.
    with_sizes: whether sizes were requested.
    diagnostics: messages about data that could not be read.
    """

    cluster: str
    topics: tuple[TopicView, ...]
    with_configs: Hidden[bool] = False
    with_sizes: Hidden[bool] = False
    diagnostics: Diagnostics = ()


@dataclass(frozen=True, slots=True)
class TopicDetail(TopicView):
    """One topic with its requested partitions."""

    schema_name = "TopicDetailDocument"

    configs: Annotated[
        _ConfigsIfKnown,
        Field(description="Overrides, and min.insync.replicas from any source; null if not readable."),
    ] = None
    partitions: tuple[PartitionView, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicsView:
    """Topics with their partitions and configs.

    only: the requested conditions of partitions. Topics without matching partitions are omitted.
    overridden: whether only topics with overrides were requested.
    """

    cluster: str
    only: Annotated[
        tuple[PartitionCondition, ...],
        Field(description="The conditions by which partitions were selected; if empty, all partitions."),
    ]
    of_topics: Annotated[int, Field(serialization_alias="topics_looked_at")]
    of_partitions: Annotated[int, Field(serialization_alias="partitions_looked_at")]
    topics: tuple[TopicDetail, ...]
    overridden: Hidden[bool] = False
    with_sizes: Hidden[bool] = False
    diagnostics: Diagnostics = ()


@dataclass(frozen=True, slots=True)
class ResourceConfigs:
    """The config keys of one resource."""

    schema_name = "ResourceConfigsDocument"

    entity_type: Annotated[str, OneOf(*(scope.entity_type for scope in ConfigScope))] = field(
        init=False, default=ConfigScope.TOPIC.entity_type
    )
    entity_name: Annotated[
        str | None, Field(description="Null for the cluster-wide defaults of brokers.")
    ] = field(init=False, default=None)
    resource: Hidden[ConfigResource]
    entries: Annotated[_Configs, Field(serialization_alias="configs")]

    def __post_init__(self) -> None:
        object.__setattr__(self, "entity_name", self.resource.name or None)
        object.__setattr__(self, "entity_type", self.resource.scope.entity_type)


@dataclass(frozen=True, slots=True)
class ConfigsView:
    """Configs of topics, brokers, groups or client metrics subscriptions.

    everything: whether inherited values were also requested.
    diagnostics: messages about data that could not be read.
    """

    cluster: str
    resources: tuple[ResourceConfigs, ...]
    everything: Hidden[bool] = False
    diagnostics: Diagnostics = ()


def build_document_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas by name; see `publish_schemas`."""
    return publish_schemas(
        {
            "acl-explain": AccessView,
            "acl-list": AclListView,
            "config-describe": ConfigsView,
            "config-describe-clients": ClientConfigsView,
            "topic-describe": TopicsView,
            "topic-list": TopicListView,
        }
    )
