"""What plans say about live connectors and subjects that refer to deleted topics."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.plans import live_references
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.plan_impact import add_current_impact
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.connect.client.connectors_port import LiveConnector
from kdeclare.providers.connect.client.port import NOT_AUTHORIZED, UNREACHABLE
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.schema_registry.client import port
from kdeclare.providers.schema_registry.client.port import SchemaContent, SchemaType
from kdeclare.providers.schema_registry.connection import RegistryClients
from kdeclare.providers.schema_registry.testing import MemoryRegistry
from tests.engine import world
from tests.engine.impacts import list_texts, observe
from tests.engine.world import desired, topic

DELETING = PlanScope(impact=True, allow_deletes=True, allow_empty=True)
SINK = "FileStreamSink"


@dataclass
class World(world.World):
    """A project with the Connect cluster 'eu' and the schema registry 'main'."""

    eu: MemoryConnectCluster = field(default_factory=MemoryConnectCluster)
    registry: MemoryRegistry = field(default_factory=MemoryRegistry)

    def __post_init__(self) -> None:
        self.connect_clusters = {"eu": self.eu}

    def connect(self) -> Connections:
        """Return connections to all systems."""
        clients = RegistryClients(["main"], lambda _: self.registry)
        return super().connect().with_part(clients)

    def add_connector(self, name: str, **config: str) -> None:
        """Create a connector as another client; underscores represent dots."""
        given = {key.replace("_", "."): value for key, value in config.items()}
        self.eu.elsewhere().create_connector(
            name, {"connector.class": SINK, "file": "x", "topics": "unused", **given}
        )

    def add_subjects(self, *subjects: str) -> None:
        """Register subjects as another client."""
        for subject in subjects:
            self.registry.elsewhere().register(subject, SchemaContent(SchemaType.AVRO, '"string"'))

    def list_requests(self) -> list[str]:
        """Return the requests to Connect and to the registry since the last call, and forget them."""
        calls = [f"connect.{call.method}" for call in self.eu.calls]
        calls += [f"registry.{call.method}" for call in self.registry.calls]
        self.eu.calls.clear()
        self.registry.calls.clear()
        return calls


@pytest.fixture
def world_of_orders() -> World:
    """A project that owns the topics 'orders' and 'refunds', which no manifest declares anymore."""
    world = World(adopts=True)
    world.apply(topic("orders", partitions=1), topic("refunds", partitions=1))
    world.list_requests()
    return world


def connector(name: str, fields: Mapping[str, Any] | None = None, **config: str) -> DesiredResource:
    """Declare a connector. fields: more fields of its spec."""
    spec: dict[str, Any] = {
        "class": SINK,
        "connect": "eu",
        "config": {"file": "x", **config},
        **(fields or {}),
    }
    return desired("Connector", name, **spec)


def schema(name: str) -> DesiredResource:
    """Declare a schema with the subject of the same name."""
    return desired("Schema", name, schema='"string"', type="AVRO")


def test_live_connectors_that_name_a_deleted_topic_are_named(world_of_orders: World) -> None:
    world_of_orders.add_connector("by-name", topics="orders, payments")
    world_of_orders.add_connector("by-regex", topics="", topics_regex="(?i)ORD.*")
    world_of_orders.add_connector("dead-letters", errors_deadletterqueue_topic_name="refunds")
    world_of_orders.add_connector("other", topics="orders-2,preorders")
    observations = observe(world_of_orders, scope=DELETING)
    assert list_texts(observations, "references") == [
        "Topic/orders: effect: 2 connectors of Connect cluster 'eu' refer to this topic: by-name, by-regex.",
        "Topic/refunds: effect: 1 connector of Connect cluster 'eu' refers to this topic: dead-letters.",
    ]
    assert [item.figures for item in observations if item.code == "references"] == [
        {"connect": "eu", "connectors": ["by-name", "by-regex"]},
        {"connect": "eu", "connectors": ["dead-letters"]},
    ]
    assert list_texts(observations, "not-determined") == []


def test_live_subjects_of_a_deleted_topic_are_named(world_of_orders: World) -> None:
    world_of_orders.add_subjects("orders-value", "orders-key", "orders", "preorders-value", "refunds-key")
    world_of_orders.registry.elsewhere().delete_subject("refunds-key")
    observations = observe(world_of_orders, scope=DELETING)
    assert list_texts(observations, "references") == [
        "Topic/orders: info: 2 subjects of schema registry 'main' are named after this topic: orders-key, "
        "orders-value."
    ]
    (figures,) = [item.figures for item in observations if item.code == "references"]
    assert figures == {"registry": "main", "subjects": ["orders-key", "orders-value"]}


def test_declared_connectors_and_subjects_are_not_named_twice(world_of_orders: World) -> None:
    declared = [connector("sink", topics="orders"), schema("orders-value")]
    world_of_orders.apply(topic("orders", partitions=1), topic("refunds", partitions=1), *declared)
    world_of_orders.add_connector("live", topics="orders")
    world_of_orders.add_subjects("orders-key")
    assert list_texts(observe(world_of_orders, *declared, scope=DELETING), "references") == [
        "Topic/orders: effect: Connector/sink, Schema/orders-value refer to this topic, and are still "
        "declared.",
        "Topic/orders: effect: 1 connector of Connect cluster 'eu' refers to this topic: live.",
        "Topic/orders: info: 1 subject of schema registry 'main' is named after this topic: orders-key.",
    ]


def test_connectors_and_subjects_that_the_plan_deletes_are_not_named(world_of_orders: World) -> None:
    world_of_orders.apply(
        topic("orders", partitions=1), connector("sink", topics="orders"), schema("orders-value")
    )
    observations = observe(world_of_orders, scope=DELETING)
    assert "Topic/orders" in {item.resource for item in observations if item.code == "deleted-records"}
    assert list_texts(observations, "references") == []


def test_owned_connector_that_stays_is_named(world_of_orders: World) -> None:
    """Its deletion is prevented, so that it will refer to a topic that no longer exists."""
    protected = {"lifecycle": {"preventDestroy": True}}
    kept = connector("sink", protected, topics="orders")
    world_of_orders.apply(topic("orders", partitions=1), kept)
    observations = observe(world_of_orders, scope=DELETING)
    assert list_texts(observations, "references") == [
        "Topic/orders: effect: 1 connector of Connect cluster 'eu' refers to this topic: sink."
    ]


def test_saved_plan_uses_the_configs_that_it_sets(world_of_orders: World) -> None:
    """`apply FILE` reads the impact again, without the manifests."""
    kept = [topic("refunds", partitions=1), schema("orders-value")]
    world_of_orders.apply(topic("orders", partitions=1), *kept, connector("sink", topics="orders"))
    plan = world_of_orders.plan(*kept, connector("sink", topics="refunds"), scope=DELETING)
    assert list_texts(plan.observations, "references") == [
        "Topic/orders: effect: Schema/orders-value refers to this topic, and is still declared."
    ]
    again = add_current_impact(plan, world_of_orders.connect(), world_of_orders.store.read())
    assert list_texts(again.observations, "references") == [
        "Topic/orders: info: 1 subject of schema registry 'main' is named after this topic: orders-value."
    ]


@pytest.mark.parametrize(
    "config",
    [
        {"topics": "${file:/topics:name}"},
        {"topics": "", "topics_regex": "${env:REGEX}"},
        {"topics": "", "topics_regex": "(?=o)orders"},
    ],
)
def test_topics_that_kdeclare_cannot_compare_are_unknown(
    world_of_orders: World, config: Mapping[str, str]
) -> None:
    world_of_orders.add_connector("odd", **config)
    observations = observe(world_of_orders, scope=DELETING)
    assert list_texts(observations, "references") == []
    assert list_texts(observations, "not-determined") == [
        "Topic/orders: unknown: kdeclare could not determine whether 1 connector of Connect cluster 'eu' "
        "refers to the deleted topics: the config of odd names topics with placeholders, or with a regular "
        "expression that kdeclare does not support."
    ]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault(UNREACHABLE, "Connection refused."), "Connection refused"),
        (
            Fault(NOT_AUTHORIZED, "HTTP 403 Forbidden"),
            "kdeclare has no permission to list them (HTTP 403 Forbidden)",
        ),
    ],
)
def test_connect_cluster_that_cannot_be_read_is_unknown_once(
    world_of_orders: World, fault: Fault, reason: str
) -> None:
    world_of_orders.eu.faults.fail(fault, method="list_connectors", nth=None)
    plan = world_of_orders.plan(scope=DELETING)
    assert list_texts(plan.observations, "not-determined") == [
        "Topic/orders: unknown: kdeclare could not determine which connectors of Connect cluster 'eu' refer "
        f"to the deleted topics: {reason}."
    ]
    assert {op.verb for op in plan.operations} == {"topic.delete"}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault(port.UNREACHABLE, "Connection refused."), "Connection refused"),
        (Fault(port.NOT_AUTHORIZED, "Forbidden"), "kdeclare has no permission to list them (Forbidden)"),
    ],
)
def test_registry_that_cannot_be_read_is_unknown_once(
    world_of_orders: World, fault: Fault, reason: str
) -> None:
    world_of_orders.registry.faults.fail(fault, method="list_subjects", nth=None)
    plan = world_of_orders.plan(scope=DELETING)
    assert list_texts(plan.observations, "not-determined") == [
        "Topic/orders: unknown: kdeclare could not determine which subjects of schema registry 'main' are "
        f"named after the deleted topics: {reason}."
    ]
    assert {op.verb for op in plan.operations} == {"topic.delete"}


def test_systems_that_did_not_respond_earlier_are_not_asked_again(world_of_orders: World) -> None:
    owned = [connector("sink", topics="orders"), schema("orders-value")]
    world_of_orders.apply(topic("orders", partitions=1), topic("refunds", partitions=1), *owned)
    world_of_orders.eu.faults.fail(Fault(UNREACHABLE, "down"), method="list_connectors", nth=None)
    world_of_orders.registry.faults.fail(Fault(port.UNREACHABLE, "down"), method="identify", nth=None)
    world_of_orders.list_requests()
    texts = list_texts(observe(world_of_orders, scope=DELETING), "not-determined")
    assert [text.rpartition(": ")[2] for text in texts] == ["down."] * 2
    requests = world_of_orders.list_requests()
    assert requests.count("connect.list_connectors") == 1
    assert "registry.list_subjects" not in requests


def refuse(*_: object) -> NoReturn:
    raise KdeclareError(error("tls-file", "TLS file cannot be read", "ca.pem does not exist."))


def test_settings_that_cannot_be_used_are_unknown(world_of_orders: World) -> None:
    connections = world_of_orders.connect()
    opened = ConnectClients(refuse, {"eu": refuse})
    broken = connections.with_part(opened).with_part(RegistryClients(["main"], refuse))
    world_of_orders.connect = lambda: broken  # type: ignore[method-assign]
    texts = list_texts(observe(world_of_orders, scope=DELETING), "not-determined")
    assert [text.rpartition(": ")[2] for text in texts] == ["ca.pem does not exist."] * 2


def test_connections_that_cannot_be_opened_are_unknown(world_of_orders: World) -> None:
    """For example, because the environment refers to a variable that is not set."""
    broken = Connections(
        KafkaConnection(world_of_orders.cluster),
        openers={ConnectClients: refuse, RegistryClients: refuse},
    )
    world_of_orders.connect = lambda: broken  # type: ignore[method-assign]
    assert list_texts(observe(world_of_orders, scope=DELETING), "not-determined") == [
        "Topic/orders: unknown: kdeclare could not determine which connectors refer to the deleted topics: "
        "ca.pem does not exist.",
        "Topic/orders: unknown: kdeclare could not determine which schemas are named after the deleted "
        "topics: "
        "ca.pem does not exist.",
    ]


def test_slow_systems_do_not_delay_the_plan(world_of_orders: World, monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()

    def wait(_: object) -> Mapping[str, LiveConnector]:
        is_over.wait(30)
        return {}

    monkeypatch.setattr(live_references, "_TIME_LIMIT_S", 0.05)
    monkeypatch.setattr(MemoryConnectCluster, "list_connectors", wait)
    started_s = time.monotonic()
    texts = list_texts(observe(world_of_orders, scope=DELETING), "not-determined")
    assert time.monotonic() - started_s < 25
    is_over.set()
    assert texts == [
        "Topic/orders: unknown: kdeclare could not determine which connectors of Connect cluster 'eu' refer "
        "to the deleted topics: it did not respond within 10 s."
    ]


# requests


def delete_topics(world: World) -> Sequence[DesiredResource]:
    return ()


def lower_retention(world: World) -> Sequence[DesiredResource]:
    return [topic(name, partitions=1, configs={"retention.ms": 1000}) for name in ("orders", "refunds")]


def add_topic(world: World) -> Sequence[DesiredResource]:
    return [topic(name, partitions=1) for name in ("orders", "refunds", "new")]


def delete_topic_beside_schema(world: World) -> Sequence[DesiredResource]:
    world.apply(*add_topic(world), schema("refunds-value"))
    return [*add_topic(world)[1:], schema("refunds-value")]


@pytest.mark.parametrize(
    ("change", "requests"),
    [
        (delete_topics, {"connect.list_connectors": 1, "registry.list_subjects": 1}),
        (delete_topic_beside_schema, {"connect.list_connectors": 1}),
        (lower_retention, {}),
        (add_topic, {}),
    ],
    ids=["topics deleted", "topic deleted, subjects already listed", "retention lowered", "topic added"],
)
def test_only_deletions_read_other_systems(
    world_of_orders: World,
    change: Callable[[World], Sequence[DesiredResource]],
    requests: Mapping[str, int],
) -> None:
    """These requests are sent in addition to those of a plan without impact."""
    declared = change(world_of_orders)
    calls: list[list[str]] = []
    for impact in (False, True):
        world_of_orders.list_requests()
        world_of_orders.plan(*declared, scope=PlanScope(impact=impact, allow_deletes=True, allow_empty=True))
        calls.append(world_of_orders.list_requests())
    more = {method: calls[1].count(method) - calls[0].count(method) for method in set(calls[1])}
    assert {method: count for method, count in more.items() if count} == requests


def test_environment_without_connect_reads_only_the_registry() -> None:
    world = World(adopts=True)
    world.apply(topic("orders", partitions=1))
    world.list_requests()
    world.connect_clusters = {}
    codes = {item.code for item in observe(world, scope=DELETING)}
    assert codes.isdisjoint({"references", "not-determined"})
    assert world.list_requests() == ["registry.list_subjects"]
