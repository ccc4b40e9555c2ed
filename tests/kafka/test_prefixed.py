"""Principals with permissions on a prefix, or read permissions only, can plan and apply their part."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.sandbox import SandboxSettings, certificates
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN, READER
from tests.conftest import free_port
from tests.kafka.test_secured import CommandRunner, Ran, SecuredBrokers

pytestmark = pytest.mark.kafka

TEAM = "team-a"
RIGHTS = ("Create", "Describe", "DescribeConfigs", "Alter", "AlterConfigs", "Delete", "Read")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBrokers]:
    """One broker with a topic of another team, and a principal that may only use ``team-a.…``."""
    settings = SandboxSettings(
        tmp_path_factory.mktemp("prefixed"), 1, 1, free_port(1, secure=True), secure=True
    )
    try:
        kafka_sandbox.start(settings, print)
        made = SecuredBrokers(settings, resolve_layout(settings.folder).security)
        cluster = made.admin()
        try:
            [created] = cluster.create_topics([NewTopic("team-b.there", 1, 1, None, {})]).values()
            assert not isinstance(created, Fault), created
        finally:
            cluster.close()
        certificates.issue_keystore(made.files, settings.folder / "team.p12", TEAM)
        change_rights(made, "--add", TEAM)
        yield made
    finally:
        kafka_sandbox.reset(settings.folder)


def change_rights(secured: SecuredBrokers, what: str, user: str, *more: str) -> None:
    """Add or remove all permissions on topics with the prefix, or those in ``more``."""
    more = more or (
        *("--topic", "team-a.", "--resource-pattern-type", "prefixed"),
        *(word for right in RIGHTS for word in ("--operation", right)),
    )
    done = kafka_sandbox.run_kafka_tool(
        "org.apache.kafka.tools.AclCommand",
        *("--bootstrap-server", secured.at("SASL_SSL"), "--command-config", str(secured.files.client(ADMIN))),
        *(what, "--force", "--allow-principal", f"User:{user}"),
        *more,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def team(secured: SecuredBrokers) -> dict[str, str]:
    """The client properties of the team."""
    return secured.properties("SSL") | {
        "ssl.keystore.location": str(secured.settings.folder / "team.p12"),
        "ssl.keystore.password": certificates.KEYSTORE_PASSWORD,
    }


@pytest.fixture
def run_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    """A project without manifests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\nspec: {}\n"
    )
    (tmp_path / "manifests").mkdir()
    return CommandRunner(tmp_path, capsys)


def declare(typed: CommandRunner, name: str, spec: object) -> Path:
    """Write the manifest of a topic."""
    file = typed.folder / "manifests" / f"{name}.yaml"
    document = {"apiVersion": "kdeclare/v1", "kind": "Topic", "metadata": {"name": name}, "spec": spec}
    file.write_text(json.dumps(document))
    return file


def expect_exit_code(ran: Ran, code: int = 0) -> Ran:
    """Check that a command ended with the expected exit code, and return it."""
    print(f"--- exit {ran.code} ({ran.seconds:.1f} s)\n{ran.out}\n{ran.err}")
    assert ran.code == code, ran
    return ran


SPEC = {"partitions": 1, "replicationFactor": 1}


def test_prefixed_principal_plans_applies_and_rolls_back(
    secured: SecuredBrokers, run_command: CommandRunner, team: Mapping[str, str]
) -> None:
    declare(run_command, "team-a.orders", SPEC)
    ran = expect_exit_code(run_command(team, "plan"))
    assert "1 to create" in ran.out
    assert "Reassignments not visible" in ran.out
    expect_exit_code(run_command(team, "apply", "--yes"))
    assert "No changes." in expect_exit_code(run_command(team, "plan")).out
    declare(run_command, "team-a.orders", {**SPEC, "partitions": 2, "configs": {"retention.ms": 1000}})
    expect_exit_code(run_command(team, "plan", "--out", "it.plan"))
    expect_exit_code(run_command(team, "apply", "it.plan", "--yes"))
    assert "No changes." in expect_exit_code(run_command(team, "plan")).out
    expect_exit_code(run_command(team, "status"))
    expect_exit_code(run_command(team, "topic", "describe", "team-a.orders"))
    expect_exit_code(run_command(team, "topic", "create", "team-a.more", "--yes"))
    declare(run_command, "team-a.orders", {**SPEC, "partitions": 2, "configs": {"retention.ms": 2000}})
    expect_exit_code(run_command(team, "apply", "--yes"))
    expect_exit_code(run_command(team, "rollback", "--yes"))
    (run_command.folder / "manifests" / "team-a.orders.yaml").unlink()
    declare(run_command, "team-a.more", SPEC)
    ran = expect_exit_code(run_command(team, "apply", "--allow-deletes", "--yes"))
    assert "team-a.orders" in ran.out


def test_invisible_topics_are_blocked_and_others_applied(
    run_command: CommandRunner, team: Mapping[str, str]
) -> None:
    declare(run_command, "team-a.mails", SPEC)
    declare(run_command, "team-b.there", SPEC)
    declare(run_command, "team-b.absent", SPEC)
    ran = expect_exit_code(run_command(team, "plan"), 3)
    assert "1 to create" in ran.out
    for name in ("team-b.there", "team-b.absent"):
        assert f"without the Describe permission on topic {name}" in ran.out.replace("\n", " ")
    expect_exit_code(run_command(team, "apply", "--yes"), 3)
    assert "team-a.mails" in expect_exit_code(run_command(team, "topic", "list")).out


def test_invisible_orphan_stays_owned(
    secured: SecuredBrokers, run_command: CommandRunner, team: Mapping[str, str]
) -> None:
    file = declare(run_command, "team-a.owned", SPEC)
    declare(run_command, "team-b.owned", SPEC)
    expect_exit_code(run_command(secured.files.client(ADMIN), "apply", "--yes"))
    (run_command.folder / "manifests" / "team-b.owned.yaml").unlink()
    ran = expect_exit_code(run_command(team, "apply", "--yes", "--allow-deletes"))
    assert "stays owned" in ran.out.replace("\n", " ")
    state = json.loads(next((run_command.folder / "state").rglob("state.json")).read_text())
    assert "Topic/team-b.owned" in state["resources"]
    assert file.exists()
    ran = expect_exit_code(run_command(secured.files.client(ADMIN), "plan"))
    assert ("1 orphan" in ran.out, "Topic/team-b.owned" in ran.out) == (True, True)


def test_reader_can_plan_what_another_principal_applies(
    secured: SecuredBrokers, run_command: CommandRunner, team: Mapping[str, str]
) -> None:
    declare(run_command, "team-a.old", SPEC)
    expect_exit_code(run_command(team, "apply", "--yes"))
    declare(run_command, "team-a.old", {**SPEC, "partitions": 3, "configs": {"retention.ms": 1001}})
    declare(run_command, "team-a.new", SPEC)
    ran = expect_exit_code(run_command(secured.files.client(READER), "plan", "--out", "it.plan"))
    said = ran.out.replace("\n", " ")
    assert "needs Create on topic team-a.new or on the cluster" in said
    assert "needs Alter on topic team-a.old" in said
    assert "needs AlterConfigs on topic team-a.old" in said
    expect_exit_code(run_command(secured.files.client(READER), "apply", "--yes"), 5)
    expect_exit_code(run_command(team, "apply", "it.plan", "--yes"))
    assert "No changes." in expect_exit_code(run_command(secured.files.client(READER), "plan")).out
