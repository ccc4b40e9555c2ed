"""Features of only the in-memory cluster: explicit time, faults, request log, copies, stale reads."""

import copy
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import Move
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, NewPartitions, NewTopic
from kdeclare.providers.kafka.testing import Crash, MemoryCluster

ORDERS = ConfigResource(ConfigScope.TOPIC, "orders")
REFUSED = Fault("INVALID_REQUEST", "no")


def make_topic(name: str, *replicas: tuple[int, ...]) -> NewTopic:
    """Create a topic by assignments, by default on broker 1."""
    return NewTopic(name, None, None, dict(enumerate(replicas or ((1,),))), {})


def make_alteration(name: str, value: str = "7") -> ConfigAlteration:
    """Set retention.ms of a topic."""
    resource = ConfigResource(ConfigScope.TOPIC, name)
    return ConfigAlteration(resource, (ConfigOp("retention.ms", FieldOp.SET, value),))


@pytest.fixture
def cluster() -> MemoryCluster:
    """Three brokers and two topics."""
    made = MemoryCluster()
    made.create_topics([make_topic("orders", (1, 2)), make_topic("other")])
    made.calls.clear()
    return made


def test_memory_cluster_implements_port(cluster: MemoryCluster) -> None:
    port: Cluster = cluster
    port.close()
    port.close()
    assert cluster.closed


# time


def test_move_takes_configured_ticks(cluster: MemoryCluster) -> None:
    cluster.tick_on_poll = False
    cluster.move_ticks = 3
    where = TopicPartition("orders", 0)
    assert cluster.reassign({where: (1, 3)}, allow_replication_factor_change=False) == {where: None}
    for _ in range(3):
        assert cluster.moves() == {where: Move((1, 3, 2), (3,), (2,))}
        cluster.tick()
    assert cluster.moves() == {}
    assert cluster.partition(where).replicas == (1, 3)


def test_polling_advances_moves(cluster: MemoryCluster) -> None:
    cluster.move_ticks = 2
    where = TopicPartition("orders", 0)
    cluster.reassign({where: (1, 3)}, allow_replication_factor_change=False)
    assert [bool(cluster.moves()) for _ in range(4)] == [True, True, False, False]


def test_move_to_fenced_broker_waits(cluster: MemoryCluster) -> None:
    where = TopicPartition("orders", 0)
    cluster.fence(3)
    cluster.reassign({where: (1, 3)}, allow_replication_factor_change=False)
    cluster.tick(10)
    assert where in cluster.moves()
    cluster.fence(3, False)
    cluster.tick()
    assert cluster.moves() == {}


def test_replicas_of_returned_broker_catch_up(cluster: MemoryCluster) -> None:
    where = TopicPartition("orders", 0)
    cluster.fence(1)
    assert (cluster.partition(where).isr, cluster.partition(where).leader) == ((2,), 2)
    assert cluster.describe().brokers[0].fenced
    cluster.fence(1, False)
    cluster.tick()
    assert cluster.partition(where).isr == (2, 1)


def test_move_to_stalled_broker_waits(cluster: MemoryCluster) -> None:
    where = TopicPartition("orders", 0)
    cluster.stalled.add(3)
    cluster.tick_on_poll = False
    cluster.reassign({where: (1, 3)}, allow_replication_factor_change=False)
    cluster.tick(10)
    assert cluster.moves() == {where: Move((1, 3, 2), (3,), (2,))}
    cluster.stalled.clear()
    cluster.tick()
    assert cluster.moves() == {}


def test_stalled_broker_does_not_delay_others(cluster: MemoryCluster) -> None:
    where = TopicPartition("other", 0)
    cluster.stalled.add(3)
    cluster.reassign({where: (1, 2, 3)}, allow_replication_factor_change=True)
    cluster.tick()
    assert cluster.partition(where).isr == (1, 2)
    assert cluster.partition(where).adding == (2, 3)


