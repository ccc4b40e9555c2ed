"""What runs report about the predictions of their plans, and what they read for it."""

import time
from collections import Counter

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observed_effect import EffectStatus, ObservedEffect
from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.executor.effects import MAX_EFFECTS, observe_run_effects, read_effects
from kdeclare.engine.planning.request import DeletionLimit, PlanScope
from kdeclare.providers.kafka.effects import kafka_effects
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from tests.engine.moving import MovingWorld, assigned_topic, reassignment
from tests.engine.world import World, topic

HOUR = 3_600_000
FIRST = TopicPartition("orders", 0)
SCOPE = PlanScope(impact=True, allow_deletes=True, allow_empty=True)
PART = PlanScope(impact=True, complete=False)
UNLIMITED = {"retention.ms": "-1", "segment.ms": str(HOUR)}
SHORT = {"retention.ms": str(24 * HOUR), "segment.ms": str(HOUR)}
PAIR = {"min.insync.replicas": "2"}


def orders(**configs: str) -> DesiredResource:
    """Declare a topic with one partition."""
    return topic("orders", partitions=1, replicationFactor=3, configs=configs or UNLIMITED)


@pytest.fixture
def world() -> World:
    """A topic with one partition and a record per hour for 100 hours."""
    world = World()
    world.apply(orders())
    world.cluster.produce("orders", 100)
    set_start(world, 0)
    return world


@pytest.fixture
def movable() -> MovingWorld:
    """Five brokers: 1 and 4 are in rack a, 2 and 5 in rack b, 3 in rack c."""
    return MovingWorld()


def set_start(world: World, start: int) -> None:
    """Delete the records before an offset, as Kafka does."""
    now_ms = int(time.time() * 1000)
    times = [now_ms - (100 - number) * HOUR + 60_000 for number in range(100)]
    world.cluster.set_log(FIRST, start=start, times=times[start:])


def observe(world: World, result: ApplyResult) -> tuple[ObservedEffect, ...]:
    """Observe the effects of a run, and check that they are stored with it."""
    effects = observe_run_effects(world.store, world.connect(), result)
    assert result.run_id is not None
    assert read_effects(world.store, result.run_id) == effects
    return effects


def list_texts(effects: tuple[ObservedEffect, ...]) -> list[str]:
    """Return the effects as lines of text."""
    return [f"{item.resource}: {item.status.value}: {item.observed}" for item in effects]


def test_records_that_kafka_has_not_deleted_yet_are_pending(world: World) -> None:
    (effect,) = observe(world, world.apply(orders(**SHORT), scope=SCOPE))
    assert effect.status is EffectStatus.PENDING
    assert effect.observed == (
        "So far, Kafka has deleted 0 of these records. Every 5 min, brokers check which records to delete."
    )
    assert effect.predicted.startswith("Kafka deletes 74 to 76 of 100 records (up to 76%, about 74.2 KiB). ")
    assert (effect.path, effect.figures) == ("configs.retention.ms", {"records_deleted": 0})


@pytest.mark.parametrize(
    ("start", "line"),
    [
        (10, "pending: So far, Kafka has deleted 10 of these records."),
        (74, "observed: Kafka has deleted 74 records."),
        (76, "observed: Kafka has deleted 76 records."),
        (77, "unexpected: Kafka has deleted 77 records."),
    ],
)
def test_deleted_records_are_counted(world: World, start: int, line: str) -> None:
    result = world.apply(orders(**SHORT), scope=SCOPE)
    set_start(world, start)
    (text,) = list_texts(observe(world, result))
    assert text.startswith(f"Topic/orders: {line}")


def test_records_deleted_before_the_plan_do_not_count(world: World) -> None:
    set_start(world, 40)
    result = world.apply(orders(**SHORT), scope=SCOPE)
    set_start(world, 75)
    (effect,) = observe(world, result)
    assert effect.figures == {"records_deleted": 35}


def test_limits_that_delete_nothing_are_not_reported(world: World) -> None:
    configs = {**UNLIMITED, "retention.ms": str(167 * HOUR)}
    assert (
        observe_run_effects(world.store, world.connect(), world.apply(orders(**configs), scope=SCOPE)) == ()
    )


