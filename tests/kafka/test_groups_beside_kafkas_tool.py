"""The same command lines for ``kdeclare group`` and Kafka's kafka-consumer-groups, with the same result.

Each tool has a group of its own with the same offsets. Each tool also reads what the other one has written.
"""

import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kdeclare.cli.main import main
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.java import find_java
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset, GroupType
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.sandbox import SandboxStatus, resolve_kafka_classpath
from tests.beds import KafkaBed
from tests.kafka.java import QUICK_JVM, KafkaTools, ToolResult, compile_java
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
SHARE_TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
STREAMS_TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer"
DONE, REFUSED = "done", "refused"
MIDDLE_MS = 1_700_000_005_000
"""The timestamp of the record with offset 5 in each partition."""
MIDDLE = "2023-11-14T22:13:25.000"


@dataclass(frozen=True)
class CommandLine:
    """One command line; ``{g}`` is the group, ``{t}`` and ``{u}`` are topics, and ``{f}`` is a file.

    exists: whether the group exists before.
    """

    command: str
    exists: bool = True
    ended: str = DONE

    def __str__(self) -> str:
        return self.command


TABLE = (
    CommandLine("reset-offsets --group {g} --topic {t} --to-earliest"),
    CommandLine("reset-offsets --group {g} --topic {t} --to-latest"),
    CommandLine("reset-offsets --group {g} --topic {t} --topic {u} --to-earliest"),
    CommandLine("reset-offsets --group {g} --topic {t}:0,2 --topic {u}:0 --to-latest"),
    CommandLine("reset-offsets --group {g} --all-topics --to-earliest"),
    CommandLine("reset-offsets --group {g} --topic {t} --to-offset 5"),
    CommandLine("reset-offsets --group {g} --topic {t} --to-offset 0"),
    CommandLine("reset-offsets --group {g} --topic {t} --to-offset 1000000"),
    CommandLine("reset-offsets --group {g} --all-topics --shift-by 3"),
    CommandLine("reset-offsets --group {g} --all-topics --shift-by -3"),
    CommandLine("reset-offsets --group {g} --all-topics --shift-by -1000"),
    CommandLine("reset-offsets --group {g} --topic {t}:2 --shift-by 1", ended=REFUSED),
    CommandLine("reset-offsets --group {g} --topic {t} --to-current"),
    CommandLine("reset-offsets --group {g} --all-topics --to-current"),
    CommandLine("reset-offsets --group {g} --topic {t} --to-datetime " + MIDDLE),
    CommandLine("reset-offsets --group {g} --topic {t} --to-datetime " + MIDDLE + "Z"),
    CommandLine("reset-offsets --group {g} --topic {t} --to-datetime 2023-11-15T00:13:25.001+02:00"),
    CommandLine("reset-offsets --group {g} --topic {t} --to-datetime 2000-01-01T00:00:00.000"),
    CommandLine("reset-offsets --group {g} --topic {t} --to-datetime 2030-01-01T00:00:00.000"),
    CommandLine("reset-offsets --group {g} --topic {t} --to-datetime yesterday", ended=REFUSED),
    CommandLine("reset-offsets --group {g} --topic {t} --by-duration P10000D"),
    CommandLine("reset-offsets --group {g} --topic {t} --by-duration PT1H"),
    CommandLine("reset-offsets --group {g} --topic {t} --by-duration 1h", ended=REFUSED),
    CommandLine("reset-offsets --group {g} --from-file {f}"),
    CommandLine("reset-offsets --group {g} --topic {t} --to-latest", exists=False),
    CommandLine("reset-offsets --group {g} --topic no-such-topic --to-latest", ended=REFUSED),
    CommandLine("reset-offsets --group {g} --to-latest", ended=REFUSED),
    CommandLine("reset-offsets --group {g} --topic {t} --to-latest --to-earliest", ended=REFUSED),
    CommandLine("delete-offsets --group {g} --topic {t}"),
    CommandLine("delete-offsets --group {g} --topic {t}:0,2 --topic {u}"),
    CommandLine("delete-offsets --group {g} --topic {t}:2"),
    CommandLine("delete-offsets --group {g} --topic no-such-topic", ended=REFUSED),
    CommandLine("delete-offsets --group {g}", ended=REFUSED),
    CommandLine("delete-offsets --group {g} --topic {t}", exists=False, ended=REFUSED),
    CommandLine("delete --group {g}"),
    CommandLine("delete --group {g}", exists=False, ended=REFUSED),
)


