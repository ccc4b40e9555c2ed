"""Rules for object kinds: a provider of such kinds needs no code for policies."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import pytest
from pydantic import Field

from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.policies.policy_fields import PolicyField, build_policy_field
from kdeclare.core.provider.installed_providers import load_providers
from kdeclare.core.provider.provider import Provider
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.objects import Fields, ObjectRecord
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, hide
from kdeclare.policy.cel.manifest import PolicyKind
from kdeclare.policy.cel.rule import RuleError, compile_rule
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.evaluation import evaluate_operations
from kdeclare.policy.resource_checks import check_declared
from kdeclare.policy.subjects import PolicyContext
from tests.jsontypes import Json
from tests.loaded_providers import replace_load_providers
from tests.unit.test_objects import DOOR, ID, House, make_declared, plan


@pytest.fixture(autouse=True)
def door_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    providers = (*load_providers(), Provider("doors", (DOOR,), DOOR.operation_types))
    replace_load_providers(monkeypatch, lambda: providers)


def make_policy(text: str, actions: Sequence[str] = ("CREATE", "MODIFY")) -> ConfiguredPolicy:
    kind = PolicyKind()
    selector = {"kind": DOOR.name}
    spec = kind.spec.model_validate({"rule": text, "actions": actions, "selector": selector})
    body, problems = kind.parse("p", spec)
    assert not problems, problems
    return kind.configured(DesiredResource(ID, body))


def evaluate_rule(
    text: str, op: Operation, doors: Mapping[str, Fields], actions: Sequence[str] = ("MODIFY",)
) -> tuple[str, str]:
    context = PolicyContext(Connections(), LiveState(House(doors)))
    [verdict] = evaluate_operations([make_policy(text, actions)], [op], context).verdicts
    return verdict.outcome, verdict.message


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("before.color == 'red' && after.color == 'blue'", "allow"),
        ("changed == ['color']", "allow"),
        ("after.rooms == ['hall']", "allow"),
        (f"after.key == '{SENSITIVE_MASK}'", "allow"),
        ("after.color == null", "deny"),
    ],
)
def test_change_is_evaluated_on_live_object(text: str, outcome: str) -> None:
    there: Mapping[str, Fields] = {"main": {"color": "red", "rooms": ["hall"], "key": hide("s3cret-value")}}
    op = plan(make_declared(color="blue"), there, ObjectRecord({"color": "red"}))
    assert evaluate_rule(text, op, there)[0] == outcome


def test_unset_field_is_null() -> None:
    op = plan(make_declared(rooms=["hall"]), {})
    assert evaluate_rule("after.color == null && after.rooms == ['hall']", op, {}, ["CREATE"])[0] == "allow"
    outcome, message = evaluate_rule("after.color.startsWith('b')", op, {}, ["CREATE"])
    assert outcome == "deny"
    assert (
        "'after.color' is null here. To fix the rule, its author can write after.color != null && …."
        in message
    )
    assert evaluate_rule("after.color != null || after.rooms.size() == 1", op, {}, ["CREATE"])[0] == "allow"


def test_manifest_is_evaluated_without_connection() -> None:
    policies = [make_policy("after.color != 'red'"), make_policy("after.key == null")]
    found = check_declared(policies, [make_declared(color="red")])
    assert [v.outcome for v in found.verdicts] == [VerdictOutcome.DENY, VerdictOutcome.ALLOW]


def test_rule_fields_come_from_spec_model() -> None:
    with pytest.raises(RuleError) as wrong:
        compile_rule("after.colour == 'red'", DOOR.name)
    assert wrong.value.problems[0].hint == "Did you mean 'color'?"
    with pytest.raises(RuleError) as wrong:
        compile_rule("after.color == 3", DOOR.name)
    assert wrong.value.problems[0].detail == "'==' does not accept a string or null and a whole number."


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, PolicyField(int)),
        (bool, PolicyField(bool)),
        (float | None, PolicyField(float, nullable=True)),
        (Annotated[int, Field(ge=0)], PolicyField(int)),
        (Literal["a", "b"], PolicyField(str)),
        (list[int], PolicyField(list[int])),
        (list[str] | None, PolicyField(list[str])),
        (tuple[str, ...], PolicyField(list[str])),
        (list[dict[str, int]], PolicyField(list[object])),
        (dict[str, str], PolicyField(dict[str, str])),
        (dict[str, list[int]], PolicyField(dict[str, object])),
        (int | str, PolicyField(object)),
        (Json, PolicyField(object)),
        (Literal["a"] | None, PolicyField(str, nullable=True)),
    ],
)
def test_policy_field_type_follows_annotation(annotation: object, expected: PolicyField) -> None:
    assert build_policy_field(annotation) == expected