def test_records_deleted_against_the_prediction_are_reported(world: World) -> None:
    configs = {**UNLIMITED, "retention.ms": str(167 * HOUR)}
    result = world.apply(orders(**configs), scope=SCOPE)
    set_start(world, 5)
    assert list_texts(observe(world, result)) == ["Topic/orders: unexpected: Kafka has deleted 5 records."]


def test_deleted_topic_is_gone(world: World) -> None:
    (effect,) = observe(world, world.apply(scope=SCOPE))
    assert (effect.status, effect.observed) == (EffectStatus.OBSERVED, "The topic is gone.")
    assert effect.predicted == "The topic holds 100 records (97.7 KiB)."


def test_topic_that_a_client_creates_again_is_unexpected(world: World) -> None:
    """A producer does so with its next record if the brokers create topics automatically."""
    result = world.apply(scope=SCOPE)
    world.cluster.create_topics([NewTopic("orders", 1, 3, None, {})])
    assert list_texts(observe(world, result)) == [
        "Topic/orders: unexpected: The topic is gone, but a client has created a new topic with its name."
    ]


def test_moves_report_sizes_and_duration(movable: MovingWorld) -> None:
    movable.apply(assigned_topic("t", [1, 2], [2, 1]))
    movable.cluster.produce("t", 20_000)
    result = movable.apply(reassignment(("t-0", [1, 3]), ("t-1", [3, 4])), scope=PART)
    (effect,) = observe(movable, result)
    assert effect.predicted.startswith("The moves copy 28.6 MiB from brokers 2 (19.1 MiB)")
    assert effect.observed.startswith("The new replicas contain 28.6 MiB. The moves took ")
    assert effect.figures["bytes_held"] == 30_000_000
    brokers = effect.figures["brokers"]
    assert isinstance(brokers, dict)
    assert [brokers[broker]["bytes_in"] for broker in ("3", "4")] == [20_000_000, 10_000_000]


def test_moves_that_copy_no_records_are_not_reported(movable: MovingWorld) -> None:
    movable.apply(assigned_topic("t", [1, 2], [2, 1]))
    result = movable.apply(reassignment(("t-0", [3, 4])), scope=PART)
    assert "The moves copy no records." in [item.text for item in result.plan.observations]
    assert observe(movable, result) == ()


def test_moves_that_continue_after_the_run_are_not_observed(movable: MovingWorld) -> None:
    movable.apply(assigned_topic("t", [1, 2]))
    movable.cluster.produce("t", 1000)
    movable.slow_moves(1000)
    movable.cluster.tick_on_poll = False
    result = movable.apply(reassignment(("t-0", [1, 3])), scope=PART, wait=False)
    assert observe_run_effects(movable.store, movable.connect(), result) == ()


def test_partitions_that_depend_on_one_rack_are_counted_again(movable: MovingWorld) -> None:
    movable.apply(assigned_topic("t", [1, 2, 3], [2, 3, 4], configs=PAIR))
    moves = reassignment(("t-0", [1, 2, 4]), ("t-1", [2, 3, 1]))
    (outage,) = [e for e in observe(movable, movable.apply(moves, scope=PART)) if e.code == "not-writable"]
    assert list_texts((outage,)) == [
        "Reassignment/move: observed: 1 of 2 moved partitions rejects records from producers with acks=all "
        "if one rack is down."
    ]


def test_partitions_that_depend_on_one_broker_are_counted_again(movable: MovingWorld) -> None:
    movable.apply(assigned_topic("t", [1, 2, 3], [2, 3, 1], [4, 5, 2], configs=PAIR))
    result = movable.apply(topic("t", replicationFactor=2, configs=PAIR), scope=PART)
    assert list_texts(observe(movable, result)) == [
        "Topic/t: observed: 3 of 3 partitions reject records from producers with acks=all if any of their "
        "brokers is down."
    ]
    resource = ConfigResource(ConfigScope.TOPIC, "t")
    movable.cluster.set_overrides(resource, {"min.insync.replicas": "1"})
    assert list_texts(observe(movable, result)) == [
        "Topic/t: unexpected: 0 of 3 partitions reject records from producers with acks=all if any of their "
        "brokers is down."
    ]


