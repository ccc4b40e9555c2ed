"""The same operations before Kafka's two policies, in Java and in Python: both are shown the same.

The Java ones are asked by brokers as the operations run; the Python ones before that, by kdeclare, behind
the adapters to KIP-201's interface.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.argument_binding import bind_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.registry import OPERATION_TYPES, get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.engine.observation import observe
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.deprecated import (
    AlterConfigAdapter,
    AlterConfigPolicy,
    CreateTopicAdapter,
    CreateTopicPolicy,
)
from kdeclare.policy.evaluation import evaluate_operations
from kdeclare.policy.subjects import PolicyContext
from tests.beds import APPEND, DELETE, SET, SUBTRACT, KafkaBed
from tests.connections import connections_to
from tests.jsontypes import Json
from tests.kafka.broker_policies import Line, PolicedBrokers, build_alter_call, build_create_call

pytestmark = pytest.mark.kafka

THROTTLED = "leader.replication.throttled.replicas"
ELSEWHERE = {"retention.ms": "5", THROTTLED: "0:1"}


class CreateRecorder(CreateTopicPolicy):
    """Writes down what it is shown, as RecordingPolicy.java does."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines

    def validate(self, request: CreateTopicPolicy.RequestMetadata) -> None:
        assigned = request.replicas_assignments
        line = build_create_call(
            request.topic,
            request.configs,
            numPartitions=request.num_partitions,
            replicationFactor=request.replication_factor,
            replicasAssignments=assigned and {str(n): list(brokers) for n, brokers in assigned.items()},
        )
        self._lines.append(line)


