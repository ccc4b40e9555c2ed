"""A project with connectors on a sandbox: its manifests, and its commands."""

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.connect.client.connectors_port import ConnectCluster, LiveConnector
from kdeclare.sandbox import SandboxStatus
from tests.commands import Ran, run_here
from tests.polling import retry_until_passes


class ConnectorProject:
    """A project whose resources have names with a prefix of the test."""

    def __init__(self, folder: Path, sandbox: SandboxStatus, registry_url: str = "") -> None:
        """Write the project file. registry_url: of a schema registry for schemas; empty for none."""
        self.folder = folder
        self.prefix = f"t{uuid.uuid4().hex[:6]}-"
        (folder / "manifests").mkdir(parents=True)
        urls = [worker.url for worker in sandbox.workers]
        self._tls = {"caFile": str(sandbox.ca_file)}
        self._worker_urls = urls
        environment: dict[str, Any] = {
            "bootstrapServers": sandbox.bootstrap,
            "connect": {"eu": {"urls": urls, "tls": self._tls}},
        }
        if registry_url:
            environment["registries"] = {"main": {"urls": [registry_url]}}
        self._write("kdeclare", "Project", "lab", {"environments": {"default": environment}})

    def declare_topic(self, name: str) -> str:
        """Declare a topic with one partition, and return its whole name."""
        self._write(
            f"manifests/{name}", "Topic", self.prefix + name, {"partitions": 1, "replicationFactor": 1}
        )
        return self.prefix + name

    def declare_connector(self, name: str, class_name: str, config: Mapping[str, str], **spec: Any) -> str:
        """Declare a connector with one task, and return its whole name."""
        spec = {"class": class_name, "tasksMax": 1, "config": dict(config), **spec}
        self._write(f"manifests/{name}", "Connector", self.prefix + name, spec)
        return self.prefix + name

    def declare_schema(self, name: str, schema: Mapping[str, Any], **spec: Any) -> str:
        """Declare an Avro schema, and return its subject."""
        self._write(
            f"manifests/{name}", "Schema", self.prefix + name, {"type": "AVRO", "schema": schema, **spec}
        )
        return self.prefix + name

    def declare_worker_config(self, config: Mapping[str, str]) -> str:
        """Declare the overrides of the config of all workers, and return the name of the resource."""
        spec = {"workers": self._worker_urls, "tls": self._tls, "config": dict(config)}
        self._write("manifests/workers", "ConnectWorkerConfig", self.prefix + "workers", spec)
        return self.prefix + "workers"

    def run(self, *arguments: str) -> Ran:
        """Run a command."""
        return run_here(self.folder, *arguments)

    def apply(self, *arguments: str, code: ExitCode = ExitCode.OK) -> dict[str, dict[str, str]]:
        """Apply, check the exit code, and return the result of each operation by resource name."""
        ran = self.run("apply", "--yes", "--format", "json", *arguments)
        assert ran.code == code, ran
        return parse_results(ran)

    def expect_no_changes(self) -> None:
        """Check that a plan has no changes."""
        ran = self.run("plan", "--detailed-exitcode")
        assert ran.code == ExitCode.OK, ran

    def delete_all(self) -> None:
        """Delete all resources that the project owns."""
        for file in (self.folder / "manifests").iterdir():
            file.unlink()
        ran = self.run("apply", "--yes", "--allow-deletes", "--allow-empty", "--max-deletes", "100%")
        assert ran.code == ExitCode.OK, ran

    def _write(self, file: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        (self.folder / f"{file}.yaml").write_text(json.dumps(document))


def parse_results(ran: Ran) -> dict[str, dict[str, str]]:
    """Return the result of each operation by the name of its resource, from the JSON document of a run."""
    return {one["resource"].partition("/")[2]: one for one in json.loads(ran.out)["operations"]}


def await_connector(
    cluster: ConnectCluster, name: str, holds: Callable[[LiveConnector], bool], seconds: float = 40.0
) -> LiveConnector:
    """Return the connector as soon as the condition holds for it."""

    def describe() -> LiveConnector:
        connector = cluster.describe_connector(name)
        assert connector is not None
        assert holds(connector), connector
        return connector

    return retry_until_passes(describe, seconds, errors=(AssertionError,))


def is_running(connector: LiveConnector) -> bool:
    """Whether the connector and its only task are running."""
    return connector.state == "RUNNING" and [task.state for task in connector.tasks] == ["RUNNING"]


def has_failed_task(connector: LiveConnector) -> bool:
    """Whether the only task has failed."""
    return [task.state for task in connector.tasks] == ["FAILED"]