@dataclass
class BothTools:
    """Both tools on the same brokers."""

    bed: KafkaBed
    bootstrap: str
    tools: KafkaTools
    topics: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    def run_kafkas_tool(self, *words: str) -> ToolResult:
        """Run Kafka's tool."""
        return self.tools(TOOL, *words, "--bootstrap-server", self.bootstrap)

    def list_with_kafkas_tool(self, tool: str) -> list[str]:
        """Return the groups that one of Kafka's tools lists."""
        ran = self.tools(tool, "--list", "--bootstrap-server", self.bootstrap)
        assert ran.code == 0, ran.text
        return sorted(ran.text.split())

    def run_kdeclare(self, *words: str) -> int:
        """Run kdeclare."""
        return main(["group", *words, "--bootstrap-server", self.bootstrap])

    def make_group(self, *, exists: bool = True) -> str:
        """Return a new group, with offsets in two of three partitions of ``t`` and in ``u``."""
        name = self.bed.name("-group")
        self.names.append(name)
        if exists:
            t, u = self.topics["t"], self.topics["u"]
            offsets = {TopicPartition(t, 0): 4, TopicPartition(t, 1): 8, TopicPartition(u, 0): 2}
            self.commit(name, offsets)
        return name

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets; the first commit in a cluster waits for the coordinator."""

        def send() -> None:
            changes = {group: {where: CommittedOffset(offset) for where, offset in offsets.items()}}
            assert not [r for r in self.bed.cluster.groups.alter_offsets(changes).values() if r is not None]

        self.bed.eventually(send)

    def read_offsets(self, group: str) -> dict[str, int] | None:
        """Return the offsets of a group by short name of the topic; None if the group does not exist."""
        groups = self.bed.cluster.groups
        if group not in groups.list_groups():
            return None
        short = {name: letter for letter, name in self.topics.items()}
        offsets = groups.fetch_offsets([group])[group]
        return {f"{short[where.topic]}-{where.partition}": o.offset for where, o in sorted(offsets.items())}

    @contextmanager
    def run_consumer(self, group: str, tool: str, *settings: str) -> Iterator[None]:
        """Run one of Kafka's console consumers until the end of the block."""
        command = [
            *(find_java(), "-XX:TieredStopAtLevel=1", "-cp", resolve_kafka_classpath()),
            *(f"{CONSOLE}.{tool}", "--bootstrap-server", self.bootstrap, "--topic", self.topics["t"]),
            *("--group", group, *settings),
        ]
        consumer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.names.append(group)
        try:
            wait_for(lambda: self.is_stable(group) or consumer.poll() is not None, 90, every=0.2)
            assert consumer.poll() is None, "the consumer ended"
            yield
        finally:
            consumer.terminate()  # a consumer that is killed stays a member until its session times out
            consumer.wait(timeout=120)

    def is_stable(self, group: str) -> bool:
        """Whether a group is Stable. The first member in a cluster waits for the coordinators."""
        try:
            found = self.bed.cluster.groups.list_groups().get(group)
        except Fault as fault:
            if fault.kind is not FaultKind.RETRIABLE:
                raise
            return False
        return found is not None and found.state == "Stable"

    @contextmanager
    def run_streams_member(self, group: str, classes: Path) -> Iterator[None]:
        """Run the only member of a streams group until the end of the block. Kafka Streams is not needed."""
        compile_java(Path(__file__).with_name("StreamsMember.java"), classes)
        command = [
            *(find_java(), *QUICK_JVM, "-cp", f"{classes}:{resolve_kafka_classpath()}"),
            *("kdeclare.test.StreamsMember", self.bootstrap, group, self.topics["t"]),
        ]
        member = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.names.append(group)
        try:
            self.bed.eventually(lambda: self.expect_state(group, "Stable"))
            yield
        finally:
            errors, _ = member.communicate("leave\n", timeout=120)
        assert member.returncode == 0, errors

    def expect_state(self, group: str, state: str) -> None:
        """Check the state of a group."""
        assert self.bed.cluster.groups.list_groups()[group].state == state

    def clean(self) -> None:
        """Delete all groups that can be deleted."""
        there = self.bed.cluster.groups.list_groups().keys() & set(self.names)
        self.bed.cluster.groups.delete_groups(sorted(there))


