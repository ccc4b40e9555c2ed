"""Requests from test cases: derived values and missing values."""

from collections.abc import Callable
from typing import Any

import pytest

from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicImpact
from kdeclare.policy.testing.case_requests import CaseRequest, CaseState, Fact, MissingCaseField


def make_state(name: str = "post", **more: Any) -> CaseState:
    return CaseState(name, **({"overrides": {}} | more))


def make_modification(pre: CaseState, post: CaseState) -> CaseRequest:
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
def test_changed_fields_are_derived_from_states(
    pre: dict[str, Any], post: dict[str, Any], changed: set[str]
) -> None:
    found = make_modification(make_state("pre", **pre), make_state(**post)).changed
    assert {field.removeprefix("configs.") for field in found} == changed


def test_creation_changes_all_stated_fields() -> None:
    post = make_state(partitions=1, factor=2, replicas={0: (1, 2)}, overrides={"a": "1"})
    created = CaseRequest(Action.CREATE, "orders", post_request_state=post)
    assert created.changed == {"partitions", "replicationFactor", "assignments", "configs.a"}
    stated = make_state(factor=2, states_factor=True)
    assert CaseRequest(Action.CREATE, "orders", post_request_state=stated).changed == {"replicationFactor"}
    deleted = CaseRequest(Action.DELETE, "orders", pre_request_state=make_state("pre", partitions=1))
    assert deleted.changed == frozenset()


def test_stated_changed_fields_are_used() -> None:
    request = CaseRequest(Action.DELETE, "orders", stated=frozenset({"partitions"}))
    assert request.changed == {"partitions"}


def test_creation_case_has_defaults_for_omitted_fields() -> None:
    request = CaseRequest(Action.CREATE, "orders", post_request_state=make_state())
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
        (lambda r: r.impact.records, "impact.records"),
        (lambda r: r.impact.bytes, "impact.bytes"),
        (lambda r: r.impact.deleted_records, "impact.deletedRecords"),
        (lambda r: r.impact.deleted_bytes, "impact.deletedBytes"),
        (lambda r: r.impact.unread_records, "impact.unreadRecords"),
        (lambda r: r.impact.unread_groups, "impact.unreadGroups"),
        (lambda r: r.impact.active_consumers, "impact.activeConsumers"),
        (lambda r: r.impact.active_groups, "impact.activeGroups"),
        (lambda r: r.impact.active_producers, "impact.activeProducers"),
        (lambda r: r.impact.last_write_ms, "impact.lastWriteMs"),
    ],
)
def test_missing_case_field_is_named(ask: Callable[[Any], object], missing: str) -> None:
    request: RequestMetadata = make_modification(CaseState("pre"), make_state())
    with pytest.raises(MissingCaseField) as found:
        ask(request)
    assert found.value.what == missing


def test_changed_fields_need_both_states() -> None:
    with pytest.raises(MissingCaseField) as found:
        assert make_modification(make_state("pre", partitions=3), make_state()).changed
    assert found.value.what == "post.partitions"


def test_case_request_returns_given_fields() -> None:
    sums = {frozenset({("team", "blue")}): 180}
    request = CaseRequest(Action.MODIFY, "orders", rack_of={1: "a", 2: None}, records=5, sums=sums)
    assert request.racks == {1: "a", 2: None}
    assert request.record_count == 5
    assert request.partitions_of({"team": "blue"}) == 180


def test_case_request_returns_given_facts() -> None:
    facts: dict[str, Fact] = {"unreadRecords": 5, "unreadGroups": ["a"], "lastWriteMs": None}
    impact = CaseRequest(Action.MODIFY, "orders", facts=facts).impact
    assert (impact.unread_records, impact.unread_groups, impact.last_write_ms) == (5, ["a"], None)


def test_new_topic_of_case_has_no_impact() -> None:
    impact = CaseRequest(Action.CREATE, "orders").impact
    assert (impact.records, impact.unread_groups, impact.last_write_ms) == (0, (), None)


@pytest.mark.parametrize("read", [lambda i: i.unread_records, lambda i: i.unread_groups])
def test_unknown_fact_of_case_denies(read: Callable[[TopicImpact], object]) -> None:
    facts = {"unreadRecords": "unknown", "unreadGroups": "unknown"}
    with pytest.raises(
        PolicyViolation, match=r"^'impact\.unread\w+' of Topic/orders is unknown, so the policy"
    ):
        read(CaseRequest(Action.MODIFY, "orders", facts=facts).impact)


def test_case_request_is_not_modified_through_its_mappings() -> None:
    labels, racks = {"team": "blue"}, {1: "a"}
    post = make_state(overrides={"a": "1"}, replicas={0: (1,)})
    request: Any = CaseRequest(
        Action.CREATE, "orders", given_labels=labels, post_request_state=post, rack_of=racks
    )
    after = request.post_request_state
    for mapping in (request.labels, request.racks, after.configs, after.replicas_assignments):
        mapping.clear()
    assert (request.labels, request.racks) == (labels, racks)
    assert (after.configs, after.replicas_assignments) == ({"a": "1"}, {0: (1,)})


def test_labels_before_default_to_labels() -> None:
    labels = {"team": "blue"}
    assert CaseRequest(Action.MODIFY, "orders", given_labels=labels).labels_before == labels
    assert CaseRequest(Action.CREATE, "orders", given_labels=labels).labels_before == {}
    assert CaseRequest(Action.MODIFY, "orders", given_labels=labels, given_before={}).labels_before == {}
