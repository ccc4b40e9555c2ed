"""Random fleets: declared, owned and live resources, as values and as rows of both tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import Any, NoReturn

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.progress import ignore_progress
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, narrow
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_hashes import SecretHasher
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.engine.planning.secret_digests import hash_secrets
from kdeclare.fleet.tables import row_builder
from kdeclare.fleet.tables.row_builder import (
    Row,
    RowOrigin,
    build_declared_cluster_row,
    build_declared_row,
    build_live_row,
    build_unread_row,
)
from kdeclare.fleet.tables.rows import CLUSTER
from kdeclare.providers.kafka.broker_config import CLUSTER_DEFAULT
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.config_value import (
    UNKNOWN_CONFIG,
    ConfigValue,
    ListPatch,
    Unset,
    get_declared_configs,
    is_secrecy_unknown,
)
from kdeclare.providers.kafka.fleet.codec import (
    build_broker_object,
    build_topic_object,
    dump_system,
    list_requested_keys,
)
from kdeclare.providers.kafka.fleet.facts import to_config_resource
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import (
    Broker,
    ClusterInfo,
    ConfigEntry,
    ConfigSource,
    ConfigType,
    KafkaState,
    Move,
    Partition,
    Topic,
    get_own_source,
)
from kdeclare.providers.kafka.reassignment.placement_request import PlacementContext, Replicas
from kdeclare.providers.kafka.reassignment.placement_request import PlacementRequest as PlacementWish
from kdeclare.providers.kafka.topic.record import TopicRecord
from kdeclare.providers.kafka.topic.spec import TopicBody
from tests.jsontypes import Json

TAKEN_AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

SCALARS: Mapping[str, Sequence[Any]] = {
    "retention.ms": (77, "604800000", "-1"),
    "min.cleanable.dirty.ratio": ("0.5", "0.50", 0.1),
    "preallocate": (True, "TRUE", "false"),
    "min.insync.replicas": (1, "2"),
    "compression.type": ("zstd", "producer"),
    "owner.of.plugin": ("Zoë 日本 😀", "n/a", ""),
}
THROTTLED = "leader.replication.throttled.replicas"
LISTS: Mapping[str, Sequence[str]] = {
    "cleanup.policy": ("delete", "compact"),
    THROTTLED: ("0:1", "0:2", "1:3"),
}
UNMANAGED = {"flush.ms": "9", "max.message.bytes": "1000", "follower.replication.throttled.replicas": "*"}

BROKER_SCALARS: Mapping[str, Sequence[Any]] = {
    "log.cleaner.threads": (1, "2"),
    "num.io.threads": ("8", 16),
    "message.max.bytes": ("1048588", 5),
}
SECRET = "listener.name.internal.ssl.keystore.password"
PLUGIN = "plugin.password"
"""A key that only a cluster can know, and whose value it hides."""
HIDDEN = "hunter2"
"""The value behind both of them, which must not be in any row."""
BROKER_LISTS: Mapping[str, Sequence[str]] = {
    "log.cleanup.policy": ("delete", "compact"),
    "listener.name.internal.ssl.enabled.protocols": ("TLSv1.2", "TLSv1.3"),
}
BROKER_UNMANAGED = {"background.threads": "11", "min.insync.replicas": "1"}
LABELS: Sequence[Mapping[str, str]] = ({}, {"team": "payments"}, {"team": "Größe", "tier": "✓"})


@dataclass(frozen=True)
class Case:
    """One declared or owned resource, with its whole cluster."""

    cluster: str
    id: ResourceId
    desired: DesiredResource | None
    owned: OwnedRecord | None
    live: KafkaState


@dataclass
class Fleet:
    """The rows of both tables, and the values from which they were built."""

    declared: list[Row] = field(default_factory=list)
    live: list[Row] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)


def refuse_placement(
    brokers: Sequence[Broker], current: Mapping[str, Sequence[Replicas]], request: PlacementWish
) -> NoReturn:
    """The placer for resources that do not need one."""
    raise AssertionError("asked where to place replicas")


NO_PLACEMENT = PlanContext(PlacementContext(refuse_placement))


def make_desired(
    kind: str, name: str, labels: Mapping[str, str] | None = None, **spec: Any
) -> DesiredResource:
    """Build a declared resource as the loader would, including keys that only a cluster knows."""
    body, problems = KINDS[kind].parse(name, KINDS[kind].spec.model_validate(spec))
    wrong = [p.diagnostic for p in problems if p.diagnostic.is_error and p.diagnostic.code != UNKNOWN_CONFIG]
    assert not wrong, wrong
    item = DesiredResource(ResourceId(kind, name), body, labels or {}, SourcePosition("topics.yaml", 3, 1))
    return hash_secrets([item], {}, SecretHasher("fleet"), ignore_progress)[0]


def generate_fleet(random: Random, *, clusters: int = 2, topics: int = 4, plain: bool = False) -> Fleet:
    """Clusters with some of everything, or with ``plain`` only topics whose declared configs are scalars.

    clusters, topics: how many clusters, and names of topics in each, that rows can be about.
    """
    fleet = Fleet()
    for number in range(clusters):
        _FleetGenerator(random, fleet, f"eu-{number}", plain).add(topics)
    random.shuffle(fleet.declared)
    random.shuffle(fleet.live)
    return fleet


def make_origin(cluster: str, cluster_id: str | None = "id") -> RowOrigin:
    """Build the origin of the rows of a test."""
    return RowOrigin(TAKEN_AT, cluster, cluster_id, {"region": "eu", "größe": "日本"})


def make_cluster_row(where: RowOrigin, info: ClusterInfo, version: str | None) -> Row:
    """Build the row of a cluster itself."""
    return row_builder.build_cluster_row(where, dump_system(replace(info, version=version)))


def make_topic_row(
    where: RowOrigin, topic: Topic, entries: Mapping[str, ConfigEntry], moves: Mapping[TopicPartition, Move]
) -> Row:
    """Build the row of a topic."""
    return build_live_row(where, build_topic_object(topic, entries, moves))


def make_broker_row(where: RowOrigin, name: str, entries: Mapping[str, ConfigEntry]) -> Row:
    """Build the row of a BrokerConfig."""
    return build_live_row(where, build_broker_object(name, entries))


def make_own_entry(entity: ConfigResource, key: str, value: str | None) -> ConfigEntry:
    """Build a config set on the resource itself, as Kafka describes it; None is a hidden value."""
    info = load_catalog(entity.scope).get(key)
    if value is None:
        return ConfigEntry(None, get_own_source(entity), ConfigType.PASSWORD, sensitive=True)
    kind = ConfigType.LIST if info is not None and info.is_list else ConfigType.SCALAR
    return ConfigEntry(value, get_own_source(entity), kind)


def make_record(item: DesiredResource) -> Json:
    """Return the ownership record of a resource that was applied as declared."""
    if isinstance(item.body, TopicBody) and item.body.strategy is not None:
        item = replace(item, body=replace(item.body, strategy=None))  # the record does not contain it
    live = KafkaState(ClusterInfo("x", tuple(Broker(n, "h", 9092) for n in range(1, 7))))
    return KINDS[item.id.kind].diff(item.id, item, LiveState(live), None, NO_PLACEMENT).owned


class _FleetGenerator:
    """Generates one cluster of a fleet."""

    def __init__(self, random: Random, fleet: Fleet, cluster: str, plain: bool) -> None:
        self.random, self.fleet, self.cluster, self.plain = random, fleet, cluster, plain
        ids = range(1, random.randint(2, 5) + 1)
        self.info = ClusterInfo(f"id-{cluster}", tuple(self._create_broker(n) for n in ids))
        self.topics: dict[str, Topic] = {}
        self.configs: dict[ConfigResource, dict[str, ConfigEntry]] = {}
        self.moves: dict[TopicPartition, Move] = {}
        self.wanted: dict[ResourceId, tuple[DesiredResource | None, Json]] = {}

    def is_drawn(self, share: float) -> bool:
        return self.random.random() < share

    def add(self, topics: int) -> None:
        trouble = (
            None if self.plain else self.random.choice([None] * 8 + ["live", "declared", "gone", "other"])
        )
        for number in range(topics):
            self._add_topic(f"t.{number}")
        if not self.plain:
            self._create_live_topic("__consumer_offsets", None, internal=True)
            for name in (CLUSTER_DEFAULT, *(str(n) for n in range(1, 7))):
                self._add_broker_config(name)
        live = KafkaState(self.info, self.topics, self.configs, self.moves)
        reason = "timed out" if trouble == "declared" else None
        planned = {None: self.info.id, "other": "another"}.get(trouble)
        own = build_declared_cluster_row(self.cluster, {"tier": "gold"}, reason, cluster_id=planned)
        self.fleet.declared.append(own)
        for id_, (item, owned) in self.wanted.items():
            self.fleet.declared.append(build_declared_row(self.cluster, item, id_, owned))
            if trouble is None:
                self.fleet.cases.append(Case(self.cluster, id_, item, owned, live))
        if trouble == "live":
            self.fleet.live.append(
                build_unread_row(make_origin(self.cluster, None), CLUSTER, self.cluster, "kaputt")
            )
        elif trouble != "gone":
            self._add_live()

    def _add_live(self) -> None:
        where = make_origin(self.cluster, self.info.id)
        self.fleet.live.append(make_cluster_row(where, self.info, "4.1"))
        for name, topic in self.topics.items():
            if not self.plain and self.is_drawn(0.03):
                self.fleet.live.append(build_unread_row(where, "Topic", name, "TOPIC_AUTHORIZATION_FAILED"))
                self.fleet.cases = [c for c in self.fleet.cases if c.id != ResourceId("Topic", name)]
                continue
            entries = self.configs[ConfigResource(ConfigScope.TOPIC, name)]
            self.fleet.live.append(make_topic_row(where, topic, entries, self.moves))
        for entity, entries in self.configs.items():
            if entity.scope is ConfigScope.BROKER:
                self.fleet.live.append(make_broker_row(where, entity.name or CLUSTER_DEFAULT, entries))

    # declared and owned

    def _add_topic(self, name: str) -> None:
        item = make_desired("Topic", name, self.random.choice(LABELS), **self._make_topic_spec())
        before = item if self.is_drawn(0.7) else make_desired("Topic", name, **self._make_topic_spec())
        owned = make_record(before) if self.is_drawn(0.7) else None
        declared = self.is_drawn(0.85)
        if declared or owned is not None:
            self.wanted[item.id] = (item if declared else None, owned)
        if self.is_drawn(0.9):
            self._create_live_topic(name, self.random.choice([item, item, item, before]))
            if owned is not None and self.is_drawn(0.7):
                topic_id = self.topics[name].topic_id if self.is_drawn(0.9) else "another"
                owned = replace(narrow(owned, TopicRecord), topicId=topic_id)
                self.wanted[item.id] = (item if declared else None, owned)

    def _make_topic_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"configs": self._make_configs(SCALARS, {} if self.plain else LISTS)}
        if not self.plain and self.is_drawn(0.15):
            sizes = range(self.random.randint(1, 3))
            spec["assignments"] = {n: self._sample([1, 2, 3, 4], 2) for n in sizes}
        else:
            if self.is_drawn(0.8):
                spec["partitions"] = self.random.randint(1, 4)
            if self.is_drawn(0.8):
                spec["replicationFactor"] = self.random.randint(1, 2)
        if self.is_drawn(0.2):
            spec["unmanagedConfigs"] = "remove"
        if self.is_drawn(0.1):
            spec["lifecycle"] = {"preventDestroy": True}
        if not self.plain and self.is_drawn(0.06):
            fields = ["assignments"] if "assignments" in spec else ["partitions", "replicationFactor"]
            known_keys = load_catalog(ConfigScope.TOPIC).keys
            fields += [f"configs.{key}" for key in [*SCALARS, *LISTS] if key in known_keys]
            spec.setdefault("lifecycle", {})["ignoreChanges"] = self._sample(fields, 2)
        if not self.plain and "partitions" in spec and "replicationFactor" in spec and self.is_drawn(0.05):
            spec["placement"] = {"strategy": "cross-rack"}
            if self.is_drawn(0.3):
                spec.setdefault("lifecycle", {})["ignoreChanges"] = ["placement"]
        return spec

    def _add_broker_config(self, name: str) -> None:
        spec: dict[str, Any] = {"configs": self._make_configs(BROKER_SCALARS, BROKER_LISTS)}
        if self.is_drawn(0.2):
            spec["unmanagedConfigs"] = "remove"
        if name == CLUSTER_DEFAULT:
            spec["configs"].pop("listener.name.internal.ssl.enabled.protocols", None)
        elif self.is_drawn(0.02):
            spec["configs"][SECRET] = HIDDEN
        if self.is_drawn(0.02):
            spec["configs"][PLUGIN] = self.random.choice([HIDDEN, [HIDDEN, "b"]])
        if self.is_drawn(0.08):
            keys = [f"configs.{key}" for key in spec["configs"]]
            spec["lifecycle"] = {"ignoreChanges": self._sample(keys, 2)}
        item = make_desired("BrokerConfig", name, **spec)
        owned = make_record(item) if self.is_drawn(0.6) else None
        declared = self.is_drawn(0.5)
        if declared or owned is not None:
            self.wanted[item.id] = (item if declared else None, owned)
        if name == CLUSTER_DEFAULT or int(name) in {b.id for b in self.info.brokers}:
            self._set_configs("BrokerConfig", name, item, BROKER_SCALARS, BROKER_LISTS, BROKER_UNMANAGED)

    def _make_configs(
        self, scalars: Mapping[str, Sequence[Any]], lists: Mapping[str, Sequence[str]]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {
            key: self.random.choice(values) for key, values in scalars.items() if self.is_drawn(0.4)
        }
        found |= {key: None for key in scalars if not self.plain and self.is_drawn(0.08)}
        for key, elements in lists.items():
            if self.is_drawn(0.4):
                found[key] = self._make_list(elements)
        return found

    def _make_list(self, elements: Sequence[str]) -> Any:
        whole = self._sample(elements, self.random.randint(1, len(elements)))
        others = [e for e in elements if e not in whole]
        return self.random.choice(
            [
                None,
                whole,
                ",".join(whole),
                {"append": whole},
                {"append": whole, "subtract": others},
                {"subtract": whole},
            ]
        )

    # live

    def _create_broker(self, number: int) -> Broker:
        return Broker(number, "h", 9092, self.random.choice([None, "a", "b"]), self.is_drawn(0.1))

    def _create_live_topic(self, name: str, like: DesiredResource | None, *, internal: bool = False) -> None:
        body = None if like is None else like.get_body(TopicBody)
        assignments = None if body is None else body.assignments
        if assignments:
            replicas = [list(r) for r in assignments.values()]
        else:
            count = (body and body.partitions) or self.random.randint(1, 3)
            size = (body and body.replication_factor) or self.random.randint(1, 2)
            replicas = [self._choose_replicas(size) for _ in range(count)]
        if self.is_drawn(0.07):
            replicas.append(self._choose_replicas(len(replicas[0])))
        if self.is_drawn(0.07):
            replicas[self.random.randrange(len(replicas))] = self._choose_replicas(1 + self.is_drawn(0.5))
        for n, brokers in enumerate(replicas):
            if self.is_drawn(0.04):
                self._start_move(name, n, brokers)
        partitions = tuple(
            Partition(tuple(r), self.random.choice([None, r[0]]), tuple(r[:1])) for r in replicas
        )
        self.topics[name] = Topic(name, f"uuid-{self.random.randrange(99)}", partitions, internal)
        self._set_configs("Topic", name, like, SCALARS, {} if self.plain else LISTS, UNMANAGED)

    def _choose_replicas(self, size: int) -> list[int]:
        return self._sample([b.id for b in self.info.brokers], size)

    def _start_move(self, name: str, number: int, target: list[int]) -> None:
        """During a reassignment, metadata lists old and new replicas."""
        old = [n for n in range(7, 9) if self.is_drawn(0.5)]
        partition = TopicPartition(name, number)
        self.moves[partition] = Move((*target, *old), tuple(target[:1]), tuple(old))
        target += old

    def _set_configs(
        self,
        kind: str,
        name: str,
        like: DesiredResource | None,
        scalars: Mapping[str, Sequence[Any]],
        lists: Mapping[str, Sequence[str]],
        unmanaged: Mapping[str, str],
    ) -> None:
        """Return the declared configs with random differences."""
        entity = to_config_resource(kind, name)
        texts: dict[str, str | None] = {}
        for key, wish in (get_declared_configs(like) if like is not None else {}).items():
            unset = 0.5 if isinstance(wish, ListPatch) and not wish.append else 0.04
            if not isinstance(wish, Unset) and not self.is_drawn(unset):
                hidden = is_secrecy_unknown(key, wish, load_catalog(entity.scope))
                texts[key] = None if hidden else self._format_declared(wish, lists.get(key, ()))
        for key, values in scalars.items():
            if self.is_drawn(0.04):
                texts[key] = str(self.random.choice(values))
        for key, elements in lists.items():
            if self.is_drawn(0.06):
                texts[key] = ",".join(self._sample(elements, self.random.randint(0, len(elements))))
        texts |= {key: value for key, value in unmanaged.items() if self.is_drawn(0.06)}
        entries = {key: make_own_entry(entity, key, text) for key, text in texts.items()}
        self.configs[entity] = self._list_inherited(entity) | entries

    def _format_declared(self, wish: ConfigValue, elements: Sequence[str]) -> str | None:
        if isinstance(wish, Secret):
            return None
        if isinstance(wish, ListPatch):
            more = [e for e in elements if e not in wish.subtract and self.is_drawn(0.2)]
            return ",".join(dict.fromkeys([*more, *wish.append]))
        assert not isinstance(wish, Unset)
        if isinstance(wish.value, str):
            return wish.value
        shown = self._sample(wish.value, len(wish.value))
        return self.random.choice([",", ", "]).join(shown)

    def _list_inherited(self, entity: ConfigResource) -> dict[str, ConfigEntry]:
        """Return the lists of a full describe; for the cluster-wide default, only those set there."""
        if entity.scope is ConfigScope.BROKER and not entity.name:
            return {}
        keys = load_catalog(entity.scope)
        found = {
            key: ConfigEntry(keys.keys[key].default, ConfigSource.DEFAULT, ConfigType.LIST)
            for key in list_requested_keys(entity.scope)
        }
        for key in ("cleanup.policy", "log.cleanup.policy"):
            if key in found and self.is_drawn(0.3):
                found[key] = ConfigEntry("compact", ConfigSource.STATIC, ConfigType.LIST)
        if self.is_drawn(0.1):
            found[PLUGIN] = ConfigEntry(None, ConfigSource.STATIC, sensitive=True)
        return found

    def _sample(self, items: Sequence[Any], size: int) -> list[Any]:
        return self.random.sample(list(items), min(size, len(items)))
