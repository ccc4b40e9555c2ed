"""What plans say about the records and consumers of topics, and what they read for it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.planfile import parse_plan_file, render_plan_file
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset, GroupMember, GroupType
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.impact import impact_reader
from kdeclare.providers.kafka.request_values import ActiveProducer
from tests.engine.world import World, topic
from tests.impact_texts import hide_times

HOUR = 3_600_000
FIRST = TopicPartition("orders", 0)
SHORT = {"retention.ms": str(24 * HOUR), "segment.ms": str(HOUR)}


@pytest.fixture
def world() -> World:
    """A topic with one partition and a record per hour for 100 hours, and groups at different positions."""
    world = World()
    world.apply(topic("orders", partitions=1, replicationFactor=3, configs={"segment.ms": str(HOUR)}))
    world.cluster.produce("orders", 100)
    now_ms = int(time.time() * 1000)
    world.cluster.set_log(FIRST, times=[now_ms - (100 - number) * HOUR + 60_000 for number in range(100)])
    for group, offset in (("billing", 40), ("archive", 100)):
        world.cluster.add_group(group)
        world.cluster.groups.alter_offsets({group: {FIRST: CommittedOffset(offset)}})
    return world


def observe(world: World, *declared: DesiredResource) -> tuple[Observation, ...]:
    """Return the observations of a plan for the declared resources. Other resources are deleted."""
    scope = PlanScope(impact=True, allow_deletes=True, allow_empty=True)
    return world.plan(*declared, scope=scope).observations


def list_texts(observations: tuple[Observation, ...]) -> list[str]:
    """Return the observations as lines of text."""
    return [f"{item.level.value}: {hide_times(item.text)}" for item in observations]


def shorten(**configs: str) -> DesiredResource:
    """Declare the topic with other configs."""
    return topic("orders", partitions=1, replicationFactor=3, configs={"segment.ms": str(HOUR), **configs})


def grow(partitions: int) -> DesiredResource:
    """Declare the topic with more partitions."""
    return topic("orders", partitions=partitions, replicationFactor=3, configs={"segment.ms": str(HOUR)})


def test_shorter_retention_names_deleted_and_unread_records(world: World) -> None:
    assert list_texts(observe(world, shorten(**SHORT))) == [
        "loss: Kafka deletes 74 to 76 of 100 records (up to 76%, about 74.2 KiB). "
        "It keeps all records since TIME.",
        "loss: Group 'billing' has not read 34 to 36 of these records.",
    ]


def test_shorter_retention_names_oldest_record_that_stays(world: World) -> None:
    """The records are an hour apart, and the 77th is the first one within 24 hours."""
    loss = observe(world, shorten(**SHORT))[0]
    kept_since_ms = loss.figures["kept_since_ms"]
    assert isinstance(kept_since_ms, int)
    assert 0 <= kept_since_ms + 24 * HOUR - time.time() * 1000 + 60_000 <= 2 * 60_000
    shown = f"{datetime.fromtimestamp(kept_since_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    assert loss.text.endswith(f"It keeps all records since {shown}.")


@pytest.mark.parametrize("other", [{"retention.bytes": "90000"}, {"cleanup.policy": "compact,delete"}])
def test_oldest_record_is_not_named_if_other_limits_apply(world: World, other: dict[str, str]) -> None:
    assert not [item for item in observe(world, shorten(**SHORT, **other)) if "since" in item.text]


def test_impact_is_not_read_unless_requested(world: World) -> None:
    assert world.plan(shorten(**SHORT)).observations == ()


def test_longer_retention_has_no_impact(world: World) -> None:
    assert observe(world, shorten(**{"retention.ms": str(10_000 * HOUR)})) == ()


@pytest.mark.parametrize(
    ("before", "after", "is_read"),
    [
        ({"retention.ms": "7200000"}, {"retention.ms": "7200001"}, False),
        ({"retention.ms": "7200000"}, {"retention.ms": "-1"}, False),
        ({"retention.bytes": "-1"}, {"retention.bytes": "-1", "retention.ms": "7200000"}, True),
        ({"retention.ms": "7200000"}, {"retention.ms": "7199999"}, True),
        ({"retention.ms": "-1"}, {"retention.ms": "7200000"}, True),
        ({"retention.ms": "-1"}, {}, True),
        ({"retention.ms": "5", "retention.bytes": "5"}, {"retention.ms": "6", "retention.bytes": "4"}, True),
        ({"retention.ms": "5", "cleanup.policy": "compact"}, {"retention.ms": "6"}, True),
    ],
)
def test_configs_are_read_again_unless_change_only_raises_limits(
    before: dict[str, str], after: dict[str, str], is_read: bool
) -> None:
    world = World()
    world.apply(topic("t", partitions=1, configs=before))
    world.cluster.calls.clear()
    observe(world, topic("t", partitions=1, configs=after))
    reads = [call.method for call in world.cluster.calls].count("configs")
    assert (reads > 1) == is_read


def test_topic_without_old_records_loses_none(world: World) -> None:
    assert list_texts(observe(world, shorten(**{"retention.ms": str(167 * HOUR)}))) == [
        "info: No records currently exceed the new limits."
    ]


def test_retention_of_compacted_topic_deletes_nothing() -> None:
    world = World()
    compacted = {"cleanup.policy": ["compact"], "retention.ms": str(1000 * HOUR)}
    world.apply(topic("t", partitions=1, configs=compacted))
    world.cluster.produce("t", 10)
    assert observe(world, topic("t", partitions=1, configs={**compacted, "retention.ms": "1"})) == ()


def test_added_delete_policy_names_deleted_records() -> None:
    world = World()
    world.apply(topic("t", partitions=1, configs={"cleanup.policy": ["compact"]}))
    world.cluster.produce("t", 10)  # written in 1970
    observations = observe(world, topic("t", partitions=1, configs={"cleanup.policy": ["compact", "delete"]}))
    assert "Kafka deletes up to 10 of 10 records (up to 100%, about 9.8 KiB)." in observations[0].text
    assert observations[1].text == "No group reads the topic."


def test_removed_override_uses_the_default_of_the_brokers() -> None:
    world = World()
    world.apply(topic("t", partitions=1, configs={"retention.ms": "-1"}))
    world.cluster.produce("t", 10)
    observations = observe(world, topic("t", partitions=1))
    assert observations[0].figures["records_at_most"] == 10
    assert observations[0].path == "configs.retention.ms"


def test_smaller_size_limit_has_bounds(world: World) -> None:
    (loss, *_) = observe(world, shorten(**{"retention.bytes": "40000"}))
    assert loss.figures == {
        "records_at_least": 0,
        "records_at_most": 100,
        "records_total": 100,
        "bytes_at_least": 0,
        "bytes_at_most": 100_000,  # the time limit is applied to the rest
        "bytes_about": 60_000,
        "kept_since_ms": None,
        "log_starts_total": 0,
    }


def test_deletion_names_records_and_readers(world: World) -> None:
    world.cluster.set_members("archive", GroupMember("m-1", "c", "h", partitions=(FIRST,)))
    newest = datetime.fromtimestamp((world.cluster.find_last_writes(["orders"])[FIRST] or 0) / 1000, UTC)
    assert list_texts(observe(world)) == [
        "loss: The topic holds 100 records (97.7 KiB).",
        "loss: Group 'billing' has not read 60 of these records.",
        "effect: 1 member of group 'archive' reads the topic.",
        f"info: The newest record is timestamped {newest:%Y-%m-%d %H:%M} UTC.",
    ]


def test_deletion_of_tiered_topic_has_unknown_size(world: World) -> None:
    """Brokers show only the size of the local part of the log."""
    resource = ConfigResource(ConfigScope.TOPIC, "orders")
    world.cluster.set_overrides(resource, {"remote.storage.enable": "true"})
    loss = next(item for item in observe(world) if item.code == "deleted-records")
    assert (loss.text, loss.figures["bytes_at_most"]) == ("The topic holds 100 records.", None)


def test_deletion_names_active_producers(world: World) -> None:
    now_ms = int(time.time() * 1000)
    world.cluster.set_producers(
        FIRST, ActiveProducer(1, now_ms), ActiveProducer(2, now_ms - 60_000), ActiveProducer(3, 0)
    )
    texts = list_texts(observe(world))
    (text,) = [text for text in texts if "producers" in text]
    assert text.startswith("effect: 2 producers wrote to the topic within the last hour. The newest record")


def test_deletion_without_read_permission_names_it(world: World) -> None:
    fault = Fault("TOPIC_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="producers", nth=None)
    texts = list_texts(observe(world))
    (text,) = [text for text in texts if text.startswith("unknown")]
    what = "unknown: kdeclare could not determine which producers write to the topic: "
    assert text == f"{what}kdeclare lacks the Read permission on the topic."


def test_member_without_committed_offsets_has_read_nothing(world: World) -> None:
    world.cluster.set_members("new", GroupMember("m-1", "c", "h", partitions=(FIRST,)))
    texts = list_texts(observe(world, shorten(**SHORT)))
    assert "loss: Group 'new' has not read 74 to 76 of these records (it has 1 member)." in texts


def test_many_groups_are_counted(world: World) -> None:
    for number in range(8):
        world.cluster.add_group(f"g{number}")
        world.cluster.groups.alter_offsets({f"g{number}": {FIRST: CommittedOffset(50 + number)}})
    texts = list_texts(observe(world, shorten(**SHORT)))
    assert len(texts) == 7
    assert texts[-1] == "loss: 4 other groups have not read up to 22 of these records each."


def test_groups_of_other_protocols_are_ignored(world: World) -> None:
    world.cluster.add_group("workers", protocol="connect")
    assert len(observe(world, shorten(**SHORT))) == 2


def test_more_partitions_of_special_topics() -> None:
    world = World()
    configs = {"cleanup.policy": ["compact"]}
    world.apply(topic("app-store-changelog", partitions=1, configs=configs))
    observations = observe(world, topic("app-store-changelog", partitions=2, configs=configs))
    assert [item.code for item in observations] == ["internal-topic", "keys-move", "stale-keys"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("app-store-repartition", "Kafka Streams. Applications stop"),
        ("connect-configs", "Kafka Connect. Workers do not start"),
        ("_schemas", "Schema Registry. A registry does not start"),
    ],
)
def test_more_partitions_of_internal_topics_name_their_system(name: str, line: str) -> None:
    world = World()
    world.apply(topic(name, partitions=1))
    texts = list_texts(observe(world, topic(name, partitions=2)))
    assert [text for text in texts if line in text and text.startswith("loss: According to its name")]
    assert "fetch_batches" not in {call.method for call in world.cluster.calls}


def test_larger_min_isr_counts_partitions_that_reject_records(world: World) -> None:
    (observation,) = observe(world, shorten(**{"min.insync.replicas": "3"}))
    rejected = "1 of 1 partitions rejects records from producers with acks=all"
    outage = "if any of its brokers is down (currently 0). An outage of broker 1 affects orders-0."
    assert observation.text == f"{rejected} {outage}"


def test_more_replicas_keep_partitions_writable() -> None:
    world = World()
    world.apply(topic("t", partitions=2, replicationFactor=2))
    larger = topic("t", partitions=2, replicationFactor=3, configs={"min.insync.replicas": "2"})
    assert [item.code for item in observe(world, larger)] == ["copied-bytes"]


def test_fewer_replicas_make_partitions_unwritable() -> None:
    world = World()
    configs = {"min.insync.replicas": "2"}
    world.apply(topic("t", partitions=2, replicationFactor=3, configs=configs))
    (observation,) = observe(world, topic("t", partitions=2, replicationFactor=2, configs=configs))
    assert (observation.code, observation.path) == ("not-writable", "replicationFactor")


def test_compaction_deletes_records_and_requires_keys() -> None:
    world = World()
    world.apply(topic("t", partitions=1))
    world.cluster.produce("t", 10)
    world.cluster.add_group("readers")
    world.cluster.groups.alter_offsets({"readers": {TopicPartition("t", 0): CommittedOffset(4)}})
    observations = observe(world, topic("t", partitions=1, configs={"cleanup.policy": ["compact"]}))
    assert [item.level for item in observations] == [ObservationLevel.LOSS] * 3
    assert observations[0].code == "keys-required"
    assert observations[1].text == "Group 'readers' has not read up to 6 of these records."
    assert observations[2].code == "records-without-keys"


def test_retention_is_lowered_together_with_added_compaction(world: World) -> None:
    """The loss by retention must not depend on which of the changed configs comes first."""
    observations = observe(world, shorten(**SHORT, **{"cleanup.policy": "delete,compact"}))
    codes = [item.code for item in observations]
    assert codes.count("deletable-records") == 1
    assert codes.count("keys-required") == 1
    (loss,) = [item for item in observations if item.code == "deletable-records"]
    assert (loss.path, loss.figures["records_at_most"]) == ("configs.retention.ms", 76)


def test_removed_override_loses_records_if_brokers_have_a_lower_default(world: World) -> None:
    """Kafka's own default of 7 days would delete nothing."""
    world.apply(shorten(**{"retention.ms": str(90 * HOUR)}))
    for broker in (1, 2, 3):
        resource = ConfigResource(ConfigScope.BROKER, str(broker))
        world.cluster.set_overrides(resource, {"log.retention.ms": str(24 * HOUR)})
    (loss, *_) = observe(world, shorten())
    assert (loss.code, loss.figures["records_at_most"]) == ("deletable-records", 76)