def test_replica_size_grows_with_ticks(cluster: MemoryCluster) -> None:
    where = TopicPartition("orders", 0)
    cluster.tick_on_poll = False
    cluster.move_ticks = 4
    cluster.produce("orders", 10)
    cluster.reassign({where: (1, 3)}, allow_replication_factor_change=False)

    def read_size(broker: int) -> int | None:
        return cluster.log_dirs(["orders"])[broker][0].sizes.get(where)

    seen = []
    for stalled in (False, False, True, True, False):
        seen.append(read_size(3))
        cluster.stalled.clear()
        if stalled:
            cluster.stalled.add(3)
        cluster.tick()
    assert seen == [0, 2500, 5000, 5000, 5000]
    assert (read_size(1), read_size(2), read_size(3)) == (10_000, 10_000, 7500)
    cluster.tick()
    assert (read_size(1), read_size(2), read_size(3)) == (10_000, None, 10_000)


def test_new_target_keeps_copied_replicas(cluster: MemoryCluster) -> None:
    where = TopicPartition("other", 0)
    cluster.tick_on_poll = False
    cluster.move_ticks = 2
    cluster.reassign({where: (1, 2)}, allow_replication_factor_change=True)
    cluster.tick()
    cluster.reassign({where: (2, 1)}, allow_replication_factor_change=True)
    assert cluster.partition(where).copied == ((2, 1),)
    cluster.tick()
    assert cluster.partition(where).isr == (1, 2)
    assert cluster.partition(where).copied == ()


def test_fenced_brokers_have_no_log_dirs(cluster: MemoryCluster) -> None:
    cluster.fence(2)
    assert sorted(cluster.log_dirs()) == [1, 3]
    replica = (TopicPartition("orders", 0), 2)
    fault = cluster.move_log_dirs({replica: "/memory"})[replica]
    assert fault is not None
    assert (fault.error, fault.kind) == ("BROKER_NOT_AVAILABLE", FaultKind.RETRIABLE)


def test_fenced_broker_is_not_elected(cluster: MemoryCluster) -> None:
    where = TopicPartition("orders", 0)
    cluster.fence(1)
    fault = cluster.elect_leaders([where])[where]
    assert fault is not None
    assert fault.error == "PREFERRED_LEADER_NOT_AVAILABLE"
    cluster.fence(1, False)
    assert cluster.partition(where).leader == 2
    cluster.tick()
    assert cluster.elect_leaders([where]) == {where: None}
    assert cluster.partition(where).leader == 1


# stale reads


def test_topics_can_be_stale(cluster: MemoryCluster) -> None:
    cluster.stale_reads = 2
    where = TopicPartition("orders", 0)
    cluster.reassign({where: (2, 1)}, allow_replication_factor_change=False)
    seen = [cluster.topics(["orders"])["orders"].partitions[0].replicas for _ in range(3)]
    assert seen == [(1, 2), (1, 2), (2, 1)]


def test_created_topic_can_be_visible_late(cluster: MemoryCluster) -> None:
    cluster.stale_reads = 1
    cluster.create_topics([make_topic("late")])
    assert "late" not in cluster.topics()
    assert "late" in cluster.topics()


def test_request_without_metadata_change_leaves_topics_fresh(cluster: MemoryCluster) -> None:
    cluster.stale_reads = 1
    before = cluster.topics()
    cluster.alter_configs([make_alteration("orders")])
    cluster.create_topics([make_topic("next")], validate_only=True)
    cluster.create_partitions([NewPartitions("orders", 1)])
    assert cluster.topics() == before


# faults


def test_fault_can_affect_whole_request(cluster: MemoryCluster) -> None:
    before = cluster.dump()
    cluster.faults.fail(Fault("NOT_CONTROLLER", "", FaultKind.RETRIABLE), nth=2)
    assert cluster.alter_configs([make_alteration("orders")]) == {ORDERS: None}
    with pytest.raises(Fault) as caught:
        cluster.delete_topics({"orders": None})
    assert (caught.value.error, caught.value.kind) == ("NOT_CONTROLLER", FaultKind.RETRIABLE)
    assert cluster.dump() != before
    assert "orders" in cluster.topics()
    assert cluster.delete_topics({"orders": None}) == {"orders": None}


