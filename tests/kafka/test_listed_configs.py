"""Configs of groups and client metrics on real brokers: plan, apply, drift, rollback, import, and audit."""

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
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.listed_configs.collector import LISTED_SCOPES
from kdeclare.providers.kafka.request_values import ConfigQuery
from kdeclare.sandbox import SandboxStatus
from kdeclare.testing.world import declare
from tests.connections import connections_to
from tests.kafka.java import KafkaTools
from tests.kafka.test_bad_input import Project
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


class ListedConfigs:
    """A project with a group and a subscription, and Kafka's own tool as another client."""

    def __init__(self, project: Project, cluster: KafkaCluster, tools: KafkaTools) -> None:
        self.project = project
        self._tools = tools
        self.cluster = cluster
        self.group, self.subscription = project.name("g"), project.name("m")

    def declare(self, configs: Mapping[str, Any], **subscription: Any) -> None:
        self.project.declare(
            ("GroupConfig", self.group, {"configs": configs}),
            ("ClientMetrics", self.subscription, subscription),
        )

    def alter(self, entity_type: str, name: str, *options: str) -> None:
        """Change configs with kafka-configs."""
        self._run_tool("--alter", "--entity-type", entity_type, "--entity-name", name, *options)

    def describe(self, entity_type: str, name: str) -> set[str]:
        """Return the overrides as kafka-configs describes them: ``key=value``."""
        output = self._run_tool("--describe", "--entity-type", entity_type, "--entity-name", name)
        return {
            line.split(" sensitive=")[0].strip()
            for line in output.splitlines()
            if "DYNAMIC_GROUP_CONFIG:" in line or "DYNAMIC_CLIENT_METRICS_CONFIG:" in line
        }

    def _run_tool(self, *arguments: str) -> str:
        bootstrap = ("--bootstrap-server", self.project.bootstrap)
        ran = self._tools("kafka.admin.ConfigCommand", *arguments, *bootstrap)
        assert ran.code == 0, ran.text
        return ran.text

    def read(self, scope: ConfigScope, name: str) -> dict[str, str | None]:
        resource = ConfigResource(scope, name)
        entries = self.cluster.configs([ConfigQuery(resource, overrides=True)])[resource]
        return {key: entry.value for key, entry in entries.items()}


@pytest.fixture
def listed(sandbox: SandboxStatus, tools: KafkaTools, tmp_path: Path) -> Iterator[ListedConfigs]:
    project = Project(tmp_path, sandbox.bootstrap)
    with closing(connect(sandbox.bootstrap, {})) as cluster:
        made = ListedConfigs(project, cluster, tools)
        yield made
        project.declare()
        project.done("apply", "--yes", "--allow-deletes", "--allow-empty", "--max-deletes", "9")

        def is_clean() -> bool:  # the answering broker can trail the controller
            resources = [r for scope in LISTED_SCOPES for r in cluster.list_config_resources(scope)]
            return not any(project.prefix in resource.name for resource in resources)

        wait_for(is_clean, every=0.02)


