"""The data about declared topics and configs for policies that are evaluated without a cluster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, partial
from operator import attrgetter
from typing import NoReturn

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.policies.policy_request import OfflineRequest, UnavailableOffline, UnavailableTracker
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.providers.kafka.config.catalog import Catalog, load_catalog
from kdeclare.providers.kafka.config.config_value import ConfigValue, ListPatch, Unset, join_elements
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource
from kdeclare.providers.kafka.operations.kafka_operation_type import StaticTopicState

_TYPES = {"LIST": list, "BOOLEAN": bool, "STRING": str, "PASSWORD": str, "CLASS": str}


def list_key_types(catalog: Catalog) -> Mapping[str, type]:
    """Return the Python type of each config key. Keys whose config type is not in `_TYPES` are numeric."""
    return {key: _TYPES.get(info.type, float) for key, info in catalog.keys.items()}


def compute_override(catalog: Catalog, key: str, config_value: ConfigValue) -> str | None:
    """Return the override that a declared value creates for an unset key; None if it creates no override.

    APPEND and SUBTRACT start from the default value of the key (KIP-339).
    """
    if isinstance(config_value, Unset | Secret):
        return None
    if not isinstance(config_value, ListPatch):
        return join_elements(config_value.value)
    start = [e for e in catalog.get_default_elements(key) if e not in config_value.subtract]
    return join_elements([*start, *(e for e in config_value.append if e not in start)])


def compute_overrides(catalog: Catalog, config_values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the overrides that declared configs create for a resource without overrides."""
    values = {
        key: "" if isinstance(w, Secret) else compute_override(catalog, key, w)
        for key, w in config_values.items()
    }
    return {key: value for key, value in values.items() if value is not None}


def filter_overrides(entries: Mapping[str, ConfigEntry], source: ConfigSource) -> dict[str, str]:
    """Return the values of the config entries that have the given source, by key."""
    return {key: entry.value or "" for key, entry in entries.items() if entry.source is source}


@cache
def list_scope_key_types(scope: ConfigScope) -> Mapping[str, type]:
    """Return the Python type of each config key of a scope."""
    return list_key_types(load_catalog(scope))


TOPIC_WORDS = PolicyWords(
    fields={
        "partitions": PolicyField(int, attrgetter("num_partitions")),
        "replicationFactor": PolicyField(int, attrgetter("replication_factor")),
        "assignments": PolicyField(
            dict[int, list[int]], attrgetter("replicas_assignments"), elements="partitions"
        ),
        "configs": PolicyField(
            dict[str, str], attrgetter("configs"), partial(list_scope_key_types, ConfigScope.TOPIC)
        ),
    },
    subject="topic",
    before="pre",
    after="post",
    impact={
        "records": PolicyField(int, attrgetter("records")),
        "bytes": PolicyField(int, attrgetter("bytes")),
        "deletedRecords": PolicyField(int, attrgetter("deleted_records")),
        "deletedBytes": PolicyField(int, attrgetter("deleted_bytes")),
        "unreadRecords": PolicyField(int, attrgetter("unread_records")),
        "unreadGroups": PolicyField(list[str], attrgetter("unread_groups")),
        "activeConsumers": PolicyField(int, attrgetter("active_consumers")),
        "activeGroups": PolicyField(list[str], attrgetter("active_groups")),
        "activeProducers": PolicyField(int, attrgetter("active_producers")),
        "lastWriteMs": PolicyField(int, attrgetter("last_write_ms"), nullable=True),
    },
)

BROKER_WORDS = PolicyWords(
    {"configs": PolicyField(dict[str, str], keys=partial(list_scope_key_types, ConfigScope.BROKER))}
)


class _CertainOverrides(Mapping[str, str]):
    """The declared overrides that do not depend on the live overrides of an existing topic."""

    def __init__(self, static_state: StaticTopicState, withholding: UnavailableTracker) -> None:
        self._static_state = static_state
        self._withholding = withholding

    def __getitem__(self, key: str) -> str:
        if key not in self._static_state.effect.configs or key in self._static_state.open:
            self._withhold()
        value = self._static_state.effect.configs[key]
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[str]:
        self._withhold()

    def __len__(self) -> int:
        self._withhold()

    def _withhold(self) -> NoReturn:
        self._withholding.withhold(UnavailableOffline())


