"""The same command lines for kdeclare and Kafka's TopicCommand and ConfigCommand, with the same result."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdeclare.cli.main import main
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.sandbox import SandboxStatus
from tests.beds import DELETE, KafkaBed
from tests.kafka.java import KafkaTools

pytestmark = pytest.mark.kafka

TOOLS = {"topic": "org.apache.kafka.tools.TopicCommand", "config": "kafka.admin.ConfigCommand"}
DONE, REFUSED, EITHER = "done", "refused", "either"


@dataclass(frozen=True)
class CommandLine:
    """One command line; ``{t}`` is the topic, and ``{u}`` another one.

    before: whether the topics exist before, with two partitions of two replicas and ``retention.ms=1000``.
    ended: the outcome that both tools report; EITHER if Kafka's tool refuses a change without effect.
    exact: whether replicas are compared, or only their number.
    """

    command: str
    before: bool = True
    ended: str = DONE
    exact: bool = False

    def __str__(self) -> str:
        return self.command


TABLE = (
    CommandLine("topic create --topic {t} --partitions 3 --replication-factor 2", before=False),
    CommandLine("topic create --topic {t} --partitions 3", before=False),
    CommandLine("topic create --topic {t} --replication-factor 3", before=False),
    CommandLine("topic create --topic {t}", before=False),
    CommandLine("topic create --topic {t} --replica-assignment 1:2,2:3,3:1", before=False, exact=True),
    CommandLine("topic create --topic {t} --config retention.ms=1000", before=False),
    CommandLine(
        "topic create --topic {t} --config cleanup.policy=compact,delete --config segment.ms=9", before=False
    ),
    CommandLine("topic create --topic {t} --partitions 2 --config min.insync.replicas=1", before=False),
    CommandLine("topic create --topic {t} --if-not-exists --partitions 9"),
    CommandLine("topic create --topic {t} --partitions 9", ended=REFUSED),
    CommandLine("topic create --topic {t} --replication-factor 9", before=False, ended=REFUSED),
    CommandLine("topic create --topic {t} --partitions 0", before=False, ended=REFUSED),
    CommandLine("topic create --topic {t} --config no.such.key=1", before=False, ended=REFUSED),
    CommandLine("topic create --topic {t} --config retention.ms=long", before=False, ended=REFUSED),
    CommandLine("topic create --topic {t} --replica-assignment 1:1", before=False, ended=REFUSED),
    CommandLine("topic create --topic {t} --replica-assignment 1:2,9:1", before=False, ended=REFUSED),
    CommandLine("topic create --topic '{t}/x'", before=False, ended=REFUSED),
    CommandLine("topic alter --topic {t} --partitions 5"),
    CommandLine("topic alter --topic {t} --partitions 2", ended=EITHER),
    CommandLine("topic alter --topic {t} --partitions 1", ended=REFUSED),
    CommandLine("topic alter --topic {t} --partitions 4 --replica-assignment 1:2,2:3,3:1,1:3", exact=True),
    CommandLine("topic alter --topic {t} --partitions 5", before=False, ended=REFUSED),
    CommandLine("topic alter --topic {t} --partitions 5 --if-exists", before=False),
    CommandLine("topic alter --topic '({t}|{u})' --partitions 3"),
    CommandLine("topic delete --topic {t}"),
    CommandLine("topic delete --topic {t},{u}"),
    CommandLine("topic delete --topic '({t}|{u})'"),
    CommandLine("topic delete --topic {t}", before=False, ended=REFUSED),
    CommandLine("topic delete --topic {t} --if-exists", before=False),
    CommandLine("config alter --entity-type topics --entity-name {t} --add-config retention.ms=5"),
    CommandLine("config alter --topic {t} --add-config retention.ms=5,max.message.bytes=100"),
    CommandLine("config alter --topic {t} --add-config cleanup.policy=[compact,delete]"),
    CommandLine("config alter --topic {t} --add-config cleanup.policy=[compact,delete],segment.ms=7"),
    CommandLine("config alter --topic {t} --delete-config retention.ms"),
    CommandLine("config alter --topic {t} --add-config segment.ms=7 --delete-config retention.ms"),
    CommandLine("config alter --topic {t} --delete-config segment.ms"),
    CommandLine("config alter --topic {t} --add-config no.such.key=1", ended=REFUSED),
    CommandLine("config alter --topic {t} --add-config retention.ms=long", ended=REFUSED),
    CommandLine("config alter --topic {t} --add-config retention.ms", ended=REFUSED),
    CommandLine("config alter --topic {t} --add-config retention.ms=5", before=False, ended=REFUSED),
    CommandLine("config alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=2"),
    CommandLine("config alter --broker 2 --add-config background.threads=8"),
    CommandLine("config alter --entity-type brokers --entity-default --add-config log.cleaner.threads=2"),
    CommandLine("config alter --broker-defaults --add-config log.cleaner.io.max.bytes.per.second=1000000.0"),
    CommandLine("config alter --broker 1 --add-config broker.id=7", ended=REFUSED),
    CommandLine("config alter --broker 1 --add-config background.threads=many", ended=REFUSED),
)


@dataclass(frozen=True)
class BothTools:
    """Both tools on the same brokers, each with topics of its own."""

    bed: KafkaBed
    bootstrap: str
    tools: KafkaTools

    def run_kafkas_tool(self, words: list[str]) -> bool:
        """Whether Kafka's tool succeeded."""
        tool, verb, *rest = words
        return self.tools(TOOLS[tool], f"--{verb}", *rest, "--bootstrap-server", self.bootstrap).code == 0

    def run_kdeclare(self, words: list[str]) -> bool:
        """Whether kdeclare succeeded."""
        return main([*words, "--yes", "--quiet", "--bootstrap-server", self.bootstrap]) == 0

    def names(self, line: CommandLine) -> dict[str, str]:
        """Return two names; create the topics if the line needs them."""
        names = {short: self.bed.name() for short in "tu"}
        for name in names.values() if line.before else ():
            self.bed.create({0: (1, 2), 1: (2, 3)}, name=name, configs={"retention.ms": "1000"})
        return names

    def topics(self, names: dict[str, str], *, exact: bool) -> dict[str, object]:
        """Return replicas and overrides of the existing topics; elements of lists are sorted."""
        found: dict[str, object] = {}
        there = self.bed.cluster.topics(list(names.values()))
        for short, name in names.items():
            if name in there:
                replicas = [p.replicas if exact else len(p.replicas) for p in there[name].partitions]
                overrides = self.bed.overrides(ConfigResource(ConfigScope.TOPIC, name))
                found[short] = replicas, {k: sorted((v or "").split(",")) for k, v in overrides.items()}
        return found

    def brokers(self) -> dict[str, object]:
        """Return the overrides of brokers, and the cluster-wide defaults."""
        entities = [ConfigResource(ConfigScope.BROKER, name) for name in ("", "1", "2", "3")]
        return {entity.name: self.bed.overrides(entity) for entity in entities}

    def reset_brokers(self, before: dict[str, object]) -> None:
        """Restore the state, so that the other tool starts from the same one."""
        for name, wanted in before.items():
            entity = ConfigResource(ConfigScope.BROKER, name)
            extra = set(self.bed.overrides(entity)) - set(wanted if isinstance(wanted, dict) else ())
            if extra:
                assert self.bed.alter(entity, *((key, DELETE, None) for key in extra)) is None