def test_fault_can_affect_one_item(cluster: MemoryCluster) -> None:
    cluster.faults.fail(REFUSED, item="orders")
    results = cluster.delete_topics(dict.fromkeys(["orders", "other"]))
    assert results["other"] is None
    assert str(results["orders"]) == str(REFUSED)
    assert set(cluster.topics()) == {"orders"}
    assert cluster.delete_topics({"orders": None}) == {"orders": None}


def test_fault_can_be_permanent(cluster: MemoryCluster) -> None:
    cluster.faults.fail(REFUSED, nth=None, method="describe")
    for _ in range(3):
        with pytest.raises(Fault):
            cluster.describe()
    cluster.faults.clear()
    cluster.describe()


@pytest.mark.parametrize("after_effect", [False, True])
def test_time_out_can_follow_or_prevent_effect(cluster: MemoryCluster, after_effect: bool) -> None:
    cluster.faults.time_out(after_effect=after_effect)
    with pytest.raises(Fault) as caught:
        cluster.delete_topics({"orders": None})
    assert (caught.value.error, caught.value.kind) == ("REQUEST_TIMED_OUT", FaultKind.UNKNOWN)
    assert ("orders" not in cluster.topics()) is after_effect
    assert cluster.calls[0].outcome == ("unanswered" if after_effect else "lost")


@pytest.mark.parametrize("after_effect", [False, True])
def test_crash_is_not_subclass_of_exception(cluster: MemoryCluster, after_effect: bool) -> None:
    assert not issubclass(Crash, Exception)
    cluster.faults.crash(after_effect=after_effect, method="delete_topics", item="orders")
    cluster.delete_topics({"other": None})
    with pytest.raises(Crash):
        cluster.delete_topics({"orders": None})
    assert ("orders" not in cluster.topics()) is after_effect
    assert cluster.requests()[-1].outcome == ("crashed after" if after_effect else "crashed before")


def test_validate_only_is_not_counted_as_a_change(cluster: MemoryCluster) -> None:
    cluster.faults.crash(after_effect=False)
    cluster.alter_configs([make_alteration("orders")], validate_only=True)
    assert cluster.requests() == []
    with pytest.raises(Crash):
        cluster.alter_configs([make_alteration("orders")])


def test_other_client_can_change_first(cluster: MemoryCluster) -> None:
    cluster.faults.run_before(lambda other: other.delete_topics({"orders": None}), method="alter_configs")
    result = cluster.alter_configs([make_alteration("orders")])[ORDERS]
    assert result is not None
    assert result.error == "UNKNOWN_TOPIC_OR_PARTITION"
    assert [c.method for c in cluster.calls] == ["alter_configs"]


def test_other_client_sees_no_faults(cluster: MemoryCluster) -> None:
    cluster.faults.fail(REFUSED, nth=None)
    assert cluster.elsewhere().delete_topics({"orders": None}) == {"orders": None}
    assert "orders" not in cluster.topics()


def test_fault_can_affect_one_election_or_directory(cluster: MemoryCluster) -> None:
    where = TopicPartition("orders", 0)
    cluster.faults.fail(REFUSED, item="orders-0", method="elect_leaders")
    cluster.faults.fail(REFUSED, item="orders-0@2")
    assert str(cluster.elect_leaders([where])[where]) == str(REFUSED)
    results = cluster.move_log_dirs({(where, 1): "/memory", (where, 2): "/memory"})
    assert results[where, 1] is None
    assert str(results[where, 2]) == str(REFUSED)
    assert [(c.method, c.items) for c in cluster.requests()] == [
        ("elect_leaders", ("orders-0",)),
        ("move_log_dirs", ("orders-0@1", "orders-0@2")),
    ]


# the request log


