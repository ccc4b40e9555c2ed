"""Spark that runs elsewhere reads real clusters, one of which requires logins.

Executors of a standalone cluster and a Spark Connect server find what this process finds, and keep no secret.
The tests share the topics. The last test creates some, and deletes them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN, get_password
from tests.beds import all_created
from tests.conftest import connect_as
from tests.kafka.fleet.fleet_folder import (
    FleetFolder,
    RunningClusters,
    build_topic_spec,
    dump_manifest,
    list_comparable,
    write_document,
)
from tests.spark.changing_folders import read_files
from tests.spark.connect_server import ConnectServer, start_connect_server
from tests.spark.executor_secrets import ExecutorSearch
from tests.spark.programs import run_program
from tests.spark.standalone import start_standalone_spark
from tests.spark.test_separate_disks import ONE_COMMAND, SETTINGS

pytestmark = pytest.mark.kafka

WEEK, BY_HAND = 604_800_000, 3_600_000
WRITTEN = f'PlainLoginModule required username="{ADMIN}" password="{get_password(ADMIN)}"'
LOGIN = WRITTEN.replace("Plain", "Scram")
FINDINGS = {
    ("eu-1", "t.orders", "changed", "configs.retention.ms"),
    ("eu-1", "t.carts", "pending", None),
    ("eu-2", "t.carts", "pending", None),
    ("eu-2", "t.extra", "unmanaged", None),
    ("vault", "t.keys", "pending", None),
    ("vault", "t.Secrets", "policy", "policies.names"),
    ("vault", "t.Secrets", "unmanaged", None),
    ("vault-payments", "t.Secrets", "unmanaged", None),
    ("vault-payments", "t.payments", "pending", None),
}
"""What every audit finds in the topics of these tests."""
POLICY = """\
from kdeclare.policy import PolicyViolation, RequestMetadata, TopicActionsPolicy


class Lower(TopicActionsPolicy):
    def validate(self, request: RequestMetadata) -> None:
        if request.topic != request.topic.lower():
            raise PolicyViolation("names are in lower case")
