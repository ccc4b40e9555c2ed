"""The same command lines for `kdeclare acl` and Kafka's AclCommand, with the same bindings at the end."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.cli.main import main
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN
from tests.conftest import connect_as
from tests.kafka.java import KafkaTools
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

TOOL = "org.apache.kafka.tools.AclCommand"
BEFORE = (
    "ALLOW User:a READ topic:t from *",
    "ALLOW User:a WRITE topic:t from *",
    "ALLOW User:a ALL topic:t from *",
    "ALLOW User:b READ topic:t from 10.0.0.1",
    "ALLOW User:a READ topic:t* from *",
    "DENY User:a READ topic:t from *",
    "ALLOW User:a READ group:t from *",
    "ALLOW User:b READ topic:* from *",
)
A = "--allow-principal User:a"
TABLE = (
    f"add {A} --operation Read --topic new",
    f"add {A} --topic new",
    f"add {A} --operation Read --operation Write --topic new --topic other",
    f"add {A} --operation DescribeConfigs --topic new --allow-host 10.0.0.1 --allow-host 10.0.0.2",
    f"add {A} --allow-principal User:b --operation Read --topic new",
    "add --deny-principal User:a --operation Read --topic new",
    "add --deny-principal User:a --deny-host 10.0.0.1 --operation All --topic new",
    f"add {A} --deny-principal User:b --operation Read --topic new",
    f"add {A} --operation Read --group new",
    f"add {A} --operation Read --topic new --group new",
    f"add {A} --operation Alter --cluster",
    f"add {A} --operation Alter --operation Describe --cluster",
    f"add {A} --operation Write --transactional-id new",
    f"add {A} --operation TwoPhaseCommit --transactional-id new",
    f"add {A} --operation Describe --delegation-token new",
    f"add {A} --operation CreateTokens --user-principal User:b",
    f"add {A} --operation Read --topic new --resource-pattern-type prefixed",
    f"add {A} --operation Read --topic '*'",
    f"add {A} --producer --topic new",
    f"add {A} --producer --topic new --transactional-id new",
    f"add {A} --producer --topic new --idempotent",
    f"add {A} --consumer --topic new --group new",
    f"add {A} --producer --consumer --topic new --group new",
    f"add {A} --operation Read --topic t",
    f"remove {A} --operation Read --topic t",
    f"remove {A} --topic t",
    f"remove {A} --operation Read --operation Write --topic t",
    f"remove {A} --operation Read --topic t --resource-pattern-type prefixed",
    "remove --deny-principal User:a --operation Read --topic t",
    "remove --allow-principal User:b --allow-host 10.0.0.1 --operation Read --topic t",
    "remove --allow-principal User:b --operation Read --topic t",
    f"remove {A} --operation Read --topic missing",
    "remove --topic t",
    "remove --topic t --resource-pattern-type prefixed",
    "remove --topic t --resource-pattern-type any",
    "remove --topic t --resource-pattern-type match",
    "remove --topic t --group t",
    "remove --topic '*'",
    "remove --topic missing",
)


_MARKER = "User:marker"


class Broker:
    """A broker whose bindings of two users are reset for each command line."""

    def __init__(self, sandbox: SandboxStatus, cluster: KafkaCluster, tools: KafkaTools) -> None:
        self.sandbox, self.cluster, self.tools = sandbox, cluster, tools
        self.properties = resolve_layout(Path(sandbox.folder)).security.client(ADMIN)

    def read(self) -> frozenset[Binding]:
        return self.cluster.acls(["User:a", "User:b"])

    def reset(self, wanted: frozenset[Binding]) -> None:
        self.cluster.delete_acls(sorted(self.read() - wanted))
        self.cluster.create_acls(sorted(wanted - self.read()))
        wait_for(lambda: self.read() == wanted, every=0.02)

    def read_after_command(self) -> frozenset[Binding]:
        """Return the bindings after all earlier changes, even if the last command changed nothing.

        Brokers apply changes in order, so they show a binding that is created now after all of these.
        """
        marker = parse_binding(f"ALLOW {_MARKER} READ topic:marker from *")
        self.cluster.create_acls([marker])
        wait_for(lambda: marker in self.cluster.acls([_MARKER]), every=0.02)
        found = self.read()
        self.cluster.delete_acls([marker])
        wait_for(lambda: marker not in self.cluster.acls([_MARKER]), every=0.02)
        return found

    def run_kafkas_tool(self, words: list[str]) -> bool:
        verb, *rest = words
        connection = ("--bootstrap-server", self.sandbox.bootstrap, "--command-config", str(self.properties))
        return self.tools(TOOL, f"--{verb}", *rest, "--force", *connection).code == 0

    def run_kdeclare(self, words: list[str]) -> bool:
        return main(["acl", *words, "--yes", "--quiet", "--command-config", str(self.properties)]) == 0


@pytest.fixture
def broker(
    secured_sandbox: SandboxStatus, tools: KafkaTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Broker]:
    """A broker, and an empty folder."""
    monkeypatch.chdir(tmp_path)
    cluster = connect_as(secured_sandbox, ADMIN)
    made = Broker(secured_sandbox, cluster, tools)
    yield made
    made.reset(frozenset())
    cluster.close()


@pytest.mark.parametrize("line", TABLE)
def test_command_line_has_same_effect_as_kafkas_tool(broker: Broker, line: str) -> None:
    before = frozenset(map(parse_binding, BEFORE))
    after: list[frozenset[Binding]] = []
    for run in (broker.run_kafkas_tool, broker.run_kdeclare):
        broker.reset(before)
        assert run(shlex.split(line)), line
        after.append(broker.read_after_command())
    assert after[0] == after[1]


def test_list_shows_what_kafkas_tool_lists(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    before = frozenset(map(parse_binding, BEFORE))
    broker.reset(before)
    connection = ("--bootstrap-server", broker.sandbox.bootstrap, "--command-config", str(broker.properties))
    for line in ("--topic t", "--topic t --resource-pattern-type match", "--group t", "--topic '*'"):
        listed = broker.tools(TOOL, "--list", *shlex.split(line), *connection).text
        capsys.readouterr()
        assert main(["acl", "list", *shlex.split(line), "--command-config", str(broker.properties)]) == 0
        shown = capsys.readouterr().out
        assert len(re.findall(r"\(principal=", listed)) == len(re.findall(r"^  ", shown, re.MULTILINE)), line
