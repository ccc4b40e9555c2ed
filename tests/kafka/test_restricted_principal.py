"""Commands of a principal that has permissions on the topics of its team, and none on the cluster.

A second topic does not permit DescribeConfigs. See tests/unit/cli/test_restricted_clusters.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kdeclare.cli.main import main
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.client import read_properties
from kdeclare.providers.kafka.request_values import NewTopic, ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from kdeclare.sandbox import SandboxStatus, broker_properties
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN
from tests.conftest import connect_as
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

USER, PASSWORD, PREFIX, HIDDEN = "restricted", "restricted-secret", "restricted-", "unreadable-orders"
RIGHTS = (
    *(f"{op} topic:{PREFIX}*" for op in ("CREATE", "DESCRIBE", "ALTER", "ALTER_CONFIGS")),
    f"ALTER topic:{HIDDEN}",  # implies Describe, as AlterConfigs implies DescribeConfigs
)


class Team:
    """A project of the team, and commands with its login."""

    def __init__(self, properties: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.properties, self.capsys = properties, capsys

    def __call__(self, *arguments: str) -> tuple[int, str]:
        """Run a command. Return its exit code and its output on one line."""
        self.capsys.readouterr()
        code = main([*arguments, "--command-config", str(self.properties), "--timeout", "300"])
        shown = self.capsys.readouterr()
        text = " ".join((shown.out + shown.err).split())
        assert "Traceback" not in text
        assert "Internal error" not in text
        return code, text


def write(file: str, kind: str, name: str, **spec: object) -> None:
    document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    Path(file).write_text(yaml.safe_dump(document))


@pytest.fixture
def team(
    secured_sandbox: SandboxStatus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Team]:
    """A user with the rights above. One of its topics exists, and another is only declared."""
    monkeypatch.chdir(tmp_path)
    environments = {"lab": {"bootstrapServers": secured_sandbox.bootstrap}}
    write("kdeclare.yaml", "Project", "team", environments=environments)
    Path("manifests").mkdir()
    write("manifests/orders.yaml", "Topic", f"{PREFIX}orders", partitions=1, configs={"retention.ms": "1000"})
    write("manifests/new.yaml", "Topic", f"{PREFIX}new", partitions=1)
    write("manifests/hidden.yaml", "Topic", HIDDEN, partitions=2)
    files = resolve_layout(Path(secured_sandbox.folder)).security
    login = read_properties(files.client(ADMIN))
    login["sasl.jaas.config"] = login["sasl.jaas.config"].replace(f'"{ADMIN}"', f'"{USER}"')
    login["sasl.jaas.config"] = login["sasl.jaas.config"].replace(f'"{ADMIN}-secret"', f'"{PASSWORD}"')
    (tmp_path / "team.properties").write_text(broker_properties.render(login))
    admin = connect_as(secured_sandbox, ADMIN)
    earlier = admin.acls()
    alteration = ScramAlteration(USER, Mechanism("SCRAM-SHA-512"), ScramUpsertion(4096, PASSWORD))
    topics = [NewTopic(name, 1, 1, None, {}) for name in (f"{PREFIX}orders", HIDDEN)]
    bindings = [parse_binding(f"ALLOW User:{USER} {right} from *") for right in RIGHTS]
    try:
        admin.create_topics(topics)
        assert admin.alter_scram_users([alteration]) == {USER: None}
        assert set(admin.create_acls(bindings).values()) == {None}
        wait_for(lambda: admin.acls().issuperset(bindings) and HIDDEN in admin.topics(), 90)
        made = Team(tmp_path / "team.properties", capsys)
        wait_for(lambda: HIDDEN in made("topic", "list")[1], 90)
        yield made
    finally:
        admin.delete_acls(sorted(admin.acls() - earlier))
        admin.alter_scram_users([ScramAlteration(USER, Mechanism("SCRAM-SHA-512"))])
        admin.delete_topics(dict.fromkeys((f"{PREFIX}orders", f"{PREFIX}new", HIDDEN)))
        admin.close()


def test_team_works_without_permissions_on_the_cluster(team: Team) -> None:
    moves = "Without the Describe permission on the cluster, kdeclare cannot see in-flight reassignments"
    configs = f"The brokers do not describe the configs of 1 topic ({HIDDEN})"
    code, text = team("plan", "--adopt", "--quiet")
    assert (code, moves in text, configs in text) == (ExitCode.OK, True, True), text
    code, text = team("apply", "--adopt", "--yes", "--quiet")
    assert (code, "3 of 3 operations done" in text) == (ExitCode.OK, True), text
    code, text = team("plan", "--quiet")
    assert (code, "No changes." in text) == (ExitCode.OK, True), text

    write("manifests/hidden.yaml", "Topic", HIDDEN, partitions=2, configs={"retention.ms": "1000"})
    code, text = team("plan", "--quiet")
    assert code == ExitCode.DENIED, text
    assert f"Topic/{HIDDEN} is left unchanged: kdeclare cannot compare its configs" in text
    assert f"Topic/{PREFIX}orders" not in text
    write("manifests/hidden.yaml", "Topic", HIDDEN, partitions=2)

    code, text = team("import", "--include-declared")
    assert (code, f"name: {PREFIX}orders" in text, "retention.ms: 1000" in text) == (0, True, True), text
    assert "1 set of topic configs (the brokers do not describe the configs" in text
    code, text = team("status")
    assert (code, moves in text) == (ExitCode.OK, True), text
    code, text = team("topic", "describe", HIDDEN, "--sizes")
    assert (code, f"refuse to describe the configs of topic '{HIDDEN}'" in text) == (ExitCode.OK, True), text
    code, text = team("usage", f"{PREFIX}orders")
    assert code == ExitCode.OK, text
    code, text = team("impact", f"Topic/{PREFIX}orders", "--add-config", "retention.ms=100")
    assert code == ExitCode.OK, text
    code, text = team("config", "describe", "--broker", "1")
    assert (code, "refuse to describe the configs of broker 1" in text) == (ExitCode.OK, True), text
    code, text = team("doctor")
    assert code == ExitCode.ERROR, text
    assert f"{HIDDEN}" in text