@pytest.fixture
def both_tools(
    sandbox: SandboxStatus, tools: KafkaTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BothTools]:
    """Both tools, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    cluster = connect(sandbox.bootstrap, {})
    bed = KafkaBed(cluster, sandbox.bootstrap)
    yield BothTools(bed, sandbox.bootstrap, tools)
    bed.clean()
    cluster.close()


@pytest.mark.parametrize("line", TABLE, ids=str)
def test_command_line_has_same_effect_as_kafkas_tool(both_tools: BothTools, line: CommandLine) -> None:
    before = both_tools.brokers()
    well, names, brokers = [], [], []
    for run in (both_tools.run_kafkas_tool, both_tools.run_kdeclare):
        names.append(both_tools.names(line))
        well.append(run(shlex.split(line.command.format(**names[-1]))))
        if "--broker" in line.command or "brokers" in line.command:
            both_tools.bed.eventually(lambda: _expect_settled(both_tools, before, changed=line.ended == DONE))
            brokers.append(both_tools.brokers())
            both_tools.reset_brokers(before)

    def alike() -> None:
        theirs, mine = (both_tools.topics(each, exact=line.exact) for each in names)
        assert theirs == mine
        assert len(mine) == _count_expected(line, well[1])

    both_tools.bed.eventually(alike)
    assert not brokers or brokers[0] == brokers[1]
    assert well == {DONE: [True, True], REFUSED: [False, False], EITHER: [False, True]}[line.ended]


def _expect_settled(beside: BothTools, before: dict[str, object], *, changed: bool) -> None:
    assert (beside.brokers() != before) == changed


def _count_expected(line: CommandLine, went_well: bool) -> int:
    """How many of the two topics exist afterwards: a line without any effect must not pass."""
    if not line.before:
        return int(line.command.startswith("topic create") and went_well)
    if not line.command.startswith("topic delete"):
        return 2
    return 0 if "{u}" in line.command else 1
