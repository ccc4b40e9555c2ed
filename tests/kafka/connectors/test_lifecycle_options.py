"""Lifecycle options of connectors and subjects, on real workers and a real registry."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.http.target import HttpTarget
from kdeclare.providers.connect.client.connectors_port import ConnectCluster
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaRegistry
from kdeclare.providers.schema_registry.client.rest import open_rest_registry
from kdeclare.sandbox import SandboxStatus
from tests.kafka.connectors.connector_project import ConnectorProject, await_connector, is_running
from tests.registries import ID, build_record

pytestmark = pytest.mark.kafka

SOURCE_CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"
ABSENT = {"state": "absent"}


@pytest.fixture
def registry(registry_url: str) -> Iterator[SchemaRegistry]:
    registry = open_rest_registry(HttpTarget((registry_url,)))
    yield registry
    registry.close()


@pytest.fixture
def project(tmp_path: Path, two_workers: SandboxStatus, registry_url: str) -> Iterator[ConnectorProject]:
    """A project with connectors and schemas. Everything that it declared is deleted after the test."""
    project = ConnectorProject(tmp_path / "project", two_workers, registry_url)
    yield project
    project.delete_all()


def read_changes(project: ConnectorProject) -> dict[str, tuple[str, str | None]]:
    """Return the action and the block of each change of a plan."""
    ran = project.run("plan", "--format", "json")
    changes = json.loads(ran.out)["changes"]
    return {change["id"]: (change["action"], change.get("blocked")) for change in changes}


def test_connector_keeps_ignored_keys_and_is_deleted_as_declared(
    project: ConnectorProject, cluster: ConnectCluster, tmp_path: Path
) -> None:
    topic = project.declare_topic("lines")
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "other.txt").write_text("b\n")
    config = {"file": str(tmp_path / "in.txt"), "topic": topic}
    ignoring = {"ignoreChanges": ["config.file"]}
    name = project.declare_connector("source", SOURCE_CLASS, config, lifecycle=ignoring)
    project.apply()
    connector = await_connector(cluster, name, is_running)
    assert connector.config["file"] == str(tmp_path / "in.txt")

    cluster.replace_config(name, {**connector.config, "file": str(tmp_path / "other.txt")})
    project.expect_no_changes()
    # Another change keeps the file that the other client has set.
    project.declare_connector("source", SOURCE_CLASS, {**config, "batch.size": "100"}, lifecycle=ignoring)
    project.apply()
    connector = await_connector(cluster, name, lambda one: one.config.get("batch.size") == "100")
    assert connector.config["file"] == str(tmp_path / "other.txt")
    project.expect_no_changes()

    project.declare_connector("source", SOURCE_CLASS, {}, lifecycle=ABSENT)
    assert read_changes(project) == {f"Connector/{name}": ("delete", None)}
    project.apply()
    assert cluster.describe_connector(name) is None
    project.expect_no_changes()

    # A connector that the project never applied needs permission.
    cluster.create_connector(name, {"connector.class": SOURCE_CLASS, **config})
    await_connector(cluster, name, is_running)
    assert read_changes(project) == {f"Connector/{name}": ("delete", "adoption")}
    project.apply(code=ExitCode.DENIED)
    assert cluster.describe_connector(name) is not None
    project.apply("--adopt")
    assert cluster.describe_connector(name) is None


def test_subject_keeps_later_versions_and_is_deleted_as_declared(
    project: ConnectorProject, registry: SchemaRegistry
) -> None:
    content, later_content = build_record(ID), build_record(ID, ("amount", "int", 0))
    schema = json.loads(content.text)
    ignoring = {"ignoreChanges": ["schema"]}
    subject = project.declare_schema("order", schema, compatibility="FULL", lifecycle=ignoring)
    project.apply()
    registry.register(subject, later_content)
    project.expect_no_changes()
    project.declare_schema("order", schema, compatibility="BACKWARD", lifecycle=ignoring)
    project.apply()
    assert list(registry.list_versions(subject)) == [1, 2]
    assert registry.read_level(subject).own is CompatibilityLevel.BACKWARD

    project.declare_schema("order", schema, lifecycle=ABSENT)
    project.apply()
    assert subject not in registry.list_subjects()
    project.expect_no_changes()
    registry.register(subject, content)
    assert read_changes(project) == {f"Schema/{subject}": ("delete", "adoption")}
    project.apply("--adopt")
    assert subject not in registry.list_subjects()
