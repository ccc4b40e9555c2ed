"""Configs of groups and client metrics subscriptions in snapshots and audits of fleets."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.fleet_capabilities import decode_body
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.fleet.in_process_audit import audit_rows, proves_no_drift
from kdeclare.fleet.live_state import decode_object
from kdeclare.fleet.tables.row_builder import (
    Row,
    batch_rows,
    build_declared_cluster_row,
    build_declared_rows,
    read_live_rows,
)
from kdeclare.fleet.tables.rows import LIVE
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.listed_configs.collector import (
    LISTED_SCOPES,
    ListedConfigsSelection,
    ListedConfigsState,
    read_listed_configs,
)
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.unit.fleet.fleets import make_desired

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SESSION, ISOLATION = "consumer.session.timeout.ms", "share.isolation.level"
SCOPES = {"GroupConfig": ConfigScope.GROUP, "ClientMetrics": ConfigScope.CLIENT_METRICS}


def make_group(name: str, configs: Mapping[str, Any], **spec: Any) -> DesiredResource:
    return make_desired("GroupConfig", name, {"team": "edge"}, configs=configs, **spec)


def make_subscription(name: str, **spec: Any) -> DesiredResource:
    return make_desired("ClientMetrics", name, {"team": "edge"}, **spec)


def make_record(item: DesiredResource) -> OwnedRecord:
    """Build the ownership record of a resource that was applied as declared."""
    live = LiveState(ListedConfigsState())
    record = KINDS[item.id.kind].diff(item.id, item, live, None, PlanContext()).owned
    assert record is not None
    return record


@dataclass
class ListedCluster:
    """A cluster with its declared and owned groups and subscriptions."""

    cluster: MemoryCluster = field(default_factory=lambda: MemoryCluster(cluster_id="id-1"))
    desired: Sequence[DesiredResource] = ()
    owned: dict[str, OwnedRecord] = field(default_factory=dict)

    def set(self, kind: str, name: str, configs: Mapping[str, str]) -> None:
        """Set the overrides of a resource as another client."""
        self.cluster.set_overrides(ConfigResource(SCOPES[kind], name), configs)

    def declared_rows(self) -> list[Row]:
        rows = [build_declared_cluster_row("eu-1", {}, cluster_id="id-1")]
        for item in self.desired:
            rows += build_declared_rows("eu-1", item, item.id, self.owned.get(str(item.id)))
        for text in sorted(self.owned.keys() - {str(item.id) for item in self.desired}):
            rows += build_declared_rows("eu-1", None, ResourceId.parse(text), self.owned[text])
        return rows

    def live_rows(self) -> list[Row]:
        """Return the live rows after a round trip through Arrow, as in a snapshot."""
        rows = read_live_rows(connections_to(self.cluster), "eu-1", {}, NOW)
        table = pa.Table.from_batches(batch_rows(rows), LIVE)
        return [dict(row) for row in table.to_pylist(maps_as_pydicts="strict")]

    def live(self) -> LiveState:
        """Return the live state that a plan reads."""
        selection = ListedConfigsSelection(every=frozenset(LISTED_SCOPES))
        return LiveState(read_listed_configs(connections_to(self.cluster), selection))

    def audit(self) -> list[tuple[str, str, str | None]]:
        rows = audit_rows(self.declared_rows(), self.live_rows())
        return [(row["name"], row["finding"], row["path"]) for row in rows if row["kind"] in SCOPES]


def test_audit_finds_drift_of_every_kind() -> None:
    made = ListedCluster()
    good, other, gone, new = (
        make_group("good", {SESSION: 50000}),
        make_subscription("other", metrics=["a.", "b."], interval="30s"),
        make_group("gone", {SESSION: 50000}),
        make_subscription("new", metrics=["*"]),
    )
    old = make_subscription("old", metrics=["a."])
    made.desired = [good, other, gone, new]
    made.owned = {str(item.id): make_record(item) for item in (good, other, gone, old)}
    made.set("GroupConfig", "good", {SESSION: "50000", ISOLATION: "read_committed"})
    made.set("ClientMetrics", "other", {"metrics": "b.,c.", "interval.ms": "30000"})
    made.set("ClientMetrics", "old", {"metrics": "a."})
    made.set("GroupConfig", "of-others", {SESSION: "50000"})
    assert made.audit() == [
        ("new", "pending", None),
        ("old", "orphaned", None),
        ("other", "changed", "configs.metrics"),
        ("gone", "missing", None),
        ("good", "unmanaged", f"configs.{ISOLATION}"),
        ("of-others", "unmanaged", None),
    ]


def test_audit_reports_configs_that_may_not_be_listed() -> None:
    made = ListedCluster(desired=[make_group("g", {SESSION: 50000})])
    refused = Fault("CLUSTER_AUTHORIZATION_FAILED", "")
    made.cluster.faults.fail(refused, nth=None, method="config_resources")
    assert made.audit() == [("g", "unreachable", None)]


def test_audit_of_old_brokers_compares_what_they_can_list() -> None:
    """Before Kafka 4.1, brokers list only subscriptions."""
    made = ListedCluster(desired=[make_subscription("m", metrics=["*"]), make_group("g", {SESSION: 50000})])
    made.owned = {str(item.id): make_record(item) for item in made.desired}
    made.set("ClientMetrics", "m", {"metrics": "a."})
    # subscriptions are listed first, then groups
    made.cluster.faults.fail(Fault("UNSUPPORTED_VERSION", ""), nth=2, method="config_resources")
    subscription, group = audit_rows(made.declared_rows(), made.live_rows())
    assert (subscription["name"], subscription["finding"]) == ("m", "changed")
    assert (group["name"], group["finding"]) == ("g", "pending")
    assert (
        "these brokers cannot list groups with configs, which requires Kafka 4.1 or later" in group["message"]
    )


def generate(random: Random) -> ListedCluster:
    """Generate declared, owned and live configs at random, which often agree."""
    made = ListedCluster()
    wanted: list[DesiredResource] = []
    for number in range(6):
        name = f"r{number}"
        more = {"unmanagedConfigs": "remove"} if random.random() < 0.3 else {}
        is_group = number % 2 == 0
        values = {
            SESSION: random.choice([50000, 60000, None]),
            ISOLATION: random.choice(["read_committed", "read_uncommitted"]),
        }
        configs = dict(random.sample(list(values.items()), random.randint(0, 2)))
        fields = {"metrics": random.choice([["a."], ["b.", "a."]]), "interval": random.choice(["1s", "2s"])}
        spec = dict(random.sample(list(fields.items()), random.randint(0, 2)))
        item = make_group(name, configs, **more) if is_group else make_subscription(name, **spec, **more)
        if random.random() < 0.7:
            wanted.append(item)
        if random.random() < 0.6:
            made.owned[str(item.id)] = make_record(item)
        live = (
            {SESSION: random.choice(["50000", "60000"]), ISOLATION: "read_committed"}
            if is_group
            else {"metrics": random.choice(["a.", "a.,b."]), "interval.ms": random.choice(["1000", "2000"])}
        )
        chosen = dict(random.sample(list(live.items()), random.randint(0, 2)))
        made.set(item.id.kind, name, chosen)
    made.desired = wanted
    return made


@given(st.integers(0, 2**32))
def test_row_diff_equals_cluster_diff_and_facts_hide_no_drift(seed: int) -> None:
    made = generate(Random(seed))
    declared, live = made.declared_rows(), made.live_rows()
    own = next(row["body"] for row in live if row["kind"] == "Cluster")
    seen = {(row["kind"], row["name"]): row for row in live}
    for item in made.desired:
        kind = item.id.kind
        row = next(row for row in declared if (row["kind"], row["name"]) == (kind, item.id.name))
        mine = seen.get((kind, item.id.name))
        owned = made.owned.get(str(item.id))
        body = decode_body(kind, json.loads(row["desired"]))
        read = DesiredResource(item.id, body, item.labels, item.source)
        part = decode_object(LiveKey(kind, item.id.name), None if mine is None else mine["body"], own)
        context = PlanContext()
        assert KINDS[kind].diff(item.id, read, part, owned, context) == KINDS[kind].diff(
            item.id, item, made.live(), owned, context
        )
        for unmanaged_keys in (True, False):
            found = {r["name"] for r in audit_rows(declared, live, unmanaged_keys=unmanaged_keys)}
            if mine is not None and proves_no_drift(row, mine, unmanaged_keys=unmanaged_keys):
                assert item.id.name not in found
