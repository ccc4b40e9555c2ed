"""What error names mean for operations: generic code acts on causes, not on names."""

from collections.abc import Mapping

import pytest

from kdeclare.core.live.faults import Explanation, Fault, FaultCause
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.provider.registry import OPERATION_TYPES, UnknownOperationType, get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.providers.connect.client.port import NOT_AUTHORIZED
from kdeclare.providers.connect.operations import PatchWorkersArgs
from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.providers.kafka.acl.operations import AclArgs
from kdeclare.providers.kafka.client_quota.operations import AlterQuotaArgs
from kdeclare.providers.kafka.consumer_group.arguments import AlterOffsetsArgs, DeleteGroupArgs
from kdeclare.providers.kafka.error_names import QUOTA_HINT
from kdeclare.providers.kafka.operations.arguments import (
    AlterConfigsArgs,
    DeleteTopicArgs,
)
from kdeclare.providers.kafka.provider import PROVIDER as KAFKA
from kdeclare.providers.kafka.reassignment.operations.arguments import (
    ElectArgs,
    MovesArgs,
    ReassignArgs,
    RelocateArgs,
    ThrottleArgs,
)
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic
from kdeclare.providers.kafka.scram_user.operations import DeleteScramArgs, UpsertScramArgs

OF_BROKERS = AlterConfigsArgs("BROKER", "", ())
ARGUMENTS: Mapping[type[Arguments], Arguments] = {
    type(args): args
    for args in (
        NewTopic("orders", None, None, None, {}),
        DeleteTopicArgs("orders"),
        NewPartitions("orders", 2, None),
        AlterConfigsArgs("TOPIC", "orders", ()),
        ReassignArgs({}, False),
        MovesArgs({}),
        ElectArgs({}),
        RelocateArgs({}),
        ThrottleArgs({}, ()),
        AlterQuotaArgs({"user": "alice"}, ()),
        DeleteScramArgs("alice", "SCRAM-SHA-512"),
        UpsertScramArgs("alice", "SCRAM-SHA-512", iterations=4096, password=SecretRef("hash", "${env.P}")),
        AlterOffsetsArgs("billing", {}),
        DeleteGroupArgs("billing", {}),
        AclArgs(("ALLOW User:alice READ topic:orders from *",)),
        PatchWorkersArgs(WorkerGroup(("https://a",)), ()),
    )
}
KAFKAS = [operation_type.name for operation_type in KAFKA.operation_types]


def explain(verb: str, error: str, args: Arguments | None = None) -> Explanation:
    usual = ARGUMENTS[OPERATION_TYPES[verb].arguments]
    op = Operation("it", verb, ResourceId("Topic", "orders"), args or usual, {})
    return get_operation_type(op).explain(op, Fault(error, "so it is"))


@pytest.mark.parametrize("verb", KAFKAS)
@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("POLICY_VIOLATION", FaultCause.DENIED_BY_POLICY),
        ("TOPIC_ALREADY_EXISTS", FaultCause.EXISTS),
        ("INVALID_PARTITIONS", FaultCause.DONE_ALREADY),
        ("UNKNOWN_TOPIC_OR_PARTITION", FaultCause.GONE_ALREADY),
        ("TOPIC_AUTHORIZATION_FAILED", FaultCause.NOT_AUTHORIZED),
        ("CLUSTER_AUTHORIZATION_FAILED", FaultCause.NOT_AUTHORIZED),
        ("THROTTLING_QUOTA_EXCEEDED", FaultCause.OVER_QUOTA),
        ("INVALID_CONFIG", FaultCause.OTHER),
        ("an error of next year", FaultCause.OTHER),
    ],
)
def test_kafka_operation_types_explain_errors(verb: str, error: str, cause: FaultCause) -> None:
    if verb.startswith("group.") and cause is FaultCause.GONE_ALREADY:
        cause = FaultCause.OTHER  # the topic is gone, but the group is not
    assert explain(verb, error).cause is cause


@pytest.mark.parametrize(
    ("verb", "args", "right"),
    [
        ("topic.create", None, "Create on topic orders or on the cluster"),
        ("partitions.increase", None, "Alter on topic orders"),
        ("configs.alter", None, "AlterConfigs on topic orders"),
        ("configs.alter", OF_BROKERS, "AlterConfigs on the cluster"),
    ],
)
def test_authorization_fault_names_required_right(verb: str, args: Arguments | None, right: str) -> None:
    assert explain(verb, "TOPIC_AUTHORIZATION_FAILED", args).right == right


def test_every_validated_operation_type_names_right() -> None:
    for name, operation_type in OPERATION_TYPES.items():
        if operation_type.validates:
            error = NOT_AUTHORIZED if name.startswith("connect.") else "TOPIC_AUTHORIZATION_FAILED"
            assert explain(name, error).right, name


def test_quota_fault_has_hint() -> None:
    assert explain("topic.create", "THROTTLING_QUOTA_EXCEEDED").hint == QUOTA_HINT


def test_fault_without_explanation_of_provider() -> None:
    op = Operation("it", "lamp.on", ResourceId("Lamp", "kitchen"), Arguments(), {})
    assert UnknownOperationType("lamp.on").explain(op, Fault("POLICY_VIOLATION", "no")) == Explanation()
