"""Requests from test cases: derived values and missing values."""

from collections.abc import Callable
from typing import Any

import pytest

from kdeclare.policy.interface import Action, RequestMetadata
from kdeclare.policy.testing.case_requests import CaseRequest, CaseState, MissingCaseField


def state(name: str = "post", **more: Any) -> CaseState:
    return CaseState(name, **({"overrides": {}} | more))


def modify(pre: CaseState, post: CaseState) -> CaseRequest:
    return CaseRequest(Action.MODIFY, "orders", pre_request_state=pre, post_request_state=post)


@pytest.mark.parametrize(
    ("pre", "post", "changed"),
    [
        ({"partitions": 3}, {"partitions": 3}, set()),
        ({"partitions": 3}, {"partitions": 6}, {"partitions"}),
        ({"factor": 2}, {"factor": 3}, {"replicationFactor", "assignments"}),
        ({"replicas": {0: (1, 2)}}, {"replicas": {0: (2, 1)}}, {"assignments"}),
        ({"replicas": {0: (1, 2)}}, {"replicas": {0: (1, 2), 1: (2, 3)}}, set()),
        ({"overrides": {"a": "1", "b": "2"}}, {"overrides": {"b": "3", "c": "4"}}, {"a", "b", "c"}),
    ],
)
def test_what_changes_follows_from_the_states(
    pre: dict[str, Any], post: dict[str, Any], changed: set[str]
) -> None:
    found = modify(state("pre", **pre), state(**post)).changed
    assert {field.removeprefix("configs.") for field in found} == changed


def test_what_is_created_is_all_that_is_stated() -> None:
    post = state(partitions=1, factor=2, replicas={0: (1, 2)}, overrides={"a": "1"})
    created = CaseRequest(Action.CREATE, "orders", post_request_state=post)
    assert created.changed == {"partitions", "replicationFactor", "assignments", "configs.a"}
    stated = state(factor=2, states_factor=True)
    assert CaseRequest(Action.CREATE, "orders", post_request_state=stated).changed == {"replicationFactor"}
    deleted = CaseRequest(Action.DELETE, "orders", pre_request_state=state("pre", partitions=1))
    assert deleted.changed == frozenset()


def test_what_is_stated_to_change_holds() -> None:
    request = CaseRequest(Action.DELETE, "orders", stated=frozenset({"partitions"}))
    assert request.changed == {"partitions"}


def test_what_has_a_meaning_when_it_is_left_out() -> None:
    request = CaseRequest(Action.CREATE, "orders", post_request_state=state())
    assert (request.principal, request.labels, request.record_count) == (None, {}, 0)
    post = request.post_request_state
    assert post is not None
    assert (post.configs, post.replicas_assignments) == ({}, {})


@pytest.mark.parametrize(
    ("ask", "missing"),
    [
        (lambda r: r.racks, "racks"),
        (lambda r: r.record_count, "records"),
        (lambda r: r.partitions_of({"team": "blue", "env": "prod"}), "partitionsOf: {env=prod,team=blue: …}"),
        (lambda r: r.post_request_state.num_partitions, "post.partitions"),
        (lambda r: r.post_request_state.replication_factor, "post.replicationFactor"),
        (lambda r: r.pre_request_state.num_partitions, "pre"),
        (lambda r: r.pre_request_state.configs, "pre"),
        (lambda r: r.pre_request_state.replicas_assignments, "pre"),
        (lambda r: r.changed, "pre"),
    ],
)
def test_what_is_missing_is_named(ask: Callable[[Any], object], missing: str) -> None:
    request: RequestMetadata = modify(CaseState("pre"), state())
    with pytest.raises(MissingCaseField) as found:
        ask(request)
    assert found.value.what == missing


def test_one_state_alone_does_not_tell_what_changes() -> None:
    with pytest.raises(MissingCaseField) as found:
        assert modify(state("pre", partitions=3), state()).changed
    assert found.value.what == "post.partitions"


def test_what_is_given_is_had() -> None:
    sums = {frozenset({("team", "blue")}): 180}
    request = CaseRequest(Action.MODIFY, "orders", rack_of={1: "a", 2: None}, records=5, sums=sums)
    assert request.racks == {1: "a", 2: None}
    assert request.record_count == 5
    assert request.partitions_of({"team": "blue"}) == 180


def test_a_policy_cannot_change_what_the_next_one_is_given() -> None:
    labels, racks = {"team": "blue"}, {1: "a"}
    post = state(overrides={"a": "1"}, replicas={0: (1,)})
    request: Any = CaseRequest(
        Action.CREATE, "orders", given_labels=labels, post_request_state=post, rack_of=racks
    )
    after = request.post_request_state
    for mapping in (request.labels, request.racks, after.configs, after.replicas_assignments):
        mapping.clear()
    assert (request.labels, request.racks) == (labels, racks)
    assert (after.configs, after.replicas_assignments) == ({"a": "1"}, {0: (1,)})


def test_the_labels_before_are_the_same_unless_given() -> None:
    labels = {"team": "blue"}
    assert CaseRequest(Action.MODIFY, "orders", given_labels=labels).labels_before == labels
    assert CaseRequest(Action.CREATE, "orders", given_labels=labels).labels_before == {}
    assert CaseRequest(Action.MODIFY, "orders", given_labels=labels, given_before={}).labels_before == {}
