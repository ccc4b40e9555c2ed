"""The settings of rules, and properties that hold for all settings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.policy import rules
from kdeclare.policy.interface import TopicActionsPolicy
from kdeclare.policy.rules import NamePattern
from kdeclare.policy.rules.base import Rule
from tests.unit.policy.doubles import (
    State,
    find_violation,
    make_assigned_state,
    make_creation,
    make_modification,
)


def make_rule(name: str, settings: dict[str, Any]) -> TopicActionsPolicy:
    policy: Rule[Any] = getattr(rules, name)()
    policy.configure(settings)
    return policy


@pytest.mark.parametrize(
    ("name", "settings", "loc", "said"),
    [
        ("NamePattern", {}, ("pattern",), "Field required"),
        ("NamePattern", {"pattern": "[a"}, ("pattern",), "not a regular expression (RE2): missing ]"),
        ("NamePattern", {"pattern": "(?=a)"}, ("pattern",), "not a regular expression (RE2)"),
        ("PartitionBounds", {}, (), "set 'min', 'max' or both"),
        ("PartitionBounds", {"min": 3, "max": 2}, (), "'min' (3) is greater than 'max' (2)"),
        ("PartitionBounds", {"max": "48"}, ("max",), "valid integer"),
        ("PartitionBounds", {"max": True}, ("max",), "valid integer"),
        ("PartitionBounds", {"max": 1.0}, ("max",), "valid integer"),
        ("PartitionBounds", {"min": 0}, ("min",), "greater than or equal to 1"),
        ("PartitionBounds", {"maximum": 1}, ("maximum",), "not permitted"),
        ("ReplicationFactorBounds", {}, (), "set 'min', 'max' or both"),
        ("MinInsyncReplicas", {"min": 0}, ("min",), "greater than or equal to 1"),
        ("RequiredConfigs", {}, ("configs",), "Field required"),
        ("RequiredConfigs", {"configs": {}}, ("configs",), "at least 1 item"),
        ("RequiredConfigs", {"configs": {"flush.ms": {}}}, ("configs", "flush.ms"), "valid string"),
        ("RequiredConfigs", {"configs": {"retention.m": None}}, ("configs",), "did you mean 'retention.ms'?"),
        ("ForbiddenConfigs", {"keys": []}, ("keys",), "at least 1 item"),
        ("ForbiddenConfigs", {"keys": ["flushms"]}, ("keys",), "did you mean 'flush.ms'?"),
        ("AllowedConfigs", {}, (), "set 'keys', 'configs' or both"),
        ("AllowedConfigs", {"configs": {"flush.ms": []}}, ("configs", "flush.ms"), "at least 1 item"),
        ("AllowedConfigs", {"keys": ["clean.policy"]}, (), "did you mean 'cleanup.policy'?"),
        ("BoundedConfigs", {"configs": {"flush.ms": {}}}, ("configs", "flush.ms"), "set 'min', 'max'"),
        (
            "BoundedConfigs",
            {"configs": {"flush.ms": {"min": 2, "max": 1}}},
            ("configs", "flush.ms"),
            "is greater than",
        ),
        ("BoundedConfigs", {"configs": {"flushms": {"max": 1}}}, ("configs",), "did you mean 'flush.ms'?"),
        ("NoPartitionIncrease", {"labels": {"keyed": None}}, ("labels", "keyed"), "valid string"),
        ("NoDelete", {"label": {}}, ("label",), "not permitted"),
        ("NoDeleteWithRecords", {"max": 1}, ("max",), "not permitted"),
        ("NoDeleteWithReaders", {"labels": {}}, ("labels",), "not permitted"),
        ("NoLossOfUnreadRecords", {"max": 1}, ("max",), "not permitted"),
        ("MinRacks", {}, ("racks",), "Field required"),
        ("MinRacks", {"racks": 0}, ("racks",), "greater than or equal to 1"),
        ("PartitionBudget", {}, (), "set 'max', 'budgets' or both"),
        ("PartitionBudget", {"max": -1}, ("max",), "greater than or equal to 0"),
        ("CreationRuleForLife", {"config": {}}, ("class",), "Field required"),
    ],
)
def test_rule_rejects_invalid_settings(
    name: str, settings: dict[str, Any], loc: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        make_rule(name, settings)
    (problem,) = caught.value.errors()
    assert problem["loc"] == loc
    assert said in problem["msg"]


@pytest.mark.parametrize("value", ["5", float("inf"), float("nan"), True, None, []])
def test_config_bound_must_be_finite_number(value: object) -> None:
    with pytest.raises(ValidationError):
        make_rule("BoundedConfigs", {"configs": {"flush.ms": {"max": value}}})


@pytest.mark.parametrize(
    ("key", "wanted", "value", "same"),
    [
        ("retention.ms", 604800000, "604800000", True),
        ("retention.ms", "604800000", " 604800000", True),
        ("min.cleanable.dirty.ratio", 0.5, "0.50", True),
        ("preallocate", True, "TRUE", True),
        ("preallocate", True, "false", False),
        ("cleanup.policy", ["compact", "delete"], "delete,compact", True),
        ("cleanup.policy", "compact, delete", "delete,compact", True),
        ("cleanup.policy", ["compact"], "compact,delete", False),
        ("compression.type", "lz4", "LZ4", False),
        ("a.key.of.tomorrow", 5, "5", True),
        ("a.key.of.tomorrow", 5, "5.0", False),
    ],
)
def test_required_configs_compare_values_by_meaning(key: str, wanted: object, value: str, same: bool) -> None:
    policy = make_rule("RequiredConfigs", {"configs": {key: wanted}})
    assert (find_violation(policy, make_creation(State(configs={key: value}))) is None) is same


def test_every_rule_forbids_unknown_settings() -> None:
    for name in rules.__all__:
        model = getattr(rules, name).settings_model
        assert model.model_config["extra"] == "forbid"
        assert model.model_json_schema()["additionalProperties"] is False


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_bounds_apply_to_creation_and_modification(low: int, high: int, before: int, after: int) -> None:
    if low > high:
        return
    for name, states in {
        "PartitionBounds": (State(before, 1), State(after, 1)),
        "ReplicationFactorBounds": (make_assigned_state(range(before)), make_assigned_state(range(after))),
    }.items():
        policy = make_rule(name, {"min": low, "max": high})
        inside = low <= after <= high
        assert (find_violation(policy, make_creation(states[1])) is None) is inside
        assert (find_violation(policy, make_modification(*states)) is None) is (inside or before == after)
        settings = State(9 * before, 9 * before, configs={"flush.ms": "1"})
        assert find_violation(policy, make_modification(State(9 * before, 9 * before), settings)) is None


replicas = st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True)
configs = st.dictionaries(
    st.sampled_from(["retention.ms", "min.insync.replicas", "cleanup.policy"]),
    st.sampled_from(["-1", "2", "3"]),
)


@st.composite
def draw_state(draw: st.DrawFn) -> State:
    return make_assigned_state(*draw(st.lists(replicas, min_size=1, max_size=3)), configs=draw(configs))


STATE_RULES: list[tuple[str, dict[str, Any]]] = [
    ("PartitionBounds", {"max": 2}),
    ("ReplicationFactorBounds", {"min": 2, "max": 3}),
    ("MinInsyncReplicas", {"min": 2}),
    ("RequiredConfigs", {"configs": {"retention.ms": None, "min.insync.replicas": 2}}),
    ("ForbiddenConfigs", {"keys": ["cleanup.policy"]}),
    ("AllowedConfigs", {"keys": ["retention.ms"], "configs": {"min.insync.replicas": [2]}}),
    ("BoundedConfigs", {"configs": {"retention.ms": {"max": 2}}}),
    ("MinRacks", {"racks": 2}),
]


@pytest.mark.parametrize(("name", "settings"), STATE_RULES)
@given(before=draw_state(), after=draw_state())
def test_modification_of_valid_topic_is_judged_as_creation(
    name: str, settings: dict[str, Any], before: State, after: State
) -> None:
    policy = make_rule(name, settings)
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: None}
    modification = find_violation(policy, make_modification(before, after, racks=racks))
    as_created = find_violation(policy, make_creation(after, racks=racks))
    if find_violation(policy, make_creation(before, racks=racks)) is None:
        # modifications of a valid topic are allowed if and only if it stays valid
        assert modification == as_created
    if as_created is None:
        assert modification is None
    assert find_violation(policy, make_modification(before, before, racks=racks)) is None


def test_name_pattern_error_hides_referenced_value() -> None:
    policy = NamePattern()
    with pytest.raises(ValidationError) as wrong:
        policy.configure({"pattern": Referenced("s3cret(", "${env.PATTERN}")})
    said = wrong.value.errors(include_input=False, include_url=False)[0]["msg"]
    assert "missing ) in the value of ${env.PATTERN}" in said
    assert "s3cret" not in said
    policy.configure({"pattern": Referenced("s3cret", "${env.PATTERN}")})
    message = find_violation(policy, make_creation(State()))
    assert message == "The name 'orders' does not match the pattern ${env.PATTERN}."