"""


@dataclass
class RemoteFleet(FleetFolder):
    """A fleet of four entries. The last two are the secured cluster, for two teams with different logins."""

    vault: SandboxStatus

    @property
    def login(self) -> str:
        """The value of the variable VAULT_LOGIN, to which a project file refers."""
        return f"org.apache.kafka.common.security.scram.{LOGIN};"

    def audit(self, out: str, *arguments: str) -> list[dict[str, Any]]:
        """Audit the clusters. Return the findings."""
        summary = self.fleet("audit", out, *arguments, VAULT_LOGIN=self.login)
        return self.read_findings(summary["audit_id"], out)

    def find(self, rows: list[dict[str, Any]]) -> set[tuple[str, str, str, str | None]]:
        """Return the findings in the topics of these tests."""
        own = (row for row in rows if row["kind"] == "Topic" and row["name"].startswith("t."))
        return {(row["cluster"], row["name"], row["finding"], row["path"]) for row in own}


@pytest.fixture(scope="module")
def fleet(
    clusters: RunningClusters, secured_sandbox: SandboxStatus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RemoteFleet]:
    fleet = RemoteFleet(clusters, tmp_path_factory.mktemp("remote"), secured_sandbox)
    write_files(fleet)
    shop = ("--project", "shop/kdeclare.yaml", "--target", "Topic/t.orders")
    for env in ("eu-1", "eu-2"):
        fleet.kdeclare("apply", "--yes", *shop, "--env", env)
    with fleet.open_other_client("eu-1") as client:
        client.set("t.orders", "retention.ms", str(BY_HAND))
    with fleet.open_other_client("eu-2") as client:
        client.create("t.extra", 1)
    admin = connect_as(secured_sandbox, ADMIN)
    assert all_created(admin.create_topics([NewTopic("t.Secrets", 1, 1, None, {})]))
    yield fleet
    for cluster in ("eu-1", "eu-2"):
        with fleet.open_other_client(cluster) as client:
            client.delete("t.orders", *(["t.extra"] if cluster == "eu-2" else []))
    admin.delete_topics(dict.fromkeys(("t.Secrets", "t.keys", "t.payments")))
    admin.close()


def write_files(fleet: RemoteFleet) -> None:
    """Write the projects of two teams, and the fleet file with the third team's entry."""
    authority = str(resolve_layout(Path(fleet.vault.folder)).security.authority_pem)
    tls = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority,
    }
    scram = tls | {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": "${env.VAULT_LOGIN}"}
    plain = tls | {
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f"org.apache.kafka.common.security.plain.{WRITTEN};",
    }
    servers = {"bootstrapServers": fleet.vault.bootstrap}
    shops = {name: {"bootstrapServers": fleet.bootstrap(name)} for name in ("eu-1", "eu-2")}
    write_project(fleet.folder / "shop", shops, "t.orders", "t.carts")
    write_project(fleet.folder / "vault", {"vault": servers | {"clientConfig": scram}}, "t.keys")
    write_manifests(fleet.folder / "payments", "t.payments")
    entries = [
        {"name": "eu-1", "project": "shop/kdeclare.yaml", "env": "eu-1"},
        {"name": "eu-2", "project": "shop/kdeclare.yaml", "env": "eu-2"},
        {"name": "vault", "project": "vault/kdeclare.yaml", "env": "vault"},
        {"name": "vault-payments", **servers, "clientConfig": plain, "manifests": ["payments/manifests"]},
    ]
    write_document(fleet.folder / "fleet.yaml", "Fleet", {"clusters": entries})


def write_project(folder: Path, environments: Mapping[str, Any], *topics: str) -> None:
    """Write a project with a policy that is a Python module of the project."""
    policy = {"name": "names", "class": "rules:Lower"}
    spec = {"manifests": ["manifests"], "policies": [policy], "environments": environments}
    write_document(folder / "kdeclare.yaml", "Project", spec, folder.name)
    (folder / "rules.py").write_text(POLICY)
    write_manifests(folder, *topics)


def write_manifests(folder: Path, *topics: str) -> None:
    """Write the manifests of a team."""
    (folder / "manifests").mkdir(parents=True)
    documents = (dump_manifest(name, build_topic_spec(retention_ms=WEEK), folder.name) for name in topics)
    (folder / "manifests" / "all.yaml").write_text("---\n".join(documents))


@pytest.mark.thorough
def test_executors_find_the_same_and_keep_no_secret(
    fleet: RemoteFleet, tmp_path_factory: pytest.TempPathFactory
) -> None:
    here = fleet.audit("here", "--engine", "local")
    assert fleet.find(here) == FINDINGS
    with start_standalone_spark(tmp_path_factory.mktemp("standalone"), SETTINGS) as spark:
        variables = {"VAULT_LOGIN": fleet.login}
        written, value = "PlainLoginModule required username", "ScramLoginModule required username"
        search = ExecutorSearch(spark, written, (value,), variables)
        audited = search.audit(fleet.folder, Path("fleet.yaml"), "executors")
        assert audited.code == 0, audited.err
        found = fleet.read_findings(fleet.read_summary("executors")["audit_id"], "executors")
        assert list_live(found) == list_live(here)
    assert find_password(fleet.folder / "executors") == []
    assert get_password(ADMIN) not in audited.out + audited.err


def list_live(rows: list[dict[str, Any]]) -> list[str]:
    """Return the rows of an audit that has read the clusters itself, without the time of the reading."""
    return list_comparable(rows, "taken_at")


def find_password(folder: Path) -> list[str]:
    """Return the files in a folder that contain the password."""
    return [str(path) for path, data in read_files(folder) if get_password(ADMIN).encode() in data]


def test_no_credentials_are_sent_to_unprotected_master(fleet: RemoteFleet) -> None:
    line = "fleet audit fleet.yaml --out unprotected --master spark://127.0.0.1:1 --shared-folders"
    done = run_program(fleet.folder, ONE_COMMAND, {"VAULT_LOGIN": fleet.login}, line)
    assert done.stdout.splitlines() == ["exit code 1"]
    assert "error: Spark does not protect credentials" in done.stderr
    assert get_password(ADMIN) not in done.stderr


@pytest.fixture(scope="module")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A Spark Connect server, whose log and events must not contain the password at the end."""
    with start_connect_server(tmp_path_factory.mktemp("connect"), {}) as server:
        yield server
        assert find_password(server.events) == []
        assert get_password(ADMIN) not in server.log.read_text()


def test_spark_connect_finds_the_same(fleet: RemoteFleet, connect_server: ConnectServer) -> None:
    found = fleet.audit("connect", "--master", connect_server.url, "--shared-folders")
    here = fleet.audit("here", "--engine", "local")
    assert fleet.find(here) == FINDINGS
    assert list_live(found) == list_live(here)
    assert find_password(fleet.folder / "connect") == []


@pytest.mark.thorough
def test_spark_connect_plans_and_takes_snapshots(fleet: RemoteFleet, connect_server: ConnectServer) -> None:
    """The plans are applied, so that the next audit finds nothing that kdeclare can change."""
    connect = ("--master", connect_server.url, "--shared-folders")
    plan = fleet.fleet("plan", "plans", *connect, VAULT_LOGIN=fleet.login)
    assert [(c["name"], c["summary"]["create"], c["summary"]["update"]) for c in plan["clusters"]] == [
        ("eu-1", 1, 1),
        ("eu-2", 1, 0),
        ("vault", 1, 0),
        ("vault-payments", 1, 0),
    ]
    fleet.fleet("apply", "plans", "--yes", VAULT_LOGIN=fleet.login)
    fleet.fleet("snapshot", "snapshots", *connect, VAULT_LOGIN=fleet.login)
    again = fleet.audit("connect", "--snapshot", "snapshots", *connect)
    assert fleet.find(again) == {one for one in FINDINGS if one[2] in ("unmanaged", "policy")}
    for out in ("plans", "snapshots"):
        assert find_password(fleet.folder / out) == []
    for cluster in ("eu-1", "eu-2"):
        with fleet.open_other_client(cluster) as client:
            client.delete("t.carts")