@pytest.fixture(scope="module")
def shared_tools(sandbox: SandboxStatus, tools: KafkaTools) -> Iterator[BothTools]:
    """Both tools, and two topics: ``t`` with ten records per partition, the first two deleted, and ``u``."""
    cluster = connect(sandbox.bootstrap, {})
    bed = KafkaBed(cluster, sandbox.bootstrap)
    both = BothTools(bed, sandbox.bootstrap, tools)
    kept = {"retention.ms": "-1"}  # the timestamps are old
    both.topics = {"t": bed.create(partitions=3, configs=kept), "u": bed.create(partitions=1)}
    _fill(both)
    yield both
    both.clean()
    bed.clean()
    cluster.close()


def _fill(both: BothTools) -> None:
    from kafka import KafkaAdminClient, KafkaProducer
    from kafka.structs import TopicPartition as ClientPartition

    producer = KafkaProducer(bootstrap_servers=both.bootstrap)
    for offset in range(10):
        for partition in range(3):
            at = MIDDLE_MS + 1000 * (offset - 5)
            producer.send(both.topics["t"], b"x", partition=partition, timestamp_ms=at)
    for _ in range(5):
        producer.send(both.topics["u"], b"x", partition=0)
    producer.flush()
    producer.close()
    admin = KafkaAdminClient(bootstrap_servers=both.bootstrap)
    admin.delete_records({ClientPartition(both.topics["t"], partition): 2 for partition in range(3)})
    admin.close()


