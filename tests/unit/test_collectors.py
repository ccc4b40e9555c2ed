"""Containers of providers' values, and merging several selections into one read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import pytest

from kdeclare.core.live.collector import Collector, CollectResult, ExpectedObjects, WaitPolicy
from kdeclare.core.parts import Connections, LiveState, Parts
from kdeclare.core.provider.installed_providers import load_providers, resolve_completely
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.observation import identify_system, observe
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.collector import CONNECTORS
from kdeclare.providers.connect.worker_config.collector import WorkerSelection, WorkerState
from kdeclare.providers.connect.worker_config.fleet import WORKERS
from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.providers.kafka.acl.collector import ACLS
from kdeclare.providers.kafka.client_quota.collector import QUOTAS
from kdeclare.providers.kafka.collector import CLUSTER, KafkaSelection, select_topics
from kdeclare.providers.kafka.consumer_group.collector import GROUPS
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.listed_configs.collector import LISTED_CONFIGS
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.request_values import ConfigQuery
from kdeclare.providers.kafka.scram_user.collector import SCRAM_USERS
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.schema_registry.schema.fleet import SUBJECTS
from tests.connections import connections_to


@dataclass(frozen=True)
class Lamps:
    """A selection of another system."""

    names: frozenset[str]

    def merge(self, others: Sequence["Lamps"]) -> "Lamps":
        return Lamps(self.names.union(*(other.names for other in others)))


@dataclass(frozen=True)
class Lit:
    names: frozenset[str]


class House:
    """A connection that counts its requests."""

    asked = 0


def read_lamps(connections: Connections, selection: Lamps) -> Lit:
    connections.get(House).asked += 1
    return Lit(selection.names)


LAMPS = Collector(Lamps, read_lamps)


def test_parts_are_found_by_class() -> None:
    parts = Parts(1, "text")
    assert (parts.get(int), parts.get(str), parts.find(float)) == (1, "text", None)
    with pytest.raises(LookupError, match="no float among int, str"):
        parts.get(float)


def test_parts_are_equal_by_class_and_values() -> None:
    assert Parts(1, "text") == Parts("text", 1)
    assert hash(Parts(1, [])) == hash(Parts([], 2))
    assert Parts(1) != Parts(2)
    assert Parts(1) != LiveState(1)
    assert repr(LiveState(1, "text")) == "LiveState(1, 'text')"


def test_with_part_replaces_part_of_same_class() -> None:
    live = LiveState(1, "old")
    assert isinstance(live.with_part("new"), LiveState)
    assert (live.get(str), live.with_part("new").get(str), live.with_part("new").get(int)) == (
        "old",
        "new",
        1,
    )


def test_selections_of_one_class_are_read_in_one_request() -> None:
    house = House()
    chosen = (Lamps(frozenset("a")), KafkaSelection(), Lamps(frozenset("b")))
    assert LAMPS.collect(Connections(house), chosen) == Lit(frozenset("ab"))
    assert house.asked == 1


def test_collector_without_selection_reads_nothing() -> None:
    house = House()
    assert LAMPS.collect(Connections(house), (KafkaSelection(),)) is None
    assert house.asked == 0


def test_merged_cluster_selection_is_union() -> None:
    orders, broker = ConfigResource(ConfigScope.TOPIC, "orders"), ConfigResource(ConfigScope.BROKER, "1")
    some = ConfigQuery(orders, frozenset({"a"}), optional=True)
    more = ConfigQuery(orders, frozenset({"b"}), overrides=True)
    other = ConfigQuery(broker, frozenset({"c"}))
    merged = CLUSTER.merge(
        (
            KafkaSelection(frozenset({"orders"}), {orders: some}),
            KafkaSelection(frozenset({"bills"}), {orders: more}, log_dirs=frozenset({"bills"})),
            KafkaSelection(configs={broker: other}, every_topic=True),
        )
    )
    assert merged == KafkaSelection(
        frozenset({"orders", "bills"}),
        {orders: ConfigQuery(orders, frozenset({"a", "b"}), overrides=True), broker: other},
        every_topic=True,
        log_dirs=frozenset({"bills"}),
    )
    assert select_topics((KafkaSelection(frozenset({"orders"})), Lamps(frozenset()))) == {"orders"}


def test_live_state_contains_cluster_and_selected_parts() -> None:
    live = observe(connections_to(MemoryCluster()), ())
    assert live.get(KafkaState).cluster.brokers
    assert live.find(WorkerState) is None


def test_workers_are_read_by_collector_of_connect() -> None:
    opened: list[WorkerGroup] = []

    def open_group(group: WorkerGroup) -> NoReturn:
        opened.append(group)
        raise LookupError

    group = WorkerGroup(("https://one:8083",))
    with pytest.raises(LookupError):
        WORKERS.collect(Connections(ConnectClients(open_group)), (WorkerSelection(frozenset({group})),))
    assert opened == [group]


def test_built_in_providers_have_collectors() -> None:
    providers = map(resolve_completely, load_providers())
    found = [collector for provider in providers for collector in provider.collectors]
    cluster, quotas, listed_configs, scram_users, acls, groups, *others = found
    workers, connectors, subjects = others
    assert cluster.codec is not None, "fleets compare what it reads"
    assert quotas.codec is not None, "fleets compare what it reads"
    assert cluster == replace(CLUSTER, codec=cluster.codec)
    assert quotas == replace(QUOTAS, codec=quotas.codec)
    assert listed_configs.codec is not None, "fleets compare what it reads"
    assert listed_configs == replace(LISTED_CONFIGS, codec=listed_configs.codec)
    assert scram_users.codec is not None, "fleets compare what it reads"
    assert scram_users == replace(SCRAM_USERS, codec=scram_users.codec)
    assert acls.codec is not None, "fleets compare what it reads"
    assert acls == replace(ACLS, codec=acls.codec)
    assert groups == GROUPS
    assert workers == WORKERS
    assert connectors.codec is not None, "fleets compare what it reads"
    assert connectors == replace(CONNECTORS, codec=connectors.codec)
    assert subjects.codec is not None, "fleets compare what it reads"
    assert subjects == replace(SUBJECTS, codec=subjects.codec)


def make_lamp_id(name: str) -> ResourceId:
    return ResourceId("Lamp", name)


def test_base_selection_is_always_read() -> None:
    house = House()
    always = Collector(Lamps, read_lamps, base_selection=Lamps(frozenset("a")))
    assert always.collect(Connections(house), ()) == Lit(frozenset("a"))
    assert always.collect(Connections(house), (Lamps(frozenset("b")),)) == Lit(frozenset("b"))


def test_consistent_system_is_read_without_waiting() -> None:
    expected = ExpectedObjects(WaitPolicy(0), objects=frozenset({make_lamp_id("x")}))
    assert LAMPS.collect_expected(Connections(House()), (), expected) is None
    seen = LAMPS.collect_expected(Connections(House()), (Lamps(frozenset("a")),), expected)
    assert seen == CollectResult(Lit(frozenset("a")))


def test_eventually_consistent_system_gets_expected_objects() -> None:
    asked: list[frozenset[ResourceId]] = []

    def read_expected(connections: Connections, selection: Lamps, expected: ExpectedObjects) -> CollectResult:
        asked.append(expected.objects)
        return CollectResult(
            Lit(frozenset()), pending=expected.objects & set(map(make_lamp_id, selection.names))
        )

    trailing = Collector(Lamps, read_lamps, read_expected=read_expected)
    expected = ExpectedObjects(WaitPolicy(0), objects=frozenset({make_lamp_id("a"), make_lamp_id("b")}))
    seen = trailing.collect_expected(Connections(House()), (Lamps(frozenset("a")),), expected)
    assert seen == CollectResult(Lit(frozenset()), pending=frozenset({make_lamp_id("a")}))
    assert asked == [frozenset({make_lamp_id("a"), make_lamp_id("b")})]


def test_system_id_comes_from_collector_that_supports_it() -> None:
    assert LAMPS.identify(LiveState()) is None
    named = Collector(Lamps, read_lamps, find_id=lambda live: f"{len(live.get(Lit).names)} lamps")
    assert named.identify(LiveState(Lit(frozenset("ab")))) == "2 lamps"
    cluster = MemoryCluster()
    assert identify_system(observe(connections_to(cluster), ())) == cluster.describe().id
