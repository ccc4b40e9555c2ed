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
from tests.unit.policy.doubles import Request, State, assigned, created, deleted, modified, reads_of, verdict


class Creations(CreateTopicPolicy):
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


class Alterations(AlterConfigPolicy):
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


def seen_creation(request: Request) -> CreateTopicPolicy.RequestMetadata | None:
    policy = Creations()
    assert verdict(CreateTopicAdapter(policy), request) == ("no" if policy.seen else None)
    return policy.seen[0] if policy.seen else None


def seen_alteration(request: Request) -> AlterConfigPolicy.RequestMetadata | None:
    policy = Alterations()
    assert verdict(AlterConfigAdapter(policy), request) == ("no" if policy.seen else None)
    return policy.seen[0] if policy.seen else None


def test_a_creation_by_counts_has_no_assignments() -> None:
    configs = {"retention.ms": "5"}
    shown = CreateTopicPolicy.RequestMetadata("orders", 12, 2, None, configs)
    assert seen_creation(created(State(12, 2, configs=configs))) == shown


def test_counts_that_nobody_stated_are_resolved() -> None:
    """Case POL-04: broker defaults are filled in before the policy is evaluated."""
    shown = CreateTopicPolicy.RequestMetadata("orders", 1, 3, None, {})
    assert seen_creation(created(State(1, 3), changed=frozenset())) == shown


def test_a_creation_by_assignments_has_no_counts() -> None:
    shown = CreateTopicPolicy.RequestMetadata("orders", None, None, {0: [2, 1, 0]}, {})
    request = created(assigned([2, 1, 0]), changed=frozenset({"partitions", "assignments"}))
    assert seen_creation(request) == shown


@pytest.mark.parametrize(
    "request_",
    [
        modified(State(3), State(6)),
        modified(assigned([1]), assigned([2])),
        modified(State(), State(configs={"flush.ms": "1"})),
        deleted(State()),
    ],
)
def test_nothing_but_creations_is_asked_of_a_creation_policy(request_: Request) -> None:
    assert seen_creation(request_) is None
    assert reads_of(CreateTopicAdapter(Creations()), request_) == set()


def test_an_alteration_is_the_delta_and_null_deletes() -> None:
    pre = State(configs={"retention.ms": "1", "flush.ms": "2", "segment.ms": "3"})
    post = State(configs={"retention.ms": "9", "segment.ms": "3", "cleanup.policy": "compact,delete"})
    resource = ConfigResource(ConfigScope.TOPIC, "orders")
    delta = {"retention.ms": "9", "flush.ms": None, "cleanup.policy": "compact,delete"}
    assert seen_alteration(modified(pre, post)) == AlterConfigPolicy.RequestMetadata(resource, delta)


def test_the_configs_of_a_creation_are_altered_too() -> None:
    resource = ConfigResource(ConfigScope.TOPIC, "orders")
    shown = AlterConfigPolicy.RequestMetadata(resource, {"retention.ms": "1"})
    assert seen_alteration(created(State(configs={"retention.ms": "1"}))) == shown


@pytest.mark.parametrize(
    "request_",
    [
        created(State()),
        modified(State(3), State(6)),
        modified(assigned([1]), assigned([2])),
        deleted(State(configs={"retention.ms": "1"})),
    ],
)
def test_nothing_but_configs_is_asked_of_an_alteration_policy(request_: Request) -> None:
    assert seen_alteration(request_) is None
    assert reads_of(AlterConfigAdapter(Alterations()), request_) == set()


@pytest.mark.parametrize(
    ("policy", "adapter"), [(Creations(), CreateTopicAdapter), (Alterations(), AlterConfigAdapter)]
)
def test_an_adapter_passes_on_settings_and_closing(policy: Any, adapter: Any) -> None:
    behind = adapter(policy)
    behind.configure({"max": 1})
    behind.close()
    assert policy.seen == [{"max": 1}, "closed"]


def test_settings_and_closing_can_be_left_out() -> None:
    class Bare(CreateTopicPolicy):
        def validate(self, request: CreateTopicPolicy.RequestMetadata) -> None:
            return

    adapter = CreateTopicAdapter(Bare())
    adapter.configure({})
    adapter.close()
    assert verdict(adapter, created(State())) is None


class Yes(CreateTopicPolicy):
    """Returns its verdict instead of raising."""

    def validate(self, request: CreateTopicPolicy.RequestMetadata) -> Any:
        return False


class YesToConfigs(AlterConfigPolicy):
    """The same."""

    def validate(self, request: AlterConfigPolicy.RequestMetadata) -> Any:
        return False


@pytest.mark.parametrize("adapter", [CreateTopicAdapter(Yes()), AlterConfigAdapter(YesToConfigs())])
def test_what_they_return_is_not_lost(adapter: TopicActionsPolicy) -> None:
    with PolicyEvaluator() as asking:
        said = asking.ask(ConfiguredPolicy("old", adapter), created(State(configs={"retention.ms": "1"})))
    assert said is not None
    assert "returned False" in said
