"""Brokers with policies of their own: what Kafka shows those, and what it does not."""

from collections.abc import Mapping

import pytest

from kdeclare.core.live.faults import CreatedObject
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.request_values import NewTopic
from tests.beds import (
    APPEND,
    CLUSTER_WIDE,
    DELETE,
    SET,
    SUBTRACT,
    KafkaBed,
    all_created,
    broker_resource,
    get_error,
    topic_resource,
)
from tests.cases import case
from tests.kafka.broker_policies import (
    ALONE,
    CONTROLLER,
    DENIED,
    FACTOR,
    PARTITIONS,
    PolicedBrokers,
    build_alter_call,
    build_create_call,
    build_single_create_call,
    build_topic,
)
from tests.kafka.group_consumers import join_group

pytestmark = pytest.mark.kafka

BACKOFF = "log.cleaner.backoff.ms"
Op = tuple[str, FieldOp, str | None]


@pytest.fixture
def bed(policed_bed: KafkaBed) -> KafkaBed:
    """A client of the brokers with policies."""
    return policed_bed


def test_policies_run_only_in_the_controller(policies: PolicedBrokers, bed: KafkaBed) -> None:
    text = [running.log.read_text("utf-8") for running in policies.sandbox.brokers]
    assert all("create.topic.policy.class.name = class kdeclare.test.RecordingPolicy" in log for log in text)
    bed.create()
    # is sent to that very broker
    assert bed.alter(broker_resource(ALONE), (BACKOFF, SET, "16000")) is None
    began = [line for line in policies.lines() if line["method"] == "configure"]
    calls = [line for line in policies.lines() if line["method"] != "configure"]
    # an instance for each of the two keys
    assert [line["node"] for line in began] == [str(CONTROLLER)] * 2
    thread = f"quorum-controller-{CONTROLLER}-event-handler"
    assert [line["method"] for line in calls[-2:]] == ["create", "alter"]
    assert {(line["node"], line["thread"]) for line in calls} == {(str(CONTROLLER), thread)}


# what CreateTopicPolicy is shown


@pytest.mark.parametrize(
    ("partitions", "factor", "shown"),
    [
        (2, 1, (2, 1)),
        (None, 1, (PARTITIONS, 1)),
        (2, None, (2, FACTOR)),
        (None, None, (PARTITIONS, FACTOR)),
    ],
)
def test_create_policy_sees_resolved_counts(
    policies: PolicedBrokers,
    bed: KafkaBed,
    partitions: int | None,
    factor: int | None,
    shown: tuple[int, int],
) -> None:
    name = bed.name()
    with policies.record_calls() as lines:
        made = bed.cluster.create_topics([NewTopic(name, partitions, factor, None, {})])
    assert isinstance(made[name], CreatedObject)
    assert lines == [build_create_call(name, numPartitions=shown[0], replicationFactor=shown[1])]


@case("POL-04")
def test_create_policy_sees_counts_or_assignments(policies: PolicedBrokers, bed: KafkaBed) -> None:
    counted, assigned = bed.name(), bed.name()
    items = [
        NewTopic(counted, None, None, None, {}),
        NewTopic(assigned, None, None, {0: (1, 2), 1: (2, 1)}, {}),
    ]
    with policies.record_calls() as lines:
        assert all_created(bed.cluster.create_topics(items))
    assert lines == [
        build_create_call(counted, numPartitions=PARTITIONS, replicationFactor=FACTOR),
        build_create_call(assigned, replicasAssignments={"0": [1, 2], "1": [2, 1]}),
    ]


def test_both_policies_see_configs_of_creation_as_sent(policies: PolicedBrokers, bed: KafkaBed) -> None:
    configs = {"retention.ms": " 5 ", "cleanup.policy": "compact, delete"}
    with policies.record_calls() as lines:
        name = bed.create(configs=configs)
    assert lines == [build_alter_call(name, configs), build_single_create_call(name, configs)]


def test_policies_see_validated_requests(policies: PolicedBrokers, bed: KafkaBed) -> None:
    fine, bad, configs = bed.name(), bed.name(DENIED), {"retention.ms": "5"}
    items = [build_topic(fine, configs), build_topic(bad)]
    with policies.record_calls() as lines:
        found = bed.cluster.create_topics(items, validate_only=True)
    assert lines == [
        build_alter_call(fine, configs),
        build_single_create_call(fine, configs),
        build_single_create_call(bad),
    ]
    assert (get_error(found[fine]), get_error(found[bad])) == (None, "POLICY_VIOLATION")
    assert bed.cluster.topics([fine, bad]) == {}


def test_policies_do_not_see_invalid_requests(policies: PolicedBrokers, bed: KafkaBed) -> None:
    there = bed.create()
    items = {
        "TOPIC_ALREADY_EXISTS": NewTopic(there, 1, 1, None, {}),
        "INVALID_PARTITIONS": NewTopic(bed.name(), 0, 1, None, {}),
        "INVALID_REPLICATION_FACTOR": NewTopic(bed.name(), 1, 5, None, {}),
        "INVALID_REPLICA_ASSIGNMENT": NewTopic(bed.name(), None, None, {0: (9,)}, {}),
        "INVALID_CONFIG": build_topic(bed.name(), {"retention.ms": "x"}),
    }
    with policies.record_calls() as lines:
        found = bed.cluster.create_topics(list(items.values()))
        for resource, value in ((topic_resource(there), "x"), (topic_resource(bed.name()), "5")):
            assert bed.alter(resource, ("retention.ms", SET, value)) is not None
    assert [get_error(found[item.topic]) for item in items.values()] == list(items)
    assert lines == []


