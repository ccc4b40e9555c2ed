"""The same command lines for `kdeclare config` and Kafka's ConfigCommand, with the same state at the end.

The command lines are about users, client ids, IP addresses, groups and client metrics. Both tools start from
the same state, and each tool reads what exists.
"""

import json
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdeclare.cli.main import main
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN
from tests.beds import DELETE, SET, KafkaBed
from tests.conftest import connect_as
from tests.kafka.java import KafkaTools

pytestmark = pytest.mark.kafka

TOOL = "kafka.admin.ConfigCommand"
DONE, REFUSED, EITHER = "done", "refused", "either"
USER, CLIENT, IP = EntityType.USER, EntityType.CLIENT_ID, EntityType.IP
USERS = ("u", "v w")
OLD, NEW, COMMAS = "old-secret", "new-secret", "a,b=c"
PASSWORDS = (OLD, NEW, COMMAS)
LIMITS: Mapping[QuotaEntity, Mapping[str, float]] = {
    QuotaEntity.of({USER: "u"}): {"producer_byte_rate": 1e9, "request_percentage": 500.5},
    QuotaEntity.of({USER: "u", CLIENT: "c"}): {"consumer_byte_rate": 1e9},
    QuotaEntity.of({USER: None}): {"consumer_byte_rate": 2e9},
    QuotaEntity.of({CLIENT: "c"}): {"producer_byte_rate": 3e9},
    QuotaEntity.of({IP: "10.0.0.1"}): {"connection_creation_rate": 100.0},
}
CREDENTIALS = {"u": {Mechanism.SHA_256: 5000}}
GROUP, METRICS = ConfigResource(ConfigScope.GROUP, "g"), ConfigResource(ConfigScope.CLIENT_METRICS, "m")
RESOURCES = (GROUP, GROUP._replace(name="new"), METRICS, METRICS._replace(name="new"))
CONFIGS = {
    GROUP: {"consumer.session.timeout.ms": "50000"},
    METRICS: {"metrics": "org.a.", "interval.ms": "1000"},
}


@dataclass(frozen=True)
class CommandLine:
    """One command line; ``{new}`` is a password: a literal for Kafka's tool, and a reference for kdeclare.

    ended: the outcome that both tools report; EITHER if Kafka's tool refuses a change without effect.
    """

    options: str
    ended: str = DONE

    def __str__(self) -> str:
        return self.options