def test_unreadable_default_is_unknown(world: World) -> None:
    world.apply(shorten(**{"retention.ms": str(90 * HOUR)}))
    fault = Fault("CLUSTER_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="configs", item=f"{ConfigScope.BROKER.value}/1", nth=None)
    (observation,) = observe(world, shorten())
    assert observation.level is ObservationLevel.UNKNOWN
    assert "do not show their default of retention.ms" in observation.text


def test_committed_offset_beyond_the_end_counts_as_nothing_read(world: World) -> None:
    world.cluster.groups.alter_offsets({"archive": {FIRST: CommittedOffset(1000)}})
    texts = list_texts(observe(world, shorten(**SHORT)))
    assert "loss: Group 'archive' has not read 74 to 76 of these records." in texts


def test_timestamp_that_is_no_date_is_shown_as_number(world: World) -> None:
    """Some producers write microseconds."""
    world.cluster.set_log(FIRST, times=[10**17] * 100)
    texts = list_texts(observe(world))
    assert f"info: The newest record is timestamped {10**17} ms, which is not a date." in texts


def test_topic_without_leader_is_unknown(world: World) -> None:
    for broker in (1, 2, 3):
        world.cluster.fence(broker)
    (observation,) = observe(world)
    assert observation.level is ObservationLevel.UNKNOWN
    assert "partition 0 has no leader" in observation.text


def test_share_groups_are_unknown(world: World) -> None:
    world.cluster.add_group("shared", GroupType.SHARE)
    observations = observe(world, shorten(**SHORT))
    assert [item.code for item in observations][-1] == "hidden-groups"
    assert "1 other group may read the topic" in observations[-1].text


@pytest.mark.parametrize(
    ("method", "error", "said"),
    [
        ("list_offsets", "TOPIC_AUTHORIZATION_FAILED", "kdeclare lacks the Describe permission on the topic"),
        ("list_groups", "GROUP_AUTHORIZATION_FAILED", "which groups have unread records: kdeclare lacks the"),
        ("fetch_offsets", "GROUP_AUTHORIZATION_FAILED", "the Describe permission on the groups"),
    ],
)
def test_missing_permission_is_named(world: World, method: str, error: str, said: str) -> None:
    world.cluster.faults.fail(Fault(error, "Not authorized."), method=method, nth=None)
    observations = observe(world, shorten(**SHORT))
    unknown = [item for item in observations if item.level is ObservationLevel.UNKNOWN]
    assert [said in item.text for item in unknown] == [True]


def test_sizes_are_left_out_without_permission(world: World) -> None:
    fault = Fault("CLUSTER_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="log_dirs", nth=None)
    text = observe(world, shorten(**SHORT))[0].text
    assert text.startswith("Kafka deletes 74 to 76 of 100 records (up to 76%). ")


def test_hidden_groups_are_mentioned(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(world.cluster), "find_cluster_rights", lambda _: frozenset())
    codes = [item.code for item in observe(world, shorten(**SHORT))]
    assert codes == ["deletable-records", "unread-records", "hidden-groups"]


def test_cluster_with_too_many_groups_is_not_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdeclare.providers.kafka.impact.group_members.MAX_GROUPS", 1)
    texts = list_texts(observe(world, shorten(**SHORT)))
    assert texts[1].startswith("unknown: kdeclare could not determine which groups have unread records: the")


def test_slow_groups_end_the_reading(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impact_reader, "_TIME_LIMIT_S", -1.0)
    (observation,) = observe(world, shorten(**SHORT))
    assert observation.level is ObservationLevel.UNKNOWN


IMPACT_REQUESTS = {
    "list_offsets",
    "log_dirs",
    "list_groups",
    "describe_groups",
    "fetch_offsets",
    "cluster_rights",
    "last_writes",
    "producers",
    "fetch_batches",
}
"""The requests that no plan sends without impact."""
LOSS_REQUESTS = {"list_offsets", "log_dirs", "list_groups", "fetch_offsets", "cluster_rights"}
"""The requests about records that are deleted."""


@pytest.mark.parametrize(
    ("change", "requests"),
    [
        (lambda: shorten(**{"retention.ms": str(10_000 * HOUR)}), set()),
        (lambda: shorten(**{"compression.type": "lz4"}), set()),
        (lambda: shorten(**{"min.insync.replicas": "3"}), set()),
        (lambda: shorten(**{"max.message.bytes": "2000000"}), set()),
        (
            lambda: grow(2),
            {"list_offsets", "fetch_batches", "list_groups", "fetch_offsets", "cluster_rights"},
        ),
        (lambda: shorten(**{"max.message.bytes": "1000000"}), {"list_offsets", "fetch_batches"}),
        (lambda: shorten(**SHORT), LOSS_REQUESTS),
        (lambda: shorten(**{"cleanup.policy": "compact"}), LOSS_REQUESTS | {"fetch_batches"}),
    ],
    ids=[
        "longer retention",
        "compression",
        "min ISR",
        "larger batches",
        "partitions",
        "smaller batches",
        "shorter retention",
        "compaction",
    ],
)
def test_only_what_a_change_needs_is_read(
    world: World, change: Callable[[], DesiredResource], requests: set[str]
) -> None:
    world.cluster.calls.clear()
    observe(world, change())
    assert {call.method for call in world.cluster.calls} & IMPACT_REQUESTS == requests
    world.cluster.calls.clear()
    assert world.plan(change()).observations == ()
    assert not {call.method for call in world.cluster.calls} & IMPACT_REQUESTS


def test_observation_about_resource_that_is_not_changed_is_refused(world: World) -> None:
    """Neither the id nor the signature covers observations."""
    text = render_plan_file(world.plan(shorten(**SHORT), scope=PlanScope(impact=True)))[0]
    forged = text.replace('"resource":"Topic/orders","text"', '"resource":"Topic/other","text"')
    with pytest.raises(KdeclareError, match="Topic/other, which the plan does not change"):
        parse_plan_file(forged, "x.plan")


def test_observations_are_not_part_of_the_id(world: World) -> None:
    plan = world.plan(shorten(**SHORT), scope=PlanScope(impact=True))
    text, plan_id = render_plan_file(plan)
    assert plan_id == render_plan_file(world.plan(shorten(**SHORT)))[1]
    assert parse_plan_file(text, "x.plan").plan == plan
