"""Faults between kdeclare and a real schema registry: each change takes effect once, and is reported truly.

Most tests apply one plan with one subject for each failure, so that all waiting happens at the same time. The
tests read the results from the registry itself, without the proxy.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.http.target import HttpTarget
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.schema_registry.client import rest
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaRegistry
from tests.commands import Ran, run_here
from tests.kafka.registry_proxy import DELAY_S, Failures, RegistryProxy, run_registry_proxy

pytestmark = pytest.mark.kafka

CHANGE_TIMEOUT_S = 1.5
assert CHANGE_TIMEOUT_S < DELAY_S

FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "size", "type": "int", "default": 0}]}
DELETES = ("--allow-deletes", "--allow-empty", "--max-deletes", "100%")


class RegistryProject:
    """A project with one subject for each failure, and other clients of the same registry.

    registry: a client that is connected to the registry itself.
    """

    def __init__(self, folder: Path, proxy: RegistryProxy, registry: SchemaRegistry) -> None:
        self.proxy = proxy
        self.registry = registry
        self._folder = folder
        self._prefix = f"t{uuid.uuid4().hex[:8]}"
        (folder / "manifests").mkdir()
        environment = {
            "bootstrapServers": "lab:9092",
            "requestDeadline": "5s",
            "registries": {"main": {"urls": [proxy.url]}},
        }
        self._write(folder / "kdeclare.yaml", "Project", "lab", {"environments": {"default": environment}})

    def list_subjects(self, group: str = "orders") -> dict[Failures, str]:
        """Return the subjects of a group, one for each failure."""
        return {failure: self.name(f"{group}.{failure.name.lower()}") for failure in Failures}

    def name(self, short: str) -> str:
        """Return a subject that no other test uses."""
        return f"{self._prefix}.{short}-value"

    def declare(self, subject: str, schema: Mapping[str, Any], **spec: Any) -> None:
        """Write the manifest of a subject."""
        file = self._folder / "manifests" / f"{subject}.yaml"
        self._write(file, "Schema", subject, {"type": "AVRO", "schema": schema, **spec})

    def declare_group(self, schema: Mapping[str, Any], group: str = "orders", **spec: Any) -> None:
        """Write the manifests of a group of subjects."""
        for subject in self.list_subjects(group).values():
            self.declare(subject, schema, **spec)

    def remove_all(self) -> None:
        """Remove all manifests."""
        for file in (self._folder / "manifests").iterdir():
            file.unlink()

    def fail_each(self, request: str, group: str = "orders") -> None:
        """Fail one request for each subject. request: method and target, with ``{}`` for the subject."""
        for failure, subject in self.list_subjects(group).items():
            self.proxy.fail(request.format(subject), failure)

    def run(self, *arguments: str) -> Ran:
        """Run a command."""
        return run_here(self._folder, *arguments)

    def apply(self, *options: str, code: ExitCode = ExitCode.OK) -> dict[tuple[str, str], dict[str, str]]:
        """Apply. Return the result of each operation by its type and the subject."""
        ran = self.run("apply", "--yes", "--format", "json", *options)
        assert ran.code == code, ran
        operations = json.loads(ran.out)["operations"]
        return {(one["verb"], one["resource"].partition("/")[2]): one for one in operations}

    def apply_all(self, operations: int, *options: str) -> None:
        """Apply with failures. All of this number of operations must be reported as done.

        The next plan must be empty.
        """
        results = self.apply(*options)
        assert not self.proxy.pending, "requests that the plan did not need"
        assert len(results) == operations
        assert {one["status"] for one in results.values()} == {"done"}, results
        self.expect_no_changes()

    def expect_no_changes(self) -> None:
        """Check that a plan has no changes."""
        ran = self.run("plan", "--detailed-exitcode")
        assert ran.code == ExitCode.OK, ran

    def expect_versions(self, *versions: int, text: Mapping[str, Any], group: str = "orders") -> None:
        """Check the versions of a group, with soft-deleted ones, and the content of the latest versions."""
        for subject in self.list_subjects(group).values():
            assert self.registry.list_versions(subject, include_deleted=True) == versions, subject
            latest = self.registry.read_version(subject)
            assert latest is not None
            assert (latest.version, json.loads(latest.content.text)) == (versions[-1], text), subject

    @staticmethod
    def _write(file: Path, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        file.write_text(json.dumps(document))


@pytest.fixture
def project(tmp_path: Path, registry_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryProject]:
    """A project whose registry is behind a proxy. The Kafka cluster, which is not involved, is in memory."""
    memory_cluster = MemoryCluster()
    monkeypatch.setattr(connection, "connect_cluster", lambda *_: memory_cluster)
    monkeypatch.setattr(rest, "_CHANGE_S", CHANGE_TIMEOUT_S)
    registry = rest.open_rest_registry(HttpTarget((registry_url,)))
    with run_registry_proxy(registry_url) as proxy:
        yield RegistryProject(tmp_path, proxy, registry)
    registry.close()


def test_versions_are_registered_once(project: RegistryProject) -> None:
    count = len(Failures)
    project.declare_group(FIRST, "old")
    project.apply_all(count)
    project.declare_group(SECOND, "old")
    project.declare_group(FIRST, "new")
    for group in ("old", "new"):
        project.fail_each("POST /subjects/{}/versions", group)
    project.apply_all(2 * count)
    project.expect_versions(1, 2, text=SECOND, group="old")
    project.expect_versions(1, text=FIRST, group="new")


def test_level_is_set_and_removed(project: RegistryProject) -> None:
    project.declare_group(FIRST, compatibility="FULL")
    project.fail_each("PUT /config/{}")
    project.apply_all(2 * len(Failures))
    for subject in project.list_subjects().values():
        assert project.registry.read_level(subject).own is CompatibilityLevel.FULL, subject
    project.declare_group(FIRST, compatibility=None)
    project.fail_each("DELETE /config/{}")
    project.apply_all(len(Failures))
    for subject in project.list_subjects().values():
        assert project.registry.read_level(subject).effective is CompatibilityLevel.NONE, subject
    project.expect_versions(1, text=FIRST)


def test_subjects_are_deleted_softly_and_for_good(project: RegistryProject) -> None:
    count = len(Failures)
    project.declare_group(FIRST, "soft", onDelete="soft")
    project.declare_group(FIRST, "hard", onDelete="hard")
    project.apply_all(2 * count)
    project.remove_all()
    project.fail_each("DELETE /subjects/{}", "soft")
    project.fail_each("DELETE /subjects/{}?permanent=true", "hard")
    project.apply_all(3 * count, *DELETES)
    soft, hard = (set(project.list_subjects(group).values()) for group in ("soft", "hard"))
    assert not (soft | hard) & project.registry.list_subjects()
    assert (soft | hard) & project.registry.list_subjects(include_deleted=True) == soft
    for subject in soft:
        assert project.registry.list_versions(subject, include_deleted=True) == (1,), subject


def test_failed_reads_are_repeated(project: RegistryProject) -> None:
    subject = project.name("orders")
    project.declare(subject, FIRST, compatibility="FULL")
    project.apply_all(2)
    project.declare(subject, SECOND, compatibility="FULL")
    for read in (f"GET /subjects/{subject}/versions/latest", f"GET /config/{subject}"):
        project.proxy.fail(read, Failures.UNAVAILABLE, Failures.RESPONSE_LOST, Failures.ERROR_WITHOUT_EFFECT)
    project.apply_all(1)
    assert project.registry.list_versions(subject, include_deleted=True) == (1, 2)


def test_persistent_failure_is_reported_with_its_effect(project: RegistryProject) -> None:
    without, after, fine = map(project.name, ("without", "after", "fine"))
    for subject in (without, after, fine):
        project.declare(subject, FIRST)
    project.proxy.fail(f"POST /subjects/{without}/versions", *[Failures.ERROR_WITHOUT_EFFECT] * 9)
    project.proxy.fail(f"POST /subjects/{after}/versions", *[Failures.ERROR_AFTER_EFFECT] * 9)
    results = project.apply(code=ExitCode.PARTIAL)
    statuses = {subject: one["status"] for (_, subject), one in results.items()}
    assert statuses == {without: "failed", after: "done", fine: "done"}
    assert "3 times and had no effect" in results[("schema.register", without)]["message"]
    assert "the database is locked" in results[("schema.register", without)]["message"]
    assert project.registry.list_versions(without) == ()
    project.proxy.recover()
    assert {subject for _, subject in project.apply()} == {without}
    for subject in (without, after, fine):
        assert project.registry.list_versions(subject, include_deleted=True) == (1,)
    project.expect_no_changes()


def test_outage_after_effect_leaves_outcome_unknown_until_next_run(project: RegistryProject) -> None:
    subject = project.name("order")
    project.declare(subject, FIRST)
    project.apply()
    project.declare(subject, SECOND)
    project.proxy.shut_down_after(f"POST /subjects/{subject}/versions")
    result = project.apply(code=ExitCode.PARTIAL)[("schema.register", subject)]
    assert result["status"] == "unknown"
    assert "may have taken effect" in result["message"]
    project.proxy.recover()
    ran = project.run("apply", "--yes")
    assert ran.code == ExitCode.OK, ran
    assert "interrupted operations that took effect: 1" in ran.err
    assert project.proxy.effective.count(f"POST /subjects/{subject}/versions") == 2
    assert project.registry.list_versions(subject, include_deleted=True) == (1, 2)
    project.expect_no_changes()