RATE = "producer_byte_rate"
TABLE = (
    CommandLine(f"--entity-type users --entity-name u --add-config {RATE}=1000000001"),
    CommandLine(f"--user u --add-config {RATE}=1000000001,controller_mutation_rate=2000.5"),
    CommandLine("--user u --add-config request_percentage=700 --delete-config producer_byte_rate"),
    CommandLine("--user u --delete-config producer_byte_rate,request_percentage"),
    CommandLine("--user 'v w' --add-config consumer_byte_rate=1000000001"),
    CommandLine("--user-defaults --add-config request_percentage=600"),
    CommandLine("--entity-type users --entity-default --delete-config consumer_byte_rate"),
    CommandLine(f"--client c --add-config {RATE}=1e9"),
    CommandLine(f"--entity-type clients --entity-name c --delete-config {RATE}"),
    CommandLine(f"--client-defaults --add-config {RATE}=1000000001"),
    CommandLine(f"--entity-type clients --entity-default --add-config {RATE}=1000000001"),
    CommandLine(
        "--entity-type users --entity-name u --entity-type clients --entity-name c "
        "--add-config consumer_byte_rate=1000000001"
    ),
    CommandLine(
        "--entity-type clients --entity-name c --entity-type users --entity-name u "
        "--delete-config consumer_byte_rate"
    ),
    CommandLine("--user u --client other --add-config consumer_byte_rate=1000000001"),
    CommandLine("--user u --client-defaults --add-config consumer_byte_rate=1000000001"),
    CommandLine("--user-defaults --client c --add-config consumer_byte_rate=1000000001"),
    CommandLine("--user-defaults --client-defaults --add-config consumer_byte_rate=1000000001"),
    CommandLine("--ip 10.0.0.1 --add-config connection_creation_rate=101"),
    CommandLine("--entity-type ips --entity-name 10.0.0.2 --add-config connection_creation_rate=102"),
    CommandLine("--ip 10.0.0.1 --delete-config connection_creation_rate"),
    CommandLine("--ip-defaults --add-config connection_creation_rate=1000"),
    CommandLine("--entity-type ips --entity-default --add-config connection_creation_rate=1000"),
    CommandLine("--user u --add-config SCRAM-SHA-256=[iterations=8192,password={new}]"),
    CommandLine("--user u --add-config SCRAM-SHA-256=[password={new}]"),
    CommandLine("--user u --add-config SCRAM-SHA-512=[iterations=-1,password={new}]"),
    CommandLine("--user u --add-config SCRAM-SHA-256=[iterations=5000,password={new}]"),
    CommandLine("--entity-type users --entity-name 'v w' --add-config SCRAM-SHA-512=[password={new}]"),
    CommandLine("--user u --add-config 'SCRAM-SHA-512=[iterations=4096,password=a,b=c]'"),
    CommandLine("--user u --delete-config SCRAM-SHA-256"),
    CommandLine(
        "--group g --add-config consumer.session.timeout.ms=55000,share.isolation.level=read_committed"
    ),
    CommandLine("--entity-type groups --entity-name g --delete-config consumer.session.timeout.ms"),
    CommandLine("--group new --add-config share.auto.offset.reset=earliest"),
    CommandLine("--client-metrics m --add-config interval.ms=2000,metrics=[org.b.,org.c.]"),
    CommandLine("--entity-type client-metrics --entity-name m --delete-config interval.ms"),
    CommandLine("--client-metrics m --add-config 'match=[client_id=a.*,client_software_name=java]'"),
    CommandLine("--client-metrics new --add-config metrics=org.a."),
    CommandLine("--user u --delete-config controller_mutation_rate", EITHER),
    CommandLine("--user u --delete-config SCRAM-SHA-512", EITHER),
    CommandLine(f"--user u --add-config {RATE}=fast", REFUSED),
    CommandLine(f"--user u --add-config {RATE}=0", REFUSED),
    CommandLine(f"--user u --add-config {RATE}=-1", REFUSED),
    CommandLine("--user u --add-config consumer_byte_rate=0.5", REFUSED),
    CommandLine("--user u --add-config no_such_rate=5", REFUSED),
    CommandLine("--user u --add-config connection_creation_rate=5", REFUSED),
    CommandLine(f"--ip 10.0.0.1 --add-config {RATE}=5", REFUSED),
    CommandLine("--user u --ip 10.0.0.1 --add-config connection_creation_rate=5", REFUSED),
    CommandLine(f"--entity-type users --add-config {RATE}=5", REFUSED),
    CommandLine("--user u --add-config SCRAM-SHA-1=[password={new}]", REFUSED),
    CommandLine("--user u --add-config SCRAM-SHA-256=secret", REFUSED),
    CommandLine("--user u --add-config SCRAM-SHA-256=[iterations=4095,password={new}]", REFUSED),
    CommandLine("--user u --add-config SCRAM-SHA-256=[iterations=16385,password={new}]", REFUSED),
    CommandLine("--user u --add-config SCRAM-SHA-256=[password=]", REFUSED),
    CommandLine("--user-defaults --add-config SCRAM-SHA-256=[password={new}]", REFUSED),
    CommandLine("--client c --add-config SCRAM-SHA-256=[password={new}]", REFUSED),
    CommandLine("--user u --client c --add-config SCRAM-SHA-256=[password={new}]", REFUSED),
    CommandLine(f"--user u --add-config {RATE}=5,SCRAM-SHA-256=[password={{new}}]", REFUSED),
    CommandLine("--group g --add-config consumer.session.timeout.ms=1", REFUSED),
    CommandLine("--group g --add-config no.such.key=1", REFUSED),
    CommandLine("--client-metrics m --add-config interval.ms=5", REFUSED),
    CommandLine("--client-metrics m --add-config 'match=[client_id=(]'", REFUSED),
)

State = tuple[object, ...]


