"""SCRAM users on real brokers: real logins, drift, rotation without downtime, and `kafka-configs`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.cli.main import main
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from kdeclare.sandbox.security import ADMIN, READER, get_password
from tests.kafka.secured_project import open_secured_project, start_secured_broker
from tests.kafka.test_secured import SecuredBrokers

pytestmark = pytest.mark.kafka

SHA_256, SHA_512 = Mechanism.SHA_256, Mechanism.SHA_512
OLD, NEW, OTHER = "correct horse battery", 'st"ap\\le', "stolen"
REFERENCES = {OLD: "${env.OLD}", NEW: "${env.NEW}"}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBrokers]:
    with start_secured_broker(tmp_path_factory.mktemp("scram")) as started:
        yield started


class Project:
    """A project with SCRAM users, and another client of the same cluster."""

    def __init__(
        self,
        folder: Path,
        brokers: SecuredBrokers,
        capsys: pytest.CaptureFixture[str],
        cluster: KafkaCluster,
    ) -> None:
        self.folder = folder
        self.brokers = brokers
        self.capsys = capsys
        self.cluster = cluster
        self.client = brokers.files.client(ADMIN)

    def declare(self, name: str, verify: str = "state", **passwords: str) -> None:
        mechanisms = {
            f"SCRAM-SHA-{key[-3:]}": {"password": REFERENCES.get(p, p)} for key, p in passwords.items()
        }
        manifest = {
            "apiVersion": "kdeclare/v1",
            "kind": "ScramUser",
            "metadata": {"name": name},
            "spec": {"mechanisms": mechanisms, "verify": verify},
        }
        folder = self.folder / "manifests"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.yaml").write_text(json.dumps(manifest))

    def __call__(self, *arguments: str) -> tuple[int, str]:
        self.capsys.readouterr()
        code = main([*arguments, "--command-config", str(self.client)])
        shown = self.capsys.readouterr()
        text = " ".join((shown.out + shown.err).split())
        for password in (OLD, NEW):
            assert password not in text
        return code, text

    def apply(self, *options: str) -> None:
        code, text = self("apply", "--yes", *options)
        assert code == ExitCode.OK, text

    def can_connect(self, user: str, password: str, mechanism: Mechanism = SHA_512) -> bool:
        """Whether a real client can log in and list brokers."""
        escaped = password.replace("\\", "\\\\").replace('"', '\\"')
        properties = self.brokers.properties("SASL_SSL", mechanism.value, user, escaped)
        try:
            connect("", properties, timeout_s=5).close()
        except KdeclareError:
            return False
        return True


@pytest.fixture
def project(
    brokers: SecuredBrokers,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Project]:
    with open_secured_project(brokers, tmp_path, monkeypatch, {"OLD": OLD, "NEW": NEW}) as cluster:
        yield Project(tmp_path, brokers, capsys, cluster)


def alter_with_kafka_configs(project: Project, user: str, *options: str) -> str:
    done = kafka_sandbox.run_kafka_tool(
        "kafka.admin.ConfigCommand",
        "--bootstrap-server",
        project.brokers.at("SASL_SSL"),
        "--command-config",
        str(project.client),
        "--entity-type",
        "users",
        "--entity-name",
        user,
        *options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_user_can_log_in_with_declared_passwords(project: Project) -> None:
    """P-SCR-01."""
    project.declare("alice", sha256=OLD, sha512=NEW)
    project.apply()
    assert project.can_connect("alice", OLD, SHA_256)
    assert project.can_connect("alice", NEW, SHA_512)
    assert not project.can_connect("alice", OLD, SHA_512)
    assert project("plan", "--detailed-exitcode")[0] == ExitCode.OK
    shown = alter_with_kafka_configs(project, "alice", "--describe")
    iterations = project.cluster.scram_users(["alice"])["alice"]
    for mechanism, number in iterations.items():
        assert f"{mechanism}=iterations={number}" in shown


def test_password_rotates_with_a_second_mechanism(project: Project) -> None:
    """A client that connects with either password works at every step."""
    project.declare("bob", sha256=OLD)
    project.apply()
    project.declare("bob", sha256=OLD, sha512=NEW)
    project.apply()
    assert project.can_connect("bob", OLD, SHA_256)
    assert project.can_connect("bob", NEW, SHA_512)
    project.declare("bob", sha512=NEW)
    project.apply()
    assert not project.can_connect("bob", OLD, SHA_256)
    assert project.can_connect("bob", NEW, SHA_512)


def test_changed_password_is_applied_and_rolled_back(project: Project) -> None:
    project.declare("carol", sha512=OLD)
    project.apply()
    project.declare("carol", sha512=NEW)
    project.apply()
    assert project.can_connect("carol", NEW)
    assert project("rollback", "--yes")[0] == ExitCode.OK
    assert project.can_connect("carol", OLD)
    assert not project.can_connect("carol", NEW)


def test_password_set_with_kafka_configs_is_drift(project: Project) -> None:
    project.declare("dave", sha512=OLD)
    project.apply()
    alter_with_kafka_configs(project, "dave", "--alter", "--add-config", f"SCRAM-SHA-512=[password={OTHER}]")
    code, text = project("plan", "--detailed-exitcode")
    assert code == ExitCode.CHANGES
    assert "changed outside kdeclare" in text
    project.apply()
    assert project.can_connect("dave", OLD)


def test_login_finds_password_with_same_iterations(project: Project) -> None:
    project.declare("erin", "login", sha512=OLD)
    project.apply()
    assert project("plan", "--detailed-exitcode")[0] == ExitCode.OK
    iterations = project.cluster.scram_users(["erin"])["erin"][SHA_512]
    credential = f"SCRAM-SHA-512=[iterations={iterations},password={OTHER}]"
    alter_with_kafka_configs(project, "erin", "--alter", "--add-config", credential)
    code, text = project("plan", "--detailed-exitcode")
    assert code == ExitCode.CHANGES, text
    project.apply()
    assert project.can_connect("erin", OLD)


def test_user_made_with_kafka_configs_is_adopted_and_deleted(project: Project) -> None:
    alter_with_kafka_configs(project, "frank", "--alter", "--add-config", f"SCRAM-SHA-512=[password={OLD}]")
    project.declare("frank", sha512=OLD)
    code, text = project("plan", "--detailed-exitcode")
    assert code == ExitCode.OK, text
    assert "Password not verified" in text
    project.apply()
    (project.folder / "manifests" / "frank.yaml").unlink()
    project.apply("--allow-deletes", "--allow-empty")
    assert project.cluster.scram_users(["frank"]) == {}
    assert not project.can_connect("frank", OLD)


def test_own_credential_changes_last(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN", get_password(ADMIN))
    project.declare("zoe", sha512=OLD)
    project.declare(ADMIN, sha512="${env.OWN}")
    manifest = project.folder / "manifests" / f"{ADMIN}.yaml"
    document = json.loads(manifest.read_text())
    document["spec"]["mechanisms"]["SCRAM-SHA-512"]["iterations"] = 9001
    manifest.write_text(json.dumps(document))
    code, text = project("plan", "--adopt")
    assert code == ExitCode.OK, text
    assert "Change to kdeclare's own credential" in text
    project.apply("--adopt")
    assert project.cluster.scram_users([ADMIN])[ADMIN][SHA_512] == 9001
    assert project("plan", "--detailed-exitcode")[0] == ExitCode.OK


def test_apply_without_permission_names_the_permission(project: Project) -> None:
    project.declare("heidi", sha512=OLD)
    project.client = project.brokers.files.client(READER)
    code, text = project("apply", "--yes")
    assert code == ExitCode.PARTIAL, text
    assert "the ALTER permission on the cluster" in text
    assert project.cluster.scram_users(["heidi"]) == {}
