"""Inline clusters of a fleet have named endpoints, as environments of projects have."""

import json
from pathlib import Path
from typing import Any

import pytest

from kdeclare.app.fleet.archive import pack
from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.unpacked_archive import enter_archive
from kdeclare.cli.main import main
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.http.target import HttpTarget
from kdeclare.manifests.fleet.fleet_file import open_fleet
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.schema_registry.client import rest
from kdeclare.providers.schema_registry.testing import CONFLUENT, MemoryRegistry

FLEET = """\
apiVersion: kdeclare/v1
kind: Fleet
metadata: {name: shop}
spec:
  clusters:
    - name: eu
      bootstrapServers: eu:9092
      manifests: [manifests]
      registries:
        main:
          urls: ['https://registry-eu:8081']
          bearerToken: ${env.EU_TOKEN}
          tls: {caFile: certs/ca.pem}
    - name: us
      bootstrapServers: us:9092
      manifests: [manifests]
      registries: {main: {urls: ['https://registry-us:8081']}}
"""
SCHEMA = """\
apiVersion: kdeclare/v1
kind: Schema
metadata: {name: order}
spec: {file: schemas/order.avsc}
"""


@pytest.fixture
def registries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, MemoryRegistry]:
    folder = tmp_path / "fleet"
    for name in ("manifests", "schemas", "certs"):
        (folder / name).mkdir(parents=True)
    (folder / "fleet.yaml").write_text(FLEET)
    (folder / "manifests" / "order.yaml").write_text(SCHEMA.replace("schemas/", "../schemas/"))
    (folder / "schemas" / "order.avsc").write_text('"string"')
    (folder / "certs" / "ca.pem").write_text("a certificate")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EU_TOKEN", "the-token-of-the-registry")
    clusters = {name: MemoryCluster(cluster_id=f"id-{name}") for name in ("eu", "us")}
    registries = {name: MemoryRegistry(CONFLUENT) for name in ("eu", "us")}
    monkeypatch.setattr(connection, "connect_cluster", lambda where, *_: clusters[where.partition(":")[0]])

    def open_registry(target: HttpTarget, *_: object) -> MemoryRegistry:
        assert target.folder == Path("fleet")
        name = target.urls[0].removeprefix("https://registry-").removesuffix(":8081")
        token = (("Authorization", "Bearer the-token-of-the-registry"),)
        assert (target.ca_file, target.headers) == (("certs/ca.pem", token) if name == "eu" else (None, ()))
        return registries[name]

    monkeypatch.setattr(rest, "open_rest_registry", open_registry)
    return registries


def run_fleet(
    capsys: pytest.CaptureFixture[str], command: str, *options: str, code: int = 0
) -> dict[str, Any]:
    capsys.readouterr()
    out = {"snapshot": "snapshots", "audit": "audits"}.get(command, "plans")
    line = ["fleet", command, "fleet/fleet.yaml", "--out", out, "--format", "json", *options]
    ended = main(line)
    shown = capsys.readouterr()
    assert ended == code, shown
    assert "the-token-of-the-registry" not in shown.out + shown.err
    document: dict[str, Any] = json.loads(shown.out)
    return document


def test_all_commands_use_endpoints_of_inline_clusters(
    registries: dict[str, MemoryRegistry], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_fleet(capsys, "audit")["found"] == {"pending": 2}
    plan = run_fleet(capsys, "plan")
    assert [cluster["summary"]["create"] for cluster in plan["clusters"]] == [1, 1]
    run_fleet(capsys, "apply", "--yes")
    for registry in registries.values():
        assert list(registry.list_subjects()) == ["order"]
    assert run_fleet(capsys, "audit")["found"] == {}
    snapshot = run_fleet(capsys, "snapshot")
    assert [cluster["failed"] for cluster in snapshot["clusters"]] == [0, 0]
    assert main(["fleet", "history", "us", "Schema/main/order", "--out", "snapshots"]) in (0, 1)


def test_missing_secret_concerns_only_its_cluster(
    registries: dict[str, MemoryRegistry], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EU_TOKEN")
    summary = run_fleet(capsys, "audit", "--cluster", "us")
    assert summary["found"] == {"pending": 1}
    run_fleet(capsys, "audit", code=1)


def test_archive_contains_settings_and_files(registries: dict[str, MemoryRegistry], tmp_path: Path) -> None:
    environ = {"EU_TOKEN": "the-token-of-the-registry"}
    fleet_file = Path("fleet/fleet.yaml")
    archive = pack(open_fleet(fleet_file, environ), environ)
    (tmp_path / "fleet").rename(tmp_path / "elsewhere")
    locator = ClusterLocator(str(fleet_file)).with_archive(archive)
    with enter_archive(archive):
        project = locator.workspace("eu").project
        settings = project.environment.providers["schema_registry"].model_dump()
        assert settings["main"]["urls"] == ["https://registry-eu:8081"]
        assert (project.folder / "certs" / "ca.pem").read_text() == "a certificate"


def test_archive_contains_tls_files_of_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paths are relative to the folder of the project, and not to the working folder."""
    (tmp_path / "shop" / "certs").mkdir(parents=True)
    (tmp_path / "shop" / "certs" / "ca.pem").write_text("a certificate")
    head = "apiVersion: kdeclare/v1\nkind: {}\nmetadata: {{name: shop}}\nspec:\n"
    connect = "connect: {main: {urls: ['https://connect:8083'], tls: {caFile: certs/ca.pem}}}"
    environments = f"  environments:\n    eu:\n      bootstrapServers: eu:9092\n      {connect}\n"
    (tmp_path / "shop" / "kdeclare.yaml").write_text(head.format("Project") + environments)
    clusters = "  clusters: [{name: eu, project: shop/kdeclare.yaml, env: eu}]\n"
    (tmp_path / "fleet.yaml").write_text(head.format("Fleet") + clusters)
    monkeypatch.chdir(tmp_path)
    archive = pack(open_fleet(Path("fleet.yaml"), {}), {})
    (tmp_path / "shop").rename(tmp_path / "elsewhere")
    with enter_archive(archive):
        project = ClusterLocator("fleet.yaml").with_archive(archive).workspace("eu").project
        assert (project.folder / "certs" / "ca.pem").read_text() == "a certificate"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("connect: {a: {urls: ['ftp://x']}}", "is not of the form https://HOST:PORT"),
        ("connect: {a: {urls: ['https://x'], bearerToken: literal-token}}", "must contain a reference"),
        ("conect: {a: {urls: ['https://x']}}", "There is no field 'conect'"),
        ("project: p.yaml, connect: {a: {urls: ['https://x']}}", "has a project, which defines 'connect'"),
        ("project: p.yaml, providers: {}", "has a project, which defines 'providers'"),
    ],
)
def test_wrong_endpoints_are_explained(tmp_path: Path, more: str, message: str) -> None:
    head = "apiVersion: kdeclare/v1\nkind: Fleet\nmetadata: {name: shop}\nspec:\n"
    entry = f"  clusters: [{{name: eu, bootstrapServers: 'eu:9092', {more}}}]\n"
    (tmp_path / "fleet.yaml").write_text(head + entry)
    with pytest.raises(KdeclareError) as caught:
        open_fleet(tmp_path / "fleet.yaml", {})
    assert message in " ".join(d.detail for d in caught.value.diagnostics)
    assert "literal-token" not in str(caught.value)