def test_configs_are_applied_changed_and_rolled_back(listed: ListedConfigs) -> None:
    project = listed.project
    listed.declare({SESSION: 50000}, metrics=["org.a."], match={"client_id": "app-.*"}, interval="30s")
    assert project("plan", "--detailed-exitcode").code is ExitCode.CHANGES
    project.done("apply", "--yes")
    assert listed.describe("groups", listed.group) == {f"{SESSION}=50000"}
    assert listed.describe("client-metrics", listed.subscription) == {
        "metrics=org.a.",
        "match=client_id=app-.*",
        "interval.ms=30000",
    }
    assert project.in_order()

    # what other clients set stays, and their changes of declared values are drift
    listed.alter("groups", listed.group, "--add-config", "share.isolation.level=read_committed")
    assert project.in_order()
    listed.alter("groups", listed.group, "--add-config", f"{SESSION}=60000")
    assert "changed outside kdeclare" in project.done("plan").out
    project.done("apply", "--yes")
    assert listed.read(ConfigScope.GROUP, listed.group) == {
        SESSION: "50000",
        "share.isolation.level": "read_committed",
    }

    # a saved plan is stale once another client has changed what it is about
    listed.declare({HEARTBEAT: 6000}, metrics=["org.a.", "org.b."])
    project.done("plan", "--out", "it.plan")
    listed.alter("client-metrics", listed.subscription, "--add-config", "metrics=[org.c.]")
    assert project("apply", "it.plan", "--yes").code is ExitCode.STALE
    project.done("apply", "--yes")
    assert listed.read(ConfigScope.GROUP, listed.group) == {
        HEARTBEAT: "6000",
        "share.isolation.level": "read_committed",
    }
    assert listed.read(ConfigScope.CLIENT_METRICS, listed.subscription) == {"metrics": "org.a.,org.b."}
    project.done("rollback", "--yes")
    assert listed.read(ConfigScope.GROUP, listed.group) == {
        SESSION: "50000",
        "share.isolation.level": "read_committed",
    }
    assert listed.read(ConfigScope.CLIENT_METRICS, listed.subscription) == {
        "metrics": "org.c.",
        "match": "client_id=app-.*",
        "interval.ms": "30000",
    }
    listed.alter("groups", listed.group, "--delete-config", "share.isolation.level")


def test_plan_reports_limits_of_the_brokers(listed: ListedConfigs) -> None:
    listed.declare({SESSION: 6_000_000}, metrics=["*"])
    ran = listed.project("plan")
    assert ran.code is ExitCode.ERROR
    assert "group.consumer.max.session.timeout.ms" in ran.out + ran.err


def test_imported_manifests_are_up_to_date(listed: ListedConfigs) -> None:
    project = listed.project
    listed.alter("groups", listed.group, "--add-config", f"{SESSION}=50000,share.auto.offset.reset=earliest")
    metrics = "metrics=[org.a.,org.b.],match=[client_id=app-.*],interval.ms=90000"
    listed.alter("client-metrics", listed.subscription, "--add-config", metrics)
    project.done("import", "--out", "imported")
    files = sorted(f.name for f in (project.folder / "imported").rglob("*") if project.prefix in f.name)
    assert files == [f"{listed.group}.yaml", f"{listed.subscription}.yaml"]
    text = "---\n".join(f.read_text() for f in (project.folder / "imported").rglob(f"{project.prefix}*"))
    (project.folder / "all.yaml").write_text(text)
    assert project.in_order()
    project.done("apply", "--yes")


def test_fleet_audit_finds_drift(listed: ListedConfigs) -> None:
    project = listed.project
    listed.declare({SESSION: 50000}, metrics=["org.a."])
    project.done("apply", "--yes")
    listed.alter(
        "groups", listed.group, "--add-config", f"{SESSION}=60000,share.isolation.level=read_committed"
    )
    listed.alter("client-metrics", listed.subscription, "--delete-config", "metrics")
    live = list(read_live_rows(connections_to(listed.cluster), "lab", {}, datetime.now(UTC)))
    state = decode_state((project.state / "state.json").read_text(), "state.json")
    declared = [build_declared_cluster_row("lab", {}, cluster_id=state.cluster_id)]
    specs: dict[tuple[str, str], Mapping[str, Any]] = {
        ("GroupConfig", listed.group): {"configs": {SESSION: 50000}},
        ("ClientMetrics", listed.subscription): {"metrics": ["org.a."]},
    }
    for (kind, name), spec in specs.items():
        item = declare(kind, name, spec)
        declared += build_declared_rows("lab", item, item.id, state.resources[str(item.id)])
    found = {
        (row["kind"], row["finding"], row["path"], json.loads(row["before"] or "null"))
        for row in audit_rows(declared, live)
        if (row["kind"], row["name"]) in specs
    }
    assert found == {
        ("GroupConfig", "changed", f"configs.{SESSION}", "60000"),
        ("GroupConfig", "unmanaged", "configs.share.isolation.level", "read_committed"),
        ("ClientMetrics", "missing", None, None),
    }
    listed.alter("groups", listed.group, "--delete-config", "share.isolation.level")
