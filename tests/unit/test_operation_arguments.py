"""Arguments of operations: typed in memory, JSON in files."""

from typing import Any

import pytest

from kdeclare.core.operations.argument_binding import bind_arguments, dump_arguments, get_arguments
from kdeclare.core.operations.operation import Operation, UnboundArguments
from kdeclare.core.provider.registry import OPERATION_TYPES, UnknownOperationType, get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.providers.kafka.operations.arguments import (
    AlterConfigsArgs,
    ConfigOpArgs,
    DeleteTopicArgs,
)
from kdeclare.providers.kafka.request_values import NewTopic

SECRET = {"secret": "hash", "reference": "${env.PASSWORD}"}
FILES: list[tuple[str, dict[str, Any]]] = [
    (
        "topic.create",
        {
            "topic": "t",
            "partitions": None,
            "replication_factor": None,
            "assignments": {"0": [1, 2]},
            "configs": {"cleanup.policy": ["delete", "compact"], "retention.ms": "1"},
        },
    ),
    (
        "configs.alter",
        {
            "entity_type": "BROKER",
            "entity_name": "1",
            "ops": [
                {"key": "a", "op": "SET", "value": SECRET, "was": SECRET},
                {"key": "b", "op": "DELETE", "value": None},
            ],
        },
    ),
    ("topic.delete", {"topic": "t", "topic_id": None, "require_empty": False, "recreate": None}),
    (
        "partitions.reassign",
        {"partitions": {"t-0": [1]}, "allow_replication_factor_change": False, "pace": {"timeout_s": 5}},
    ),
    (
        "throttle.set",
        {
            "entries": {
                "TOPIC/t": {"leader.replication.throttled.replicas": {"elements": ["0:1"], "fresh": True}}
            },
            "partitions": [],
        },
    ),
    (
        "connect.worker-config.patch",
        {
            "workers": {"urls": ["https://a"], "headers": [["Authorization", "${env.TOKEN}"]]},
            "ops": [{"key": "a", "op": "SET", "value": SECRET}],
            "again": ["https://a"],
        },
    ),
]


@pytest.mark.parametrize(("verb", "json"), FILES)
def test_arguments_round_trip(verb: str, json: dict[str, Any]) -> None:
    args = bind_arguments(verb, json)
    assert isinstance(args, OPERATION_TYPES[verb].arguments)
    assert dump_arguments(args) == json


def test_secret_argument_is_secret_ref() -> None:
    args = bind_arguments(*FILES[1])
    assert isinstance(args, AlterConfigsArgs)
    ref = SecretRef("hash", "${env.PASSWORD}")
    assert args.ops[0] == ConfigOpArgs("a", "SET", ref, ref)


@pytest.mark.parametrize(
    ("json", "problem"),
    [
        ({"topic": "t", "color": "red"}, "args.color: Unexpected keyword argument"),
        ({}, "args.topic: Field required"),
        ({"topic": 5}, "args.topic: Input should be a valid string"),
        ({"topic": "t", "require_empty": "yes"}, "args.require_empty: Input should be a valid boolean"),
        ({"topic": "\ud800"}, "args: Invalid JSON: unexpected end of hex escape at line 1 column 18"),
    ],
)
def test_arguments_of_other_version_are_kept_unbound(json: dict[str, Any], problem: str) -> None:
    args = bind_arguments("topic.delete", json)
    assert args == UnboundArguments(json, problem)
    assert dump_arguments(args) == json
    assert isinstance(get_operation_type(make_deletion(args)), UnknownOperationType)


@pytest.mark.parametrize("number", ["01", " 1", "+1", "-1", "1_0", "1.0", "²", "", "9" * 5000])
def test_partition_number_in_other_notation_is_kept_unbound(number: str) -> None:
    json: dict[str, Any] = {**FILES[0][1], "assignments": {number: [1]}}
    args = bind_arguments("topic.create", json)
    assert isinstance(args, UnboundArguments)
    assert dump_arguments(args) == json


def test_arguments_of_unknown_verb_are_kept_unbound() -> None:
    assert bind_arguments("lamp.on", {"lamp": 1}) == UnboundArguments(
        {"lamp": 1}, "unknown operation type 'lamp.on'"
    )


def test_deletion_arguments_of_first_version_are_read() -> None:
    assert bind_arguments("topic.delete", {"topic": "t"}) == DeleteTopicArgs("t")


def test_get_arguments_rejects_other_type() -> None:
    op = make_deletion(DeleteTopicArgs("t"))
    assert get_arguments(op, DeleteTopicArgs).topic == "t"
    with pytest.raises(TypeError, match="'it' has DeleteTopicArgs, not NewTopic"):
        get_arguments(op, NewTopic)


def make_deletion(args: Any) -> Operation:
    return Operation("it", "topic.delete", ResourceId("Topic", "t"), args, {})
