"""Reading topics of a cluster, and the views built from them."""

from collections.abc import Collection, Mapping, Sequence

import pytest

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.manifests.project import Project
from kdeclare.providers.kafka.commands.describe_topics import (
    ReplicaSizes,
    TopicQuery,
    describe_topics,
    list_topics,
)
from kdeclare.providers.kafka.commands.views import Sizes, TopicsView
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import PartitionCondition, Topic
from kdeclare.providers.kafka.request_values import LogDir, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.testing.partitions import PartitionState
from tests.beds import all_created
from tests.connections import make_connector

OFFLINE, UNDER_MIN, UNDER, AT_MIN, OTHER, MOVING = PartitionCondition
ALL = TopicQuery()


class Shop:
    """A cluster of three brokers with three topics and an internal one."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster(tick_on_poll=False, move_ticks=1)
        assignments: dict[str, dict[int, tuple[int, ...]]] = {
            "orders": {0: (1, 2, 3), 1: (2, 3, 1)},
            "payments": {0: (1, 2)},
            "refunds": {0: (3,)},
            "__consumer_offsets": {0: (1, 2)},
        }
        made = self.cluster.create_topics(
            [NewTopic(name, None, None, placed, {}) for name, placed in assignments.items()]
        )
        assert all_created(made)
        self.cluster.mark_internal("__consumer_offsets")
        self.cluster.set_overrides(ConfigResource(ConfigScope.TOPIC, "orders"), {"min.insync.replicas": "2"})
        self.cluster.calls.clear()
        self.workspace = Workspace(Project(), MemoryStore(), "lab:9092", make_connector(self.cluster))

    def put(self, topic: str, index: int, **state: object) -> None:
        at = TopicPartition(topic, index)
        now = self.cluster.partition(at)
        values = {"replicas": now.replicas, "isr": now.isr, "leader": now.leader} | state
        self.cluster.set_partition(at, PartitionState(**values))  # type: ignore[arg-type]

    def list_names(self, which: TopicQuery = ALL) -> list[str]:
        return [topic.name for topic in list_topics(self.workspace, which).topics]

    def find_partitions(self, only: Collection[PartitionCondition], which: TopicQuery = ALL) -> list[str]:
        view = describe_topics(self.workspace, which, only)
        return [f"{d.name}-{p.index}" for d in view.topics for p in d.partitions]

    @property
    def requests(self) -> list[str]:
        return [call.method for call in self.cluster.calls]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_list_topics_returns_matching_names(shop: Shop) -> None:
    assert shop.list_names() == ["__consumer_offsets", "orders", "payments", "refunds"]
    assert shop.list_names(TopicQuery(exclude_internal=True)) == ["orders", "payments", "refunds"]
    assert shop.list_names(TopicQuery(("refunds", "o.*"))) == ["refunds", "orders"]
    assert shop.list_names(TopicQuery(("__consumer_offsets", "orders"), exclude_internal=True)) == ["orders"]


def test_list_topics_sends_only_required_requests(shop: Shop) -> None:
    orders = list_topics(shop.workspace, TopicQuery(("orders",))).topics[0]
    assert shop.requests == ["topics", "moves"]
    assert (orders.partition_count, orders.factors, orders.configs, orders.sizes) == (2, (3,), None, None)
    assert not orders.counts
    assert orders.topic_id == "AAAAAAAAAAAAAAAAAAAAAQ", "in the format of Kafka's tools"


def test_list_topics_rejects_unknown_name_unless_if_exists(shop: Shop) -> None:
    with pytest.raises(KdeclareError) as refused:
        shop.list_names(TopicQuery(("order", "payments", "nothing.else")))
    assert [d.code for d in refused.value.diagnostics] == ["no-such-topic"] * 2
    assert refused.value.diagnostics[0].hint == "Did you mean 'orders'?"
    assert shop.list_names(TopicQuery(("order", "payments"), if_exists=True)) == ["payments"]


def test_pattern_without_match_is_error_only_for_describe(shop: Shop) -> None:
    nothing = TopicQuery(("x.*",))
    assert shop.list_names(nothing) == []
    with pytest.raises(KdeclareError, match=r"No topic name matches 'x\.\*'"):
        describe_topics(shop.workspace, nothing)
    assert describe_topics(shop.workspace, TopicQuery(("x.*",), if_exists=True)).topics == ()


def test_replication_factor_during_move_is_that_of_target(shop: Shop) -> None:
    shop.cluster.reassign({TopicPartition("payments", 0): (1, 3)}, allow_replication_factor_change=False)
    detail = describe_topics(shop.workspace, TopicQuery(("payments",))).topics[0]
    partition = detail.partitions[0]
    assert len(partition.replicas) == 3, "the metadata shows the union"
    assert (partition.target, partition.adding, partition.removing) == ((1, 3), (3,), (2,))
    assert detail.factors == (2,)
    assert partition.conditions == (MOVING,)


def test_move_that_ends_between_requests_shows_target_replicas(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.cluster.reassign({TopicPartition("payments", 0): (1, 3)}, allow_replication_factor_change=False)
    read = shop.cluster.topics

    def read_then_finish_move(names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        try:
            return read(names)
        finally:
            shop.cluster.tick()

    monkeypatch.setattr(shop.cluster, "topics", read_then_finish_move)
    partition = describe_topics(shop.workspace, TopicQuery(("payments",))).topics[0].partitions[0]
    assert (partition.replicas, partition.conditions) == ((1, 3), ())


@pytest.mark.parametrize(
    ("only", "found"),
    [
        ({OFFLINE}, ["refunds-0"]),
        ({UNDER}, ["orders-0", "orders-1", "refunds-0"]),
        ({UNDER_MIN}, ["orders-1", "refunds-0"]),
        ({AT_MIN}, ["__consumer_offsets-0", "orders-0"]),
        ({OTHER}, ["payments-0"]),
        ({OFFLINE, OTHER}, ["payments-0", "refunds-0"]),
        ({MOVING}, []),
    ],
)
def test_describe_topics_filters_partitions_by_condition(
    shop: Shop, only: set[PartitionCondition], found: list[str]
) -> None:
    shop.put("orders", 0, isr=(1, 2))
    shop.put("orders", 1, isr=(2,))
    shop.put("payments", 0, leader=2)
    shop.put("refunds", 0, leader=None, isr=())
    shop.cluster.set_overrides(
        ConfigResource(ConfigScope.TOPIC, "__consumer_offsets"), {"min.insync.replicas": "2"}
    )
    assert shop.find_partitions(only) == found
    view = describe_topics(shop.workspace, ALL, only)
    assert (view.of_topics, view.of_partitions) == (4, 5)


def test_describe_topics_overridden_returns_topics_with_overrides(shop: Shop) -> None:
    view = describe_topics(shop.workspace, ALL, overridden=True)
    assert [d.name for d in view.topics] == ["orders"]
    assert list(view.topics[0].overrides or ()) == ["min.insync.replicas"]


def test_topic_configs_include_inherited_min_insync_replicas(shop: Shop) -> None:
    refunds = describe_topics(shop.workspace, TopicQuery(("refunds",))).topics[0]
    assert refunds.overrides == {}
    assert refunds.configs is not None
    assert list(refunds.configs) == ["min.insync.replicas"]


def test_sizes_count_leaders_and_all_replicas(shop: Shop) -> None:
    shop.cluster.produce("orders", 10)
    shop.cluster.produce("payments", 4)
    sizes = {t.name: t.sizes for t in list_topics(shop.workspace, ALL, sizes=True).topics}
    assert (sizes["orders"], sizes["payments"]) == (Sizes(10_000, 30_000), Sizes(4_000, 8_000))
    assert sizes["refunds"] == Sizes(0, 0)


def test_sizes_on_fenced_broker_are_unknown(shop: Shop) -> None:
    shop.cluster.produce("payments", 4)
    shop.cluster.fence(2)
    view = describe_topics(shop.workspace, TopicQuery(("payments",)), sizes=True)
    assert view.topics[0].partitions[0].sizes == (4_000, None)
    assert view.topics[0].sizes == Sizes(4_000, None)
    shop.cluster.fence(1)
    assert list_topics(shop.workspace, TopicQuery(("payments",)), sizes=True).topics[0].sizes == Sizes(
        None, None
    )


def test_replica_sizes_with_future_replicas_and_offline_directories() -> None:
    at = TopicPartition("t", 0)
    sizes = ReplicaSizes(
        {
            1: (LogDir("/a", {at: 5}, {}), LogDir("/b", {}, {at: 3})),
            2: (LogDir("/a", {}, {}), LogDir("/b", {}, {}, error="KAFKA_STORAGE_ERROR")),
            3: (LogDir("/a", {}, {}),),
        }
    )
    assert sizes.of(at, (3, 1, 2, 4)) == (0, 5, None, None)
    assert sizes.arriving(at, (1, 2, 3, 4)) == 3


def _refuse(shop: Shop, method: str, error: str, item: str | None = None) -> None:
    shop.cluster.faults.fail(Fault(error, "No."), method=method, nth=None, item=item)


def test_list_topics_without_permission_for_moves_uses_metadata(shop: Shop) -> None:
    _refuse(shop, "moves", "CLUSTER_AUTHORIZATION_FAILED")
    view = list_topics(shop.workspace, ALL)
    assert len(view.topics) == 4
    assert [d.code for d in view.diagnostics] == ["moves-unknown"]


def test_list_topics_passes_on_other_faults(shop: Shop) -> None:
    _refuse(shop, "moves", "INVALID_REQUEST")
    with pytest.raises(KdeclareError, match="No"):
        list_topics(shop.workspace, ALL)


def test_describe_topics_without_permission_for_configs_warns(shop: Shop) -> None:
    _refuse(shop, "configs", "TOPIC_AUTHORIZATION_FAILED", "TOPIC/orders")

    def get_orders_configs(view: TopicsView) -> object:
        return next(d.configs for d in view.topics if d.name == "orders")

    view = describe_topics(shop.workspace, ALL)
    assert get_orders_configs(view) is None
    assert [(d.code, d.subject) for d in view.diagnostics] == [("configs-unknown", "orders")]


@pytest.mark.parametrize("only", [{UNDER_MIN}, {AT_MIN, UNDER}])
def test_condition_that_needs_unreadable_configs_is_rejected(
    shop: Shop, only: set[PartitionCondition]
) -> None:
    _refuse(shop, "configs", "TOPIC_AUTHORIZATION_FAILED", "TOPIC/orders")
    with pytest.raises(KdeclareError) as refused:
        describe_topics(shop.workspace, ALL, only)
    assert [(d.code, d.is_error) for d in refused.value.diagnostics] == [("configs-unknown", True)]
    with pytest.raises(KdeclareError):
        describe_topics(shop.workspace, ALL, overridden=True)
    assert shop.find_partitions({UNDER}) == []


def test_describe_topics_of_empty_cluster_is_empty(shop: Shop) -> None:
    shop.cluster.delete_topics(dict.fromkeys(["orders", "payments", "refunds", "__consumer_offsets"]))
    assert list_topics(shop.workspace, ALL, configs=True, sizes=True).topics == ()
    assert describe_topics(shop.workspace, ALL, {OFFLINE}, sizes=True).of_partitions == 0