@dataclass(frozen=True, slots=True)
class DeclaredTopicState:
    """A declared topic without its live state.

    created: whether the topic is assumed to be new. If not, only values that do not depend on the live topic
        are available.
    """

    stated: StaticTopicState
    created: bool
    withholding: UnavailableTracker

    @property
    def num_partitions(self) -> int:
        """The declared number of partitions. It is unavailable if the manifest does not declare a number."""
        count = self.stated.effect.partitions
        return self._withhold() if count is None else count

    @property
    def replication_factor(self) -> int:
        """The declared replication factor. It is unavailable if the manifest does not declare a factor."""
        factor = self.stated.effect.factor
        return self._withhold() if factor is None else factor

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """The declared replicas, or an empty mapping if Kafka chooses the replicas of a new topic.

        The replicas are unavailable if kdeclare chooses them, or if no replicas are declared and the topic
        may already exist.
        """
        is_left_to_kafka = self.created and not self.stated.placed
        replicas = self.stated.effect.replicas
        return dict(replicas) if replicas or is_left_to_kafka else self._withhold()

    @property
    def configs(self) -> Mapping[str, str]:
        """The overrides of the topic.

        For a topic that may already exist, only the overrides that do not depend on its live state are
        available.
        """
        if not self.created:
            return _CertainOverrides(self.stated, self.withholding)
        return {key: value for key, value in self.stated.effect.configs.items() if value is not None}

    def _withhold(self) -> NoReturn:
        self.withholding.withhold(UnavailableOffline())


@dataclass(frozen=True, slots=True)
class NewTopicImpact:
    """The impact of a request that creates a topic; see `PolicyWords.impact`."""

    records: int = 0
    bytes: int = 0
    deleted_records: int = 0
    deleted_bytes: int = 0
    unread_records: int = 0
    unread_groups: Sequence[str] = ()
    active_consumers: int = 0
    active_groups: Sequence[str] = ()
    active_producers: int = 0
    last_write_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DeclaredTopicRequest(OfflineRequest):
    """The request that policies evaluate for a manifest before it is applied.

    declared_labels: the labels in the manifest.
    created: whether the topic is assumed to be new.
    withholding: collects the data that the policy requested but that is unavailable without a cluster.
    """

    topic: str
    declared_labels: Mapping[str, str]
    stated: StaticTopicState
    created: bool = False
    withholding: UnavailableTracker = field(default_factory=UnavailableTracker, compare=False)

    @property
    def name(self) -> str:
        """The name of the topic."""
        return self.topic

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the manifest."""
        return dict(self.declared_labels)

    @property
    def post_request_state(self) -> DeclaredTopicState:
        """The declared topic."""
        return DeclaredTopicState(self.stated, self.created, self.withholding)

    @property
    def changed(self) -> frozenset[str]:
        """All declared fields if the action is CREATE. The fields are unavailable for all other actions."""
        return self.stated.effect.fields if self.created else self._raise_unavailable()

    @property
    def racks(self) -> Mapping[int, str | None]:
        """The racks of the brokers. They are always unavailable, because only a cluster knows the racks."""
        self._raise_unavailable()

    @property
    def record_count(self) -> int:
        """The number of records: 0 if the action is CREATE.

        The number is unavailable for all other actions.
        """
        return 0 if self.created else self._raise_unavailable()

    @property
    def impact(self) -> NewTopicImpact:
        """No impact if the action is CREATE. The impact is unavailable for all other actions."""
        return NewTopicImpact() if self.created else self._raise_unavailable()

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """Raise an error: the number is unavailable, because it includes topics that are not declared."""
        self._raise_unavailable()


@dataclass(frozen=True, slots=True)
class DeclaredTopic:
    """See `DeclaredSubject`."""

    topic: str
    stated: StaticTopicState

    def make_request(self, labels: Mapping[str, str], *, created: bool) -> DeclaredTopicRequest:
        """Return the request that policies evaluate for the manifest before it is applied."""
        return DeclaredTopicRequest(self.topic, labels, self.stated, created)
