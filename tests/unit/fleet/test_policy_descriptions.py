"""Incremental audits notice every change of a declared policy."""

import datetime
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from kdeclare.app.fleet.audit_policies import describe_policies
from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.policies.policy_request import PolicyAction
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.manifests.policies import PolicyEntry
from kdeclare.policy.cel.manifest import PolicyBody

FOLDER = Path("/project")
ENTRY = PolicyEntry("few", "rules:Few", {"since": datetime.date(2026, 1, 1)})
BODY = PolicyBody("true", "wrong")
OTHER_ENTRY: Mapping[str, Any] = {
    "name": "many",
    "class_name": "rules:Many",
    "config": {"since": datetime.date(2026, 1, 2)},
    "severity": "warn",
    "actions": ("CREATE",),
    "topics": ("a",),
    "labels": {"team": "a"},
    "kind": "Connector",
    "names": ("a",),
}
OTHER_BODY: Mapping[str, Any] = {
    "rule": "false",
    "message": "bad",
    "outcome": VerdictOutcome.WARN,
    "actions": frozenset({PolicyAction.CREATE}),
    "topics": ("a",),
    "labels": {"team": "a"},
    "kind": "Connector",
    "names": ("a",),
}


def describe(entry: PolicyEntry = ENTRY, body: PolicyBody = BODY, line: int = 1) -> str | None:
    rule = DesiredResource(ResourceId("Policy", "p"), body, {}, SourcePosition("/project/p.yaml", line, 1))
    return describe_policies((), [entry], [rule], FOLDER)


def test_every_field_except_positions_has_another_value_here() -> None:
    """A new field fails this test until it is in the table above, and then has to be in the description."""
    assert {item.name for item in fields(ENTRY)} - OTHER_ENTRY.keys() == {"places"}
    assert {item.name for item in fields(BODY)} == OTHER_BODY.keys()


@pytest.mark.parametrize("name", OTHER_ENTRY)
def test_every_field_of_entry_is_described(name: str) -> None:
    assert describe(replace(ENTRY, **{name: OTHER_ENTRY[name]})) != describe()


@pytest.mark.parametrize("name", OTHER_BODY)
def test_every_field_of_rule_is_described(name: str) -> None:
    assert describe(body=replace(BODY, **{name: OTHER_BODY[name]})) != describe()


def test_position_of_rule_is_described_and_position_of_entry_is_not() -> None:
    assert describe(line=2) != describe()
    position = SourcePosition("/project/kdeclare.yaml", 1, 1)
    assert describe(replace(ENTRY, places={(): (position, position)})) == describe()


def test_order_of_sets_does_not_matter() -> None:
    actions = [PolicyAction.CREATE, PolicyAction.DELETE]
    first, second = (replace(BODY, actions=frozenset(some)) for some in (actions, actions[::-1]))
    assert describe(body=first) == describe(body=second)