@pytest.fixture
def both_tools(shared_tools: BothTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BothTools:
    """Both tools, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return shared_tools


@pytest.mark.parametrize("line", TABLE, ids=str)
def test_command_line_has_same_effect_as_kafkas_tool(both_tools: BothTools, line: CommandLine) -> None:
    t, u = both_tools.topics["t"], both_tools.topics["u"]
    file = Path("offsets.csv").absolute()  # Kafka's tool runs in another folder
    file.write_text(f"{t},0,3\n{t},2,1000\n{u},0,0\n")
    theirs, mine = (both_tools.make_group(exists=line.exists) for _ in range(2))
    verb, *rest = shlex.split(line.command.format(g="{g}", t=t, u=u, f=str(file)))

    def fill(group: str) -> list[str]:
        return [word.format(g=group) for word in rest]

    execute = ["--execute"] if verb == "reset-offsets" else []
    kafka = both_tools.run_kafkas_tool(f"--{verb}", *fill(theirs), *execute)
    went_well = kafka.code == 0 and "Error: " not in kafka.text  # it exits with 0 for most errors
    code = both_tools.run_kdeclare(verb, *fill(mine), *execute, "--yes", "--quiet")
    offsets = both_tools.read_offsets(theirs)
    assert both_tools.read_offsets(mine) == offsets
    assert (went_well, code == 0) == (line.ended == DONE,) * 2, kafka.text
    before = {"t-0": 4, "t-1": 8, "u-0": 2} if line.exists else None
    keeps_all = ("--all-topics --to-current", "delete-offsets --group {g} --topic {t}:2")
    is_kept = line.ended == REFUSED or line.command.endswith(keeps_all)
    assert (offsets == before) == is_kept


def test_rollback_restores_offsets_that_kafkas_tool_shows(both_tools: BothTools) -> None:
    group = both_tools.make_group()
    before = _describe_with_kafkas_tool(both_tools, group)
    rollback = ["rollback", "--yes", "--quiet", "--bootstrap-server", both_tools.bootstrap]
    reset = ("reset-offsets", group, "--all-topics", "--to-latest")
    deletion = ("delete-offsets", group, "--topic", both_tools.topics["t"])
    for change in (reset, deletion):
        assert both_tools.run_kdeclare(*change, "--yes", "--quiet") == 0
        assert _describe_with_kafkas_tool(both_tools, group) != before
        assert main(rollback) == 0
        assert _describe_with_kafkas_tool(both_tools, group) == before
    assert both_tools.run_kdeclare("delete", group, "--yes", "--quiet") == 0
    assert both_tools.read_offsets(group) is None
    assert main(rollback) == 0
    assert _describe_with_kafkas_tool(both_tools, group) == before


def _describe_with_kafkas_tool(both: BothTools, group: str) -> dict[tuple[str, int], tuple[int, int, int]]:
    """Return the committed offset, the end of the log and the lag of each partition."""
    ran = both.run_kafkas_tool("--describe", "--group", group)
    rows = [line.split() for line in ran.text.splitlines() if line.startswith(group)]
    return {(row[1], int(row[2])): (int(row[3]), int(row[4]), int(row[5])) for row in rows}


def test_describe_and_list_show_what_kafkas_tool_shows(
    both_tools: BothTools, capsys: pytest.CaptureFixture[str]
) -> None:
    group = both_tools.make_group()
    capsys.readouterr()
    assert both_tools.run_kdeclare("describe", group, "--format", "json") == 0
    (described,) = json.loads(capsys.readouterr().out)["groups"]
    mine = {
        (row["topic"], row["partition"]): (row["committed"], row["log_end"], row["lag"])
        for row in described["offsets"]
    }
    assert mine == _describe_with_kafkas_tool(both_tools, group)
    assert both_tools.run_kdeclare("list", "--type", "classic,consumer", "--format", "names") == 0
    names = capsys.readouterr().out.split()
    assert sorted(names) == sorted(both_tools.run_kafkas_tool("--list").text.split())
    assert group in names


def test_exported_files_are_read_by_the_other_tool(
    both_tools: BothTools, capsys: pytest.CaptureFixture[str]
) -> None:
    """Offsets go from one group to a file to another group, with different tools, in both directions."""
    first, second, third = (both_tools.make_group() for _ in range(3))
    mine, theirs = Path("mine.csv").absolute(), Path("theirs.csv").absolute()
    one = ("--all-topics", "--shift-by", "1", "--export")
    capsys.readouterr()
    assert both_tools.run_kdeclare("reset-offsets", first, *one) == 0
    mine.write_text(capsys.readouterr().out)
    ran = both_tools.run_kafkas_tool("--reset-offsets", "--group", first, *one, "--dry-run")
    assert ran.code == 0
    theirs.write_text(ran.text)
    execute = ("--from-file", str(mine), "--execute")
    assert both_tools.run_kafkas_tool("--reset-offsets", "--group", second, *execute).code == 0
    assert both_tools.run_kdeclare("reset-offsets", third, "--from-file", str(theirs), "--yes", "-q") == 0
    expected = {"t-0": 5, "t-1": 9, "u-0": 3}
    assert both_tools.read_offsets(second) == both_tools.read_offsets(third) == expected
    both = ("--group", first, "--group", second, "--all-topics", "--to-earliest", "--export")
    capsys.readouterr()
    assert both_tools.run_kdeclare("reset-offsets", *both) == 0
    mine.write_text(capsys.readouterr().out)
    ran = both_tools.run_kafkas_tool("--reset-offsets", *both, "--dry-run")
    theirs.write_text(ran.text)
    groups = ("--group", first, "--group", second)
    loaded = both_tools.run_kafkas_tool("--reset-offsets", *groups, *execute)
    assert "Error" not in loaded.text, (ran.text, loaded.text, mine.read_text())
    expected = {"t-0": 2, "t-1": 2, "u-0": 0}
    assert both_tools.read_offsets(first) == both_tools.read_offsets(second) == expected
    both_tools.commit(first, {TopicPartition(both_tools.topics["u"], 0): 4})
    assert both_tools.run_kdeclare("reset-offsets", *groups, "--from-file", str(theirs), "--yes", "-q") == 0
    assert both_tools.read_offsets(first) == both_tools.read_offsets(second) == expected


def test_streams_group_is_listed_as_streams_group_and_refused(
    both_tools: BothTools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group, topic = both_tools.make_group(exists=False), both_tools.topics["t"]
    changes = (
        ("reset-offsets", group, "--topic", topic, "--to-latest"),
        ("delete-offsets", group, "--topic", topic),
        ("delete", group),
    )

    def expect_refusals() -> None:
        for change in changes:
            capsys.readouterr()
            assert both_tools.run_kdeclare(*change, "--yes") == 3
            out = capsys.readouterr().out
            assert f"Group '{group}' is a streams group" in out
            assert "kafka-streams-groups" in out

    with both_tools.run_streams_member(group, tmp_path):
        assert both_tools.run_kdeclare("list", "--type", "streams", "--format", "names") == 0
        assert capsys.readouterr().out.split() == both_tools.list_with_kafkas_tool(STREAMS_TOOL) == [group]
        assert both_tools.run_kdeclare("describe", group) == 0
        assert f"{group}: streams group, Stable\n" in capsys.readouterr().out
        expect_refusals()
    both_tools.bed.eventually(lambda: both_tools.expect_state(group, "Empty"))
    expect_refusals()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_active_group_is_refused_until_its_members_stop(
    both_tools: BothTools, protocol: str, capsys: pytest.CaptureFixture[str]
) -> None:
    group = both_tools.make_group(exists=False)
    reset = ("reset-offsets", "--group", group, "--topic", both_tools.topics["t"], "--to-offset", "6")
    setting = ("--command-property", f"group.protocol={protocol}")
    with both_tools.run_consumer(group, "ConsoleConsumer", *setting):
        assert both_tools.run_kdeclare(*reset, "--yes") == 3
        assert both_tools.run_kdeclare("delete", group, "--yes") == 3
        topic = both_tools.topics["t"]
        assert both_tools.run_kdeclare("delete-offsets", group, "--topic", topic, "--yes") == 3
        refusals = capsys.readouterr().out.count(f"Group '{group}' has members (state Stable)")
        assert refusals == 2 * 3  # each command shows it in the plan and in the result
        theirs = both_tools.run_kafkas_tool(f"--{reset[0]}", *reset[1:], "--execute")
        assert "can only be reset if the group" in theirs.text
        assert both_tools.run_kdeclare("describe", group, "--format", "json") == 0
        (described,) = json.loads(capsys.readouterr().out)["groups"]
        assert described["type"] == protocol
        with closing(connect(both_tools.bootstrap, {})) as cluster:
            rights = cluster.examine_groups()[group]  # without an authorizer, all of them
        assert rights.issuperset({"DESCRIBE", "READ", "DELETE"})
        share = ("--group", group, "--add-config", "share.isolation.level=read_committed")
        assert warns_about_type(both_tools, capsys, *share)
        consumer = ("--group", group, "--add-config", "consumer.session.timeout.ms=50000")
        assert warns_about_type(both_tools, capsys, *consumer) == (protocol == "classic")
        (member,) = described["members"]
        assert member["partitions"] == [f"{both_tools.topics['t']}-{number}" for number in range(3)]
        assert {row["member"] for row in described["offsets"]} == {member["id"]}
    both_tools.bed.eventually(lambda: _expect_inactive(both_tools, group))
    assert both_tools.run_kdeclare(*reset, "--yes", "--quiet") == 0
    assert both_tools.read_offsets(group) == {"t-0": 6, "t-1": 6, "t-2": 6}


def _expect_inactive(both: BothTools, group: str) -> None:
    assert not both.bed.cluster.groups.list_groups()[group].is_active


def warns_about_type(both: BothTools, capsys: pytest.CaptureFixture[str], *options: str) -> bool:
    """Return whether the plan of a config change warns about the type of the group. Nothing changes."""
    capsys.readouterr()
    assert main(["config", "alter", *options, "--bootstrap-server", both.bootstrap]) == 64  # not confirmed
    return "Config does not apply to the type of the group" in capsys.readouterr().out


def test_share_group_is_listed_as_share_group_and_refused(
    both_tools: BothTools, capsys: pytest.CaptureFixture[str]
) -> None:
    group = both_tools.make_group(exists=False)
    with both_tools.run_consumer(group, "ConsoleShareConsumer"):
        assert both_tools.bed.cluster.groups.list_groups()[group].type is GroupType.SHARE
        assert both_tools.run_kdeclare("list", "--type", "share", "--format", "names") == 0
        names = capsys.readouterr().out.split()
        assert sorted(names) == both_tools.list_with_kafkas_tool(SHARE_TOOL)
        assert group in names
        assert both_tools.run_kdeclare("describe", group) == 0
        assert f"{group}: share group, Stable\n" in capsys.readouterr().out
        timeout = ("--group", group, "--add-config", "consumer.session.timeout.ms=50000")
        assert warns_about_type(both_tools, capsys, *timeout)
        level = ("--group", group, "--add-config", "share.isolation.level=read_committed")
        assert not warns_about_type(both_tools, capsys, *level)
        topic = both_tools.topics["t"]
        reset = ("reset-offsets", group, "--topic", topic, "--to-latest", "--yes")
        assert both_tools.run_kdeclare(*reset) == 3
        assert both_tools.run_kdeclare("delete", group, "--yes") == 3
        assert f"Group '{group}' is a share group" in capsys.readouterr().out
