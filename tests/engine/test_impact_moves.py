"""What plans say about moves of replicas: copied bytes, duration and disks, and what they read for it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import PlanOptions
from kdeclare.core.plans.observation import ObservationLevel
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.plan_options import KafkaPlanOptions
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.request_values import LogDir
from tests.engine.impacts import find_figures, list_texts, observe
from tests.engine.moving import (
    FOLLOWER_RATE,
    LEADER_RATE,
    MovingWorld,
    assigned_topic,
    move_as_other_client,
    reassignment,
    set_configs,
)
from tests.engine.world import World, topic

MIB = 2**20
RECORD_BYTES = 1000
"""The size of each record in the in-memory cluster."""
PAIR = {"min.insync.replicas": "2"}


@pytest.fixture
def world() -> MovingWorld:
    """Five brokers: 1 and 4 are in rack a, 2 and 5 in rack b, 3 in rack c."""
    return MovingWorld()


def test_copied_bytes_name_brokers(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2], [2, 1]))
    world.cluster.produce("t", 2 * 10 * MIB // RECORD_BYTES)
    observations = observe(world, reassignment(("t-0", [1, 3]), ("t-1", [3, 4])))
    assert list_texts(observations, "copied-bytes") == [
        "Reassignment/move: info: The moves copy 30 MiB from brokers 2 (20 MiB) and 1 (10 MiB) to brokers "
        "3 (20 MiB) and 4 (10 MiB)."
    ]
    size = 2 * 10 * MIB // RECORD_BYTES * RECORD_BYTES // 2
    brokers = find_figures(observations, "copied-bytes")["brokers"]
    amounts = {b: (n["bytes_in"], n["bytes_out"], n["bytes_deleted"]) for b, n in brokers.items()}
    assert amounts == {
        "1": (0, size, size),
        "2": (0, 2 * size, 2 * size),
        "3": (2 * size, 0, 0),
        "4": (size, 0, 0),
    }


def test_new_order_of_replicas_copies_nothing(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2]))
    assert observe(world, reassignment(("t-0", [2, 1]))) == ()


def test_fewer_replicas_copy_nothing(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2, 3]))
    assert list_texts(observe(world, topic("t", replicationFactor=2)), "copied-bytes") == []


def test_what_an_unfinished_move_has_copied_is_not_copied_again(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2]))
    world.cluster.produce("t", 1000)
    world.slow_moves(10)
    world.cluster.tick_on_poll = False
    move_as_other_client(world, "t-0", [1, 3])
    world.cluster.tick(5)
    held = world.cluster.log_dirs(["t"])[3][0].sizes[TopicPartition("t", 0)]
    assert 0 < held < 1000 * RECORD_BYTES
    options = PlanOptions(KafkaPlanOptions(override_reassignments=True))
    scope = PlanScope(impact=True, complete=False, options=options)
    figures = find_figures(observe(world, reassignment(("t-0", [3, 4])), scope=scope), "copied-bytes")
    assert figures["bytes_copied"] == 2 * 1000 * RECORD_BYTES - held
    assert figures["brokers"]["3"]["bytes_in"] == 1000 * RECORD_BYTES - held


def test_throttle_gives_least_duration(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2], [1, 2]))
    world.cluster.produce("t", 2_000_000)
    moves = reassignment(
        ("t-0", [1, 3]), ("t-1", [1, 3]), throttle="10MB/s", batchSize=1, interBatchPause="30s"
    )
    observations = observe(world, moves)
    (text,) = list_texts(observations, "copied-bytes")
    # 2 GB at 10 MB/s take 200 s, and 19 s of the pause; Kafka permits 11 s at once at the beginning.
    assert "At 9.5 MiB/s per broker, this takes at least 3 min 28 s." in text
    assert find_figures(observations, "copied-bytes")["seconds_at_least"] == 208


def test_resources_with_the_same_throttle_share_the_duration() -> None:
    world = MovingWorld(pace=Pace(throttle=10_000_000))
    world.apply(assigned_topic("t", [1]), assigned_topic("u", [1]))
    for name in ("t", "u"):
        world.cluster.produce(name, 1_000_000)
    declared = [assigned_topic(name, [1, 2]) for name in ("t", "u")]
    texts = list_texts(observe(world, *declared), "copied-bytes")
    assert [text.split(": ")[0] for text in texts] == ["Topic/t", "Topic/u"]
    (sentence,) = {text.split(". ", 1)[1] for text in texts}
    assert (
        sentence == "At 9.5 MiB/s per broker, this and the moves of 1 other resource take at least 3 min 9 s."
    )


def test_rates_of_other_clients_count(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2]))
    world.cluster.produce("t", 1_000_000)
    rates = {LEADER_RATE: "1000000", FOLLOWER_RATE: "1000000"}
    set_configs(world, "BROKER/3", rates)
    observations = observe(world, reassignment(("t-0", [1, 3]), throttle="10MB/s"))
    (text,) = list_texts(observations, "copied-bytes")
    assert "With the throttles of the brokers, this takes at least 16 min 29 s." in text


def test_fullest_disk_is_named(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2]), assigned_topic("u", [3, 4]))
    world.cluster.produce("t", 2_000_000)
    world.cluster.produce("u", 1_000_000)
    world.cluster.disk_sizes.update(dict.fromkeys(range(1, 6), 10_000_000_000))
    world.cluster.usable.update({1: 3_000_000_000, 3: 5_000_000_000, 4: 7_000_000_000})
    moves = reassignment(("t-0", [3, 4]), ("u-0", [1, 4]))
    observations = observe(world, moves)
    (text,) = list_texts(observations, "copied-bytes")
    # Broker 3 gets 2 GB and loses 1 GB. Broker 4 gets 2 GB. Broker 1 gets 1 GB and loses 2 GB.
    assert text.endswith("Afterwards, the disk of broker 3 is 60% full (currently 50%).")
    brokers = find_figures(observations, "copied-bytes")["brokers"]
    percents = {b: (n["disk_percent_before"], n["disk_percent_after"]) for b, n in brokers.items()}
    assert percents == {"1": (70, 60), "2": (None, None), "3": (50, 60), "4": (30, 50)}


def test_missing_right_is_named(world: MovingWorld) -> None:
    world.apply(assigned_topic("t", [1, 2]))
    fault = Fault("CLUSTER_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="log_dirs", nth=None)
    assert list_texts(observe(world, reassignment(("t-0", [1, 3]))), "not-determined") == [
        "Reassignment/move: unknown: kdeclare could not determine how many bytes the moves copy: kdeclare "
        "lacks the Describe permission on the cluster."
    ]


OFFLINE = LogDir("/d", {}, {}, error="KAFKA_STORAGE_ERROR")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({1: (OFFLINE,)}, "a log directory of broker 1 is offline (KAFKA_STORAGE_ERROR)"),
        ({}, "broker 1 does not respond"),
        ({1: (LogDir("/d", {}, {}),)}, "broker 1 does not report the size of u-0"),
    ],
)
def test_partition_without_size_is_named(
    world: MovingWorld,
    monkeypatch: pytest.MonkeyPatch,
    answer: Mapping[int, tuple[LogDir, ...]],
    reason: str,
) -> None:
    world.apply(assigned_topic("t", [2, 1]), assigned_topic("u", [1]))
    known = {2: (LogDir("/d", {TopicPartition("t", 0): 5 * MIB}, {}),)}
    monkeypatch.setattr(world.cluster, "log_dirs", lambda _topics=None: {**known, **answer})
    observations = observe(world, reassignment(("t-0", [3, 4]), ("u-0", [3])))
    assert list_texts(observations, "not-determined") == [
        "Reassignment/move: unknown: kdeclare could not determine how many bytes the moves of u-0 copy: "
        f"{reason}."
    ]
    assert list_texts(observations, "copied-bytes") == [
        "Reassignment/move: info: The moves copy at least 10 MiB from broker 2 to brokers 3 (5 MiB) and "
        "4 (5 MiB)."
    ]


def test_all_sizes_unknown_leaves_out_the_figures(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply(assigned_topic("t", [1]))
    monkeypatch.setattr(world.cluster, "log_dirs", lambda _topics=None: {})
    observations = observe(world, reassignment(("t-0", [3])))
    assert [item.level for item in observations] == [ObservationLevel.UNKNOWN]


def test_slow_requests_end_the_reading(world: MovingWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdeclare.providers.kafka.impact.impact_reader._TIME_LIMIT_S", -1.0)
    world.apply(assigned_topic("t", [1]))
    (observation,) = observe(world, reassignment(("t-0", [3])))
    assert observation.text.endswith("reading the data for the impact of the plan took too long.")


# requests


def count_requests(world: World, declared: Sequence[DesiredResource], *, impact: bool) -> Counter[str]:
    world.cluster.calls.clear()
    world.plan(*declared, scope=PlanScope(impact=impact, complete=False))
    return Counter(call.method for call in world.cluster.calls)


@pytest.mark.parametrize(
    ("change", "requests"),
    [
        (lambda: [reassignment(("t-0", [2, 1, 3]))], {}),
        (lambda: [reassignment(("t-0", [4, 2, 3]))], {"log_dirs": 1}),
        (lambda: [reassignment(("t-0", [1, 2, 4]))], {"log_dirs": 1, "configs": 1}),
        (lambda: [reassignment(("t-0", [1, 2, 4]), ("u-0", [1, 2, 4]))], {"log_dirs": 1, "configs": 1}),
        (lambda: [topic("t", replicationFactor=2)], {"configs": 1}),
        (lambda: [topic("t", replicationFactor=4)], {"log_dirs": 1, "configs": 1}),
        (lambda: [topic("t", configs=PAIR)], {"configs": 1}),
        (lambda: [topic("t", configs={"compression.type": "lz4"})], {}),
        (lambda: [topic("new", partitions=3, replicationFactor=3)], {}),
    ],
    ids=[
        "new order",
        "move within racks",
        "move to another rack",
        "moves of two topics",
        "fewer replicas",
        "more replicas",
        "min ISR",
        "compression",
        "new topic",
    ],
)
def test_only_what_a_move_needs_is_read(
    world: MovingWorld, change: Callable[[], list[DesiredResource]], requests: Mapping[str, int]
) -> None:
    """These requests are sent in addition to those of a plan without impact."""
    world.apply(assigned_topic("t", [1, 2, 3]), assigned_topic("u", [1, 2, 3]))
    without = count_requests(world, change(), impact=False)
    assert count_requests(world, change(), impact=True) - without == requests
