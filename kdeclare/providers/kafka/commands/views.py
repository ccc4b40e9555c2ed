"""What ad hoc commands show of topics and configs, as plain data."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.providers.kafka.health import Condition
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of a topic; None where a broker does not say, or there is no leader to ask.

    data: of the leaders' replicas, which is what the topic holds. on_disk: of all replicas, those that are
    on their way into another log directory too.
    """

    data: int | None
    on_disk: int | None


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition.

    replicas: as metadata lists them: during a move the union of old and new.
    isr: who is in sync, in the leader's view; without a leader, in that of the last one.
    adding, removing: of an ongoing move. target: the replicas after it; the first is the preferred leader.
    sizes: bytes of each of ``replicas`` in order, None for one that is not known; None where not asked for.
    """

    index: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    target: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    conditions: tuple[Condition, ...] = ()
    sizes: tuple[int | None, ...] | None = None

    @property
    def data(self) -> int | None:
        """Bytes of the leader's replica; None where it is not known."""
        if self.sizes is None or self.leader not in self.replicas:
            return None
        return self.sizes[self.replicas.index(self.leader)]


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic as a whole.

    topic_id: as Kafka's tools write it; None where the brokers have none.
    partitions: how many. factors: their numbers of replicas, sorted; several while they differ. Of a
        partition that is moving, it is the number after the move.
    counts: how many partitions are what.
    configs: overrides, and ``min.insync.replicas`` wherever it comes from; None where they were not asked
        for or may not be read.
    sizes: None where they were not asked for.
    """

    name: str
    topic_id: str | None
    internal: bool
    partitions: int
    factors: tuple[int, ...]
    counts: Mapping[Condition, int] = field(default_factory=Counter)
    configs: Mapping[str, ConfigEntry] | None = None
    sizes: Sizes | None = None

    @property
    def overrides(self) -> Mapping[str, ConfigEntry] | None:
        """What is set on the topic itself; None where that is not known."""
        if self.configs is None:
            return None
        return {key: entry for key, entry in self.configs.items() if entry.source is ConfigSource.TOPIC}


@dataclass(frozen=True, slots=True)
class TopicListView:
    """Topics of a cluster, sorted by name or as they were asked for.

    with_configs, with_sizes: whether these were asked for.
    diagnostics: what could not be read.
    """

    cluster: str
    topics: tuple[TopicView, ...]
    with_configs: bool = False
    with_sizes: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicDetail:
    """One topic with its partitions, those that were asked for."""

    topic: TopicView
    partitions: tuple[PartitionView, ...]


@dataclass(frozen=True, slots=True)
class TopicsView:
    """Topics in full.

    only: what partitions were asked for; empty is all of them. A topic without any is left out.
    overridden: only topics with overrides were asked for.
    of_topics, of_partitions: how many were looked at.
    """

    cluster: str
    topics: tuple[TopicDetail, ...]
    of_topics: int
    of_partitions: int
    only: tuple[Condition, ...] = ()
    overridden: bool = False
    with_sizes: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceConfigs:
    """Keys of one resource, sorted."""

    resource: ConfigResource
    entries: Mapping[str, ConfigEntry]


@dataclass(frozen=True, slots=True)
class ConfigsView:
    """Configs of several resources.

    everything: also what is not set on the resource itself was asked for.
    diagnostics: what could not be read.
    """

    cluster: str
    resources: tuple[ResourceConfigs, ...]
    everything: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
