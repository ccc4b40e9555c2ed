"""The deprecated interfaces get the same data as in Kafka, and no more."""

from collections.abc import Mapping
from typing import Any

import pytest

from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.deprecated import (
    AlterConfigAdapter,
    AlterConfigPolicy,
    ConfigResource,
    ConfigScope,
    CreateTopicAdapter,
    CreateTopicPolicy,
)
from kdeclare.policy.interface import PolicyViolation, TopicActionsPolicy
from kdeclare.policy.isolation import PolicyEvaluator
from tests.unit.policy.doubles import (
    Request,
    State,
    find_violation,
    make_assigned_state,
    make_creation,
    make_deletion,
    make_modification,
    record_reads,
)


class RecordingCreatePolicy(CreateTopicPolicy):
    """Records the requests and denies all of them."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def configure(self, configs: Mapping[str, Any]) -> None:
        self.seen.append(configs)

    def validate(self, request: CreateTopicPolicy.RequestMetadata) -> None:
        self.seen.append(request)
        raise PolicyViolation("no")

    def close(self) -> None:
        self.seen.append("closed")


class RecordingAlterPolicy(AlterConfigPolicy):
    """The same."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def configure(self, configs: Mapping[str, Any]) -> None:
        self.seen.append(configs)

    def validate(self, request: AlterConfigPolicy.RequestMetadata) -> None:
        self.seen.append(request)
        raise PolicyViolation("no")

    def close(self) -> None:
        self.seen.append("closed")


def record_creation(request: Request) -> CreateTopicPolicy.RequestMetadata | None:
    policy = RecordingCreatePolicy()
    assert find_violation(CreateTopicAdapter(policy), request) == ("no" if policy.seen else None)
    return policy.seen[0] if policy.seen else None


def record_alteration(request: Request) -> AlterConfigPolicy.RequestMetadata | None:
    policy = RecordingAlterPolicy()
    assert find_violation(AlterConfigAdapter(policy), request) == ("no" if policy.seen else None)
    return policy.seen[0] if policy.seen else None


def test_creation_by_counts_has_no_assignments() -> None:
    configs = {"retention.ms": "5"}
    shown = CreateTopicPolicy.RequestMetadata("orders", 12, 2, None, configs)
    assert record_creation(make_creation(State(12, 2, configs=configs))) == shown


def test_creation_fills_in_default_counts() -> None:
    """Case POL-04: broker defaults are filled in before the policy is evaluated."""
    shown = CreateTopicPolicy.RequestMetadata("orders", 1, 3, None, {})
    assert record_creation(make_creation(State(1, 3), changed=frozenset())) == shown


def test_creation_by_assignments_has_no_counts() -> None:
    shown = CreateTopicPolicy.RequestMetadata("orders", None, None, {0: [2, 1, 0]}, {})
    request = make_creation(make_assigned_state([2, 1, 0]), changed=frozenset({"partitions", "assignments"}))
    assert record_creation(request) == shown


@pytest.mark.parametrize(
    "request_",
    [
        make_modification(State(3), State(6)),
        make_modification(make_assigned_state([1]), make_assigned_state([2])),
        make_modification(State(), State(configs={"flush.ms": "1"})),
        make_deletion(State()),
    ],
)
def test_create_topic_policy_gets_only_creations(request_: Request) -> None:
    assert record_creation(request_) is None
    assert record_reads(CreateTopicAdapter(RecordingCreatePolicy()), request_) == set()


def test_alteration_contains_config_delta_with_null_for_deletes() -> None:
    pre = State(configs={"retention.ms": "1", "flush.ms": "2", "segment.ms": "3"})
    post = State(configs={"retention.ms": "9", "segment.ms": "3", "cleanup.policy": "compact,delete"})
    resource = ConfigResource(ConfigScope.TOPIC, "orders")
    delta = {"retention.ms": "9", "flush.ms": None, "cleanup.policy": "compact,delete"}
    assert record_alteration(make_modification(pre, post)) == AlterConfigPolicy.RequestMetadata(
        resource, delta
    )


def test_alter_config_policy_gets_configs_of_creation() -> None:
    resource = ConfigResource(ConfigScope.TOPIC, "orders")
    shown = AlterConfigPolicy.RequestMetadata(resource, {"retention.ms": "1"})
    assert record_alteration(make_creation(State(configs={"retention.ms": "1"}))) == shown


@pytest.mark.parametrize(
    "request_",
    [
        make_creation(State()),
        make_modification(State(3), State(6)),
        make_modification(make_assigned_state([1]), make_assigned_state([2])),
        make_deletion(State(configs={"retention.ms": "1"})),
    ],
)
def test_alter_config_policy_gets_only_config_changes(request_: Request) -> None:
    assert record_alteration(request_) is None
    assert record_reads(AlterConfigAdapter(RecordingAlterPolicy()), request_) == set()


@pytest.mark.parametrize(
    ("policy", "adapter"),
    [(RecordingCreatePolicy(), CreateTopicAdapter), (RecordingAlterPolicy(), AlterConfigAdapter)],
)
def test_adapter_forwards_configure_and_close(policy: Any, adapter: Any) -> None:
    behind = adapter(policy)
    behind.configure({"max": 1})
    behind.close()
    assert policy.seen == [{"max": 1}, "closed"]


def test_adapter_accepts_policy_without_configure_and_close() -> None:
    class Bare(CreateTopicPolicy):
        def validate(self, request: CreateTopicPolicy.RequestMetadata) -> None:
            return

    adapter = CreateTopicAdapter(Bare())
    adapter.configure({})
    adapter.close()
    assert find_violation(adapter, make_creation(State())) is None


class ReturningCreatePolicy(CreateTopicPolicy):
    """Returns its verdict instead of raising."""

    def validate(self, request: CreateTopicPolicy.RequestMetadata) -> Any:
        return False


class ReturningAlterPolicy(AlterConfigPolicy):
    """The same."""

    def validate(self, request: AlterConfigPolicy.RequestMetadata) -> Any:
        return False


@pytest.mark.parametrize(
    "adapter", [CreateTopicAdapter(ReturningCreatePolicy()), AlterConfigAdapter(ReturningAlterPolicy())]
)
def test_adapter_forwards_return_value(adapter: TopicActionsPolicy) -> None:
    with PolicyEvaluator() as asking:
        said = asking.ask(
            ConfiguredPolicy("old", adapter), make_creation(State(configs={"retention.ms": "1"}))
        )
    assert said is not None
    assert "returned False" in said
