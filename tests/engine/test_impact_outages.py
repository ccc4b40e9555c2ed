"""What plans say about partitions that reject records if a broker or a rack is down."""

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.engine.impacts import find_figures, list_texts, observe
from tests.engine.moving import MovingWorld, assigned_topic, reassignment
from tests.engine.world import World, desired, topic

PAIR = {"min.insync.replicas": "2"}


@pytest.fixture
def world() -> MovingWorld:
    """Five brokers: 1 and 4 are in rack a, 2 and 5 in rack b, 3 in rack c."""
    return MovingWorld()


def test_move_into_one_rack_names_rack_and_partitions(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2, 3], [2, 3, 4], configs=PAIR))
    observations = observe(world, reassignment(("t-0", [1, 2, 4]), ("t-1", [2, 3, 1])))
    assert list_texts(observations, "not-writable") == [
        "Reassignment/move: effect: 1 of 2 moved partitions rejects records from producers with acks=all if "
        "one rack is down (currently 0). An outage of rack 'a' affects t-0."
    ]
    assert find_figures(observations, "not-writable") == {
        "down": "rack",
        "partitions_total": 2,
        "partitions_before": 0,
        "partitions_after": 1,
        "partitions_newly": 1,
        "worst_rack": "a",
        "worst_partitions": 1,
    }


def test_move_out_of_one_rack_is_an_improvement(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2, 4], configs=PAIR))
    observations = observe(world, reassignment(("t-0", [1, 2, 3])))
    assert list_texts(observations, "writable") == [
        "Reassignment/move: info: 0 of 1 moved partitions reject records from producers with acks=all if "
        "one rack is down (currently 1)."
    ]
    assert list_texts(observations, "not-writable") == []


def test_drain_of_the_only_broker_of_a_rack_is_reported(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", *[[1, 2, 3]] * 8, configs=PAIR))
    (text,) = list_texts(
        observe(world, desired("Reassignment", "d", topics=["t"], drain=[3])), "not-writable"
    )
    assert "8 of 8 moved partitions reject records" in text
    assert "if one rack is down (currently 0). An outage of rack" in text


def test_equal_racks_need_no_sentence(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2, 3], configs=PAIR))
    assert list_texts(observe(world, reassignment(("t-0", [4, 5, 3]))), "not-writable") == []


def test_brokers_without_racks_say_nothing_about_racks() -> None:
    world = World(MemoryCluster({1: None, 2: "b", 3: "b", 4: "c"}))
    world.apply(assigned_topic("t", [1, 2, 4], configs=PAIR))
    assert list_texts(observe(world, reassignment(("t-0", [1, 2, 3]))), "not-writable") == []


def test_fewer_replicas_name_broker_and_count_partitions(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2, 3], [2, 3, 1], [4, 5, 2], configs=PAIR))
    observations = observe(world, topic("t", replicationFactor=2, configs=PAIR))
    assert list_texts(observations, "not-writable") == [
        "Topic/t: effect: 3 of 3 partitions reject records from producers with acks=all if any of their "
        "brokers is down (currently 0). An outage of broker 3 affects t-0, t-1."
    ]
    (observation,) = [item for item in observations if item.code == "not-writable"]
    assert observation.path == "replicationFactor"


def test_many_partitions_are_counted(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", *[[1, 2, 3]] * 9))
    (text,) = list_texts(observe(world, topic("t", configs={"min.insync.replicas": "3"})), "not-writable")
    assert text.endswith("An outage of broker 1 affects t-0, t-1, t-2, t-3, t-4 and 4 more.")


def test_more_replicas_are_an_improvement(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1]))
    assert list_texts(observe(world, topic("t", replicationFactor=3)), "writable") == [
        "Topic/t: info: 0 of 1 partitions reject records from producers with acks=all if any of their "
        "brokers is down (currently 1)."
    ]


def test_whole_plan_counts(world: MovingWorld) -> None:
    """The Topic raises min.insync.replicas, and the Reassignment adds replicas: nothing gets worse."""
    world.apply(assigned_topic("t", [1, 2]))
    raised = topic("t", configs=PAIR)
    alone = observe(world, raised)
    assert [item.code for item in alone] == ["not-writable"]
    grown = reassignment(("t-0", [1, 2, 3]), allowReplicationFactorChange=True)
    assert list_texts(observe(world, raised, grown), "not-writable") == []


def test_partition_is_reported_once(world: MovingWorld) -> None:
    """The Topic and the Reassignment both make the partition depend on a rack."""
    world.apply(assigned_topic("t", [1, 2, 3]))
    both = observe(world, topic("t", configs=PAIR), reassignment(("t-0", [1, 2, 4])))
    (text,) = list_texts(both, "not-writable")
    assert text.startswith("Topic/t: effect: 1 of 1 partitions rejects records")


def test_unreadable_min_isr_names_the_permission(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2, 3], configs=PAIR), assigned_topic("u", [1, 2, 3], configs=PAIR))
    fault = Fault("TOPIC_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="configs", item="TOPIC/t", nth=None)
    observations = observe(world, reassignment(("t-0", [1, 2, 4]), ("u-0", [1, 2, 4])))
    assert list_texts(observations, "not-determined") == [
        "Reassignment/move: unknown: kdeclare could not determine whether 't' can be written while a broker "
        "or a rack is down: kdeclare lacks the DescribeConfigs permission on the topic."
    ]
    (text,) = list_texts(observations, "not-writable")
    assert "affects u-0." in text