@pytest.mark.parametrize("method", ["topics", "list_offsets"])
def test_unreadable_records_are_unknown(world: World, method: str) -> None:
    result = world.apply(orders(**SHORT), scope=SCOPE)
    world.cluster.faults.fail(Fault("TOPIC_AUTHORIZATION_FAILED", "no"), method=method, nth=None)
    assert list_texts(observe(world, result)) == [
        "Topic/orders: unknown: kdeclare could not observe the records: kdeclare lacks the Describe "
        "permission on the topic."
    ]


def test_unreadable_sizes_leave_the_duration(movable: MovingWorld) -> None:
    movable.apply(assigned_topic("t", [1, 2]))
    movable.cluster.produce("t", 1000)
    result = movable.apply(reassignment(("t-0", [1, 3])), scope=PART)
    movable.cluster.faults.fail(Fault("CLUSTER_AUTHORIZATION_FAILED", "no"), method="log_dirs", nth=None)
    (effect,) = observe(movable, result)
    assert effect.status is EffectStatus.UNKNOWN
    assert "kdeclare lacks the Describe permission on the cluster. The moves took " in effect.observed


def test_nothing_is_read_after_the_time_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    result = world.apply(orders(**SHORT), scope=SCOPE)
    monkeypatch.setattr(kafka_effects, "_TIME_LIMIT_S", -1.0)
    world.cluster.calls.clear()
    (effect,) = observe(world, result)
    assert "reading the cluster took too long" in effect.observed
    assert world.cluster.calls == []


def test_nothing_is_read_without_predictions(world: World) -> None:
    result = world.apply(orders(**SHORT))
    world.cluster.calls.clear()
    assert observe_run_effects(world.store, world.connect(), result) == ()
    assert world.cluster.calls == []


def test_failed_changes_are_not_observed(world: World) -> None:
    plan = world.plan(orders(**SHORT), scope=SCOPE)
    world.cluster.faults.fail(Fault("INVALID_REQUEST", "no"), method="alter_configs", nth=None)
    result = world.run(plan)
    assert not result.complete
    assert observe_run_effects(world.store, world.connect(), result) == ()


def test_number_of_requests_does_not_depend_on_topics() -> None:
    world = World()
    names = [f"t{number}" for number in range(30)]
    unlimited, short = ({"retention.ms": value} for value in ("-1", "1000"))
    world.apply(*(topic(name, partitions=2, configs=unlimited) for name in names))
    for name in names:
        world.cluster.produce(name, 10)
    shortened = [topic(name, partitions=2, configs=short) for name in names[:20]]
    result = world.apply(
        *shortened, scope=PlanScope(impact=True, allow_deletes=True, max_deletes=DeletionLimit.parse("100%"))
    )
    world.cluster.calls.clear()
    assert len(observe(world, result)) == 30
    assert Counter(call.method for call in world.cluster.calls) == {
        "topics": 1,
        "list_offsets": 1,
        "configs": 1,
    }


def test_only_the_most_important_effects_are_kept(world: World) -> None:
    names = [f"t{number}" for number in range(MAX_EFFECTS + 5)]
    unlimited, short = ({"retention.ms": value} for value in ("-1", "1000"))
    world.apply(orders(), *(topic(name, partitions=1, configs=unlimited) for name in names))
    for name in names:
        world.cluster.produce(name, 1)
    result = world.apply(orders(), *(topic(n, partitions=1, configs=short) for n in names), scope=SCOPE)
    world.cluster.produce("t9", 5)
    world.cluster.set_log(TopicPartition("t9", 0), start=5)
    effects = observe(world, result)
    assert len(effects) == MAX_EFFECTS
    assert list_texts(effects[:1]) == ["Topic/t9: unexpected: Kafka has deleted 5 records."]
