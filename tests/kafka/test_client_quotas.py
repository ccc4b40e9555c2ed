"""Client quotas on real brokers: plan, apply, change, drift, rollback, and limits of other clients."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.engine.state.document import decode_state
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.tables.row_builder import build_declared_cluster_row, build_declared_rows, read_live_rows
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.sandbox import SandboxStatus
from kdeclare.testing.world import declare
from tests.connections import connections_to
from tests.kafka.java import KafkaTools
from tests.kafka.test_bad_input import Project

pytestmark = pytest.mark.kafka

BYTES, FETCHED, PERCENT = "producer_byte_rate", "consumer_byte_rate", "request_percentage"


class Quotas:
    """A project with quotas, and another client of the same cluster."""

    def __init__(self, project: Project, cluster: KafkaCluster) -> None:
        self.project = project
        self.cluster = cluster

    def user(self, short: str) -> QuotaEntity:
        return QuotaEntity.of({EntityType.USER: self.project.name(short)})

    def declare(self, **limits: Any) -> None:
        """Declare a single quota in the project, of user ``a``."""
        self.project.declare(("ClientQuota", "a", self.spec("a", **limits)))

    def spec(self, short: str, **limits: Any) -> Mapping[str, Any]:
        return {"entity": {"user": self.project.name(short)}, "limits": limits}

    def set(self, short: str, **limits: float | None) -> None:
        """Set limits as another client."""
        assert self.cluster.alter_quotas({self.user(short): limits}) == {self.user(short): None}

    def has(self, short: str, **limits: float) -> bool:
        return self.cluster.quotas([self.user(short)]).get(self.user(short), {}) == limits

    def clean(self) -> None:
        mine = {e: v for e, v in self.cluster.quotas().items() if self.project.prefix in e.key}
        results = self.cluster.alter_quotas({entity: dict.fromkeys(mine[entity]) for entity in mine})
        assert set(results.values()) <= {None}


@pytest.fixture
def quotas(sandbox: SandboxStatus, tmp_path: Path) -> Iterator[Quotas]:
    cluster = connect(sandbox.bootstrap, {})
    made = Quotas(Project(tmp_path, sandbox.bootstrap), cluster)
    try:
        yield made
        made.clean()
    finally:
        cluster.close()


def test_quota_is_applied_changed_and_rolled_back(quotas: Quotas) -> None:
    project = quotas.project
    quotas.declare(producer_byte_rate="1MiB", consumer_byte_rate="2MiB")
    plan = project("plan", "--detailed-exitcode")
    assert plan.code is ExitCode.CHANGES
    assert "limits.producer_byte_rate" in plan.out
    project.done("apply", "--yes")
    assert quotas.has("a", producer_byte_rate=2.0**20, consumer_byte_rate=2.0**21)
    assert project.in_order()

    # limits of other clients are shown and stay; limits that leave the manifest are removed
    quotas.set("a", request_percentage=300)
    quotas.set("b", request_percentage=300)
    quotas.declare(producer_byte_rate="512KiB")
    saved = project.done("plan", "--out", "it.plan")
    assert "request_percentage" in saved.out
    project.done("apply", "it.plan", "--yes")
    assert quotas.has("a", producer_byte_rate=2.0**19, request_percentage=300)
    assert quotas.has("b", request_percentage=300)

    # a saved plan is stale once another client has changed its limits
    quotas.declare(producer_byte_rate="3MiB")
    project.done("plan", "--out", "it.plan")
    quotas.set("a", producer_byte_rate=1000)
    assert project("apply", "it.plan", "--yes").code is ExitCode.STALE
    assert quotas.has("a", producer_byte_rate=1000, request_percentage=300)
    quotas.declare(producer_byte_rate="512KiB")
    drift = project.done("plan")
    assert "changed outside kdeclare" in drift.out
    project.done("apply", "--yes")
    assert project.in_order()

    # roll back two runs
    project.done("rollback", "--yes")
    assert quotas.has("a", producer_byte_rate=1000, request_percentage=300)
    project.done("apply", "--yes")

    project.declare()
    assert "ClientQuota/a" in project.done("plan", "--allow-empty").out
    project.done("apply", "--yes", "--allow-deletes", "--allow-empty")
    assert quotas.has("a", request_percentage=300)
    assert json.loads((project.state / "state.json").read_text())["resources"] == {}


def test_quota_entities_match_output_of_kafka_configs(quotas: Quotas, tools: KafkaTools) -> None:
    project, name = quotas.project, quotas.project.name("x")
    specs: dict[str, Mapping[str, Any]] = {
        "pair": {"entity": {"user": name, "clientId": name}, "limits": {PERCENT: 12.5}},
        "default-client": {"entity": {"user": name, "clientId": {"default": True}}, "limits": {BYTES: 9000}},
        "address": {"entity": {"ip": "10.11.12.13"}, "limits": {"connection_creation_rate": 5000}},
    }
    project.declare(*(("ClientQuota", key, spec) for key, spec in specs.items()))
    try:
        project.done("apply", "--yes")
        assert project.in_order()
        said = _describe_quotas(
            tools, project.bootstrap, "--entity-type", "users", "--entity-type", "clients"
        )
        assert f"user-principal '{name}', client-id '{name}' are request_percentage=12.5" in said
        assert f"user-principal '{name}', the default client-id are producer_byte_rate=9000.0" in said
        said = _describe_quotas(tools, project.bootstrap, "--entity-type", "ips")
        assert "Quota configs for ip '10.11.12.13' are connection_creation_rate=5000.0" in said
    finally:
        project.declare()
        project.done("apply", "--yes", "--allow-deletes", "--allow-empty", "--max-deletes", "9")
    assert "10.11.12.13" not in _describe_quotas(tools, project.bootstrap, "--entity-type", "ips")


def test_plan_refuses_quota_of_unresolvable_address(quotas: Quotas) -> None:
    project = quotas.project
    bad = {"entity": {"ip": "no.such.host.invalid"}, "limits": {"connection_creation_rate": 10}}
    project.declare(("ClientQuota", "bad", bad), ("ClientQuota", "a", quotas.spec("a", producer_byte_rate=1)))
    ran = project("plan")
    assert ran.code is ExitCode.ERROR
    said = " ".join((ran.out + ran.err).split())
    assert "no.such.host.invalid is not a valid IP or resolvable host" in said


def test_fleet_audit_finds_quota_drift(quotas: Quotas) -> None:
    """The rows equal those of snapshots; Spark has the same findings (tests/spark)."""
    project = quotas.project
    pair = {EntityType.USER: project.name("pair"), EntityType.CLIENT_ID: None}
    gone = {"entity": {"user": project.name("gone")}, "limits": {PERCENT: 12.5}}
    project.declare(
        ("ClientQuota", "a", quotas.spec("a", producer_byte_rate="1MiB")), ("ClientQuota", "gone", gone)
    )
    project.done("apply", "--yes")
    quotas.set("a", producer_byte_rate=1000, request_percentage=300)
    quotas.set("gone", request_percentage=None)
    quotas.set("b", controller_mutation_rate=0.5)
    assert quotas.cluster.alter_quotas({QuotaEntity.of(pair): {BYTES: 5}}) == {QuotaEntity.of(pair): None}

    with closing(connect(project.bootstrap, {})) as cluster:
        live = list(read_live_rows(connections_to(cluster), "lab", {}, datetime.now(UTC)))
    state = decode_state((project.state / "state.json").read_text(), "state.json")
    declared = [build_declared_cluster_row("lab", {}, cluster_id=state.cluster_id)]
    specs = {"a": quotas.spec("a", producer_byte_rate="1MiB"), "gone": gone}
    for name, spec in specs.items():
        item = declare("ClientQuota", name, spec)
        declared += build_declared_rows("lab", item, item.id, state.resources[str(item.id)])
    found = {
        (row["name"], row["finding"], row["path"], row["before"])
        for row in audit_rows(declared, live)
        if row["kind"] == "ClientQuota" and (row["name"] in specs or project.prefix in row["name"])
    }
    assert found == {
        ("a", "changed", "limits.producer_byte_rate", "1000"),
        ("a", "unmanaged", "limits.request_percentage", "300"),
        ("gone", "missing", None, None),
        (quotas.user("b").key, "unmanaged", None, None),
        (QuotaEntity.of(pair).key, "unmanaged", None, None),
    }

    rule = {"rule": "!('controller_mutation_rate' in after.limits)", "message": "Not here."}
    selector = {"kind": "ClientQuota"}
    bounded = ("Policy", "slow", {**rule, "actions": ["CREATE", "MODIFY"], "selector": selector})
    project.declare(bounded, *(("ClientQuota", name, spec) for name, spec in specs.items()))
    judged = json.loads(project("policy", "check", "--live", "--format", "json").out)["verdicts"]
    mine = {
        v["resource"]: v["outcome"]
        for v in judged
        if project.prefix in v["resource"] or v["resource"].endswith("/a")
    }
    assert mine == {
        "ClientQuota/a": "allow",
        f"ClientQuota/{quotas.user('b').key}": "deny",
        f"ClientQuota/{QuotaEntity.of(pair).key}": "allow",
    }


def _describe_quotas(tools: KafkaTools, bootstrap: str, *entities: str) -> str:
    """Return the quotas that kafka-configs describes."""
    arguments = ("--describe", *entities, "--bootstrap-server", bootstrap)
    ran = tools("kafka.admin.ConfigCommand", *arguments)
    assert ran.code == 0, ran.text
    return ran.text