class Broker:
    """A broker whose quotas, credentials, groups and subscriptions are reset for each command line."""

    def __init__(self, sandbox: SandboxStatus, cluster: KafkaCluster, tools: KafkaTools) -> None:
        self.cluster, self.tools = cluster, tools
        self.properties = resolve_layout(Path(sandbox.folder)).security.client(ADMIN)
        self.connection = ("--bootstrap-server", sandbox.bootstrap, "--command-config", str(self.properties))
        self.bed = KafkaBed(cluster, sandbox.bootstrap)

    def read_configs(self, resource: ConfigResource) -> Mapping[str, str | None]:
        return self.bed.overrides(resource)

    def read(self) -> State:
        """Return everything that command lines change, except passwords."""
        credentials = self.cluster.scram_users(list(USERS))
        configs = {resource: dict(self.read_configs(resource)) for resource in RESOURCES}
        for entries in configs.values():
            for key in ("metrics", "match"):
                if entries.get(key):
                    entries[key] = ",".join(sorted((entries[key] or "").split(",")))
        return dict(self.cluster.quotas(None)), credentials, configs

    def read_passwords(self) -> dict[tuple[str, Mechanism], list[str]]:
        """Return the passwords that each credential accepts."""
        return {
            (user, mechanism): [p for p in PASSWORDS if self.cluster.can_log_in(user, mechanism, p)]
            for user, credentials in self.cluster.scram_users(list(USERS)).items()
            for mechanism in credentials
        }

    def reset(self, *, empty: bool = False) -> None:
        """Restore the state before, or remove everything."""
        expected = (
            ({}, {}, self.expect_configs(empty=True))
            if empty
            else (LIMITS, CREDENTIALS, self.expect_configs())
        )
        for _ in range(10):  # a read can miss the last change of Kafka's tool
            self._reset_once(empty=empty)
            if self.wait_for(lambda: self.read() == expected, 1.0):
                return
        assert self.read() == expected

    def _reset_once(self, *, empty: bool) -> None:
        limits = {} if empty else LIMITS
        live = self.cluster.quotas(None)
        self.alter_quotas(
            {
                entity: {
                    key: limits.get(entity, {}).get(key)
                    for key in {*live.get(entity, {}), *limits.get(entity, {})}
                }
                for entity in {*live, *limits}
            }
        )
        for user, credentials in self.cluster.scram_users(list(USERS)).items():
            for mechanism in credentials:
                self.cluster.alter_scram_users([ScramAlteration(user, mechanism)])
        configs: Mapping[ConfigResource, Mapping[str, str]] = {} if empty else CONFIGS
        for resource in RESOURCES:
            wanted = configs.get(resource, {})
            extra = [(key, DELETE, None) for key in self.read_configs(resource) if key not in wanted]
            changes = [*extra, *((key, SET, value) for key, value in wanted.items())]
            if changes:
                assert self.bed.alter(resource, *changes) is None
        if empty:
            return
        for user, credentials in CREDENTIALS.items():
            for mechanism, number in credentials.items():
                self.cluster.alter_scram_users(
                    [ScramAlteration(user, mechanism, ScramUpsertion(number, OLD))]
                )

    def expect_configs(self, *, empty: bool = False) -> dict[ConfigResource, dict[str, str]]:
        return {resource: {} if empty else dict(CONFIGS.get(resource, {})) for resource in RESOURCES}

    def alter_quotas(self, items: Mapping[QuotaEntity, Mapping[str, float | None]]) -> None:
        results = self.cluster.alter_quotas({entity: keys for entity, keys in items.items() if keys})
        assert not [result for result in results.values() if result is not None]

    def wait_for(self, is_done: Callable[[], bool], seconds: float = 5.0) -> bool:
        """Return whether a condition holds in time."""
        deadline = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def run_kafkas_tool(self, options: str) -> bool:
        words = shlex.split(options.format(new=NEW))
        return self.tools(TOOL, "--alter", *words, *self.connection).code == 0

    def run_kdeclare(self, options: str) -> bool:
        words = shlex.split(options.format(new="${env.NEW}"))
        code = main(["config", "alter", *words, "--yes", "--quiet", "--command-config", str(self.properties)])
        return code == ExitCode.OK


