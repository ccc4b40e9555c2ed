"""KIP-201's first example: a creation rule applies for the whole life of a topic."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.policy.deprecated import AlterConfigPolicy, CreateTopicPolicy
from kdeclare.policy.interface import PolicyViolation, RequestMetadata, TopicActionsPolicy
from kdeclare.policy.loading.policy_classes import UnusablePolicy
from kdeclare.policy.rules import CreationRuleForLife, PartitionBounds
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

HERE = __name__
__all__ = ["PartitionBounds"]


class Creations(TopicActionsPolicy):
    """A policy that only considers creations: a maximum number of partitions, and no deletions."""

    closed = False

    def configure(self, configs: Mapping[str, Any]) -> None:
        self.most = configs["most"]

    def validate(self, request: RequestMetadata) -> None:
        assert request.pre_request_state is None
        assert request.post_request_state is not None
        if request.post_request_state.num_partitions > self.most:
            raise PolicyViolation(f"{request.topic}: {request.post_request_state.num_partitions}")

    def close(self) -> None:
        Creations.closed = True


class Counts(CreateTopicPolicy):
    """A CreateTopicPolicy that checks assignments, or counts together with a config."""

    def validate(self, request: CreateTopicPolicy.RequestMetadata) -> None:
        if request.replicas_assignments is not None:
            if any(1 not in replicas for replicas in request.replicas_assignments.values()):
                raise PolicyViolation("broker 1 has all")
            return
        assert request.num_partitions is not None
        if request.num_partitions > 6 and "retention.ms" not in request.configs:
            raise PolicyViolation("large topics state their retention")


class Everything(TopicActionsPolicy):
    """Reads every field of a request."""

    def validate(self, request: RequestMetadata) -> None:
        assert request.pre_request_state is None
        assert request.record_count == 0
        assert request.partitions_of({"team": "a"}) == 7
        assert request.post_request_state is not None
        if request.post_request_state.configs:
            told = (request.topic, request.action, request.principal, request.labels, request.racks)
            raise PolicyViolation(f"{told} {sorted(request.changed)}")


def make_lifelong_rule(name: str, **config: Any) -> CreationRuleForLife:
    policy = CreationRuleForLife()
    policy.configure({"class": f"{HERE}:{name}", "config": config})
    return policy


def make_state(partitions: int, **configs: str) -> State:
    return State(partitions, configs={key.replace("_", "."): value for key, value in configs.items()})


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (make_creation(make_state(6)), None),
        (make_creation(make_state(7)), "orders: 7"),
        (make_modification(make_state(3), make_state(6)), None),
        (make_modification(make_state(3), make_state(7)), "orders: 7"),
        (
            make_modification(make_state(7), make_state(8)),
            "orders: 8",
        ),  # it violated the rule before, and now does so more
        (make_modification(make_state(7), make_state(7, flush_ms="1")), None),
        (make_deletion(make_state(7)), None),
    ],
)
def test_creation_policy_applies_to_modifications(request_: Request, expected: str | None) -> None:
    assert find_violation(make_lifelong_rule("Creations", most=6), request_) == expected


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (make_creation(make_state(7)), "large topics state their retention"),
        (make_creation(make_state(7, retention_ms="1")), None),
        (make_modification(make_state(6), make_state(7)), "large topics state their retention"),
        (
            make_modification(make_state(7, retention_ms="1"), make_state(7)),
            "large topics state their retention",
        ),
        (make_modification(make_state(7), make_state(7, flush_ms="1")), None),
        (make_creation(make_assigned_state([2])), "broker 1 has all"),
        (make_modification(make_assigned_state([1, 2]), make_assigned_state([3, 2])), "broker 1 has all"),
        (make_modification(make_assigned_state([2]), make_assigned_state([3])), None),
        (make_modification(make_assigned_state([2]), State(1, 3, {0: [2]}, {"flush.ms": "1"})), None),
    ],
)
def test_create_topic_policy_applies_to_modifications(request_: Request, expected: str | None) -> None:
    assert find_violation(make_lifelong_rule("Counts"), request_) == expected


def test_modification_is_passed_as_creation() -> None:
    team = {frozenset({("team", "a")}): 7}
    post = State(3, configs={"flush.ms": "1"})
    request = make_modification(
        State(2), post, labels={"a": "b"}, racks={1: "r"}, principal="User:a", sums=team
    )
    told = "('orders', <PolicyAction.CREATE: 'CREATE'>, 'User:a', {'a': 'b'}, {1: 'r'})"
    changed = "['configs.flush.ms', 'partitions', 'replicationFactor']"
    assert find_violation(make_lifelong_rule("Everything"), request) == f"{told} {changed}"


def test_previous_state_is_read_only_after_denial() -> None:
    policy = make_lifelong_rule("Creations", most=6)
    assert record_reads(policy, make_modification(make_state(3), make_state(6))) == {"post.num_partitions"}
    assert record_reads(policy, make_modification(make_state(6), make_state(7))) == {
        "post.num_partitions",
        "pre.num_partitions",
    }
    assert record_reads(policy, make_deletion(make_state(7))) == set()


def test_close_closes_wrapped_policy() -> None:
    make_lifelong_rule("Creations", most=1).close()
    assert Creations.closed


class NoCreations(AlterConfigPolicy):
    """A policy for configs, not for creations."""

    def validate(self, request: AlterConfigPolicy.RequestMetadata) -> None:
        return


@pytest.mark.parametrize(
    ("name", "config", "path", "detail"),
    [
        ("NoCreations", {}, ("class",), "is not a subclass of CreateTopicPolicy or TopicActionsPolicy"),
        ("Creation", {}, ("class",), "has no class 'Creation'"),
        ("Creations", {}, ("config",), "does not accept its settings: KeyError: 'most' (tests/unit/policy/"),
        ("PartitionBounds", {"max": "six"}, ("config", "max"), "'config.max' takes a whole number"),
    ],
)
def test_unusable_wrapped_policy_is_reported(
    name: str, config: dict[str, Any], path: tuple[str, ...], detail: str
) -> None:
    with pytest.raises(UnusablePolicy) as caught:
        make_lifelong_rule(name, **config)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert detail in problem.diagnostic.detail


states = st.builds(make_state, st.integers(1, 9), flush_ms=st.sampled_from("12"))


@given(states, st.lists(states), st.integers(1, 9))
def test_allowed_modifications_keep_topic_valid(first: State, later: list[State], most: int) -> None:
    policy = make_lifelong_rule("Creations", most=most)
    if find_violation(policy, make_creation(first)) is not None:
        return
    now = first
    for wanted in later:
        if find_violation(policy, make_modification(now, wanted)) is None:
            now = wanted
        assert find_violation(policy, make_creation(now)) is None