def test_every_request_is_recorded(cluster: MemoryCluster) -> None:
    cluster.topics(["orders"])
    cluster.alter_configs([make_alteration("orders")], validate_only=True)
    cluster.alter_configs([make_alteration("orders"), make_alteration("other")])
    cluster.moves()
    where = TopicPartition("orders", 0)
    cluster.reassign({where: (2, 1)}, allow_replication_factor_change=False)
    assert [(c.method, c.items, c.validate_only) for c in cluster.calls] == [
        ("topics", ("orders",), False),
        ("alter_configs", ("TOPIC/orders",), True),
        ("alter_configs", ("TOPIC/orders", "TOPIC/other"), False),
        ("moves", (), False),
        ("reassign", ("orders-0",), False),
    ]
    assert [c.method for c in cluster.requests()] == ["alter_configs", "reassign"]
    assert len(cluster.requests("alter_configs")) == 2


# copies


def test_copy_is_independent_cluster(cluster: MemoryCluster) -> None:
    cluster.produce("orders", 3)
    cluster.faults.fail(REFUSED)
    twin = copy.deepcopy(cluster)
    assert twin.dump(ids=True) == cluster.dump(ids=True)
    twin.delete_topics({"orders": None})
    assert "orders" in cluster.topics()
    assert twin.dump() != cluster.dump()


def test_dump_is_plain_data_with_ids_on_request(cluster: MemoryCluster) -> None:
    before, with_ids = cluster.dump(), cluster.dump(ids=True)
    assert json.loads(json.dumps(before))["topics"]["orders"]["partitions"][0]["replicas"] == [1, 2]
    cluster.delete_topics({"orders": None})
    cluster.create_topics([make_topic("orders", (1, 2))])
    assert cluster.dump() == before
    assert cluster.dump(ids=True) != with_ids


def test_overrides_of_one_or_all_resources(cluster: MemoryCluster) -> None:
    cluster.alter_configs([make_alteration("orders")])
    assert cluster.overrides(ORDERS) == {"retention.ms": "7"}
    assert cluster.overrides() == {
        ConfigResource(ConfigScope.BROKER, ""): {"min.insync.replicas": "1"},
        ORDERS: {"retention.ms": "7"},
    }


def test_same_seed_gives_same_placement() -> None:
    def place_and_dump(seed: int) -> object:
        cluster = MemoryCluster(seed=seed)
        cluster.create_topics([NewTopic("t", 9, 2, None, {})])
        return cluster.dump()

    assert place_and_dump(1) == place_and_dump(1)
    assert place_and_dump(1) != place_and_dump(2)


def test_memory_cluster_is_thread_safe(cluster: MemoryCluster) -> None:
    def work(number: int) -> None:
        cluster.create_topics([make_topic(f"t{number}")])
        cluster.alter_configs([make_alteration(f"t{number}", str(number))])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(200)))
    assert len(cluster.topics()) == 202
    assert len(cluster.requests()) == 400


def test_min_isr_without_elr_is_ordinary_key() -> None:
    cluster = MemoryCluster(elr=False)
    wide = ConfigResource(ConfigScope.BROKER, "")
    one = ConfigResource(ConfigScope.BROKER, "1")
    assert cluster.overrides(wide) == {}
    ops = (ConfigOp("min.insync.replicas", FieldOp.SET, "2"),)
    assert cluster.alter_configs([ConfigAlteration(one, ops), ConfigAlteration(wide, ops)]) == {
        one: None,
        wide: None,
    }
    gone = (ConfigOp("min.insync.replicas", FieldOp.DELETE, None),)
    assert cluster.alter_configs([ConfigAlteration(wide, gone)]) == {wide: None}


def test_internal_topics_and_brokers_can_be_set(cluster: MemoryCluster) -> None:
    cluster.mark_internal("other")
    assert cluster.topics()["other"].internal
    cluster.set_broker(9, rack="z")
    assert cluster.describe().brokers[-1].rack == "z"
    cluster.set_static(9, {"log.retention.hours": "1"})
    assert cluster.reassign({TopicPartition("other", 0): (9,)}, allow_replication_factor_change=False)
    assert cluster.partition(TopicPartition("other", 0)).replicas == (9,)