class AlterRecorder(AlterConfigPolicy):
    """Writes down what it is shown, as RecordingPolicy.java does."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines

    def validate(self, request: AlterConfigPolicy.RequestMetadata) -> None:
        self._lines.append(build_alter_call(request.resource.name, request.configs, request.resource.scope))


class NoSecrets:
    """For operations that have none."""

    def reveal(self, secret: SecretRef) -> str:
        raise AssertionError(f"no secret was expected: {secret}")


@pytest.fixture
def bed(policed_bed: KafkaBed) -> KafkaBed:
    """A client of the brokers with policies."""
    return policed_bed


def build_operation(bed: KafkaBed, verb: str, topic: str, args: Mapping[str, Json]) -> Operation:
    """An operation as a plan would have it now."""
    op = Operation(f"{verb}:{topic}", verb, ResourceId("Topic", topic), bind_arguments(verb, args), {})
    return replace(
        op,
        expect=OPERATION_TYPES[verb].compute_view(
            op, observe(connections_to(bed.cluster), OPERATION_TYPES[verb].select(op))
        ),
    )


def build_creation(bed: KafkaBed, args: Mapping[str, Json]) -> Operation:
    """A new topic; what is not given is left to Kafka."""
    topic = bed.name()
    nothing = dict.fromkeys(("partitions", "replication_factor", "assignments"))
    return build_operation(bed, "topic.create", topic, {"topic": topic, "configs": {}, **nothing, **args})


def build_alteration(bed: KafkaBed, topic: str, *ops: tuple[str, str, Json]) -> Operation:
    """Ops on the configs of a topic."""
    items = [{"key": key, "op": op, "value": value} for key, op, value in ops]
    args = {"entity_type": "TOPIC", "entity_name": topic, "ops": items}
    return build_operation(bed, "configs.alter", topic, args)


def build_increase(bed: KafkaBed, topic: str) -> Operation:
    """A second partition, on broker 2."""
    return build_operation(
        bed, "partitions.increase", topic, {"topic": topic, "total": 2, "assignments": [[2]]}
    )


def record_in_python(bed: KafkaBed, *ops: Operation) -> list[Line]:
    """What kdeclare shows of operations that it is about to run."""
    lines: list[Line] = []
    # in the order in which Kafka asks them
    asked = [
        ConfiguredPolicy("configs", AlterConfigAdapter(AlterRecorder(lines))),
        ConfiguredPolicy("topics", CreateTopicAdapter(CreateRecorder(lines))),
    ]
    said = evaluate_operations(asked, ops, PolicyContext(connections_to(bed.cluster)))
    assert not said.denied
    return lines


def record_in_java(policies: PolicedBrokers, bed: KafkaBed, *ops: Operation) -> list[Line]:
    """What Kafka shows of them as they run."""
    with policies.record_calls() as lines:
        for op in ops:
            ran = get_operation_type(op).execute(
                connections_to(bed.cluster), [op], NoSecrets(), validate_only=False
            )
            assert not isinstance(ran[op.id], Fault)
    return lines


@pytest.mark.parametrize(
    "args",
    [
        {"partitions": 2, "replication_factor": 1},
        {"partitions": 2},
        {"replication_factor": 1},
        {},
        {"assignments": {"0": [2, 1], "1": [1, 2]}},
        {"assignments": {"0": [2]}, "configs": {"retention.ms": "5"}},
        {"partitions": 1, "configs": {"retention.ms": "5", "cleanup.policy": ["compact", "delete"]}},
        {"configs": {"cleanup.policy": [], THROTTLED: ["*"]}},
    ],
    ids=str,
)
def test_policy_in_python_and_java_see_same_creation(
    policies: PolicedBrokers, bed: KafkaBed, args: Mapping[str, Json]
) -> None:
    op = build_creation(bed, args)
    shown = record_in_python(bed, op)
    assert len(shown) == 1 + bool(args.get("configs"))
    assert shown == record_in_java(policies, bed, op)


@pytest.mark.parametrize(
    "ops",
    [
        [("retention.ms", SET, "6")],
        [("retention.ms", DELETE, None)],
        [("cleanup.policy", SET, ["compact", "delete"])],
        [("cleanup.policy", APPEND, ["compact"])],
        [("cleanup.policy", APPEND, ["delete"])],
        [("cleanup.policy", SUBTRACT, ["delete"])],
        [(THROTTLED, APPEND, ["1:2", "0:2"])],
        [(THROTTLED, SUBTRACT, ["0:1"])],
        [
            ("segment.ms", SET, "99"),
            ("retention.ms", DELETE, None),
            ("cleanup.policy", APPEND, ["compact"]),
        ],
    ],
    ids=str,
)
def test_policy_in_python_and_java_see_same_alteration(
    policies: PolicedBrokers, bed: KafkaBed, ops: list[tuple[str, str, Json]]
) -> None:
    op = build_alteration(bed, bed.create(configs=ELSEWHERE), *ops)
    shown = record_in_python(bed, op)
    assert len(shown) == 1
    assert shown == record_in_java(policies, bed, op)


def test_policies_see_no_partitions_moves_and_deletes(policies: PolicedBrokers, bed: KafkaBed) -> None:
    grown, moved, gone = (bed.create({0: (1,)}) for _ in range(3))
    move = {"partitions": {f"{moved}-0": [1, 2]}, "allow_replication_factor_change": True}
    ops = (
        build_increase(bed, grown),
        build_operation(bed, "partitions.reassign", moved, move),
        build_operation(bed, "topic.delete", gone, {"topic": gone, "require_empty": False, "recreate": None}),
    )
    assert record_in_python(bed, *ops) == record_in_java(policies, bed, *ops) == []


def test_policies_see_only_configs_of_mixed_change(policies: PolicedBrokers, bed: KafkaBed) -> None:
    topic = bed.create({0: (1,)})
    ops = (build_alteration(bed, topic, ("retention.ms", SET, "6")), build_increase(bed, topic))
    shown = record_in_python(bed, *ops)
    assert shown == record_in_java(policies, bed, *ops) == [build_alter_call(topic, {"retention.ms": "6"})]


def test_python_policy_sees_final_value_of_two_requests(policies: PolicedBrokers, bed: KafkaBed) -> None:
    # KIP-201 has one request with one state after it
    topic = bed.create()
    first = build_alteration(bed, topic, ("cleanup.policy", APPEND, ["compact"]))
    second = build_alteration(bed, topic, ("cleanup.policy", SUBTRACT, ["delete"]))
    second = replace(second, expect={**second.expect, "cleanup.policy": ["delete", "compact"]})
    shown = record_in_python(bed, first, second)
    assert shown == [build_alter_call(topic, {"cleanup.policy": "compact"})]
    assert record_in_java(policies, bed, first, second) == [
        build_alter_call(topic, {"cleanup.policy": "delete,compact"}),
        build_alter_call(topic, {"cleanup.policy": "compact"}),
    ]


def test_python_policy_sees_normalized_values(policies: PolicedBrokers, bed: KafkaBed) -> None:
    # as brokers describe them
    op = build_alteration(bed, bed.create(), ("retention.ms", SET, " 6"))
    assert record_in_python(bed, op) == [build_alter_call(op.resource.name, {"retention.ms": "6"})]
    assert record_in_java(policies, bed, op) == [build_alter_call(op.resource.name, {"retention.ms": " 6"})]
