"""The findings of an audit of collected rows match the changes of a plan of the same cluster."""

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.tables.rows import CLUSTER
from kdeclare.providers.kafka.broker_config import BrokerConfigRecord
from kdeclare.providers.kafka.config.config_record import AppliedValue
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.topic.record import TopicRecord
from tests.connections import connections_to
from tests.engine.world import Secrets, desired, nothing, sealed, topic
from tests.jsontypes import Json
from tests.unit.fleet.wholes import build_tables, make_cluster, make_state

Change = tuple[str, str, Any, Any]
"""Path, op, before and after."""

VALUES: Mapping[str, list[str]] = {
    "retention.ms": ["1000", "604800000"],
    "max.message.bytes": ["5000", "1048588"],
    "cleanup.policy": ["compact", "delete", "compact,delete"],
    "leader.replication.throttled.replicas": ["0:1", "0:1,0:2"],
}
BROKER_VALUES: Mapping[str, list[str]] = {
    "log.cleaner.threads": ["1", "2"],
    "log.cleanup.policy": ["compact", "delete"],
    "num.io.threads": ["8", "9"],
}


class RandomProject:
    """A cluster with overrides, its declared resources, and its ownership records."""

    def __init__(self, random: Random) -> None:
        self._random = random
        names = [f"t.{n}" for n in range(5)]
        live = [name for name in names if self._is_drawn(0.8)]
        self.cluster: MemoryCluster = make_cluster(**{name: [(1, 2)] * random.randint(1, 2) for name in live})
        for broker in (1, 2, 3, 4):  # the value to append to if a topic has no value of its own
            self.cluster.set_static(
                broker, {"log.cleanup.policy": self._random.choice(["compact", "delete"])}
            )
        for name in live:
            self._set_overrides(ConfigScope.TOPIC, name, VALUES)
        for entity in ("", "1"):
            self._set_overrides(ConfigScope.BROKER, entity, BROKER_VALUES)
        self.declared: list[DesiredResource] = [
            self._make_topic(name) for name in names if self._is_drawn(0.8)
        ]
        for resource in ("cluster-default", "1"):
            self.declared.append(desired("BrokerConfig", resource, configs=self._make_configs(BROKER_VALUES)))
        self.state = make_state(owned=dict(self._make_records()))

    def _is_drawn(self, share: float) -> bool:
        return self._random.random() < share

    def _set_overrides(self, scope: ConfigScope, name: str, values: Mapping[str, list[str]]) -> None:
        chosen = {key: self._random.choice(some) for key, some in values.items() if self._is_drawn(0.4)}
        self.cluster.set_overrides(ConfigResource(scope, name), chosen)

    def _make_topic(self, name: str) -> DesiredResource:
        return topic(
            name,
            partitions=self._random.randint(1, 3),
            replicationFactor=2,
            configs=self._make_configs(VALUES),
            unmanagedConfigs=self._random.choice(["keep", "keep", "remove"]),
        )

    def _make_configs(self, values: Mapping[str, list[str]]) -> dict[str, Any]:
        wishes: dict[str, Any] = {}
        for key, some in values.items():
            if self._is_drawn(0.5):
                continue
            wishes[key] = self._random.choice(some)
            if "policy" in key and self._is_drawn(0.5):
                wishes[key] = {"append": ["compact"]}
            elif self._is_drawn(0.1):
                wishes[key] = None
        return wishes

    def _make_records(self) -> Iterator[tuple[str, Json]]:
        configs = {"retention.ms": AppliedValue("1000")}
        known = {"Topic": TopicRecord(configs, partitions=1), "BrokerConfig": BrokerConfigRecord(configs)}
        for item in self.declared:
            if self._is_drawn(0.5) and item.id.kind in known:
                yield str(item.id), known[item.id.kind]

    def make_plan(self) -> Plan:
        """Return the changes of a plan."""
        request = PlanRequest(
            "p", "d", "eu-1", sealed(self.declared, self.state), self.state, PlanScope(preflight=False)
        )
        return build_plan(request, connections_to(self.cluster), Secrets(), nothing)

    def find_changes(self) -> dict[str, list[Change]]:
        """Return the findings that an apply would fix, by resource."""
        changes: dict[str, list[Change]] = {}
        for row in audit_rows(*build_tables(self.cluster, self.declared, self.state)):
            if row["op"] is not None and row["kind"] != CLUSTER:
                before, after = (
                    None if row[side] is None else json.loads(row[side]) for side in ("before", "after")
                )
                change = (row["path"] or "", row["op"], before, after)
                changes.setdefault(f"{row['kind']}/{row['name']}", []).append(change)
        return {name: sorted(items, key=repr) for name, items in changes.items()}


def _parse_data(text: str | None) -> Json:
    return None if text is None else json.loads(text)


def list_planned_changes(plan: Plan) -> dict[str, list[Change]]:
    """Return the same for a plan."""
    changes: dict[str, list[Change]] = {}
    for change in plan.changes:
        if change.action is Action.NO_OP:
            continue
        items: list[Change] = [(f.path, str(f.op), f.before, f.after) for f in change.fields]
        if change.action is Action.CREATE:
            items = [("", str(Action.CREATE), None, {f.path: f.after for f in change.fields})]
        changes[str(change.id)] = sorted(items, key=repr)
    return {name: items for name, items in changes.items() if items}


@given(st.integers(0, 2**32))
def test_audit_finds_the_changes_of_a_plan(seed: int) -> None:
    drawn = RandomProject(Random(seed))
    assert drawn.find_changes() == list_planned_changes(drawn.make_plan())


def test_random_projects_cover_all_changes() -> None:
    """The generated clusters have changes, or the property would be vacuous."""
    plans = [RandomProject(Random(seed)).make_plan() for seed in range(40)]
    ops = {str(f.op) for plan in plans for change in plan.changes for f in change.fields}
    assert {"SET", "DELETE", "APPEND"} <= ops
    kinds = {ResourceId.parse(str(change.id)).kind for plan in plans for change in plan.changes}
    assert kinds == {"Topic", "BrokerConfig"}
    assert {change.action for plan in plans for change in plan.changes} >= {Action.CREATE, Action.UPDATE}