def test_policies_see_internal_topics(policies: PolicedBrokers, bed: KafkaBed) -> None:
    from kafka import KafkaConsumer

    with policies.record_calls() as lines:
        consumer = KafkaConsumer(group_id="any", bootstrap_servers=policies.sandbox.bootstrap)
        try:
            join_group(consumer, bed.create())
        finally:
            consumer.close()
    assert [line["method"] for line in lines if "__consumer_offsets" in line.values()] == ["alter", "create"]


# what AlterConfigPolicy is shown


@pytest.mark.parametrize(
    ("ops", "shown"),
    [
        ([("retention.ms", SET, "6")], {"retention.ms": "6"}),
        ([("retention.ms", DELETE, None)], {"retention.ms": None}),
        # the resulting list, which starts from the key's default where it is unset
        ([("cleanup.policy", APPEND, "compact")], {"cleanup.policy": "delete,compact"}),
        ([("cleanup.policy", SUBTRACT, "delete")], {"cleanup.policy": ""}),
        ([("cleanup.policy", SET, "delete")], {"cleanup.policy": "delete"}),
        # all of a resource at once, and nothing else that it has
        (
            [
                ("segment.ms", SET, "99"),
                ("retention.ms", DELETE, None),
                ("cleanup.policy", APPEND, "compact"),
            ],
            {"segment.ms": "99", "retention.ms": None, "cleanup.policy": "delete,compact"},
        ),
        # an override comes to be where there was none, though nothing is appended
        ([("cleanup.policy", APPEND, "delete")], {"cleanup.policy": "delete"}),
        # what stays as it was written is left out; the policy is asked also where nothing is left
        ([("retention.ms", SET, "5"), ("segment.ms", SET, "99")], {"segment.ms": "99"}),
        ([("retention.ms", SET, "5")], {}),
        ([("retention.ms", SET, " 5")], {"retention.ms": " 5"}),
        ([("segment.ms", DELETE, None)], {}),
        ([("leader.replication.throttled.replicas", APPEND, "0:1")], {}),
        ([("leader.replication.throttled.replicas", SUBTRACT, "0:2")], {}),
    ],
)
@pytest.mark.parametrize("validate_only", [True, False])
def test_alter_policy_sees_resulting_values_of_topic_keys(
    policies: PolicedBrokers,
    bed: KafkaBed,
    ops: list[Op],
    shown: Mapping[str, str | None],
    validate_only: bool,
) -> None:
    name = bed.create(configs={"retention.ms": "5", "leader.replication.throttled.replicas": "0:1"})
    with policies.record_calls() as lines:
        assert bed.alter(topic_resource(name), *ops, validate_only=validate_only) is None
    assert lines == [build_alter_call(name, shown)]


@pytest.mark.parametrize(
    "resource", [CLUSTER_WIDE, broker_resource(CONTROLLER), broker_resource(ALONE)], ids=lambda r: r.name
)
def test_alter_policy_sees_unchanged_broker_keys(
    policies: PolicedBrokers, bed: KafkaBed, resource: ConfigResource
) -> None:
    ops: list[Op] = [(BACKOFF, SET, "16000"), (BACKOFF, SET, "16000"), (BACKOFF, DELETE, None)]
    with policies.record_calls() as lines:
        for op in (*ops, ops[-1]):
            assert bed.alter(resource, op) is None
    values = ["16000", "16000", None, None]
    assert lines == [build_alter_call(resource.name, {BACKOFF: value}, "BROKER") for value in values]


def test_alter_policy_sees_secrets_in_clear_text(policies: PolicedBrokers, bed: KafkaBed) -> None:
    key = "listener.name.plaintext.ssl.keystore.password"
    with policies.record_calls() as lines:
        assert bed.alter(broker_resource(ALONE), (key, SET, "a secret")) is None
    assert lines == [build_alter_call(str(ALONE), {key: "a secret"}, "BROKER")]


def test_policies_do_not_see_partitions_moves_and_deletes(policies: PolicedBrokers, bed: KafkaBed) -> None:
    name = bed.create({0: (1,)})
    with policies.record_calls() as lines:
        assert bed.add_partitions(name, 2, ((2,),)) is None
        assert bed.move(name, 0, (2, 1), grow=True) is None
        bed.eventually(lambda: _elect_and_expect_leader(bed, name))
        assert bed.cluster.delete_topics({name: None}) == {name: None}
    assert lines == []


def _elect_and_expect_leader(bed: KafkaBed, name: str) -> None:
    partition = bed.topic(name).partitions[0]
    assert (partition.replicas, set(partition.isr)) == ((2, 1), {1, 2})
    assert bed.elect(name, 0) is None
