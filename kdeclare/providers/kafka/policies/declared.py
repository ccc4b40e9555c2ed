"""What policies can see of declared topics without a cluster, and of configs: texts by key."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, partial
from operator import attrgetter
from typing import NoReturn

from kdeclare.core.frozen import dataclass
from kdeclare.core.resources.policy_subjects import (
    NotKnownYet,
    OfflineRequest,
    PolicyField,
    PolicyWords,
    Withholding,
)
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.providers.kafka.config.catalog import Catalog, catalog
from kdeclare.providers.kafka.config.wishes import Parts, Unset, Wish, joined
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource
from kdeclare.providers.kafka.operations.kafka_operation_type import Stated

_TYPES = {"LIST": list, "BOOLEAN": bool, "STRING": str, "PASSWORD": str, "CLASS": str}


def find_key_types(known: Catalog) -> Mapping[str, type]:
    """Return the keys of a catalogue; what is not in `_TYPES` is a number."""
    return {key: _TYPES.get(info.type, float) for key, info in known.keys.items()}


def state_value(known: Catalog, key: str, wish: Wish) -> str | None:
    """Return the override that a wish comes to where there was none before; None for no override.

    Parts of a list start from the key's own default (KIP-339).
    """
    if isinstance(wish, Unset | Secret):
        return None
    if not isinstance(wish, Parts):
        return joined(wish.value)
    start = [e for e in known.default_list(key) if e not in wish.subtract]
    return joined([*start, *(e for e in wish.append if e not in start)])


def describe_wishes(known: Catalog, wishes: Mapping[str, Wish]) -> dict[str, str]:
    """Return declared configs as they would be if nothing was set before."""
    values = {key: "" if isinstance(w, Secret) else state_value(known, key, w) for key, w in wishes.items()}
    return {key: value for key, value in values.items() if value is not None}


def describe_overrides(entries: Mapping[str, ConfigEntry], source: ConfigSource) -> dict[str, str]:
    """Return what is set on a resource itself."""
    return {key: entry.value or "" for key, entry in entries.items() if entry.source is source}


@cache
def _find_keys(scope: ConfigScope) -> Mapping[str, type]:
    return find_key_types(catalog(scope))


TOPIC_WORDS = PolicyWords(
    fields={
        "partitions": PolicyField(int, attrgetter("num_partitions")),
        "replicationFactor": PolicyField(int, attrgetter("replication_factor")),
        "assignments": PolicyField(
            dict[int, list[int]], attrgetter("replicas_assignments"), elements="partitions"
        ),
        "configs": PolicyField(dict[str, str], attrgetter("configs"), partial(_find_keys, ConfigScope.TOPIC)),
    },
    subject="topic",
    before="pre",
    after="post",
)

BROKER_WORDS = PolicyWords(
    {"configs": PolicyField(dict[str, str], keys=partial(_find_keys, ConfigScope.BROKER))}
)


class _Overrides(Mapping[str, str]):
    """The overrides that are certain, whatever a topic that is there already has beside them."""

    def __init__(self, stated: Stated, withholding: Withholding) -> None:
        self._stated = stated
        self._withholding = withholding

    def __getitem__(self, key: str) -> str:
        if key not in self._stated.effect.configs or key in self._stated.open:
            self._unknown()
        value = self._stated.effect.configs[key]
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[str]:
        self._unknown()

    def __len__(self) -> int:
        self._unknown()

    def _unknown(self) -> NoReturn:
        self._withholding.withhold(NotKnownYet())


@dataclass(frozen=True, slots=True)
class DeclaredState:
    """A declared topic; with ``created`` as it would be created, else as it will be in any case."""

    stated: Stated
    created: bool
    withholding: Withholding

    @property
    def num_partitions(self) -> int:
        """If it is stated."""
        count = self.stated.effect.partitions
        return self._unknown() if count is None else count

    @property
    def replication_factor(self) -> int:
        """If it is stated."""
        factor = self.stated.effect.factor
        return self._unknown() if factor is None else factor

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """If they are stated; of a creation that leaves them to Kafka, none."""
        left_to_kafka = self.created and not self.stated.placed
        replicas = self.stated.effect.replicas
        return dict(replicas) if replicas or left_to_kafka else self._unknown()

    @property
    def configs(self) -> Mapping[str, str]:
        """All overrides of a creation, else those that are certain."""
        if not self.created:
            return _Overrides(self.stated, self.withholding)
        return {key: value for key, value in self.stated.effect.configs.items() if value is not None}

    def _unknown(self) -> NoReturn:
        self.withholding.withhold(NotKnownYet())


@dataclass(frozen=True, slots=True)
class DeclaredRequest(OfflineRequest):
    """What applying a manifest will ask for; with ``created`` as if the topic were not there yet.

    declared_labels: of the manifest. withholding: what the policy that is being asked was not told.
    """

    topic: str
    declared_labels: Mapping[str, str]
    stated: Stated
    created: bool = False
    withholding: Withholding = field(default_factory=Withholding, compare=False)

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.topic

    @property
    def labels(self) -> Mapping[str, str]:
        """Of the manifest."""
        return dict(self.declared_labels)

    @property
    def post_request_state(self) -> DeclaredState:
        """As declared."""
        return DeclaredState(self.stated, self.created, self.withholding)

    @property
    def changed(self) -> frozenset[str]:
        """All that is stated, on CREATE."""
        return self.stated.effect.fields if self.created else self._withhold()

    @property
    def racks(self) -> Mapping[int, str | None]:
        """Only a cluster knows."""
        self._withhold()

    @property
    def record_count(self) -> int:
        """0 on CREATE."""
        return 0 if self.created else self._withhold()

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """Only a cluster knows: topics that are not declared count as well."""
        self._withhold()


@dataclass(frozen=True, slots=True)
class DeclaredTopic:
    """See `DeclaredSubject`."""

    topic: str
    stated: Stated

    def make_request(self, labels: Mapping[str, str], *, created: bool) -> DeclaredRequest:
        """Return what applying the manifest asks for."""
        return DeclaredRequest(self.topic, labels, self.stated, created)