@pytest.fixture
def broker(
    secured_sandbox: SandboxStatus, tools: KafkaTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Broker]:
    """A broker, and an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEW", NEW)
    cluster = connect_as(secured_sandbox, ADMIN)
    made = Broker(secured_sandbox, cluster, tools)
    yield made
    made.reset(empty=True)
    cluster.close()


@pytest.mark.parametrize("line", TABLE, ids=str)
def test_command_line_has_same_effect_as_kafkas_tool(broker: Broker, line: CommandLine) -> None:
    well, states, passwords = [], [], []
    for run in (broker.run_kafkas_tool, broker.run_kdeclare):
        broker.reset()
        before = broker.read()
        well.append(run(line.options))
        is_changed = line.ended == DONE and "iterations=5000" not in line.options
        broker.wait_for(lambda: (broker.read() != before) == is_changed, 1.0)  # noqa: B023  called at once
        states.append(broker.read())
        assert (states[-1] != before) == is_changed
        passwords.append(broker.read_passwords() if "SCRAM" in line.options else {})
    assert well == {DONE: [True, True], REFUSED: [False, False], EITHER: [False, True]}[line.ended]
    assert states[0] == states[1]
    assert passwords[0] == passwords[1]
    assert "new}" not in line.options or line.ended != DONE or [NEW] in passwords[1].values()


@pytest.mark.parametrize(
    "options",
    [
        "--entity-type users",
        "--user u",
        "--user 'v w'",
        "--user-defaults",
        "--entity-type users --entity-default",
        "--entity-type users --entity-type clients",
        "--user u --client c",
        "--entity-type users --entity-name u --entity-type clients",
        "--entity-type clients",
        "--client c",
        "--entity-type ips",
        "--ip 10.0.0.1",
    ],
)
def test_describe_shows_what_kafkas_tool_describes(
    broker: Broker, options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.reset()
    words = shlex.split(options)
    described = broker.tools(TOOL, "--describe", *words, *broker.connection).text
    capsys.readouterr()
    line = ["config", "describe", *words, "--format", "json", "--command-config", str(broker.properties)]
    assert main(line) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    quotas = sorted((key, float(n)) for quota in document["quotas"] for key, n in quota["limits"].items())
    credentials = sorted((c["mechanism"], c["iterations"]) for c in document["credentials"])
    assert quotas == sorted((key, float(n)) for key, n in re.findall(r"(\w+_\w+)=([0-9.E]+)", described))
    assert credentials == sorted(
        (name, int(n)) for name, n in re.findall(r"(SCRAM-SHA-\d+)=iterations=(\d+)", described)
    )
    assert len(document["quotas"]) == described.count("Quota configs for")
    assert quotas or credentials or "v w" in options


def test_kafkas_tool_describes_groups_and_metrics_that_kdeclare_sets(broker: Broker) -> None:
    broker.reset(empty=True)
    assert broker.run_kdeclare("--group g --add-config consumer.session.timeout.ms=55000")
    assert broker.run_kdeclare("--client-metrics m --add-config metrics=[org.a.,org.b.],interval.ms=2000")
    described = broker.tools(TOOL, "--describe", "--group", "g", *broker.connection).text
    assert "consumer.session.timeout.ms=55000" in described
    described = broker.tools(TOOL, "--describe", "--client-metrics", "m", *broker.connection).text
    assert "metrics=org.a.,org.b." in described
    assert "interval.ms=2000" in described


def test_credentials_of_a_user_change_together_only_with_kdeclare(broker: Broker) -> None:
    """Brokers refuse a request that contains a user twice (DUPLICATE_RESOURCE); kdeclare sends two."""
    options = "--user u --add-config SCRAM-SHA-512=[password={new}] --delete-config SCRAM-SHA-256"
    broker.reset()
    assert not broker.run_kafkas_tool(options)
    assert broker.cluster.scram_users(["u"]) == CREDENTIALS
    assert broker.run_kdeclare(options)
    assert broker.cluster.scram_users(["u"]) == {"u": {Mechanism.SHA_512: 4096}}
    assert broker.cluster.can_log_in("u", Mechanism.SHA_512, NEW)


def test_kdeclare_undoes_its_change_beside_a_later_change_of_kafkas_tool(broker: Broker) -> None:
    broker.reset(empty=True)
    assert broker.run_kdeclare(f"--user u --add-config {RATE}=1000000001,consumer_byte_rate=1000000002")
    assert broker.run_kafkas_tool("--user u --add-config consumer_byte_rate=1000000003")
    entity = QuotaEntity.of({USER: "u"})
    broker.wait_for(lambda: broker.cluster.quotas([entity])[entity]["consumer_byte_rate"] == 1000000003)
    assert main(["rollback", "--yes", "--command-config", str(broker.properties)]) == ExitCode.PARTIAL
    broker.wait_for(lambda: len(broker.cluster.quotas([entity]).get(entity, {})) == 1)
    assert broker.cluster.quotas([entity]) == {entity: {"consumer_byte_rate": 1000000003.0}}
