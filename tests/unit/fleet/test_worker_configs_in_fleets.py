"""The overrides of Connect workers in snapshots and audits: the project says which workers to read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.cluster_rows import read_declared, read_live
from kdeclare.cli.main import main
from kdeclare.core.live.known_resources import KnownResource
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.tables.row_builder import (
    Row,
    build_declared_cluster_row,
    build_declared_rows,
    read_live_rows,
)
from kdeclare.fleet.tables.rows import FINDINGS
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.providers.connect import connection as connect_connection
from kdeclare.providers.connect.testing import MemoryConnectCluster, MemoryWorkers
from kdeclare.providers.connect.testing.workers import LOCATION, PASSWORD, Keystore
from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.testing.world import Secrets, World, declare
from tests.connections import connections_to
from tests.engine.test_connect_contract import make_certificate
from tests.unit.fleet.kind_scenarios import NOW

URLS = ("https://w1:8083", "https://w2:8083")
NAMED = ("connect/eu",)
OLD, NEW = "hunter2-hunter2", "correct-horse-battery"
SECRETS = {"${env.OLD}": OLD, "${env.NEW}": NEW}
KIND = "ConnectWorkerConfig"


def make_workers(urls: tuple[str, ...] = URLS) -> MemoryWorkers:
    workers = MemoryWorkers(urls)
    workers.files = {path: Keystore(make_certificate(path)) for path in ("/old", "/new")}
    return workers


class Project:
    """A project with one resource, and its workers.

    names: what the resource says about its workers.
    """

    def __init__(self, names: tuple[str, ...] = URLS) -> None:
        self.workers = make_workers(names)
        self.names = names
        named = {"eu": MemoryConnectCluster(lag=0)}
        self.connections = connections_to(MemoryCluster(cluster_id="id-1"), {names: self.workers}, named)
        self.world = World(connections=self.connections, secrets=Secrets(SECRETS))

    def declare(self, secret: str, location: str = "/old") -> DesiredResource:
        """Return the resource with a secret: ``OLD`` or ``NEW``."""
        password = Referenced(SECRETS[f"${{env.{secret}}}"], f"${{env.{secret}}}")
        where = {"connect": "eu"} if self.names == NAMED else {"workers": list(self.names)}
        return declare(KIND, "tls", {**where, "config": {LOCATION: location, PASSWORD: password}})

    def audit(self, *desired: DesiredResource) -> tuple[list[Row], list[Row]]:
        """Return the live rows of workers, and the findings about them."""
        state = self.world.store.read()
        records = state.resources if state is not None else {}
        sealed = self.world.seal(desired)
        rows = [build_declared_cluster_row("eu-1", {}, cluster_id="id-1")]
        known: list[KnownResource] = []
        declared = {item.id: item for item in sealed}
        for id_ in declared.keys() | {self.declare("OLD").id if records else None} - {None}:
            assert id_ is not None
            rows += build_declared_rows("eu-1", declared.get(id_), id_, records.get(str(id_)))
            body = declared[id_].body if id_ in declared else None
            known.append(KnownResource(id_, body, records.get(str(id_))))
        live = list(read_live_rows(self.connections, "eu-1", {}, NOW, lambda kinds: known))
        found = [row for row in audit_rows(rows, live) if row["kind"] == KIND]
        assert OLD not in repr([rows, live, found])
        assert NEW not in repr([rows, live, found])
        return [row for row in live if row["kind"] == KIND], found


def shorten(found: Sequence[Row]) -> list[tuple[str, str | None, str | None, str | None]]:
    return [(row["finding"], row["path"], row["before"], row["after"]) for row in found]


@pytest.mark.parametrize("names", [URLS, NAMED])
def test_changed_secret_is_found_and_never_shown(names: tuple[str, ...]) -> None:
    project = Project(names)
    project.world.apply(project.declare("OLD"))
    live, found = project.audit(project.declare("OLD"))
    assert [row["name"] for row in live] == [",".join(names)]
    assert found == []
    pending = project.audit(project.declare("NEW"))[1]
    mask = '"(sensitive)"'
    assert shorten(pending) == [("pending", f"configs.{PASSWORD}", mask, mask)]
    project.workers.patch(names[0], {PASSWORD: NEW})
    changed = project.audit(project.declare("OLD"))[1]
    assert shorten(changed) == [("changed", f"configs.{PASSWORD}", mask, mask)]
    assert project.audit(project.declare("NEW"))[1] == []


def test_secret_that_nothing_declares_is_stored_without_hash() -> None:
    project = Project()
    project.workers.patch(URLS[0], {PASSWORD: OLD, LOCATION: "/old"})
    item = declare(KIND, "tls", {"workers": list(URLS), "config": {LOCATION: "/old"}})
    (row,), found = project.audit(item)
    assert json.loads(row["body"])["configs"] == {LOCATION: "/old", PASSWORD: {"hashes": []}}
    assert shorten(found) == [("unmanaged", f"configs.{PASSWORD}", '"(sensitive)"', None)]


def test_orphan_names_its_workers() -> None:
    project = Project()
    project.world.apply(project.declare("OLD"))
    assert shorten(project.audit()[1]) == [("orphaned", None, None, None)]


def test_silent_workers_are_unreachable() -> None:
    project = Project()
    project.world.apply(project.declare("OLD"))
    for worker in project.workers.workers.values():
        worker.down = True
    (row,), (finding,) = project.audit(project.declare("OLD"))
    assert row["body"] is None
    assert finding["finding"] == "unreachable"
    assert "https://w1:8083" in finding["message"]


def test_refusal_of_worker_is_found() -> None:
    project = Project()
    project.world.apply(project.declare("OLD"))
    worker = project.workers.workers[URLS[1]]
    worker.missing_paths = {"/new"}
    project.workers.patch(URLS[0], {LOCATION: "/new"})
    project.workers.status(URLS[1])
    paths = {row["path"] for row in project.audit(project.declare("OLD", "/new"))[1]}
    assert f"workers.{URLS[1]}" in paths


def test_snapshot_without_workers_needs_no_state(
    workers: MemoryWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state" / "shop" / "eu-1" / "state.json"
    state.parent.mkdir(parents=True)
    state.write_text("broken")
    locator = ClusterLocator(str(tmp_path / "fleet.yaml"))

    def list_unread() -> list[tuple[str, str]]:
        rows = [row for batch in read_live(locator, "eu-1") for row in batch.to_pylist()]
        return [(row["kind"], row["name"]) for row in rows if row["error"] is not None]

    assert list_unread() == [(KIND, "")]
    (tmp_path / "manifests" / "tls.yaml").unlink()
    assert list_unread() == []


FLEET = {"clusters": [{"name": "eu-1", "project": "kdeclare.yaml", "env": "eu-1"}]}
ENVIRONMENTS = {"environments": {"eu-1": {"bootstrapServers": "eu-1:9092"}}}


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryWorkers:
    """The workers that the manifest in ``tmp_path`` names, in a fleet with one cluster."""
    cluster, workers = MemoryCluster(cluster_id="id-1"), make_workers()
    cluster.create_topics([NewTopic("orders", 1, 1, None, {})])
    monkeypatch.setattr(connection, "connect_cluster", lambda *_: cluster)

    def open_workers(group: WorkerGroup, *_: object) -> MemoryWorkers:
        assert group.urls == URLS
        return workers

    monkeypatch.setattr(connect_connection, "open_workers", open_workers)
    monkeypatch.setenv("OLD", OLD)
    config = {LOCATION: "/old", PASSWORD: "${env.OLD}"}
    write(tmp_path, "fleet.yaml", "Fleet", FLEET)
    write(tmp_path, "kdeclare.yaml", "Project", ENVIRONMENTS)
    write(tmp_path, "manifests/tls.yaml", KIND, {"workers": list(URLS), "config": config})
    write(tmp_path, "manifests/orders.yaml", "Topic", {"partitions": 1})
    return workers


def write(folder: Path, name: str, kind: str, spec: Any) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": "shop"}, "spec": spec}
    path.write_text(json.dumps(document))


def audit(folder: Path) -> list[tuple[str, str, str | None]]:
    """Audit the fleet with the local engine, and return the findings about workers."""
    out = folder / "audits"
    line = ["fleet", "audit", str(folder / "fleet.yaml"), "--engine", "local", "--out", str(out)]
    assert main(line) in (0, 1)
    audit_id = json.loads((out / "summary.json").read_text())["audit_id"]
    rows = read_rows(LocalStorage(out), f"findings/audit_id={audit_id}", FINDINGS)
    assert OLD not in repr(rows)
    return [(row["name"], row["finding"], row["path"]) for row in rows if row["kind"] == KIND]


def test_audit_reads_the_workers_of_the_project(workers: MemoryWorkers, tmp_path: Path) -> None:
    assert {path for _, _, path in audit(tmp_path)} == {f"configs.{LOCATION}", f"configs.{PASSWORD}"}
    line = ["apply", "--yes", "--project", str(tmp_path / "kdeclare.yaml"), "--env", "eu-1", "--adopt"]
    assert main(line) == 0
    assert audit(tmp_path) == []
    workers.patch(URLS[0], {LOCATION: "/new"})
    assert audit(tmp_path) == [("shop", "changed", f"configs.{LOCATION}")]
    (tmp_path / "manifests" / "tls.yaml").unlink()
    assert audit(tmp_path) == [("shop", "orphaned", None)]


def test_audit_evaluates_policies_about_workers(workers: MemoryWorkers, tmp_path: Path) -> None:
    rule = f"!('{LOCATION}' in after.configs) || after.configs['{LOCATION}'] != '/new'"
    spec = {"rule": rule, "actions": ["CREATE", "MODIFY"], "selector": {"kind": KIND}}
    write(tmp_path, "manifests/policy.yaml", "Policy", spec)
    assert not any(finding == "policy" for _, finding, _ in audit(tmp_path))
    workers.patch(URLS[0], {LOCATION: "/new"})
    assert ("shop", "policy", "policies.shop") in audit(tmp_path)


def test_snapshot_loads_only_manifests_of_workers(workers: MemoryWorkers, tmp_path: Path) -> None:
    """A mistake in another manifest does not affect the snapshot."""
    (tmp_path / "manifests" / "orders.yaml").write_text("kind: [")
    locator = ClusterLocator(str(tmp_path / "fleet.yaml"))
    rows = [row for batch in read_live(locator, "eu-1") for row in batch.to_pylist()]
    assert [row["name"] for row in rows if row["kind"] == KIND] == [",".join(URLS)]
    assert all(row["error"] is None for row in rows)
    write(tmp_path, "manifests/tls.yaml", KIND, {"workers": "none"})
    rows = [row for batch in read_live(locator, "eu-1") for row in batch.to_pylist()]
    assert [row["name"] for row in rows if row["error"] is not None] == [""]
    assert any(batch.num_rows for batch in read_declared(locator, "eu-1"))
