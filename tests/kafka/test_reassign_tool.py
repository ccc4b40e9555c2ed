"""`kdeclare reassign` and Kafka's own tool on real brokers: each uses the files of the other."""

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.commands.reassign.assignments_file import (
    PartitionAssignment,
    dump_assignments,
    parse_assignments,
)
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.sandbox import SandboxSettings, SandboxStatus
from tests.beds import KafkaBed, broker_resource, topic_resource
from tests.commands import run_here
from tests.conftest import free_port
from tests.kafka.java import KafkaTools

pytestmark = pytest.mark.kafka

KAFKAS = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
MUCH = "--num-records", "4000", "--record-size", "50000", "--throughput", "-1"
"""200 MB: a throttle allows a first fetch of 1 MiB per partition, and a busy broker applies it late."""
EVENLY = "--producer-props", "partitioner.adaptive.partitioning.enable=false"
"""By default, a producer sends fewer records to a partition whose broker is slow."""
Ids = tuple[int, ...]


@dataclass(frozen=True)
class BothTools:
    """A folder, one topic with two partitions, and the two tools on the same brokers."""

    kafkas: KafkaTools
    bed: KafkaBed
    bootstrap: str
    folder: Path
    topic: str

    def run_kdeclare(self, action: str, file: str = "", *options: str, code: int = 0) -> str:
        """Return the output of `kdeclare reassign`; check its exit code."""
        ran = run_here(self.folder, "reassign", *self._line(action, file), *options, "--yes")
        assert ran.code == code, ran
        return ran.out

    def run_kafkas_tool(self, action: str, file: str = "", *options: str) -> str:
        """Return the output of Kafka's tool; check that it succeeded."""
        ran = self.kafkas(KAFKAS, *self._line(action, file), *options)
        assert ran.code == 0, ran.text
        return ran.text

    def undo(self) -> None:
        """Run `kdeclare rollback`."""
        ran = run_here(self.folder, "rollback", "--yes", "--bootstrap-server", self.bootstrap)
        assert ran.code == 0, ran

    def _line(self, action: str, file: str) -> list[str]:
        line = ["--bootstrap-server", self.bootstrap, f"--{action}"]
        if file:
            option = "topics-to-move-json-file" if action == "generate" else "reassignment-json-file"
            line += [f"--{option}", str(self.folder / file)]
        return line

    def write(self, file: str, text: str) -> str:
        """Write a file for the tools."""
        (self.folder / file).write_text(text)
        return file

    def fill(self) -> None:
        """Write more data than moves copy at once, with Kafka's producer, which is fast."""
        where = ("--topic", self.topic, "--bootstrap-server", self.bootstrap)
        ran = self.kafkas("org.apache.kafka.tools.ProducerPerformance", *where, *MUCH, *EVENLY)
        assert ran.code == 0, ran.text

    def write_moves(self, file: str, *targets: Ids) -> str:
        """Build the target assignments."""
        found = [PartitionAssignment(TopicPartition(self.topic, n), ids) for n, ids in enumerate(targets)]
        return self.write(file, dump_assignments(found))

    def save_output(self, file: str, out: str) -> str:
        """Return the last file in the output of a tool."""
        return self.write(file, [line for line in out.splitlines() if line.startswith("{")][-1])

    def parse_targets(self, file: str) -> list[Ids]:
        """Parse the assignments of a file."""
        return [a.replicas for a in parse_assignments((self.folder / file).read_text(), file)]

    def expect(self, *targets: Ids) -> None:
        """Wait until the moves have finished, and check the replicas."""

        def there() -> None:
            assert not self.bed.cluster.moves([self.topic])
            found = [p.replicas for p in self.bed.topic(self.topic).partitions]
            assert found == list(targets)

        self.bed.eventually(there)

    def describe_replicas(self) -> list[str]:
        """Return the replicas as described by Kafka's own tool."""
        ran = self.kafkas(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", self.bootstrap, "--describe", "--topic", self.topic),
        )
        return re.findall(r"Replicas: ([\d,]+)", ran.text)

    def read_throttles(self) -> tuple[set[str | None], dict[str, str | None]]:
        """Return the rates of all brokers, and the lists of the topic."""
        rates = {
            self.bed.overrides(broker_resource(broker)).get(key)
            for broker in self.bed.brokers
            for key in throttles.RATE_KEYS
        }
        return rates, self.bed.overrides(topic_resource(self.topic))

    def is_completed(self, out: str) -> bool:
        """Whether a tool reports that all moves are complete."""
        return out.startswith(
            "Status of partition reassignment:\n"
            f"Reassignment of partition {self.topic}-0 is completed.\n"
            f"Reassignment of partition {self.topic}-1 is completed.\n"
        )


@pytest.fixture
def both_tools(sandbox: SandboxStatus, tools: KafkaTools, tmp_path: Path) -> Iterator[BothTools]:
    """Create the topic on brokers 1 and 2."""
    cluster = connect(sandbox.bootstrap, {})
    bed = KafkaBed(cluster, sandbox.bootstrap)
    topic = bed.create({0: (1, 2), 1: (2, 1)}, name=bed.delete_at_end(f"reassign-{uuid.uuid4().hex[:8]}"))
    try:
        yield BothTools(tools, bed, sandbox.bootstrap, tmp_path, topic)
        bed.clean()
    finally:
        cluster.close()


def test_kafkas_tool_accepts_files_of_kdeclare(both_tools: BothTools) -> None:
    topics = both_tools.write(
        "topics.json", f'{{"topics": [{{"topic": "{both_tools.topic}"}}], "version": 1}}'
    )
    proposed = both_tools.save_output(
        "proposed.json", both_tools.run_kdeclare("generate", topics, "--broker-list", "2,3")
    )
    assert both_tools.run_kafkas_tool("execute", proposed).endswith(
        f"Successfully started partition reassignments for {both_tools.topic}-0,{both_tools.topic}-1\n"
    )
    both_tools.expect(*both_tools.parse_targets(proposed))
    assert both_tools.is_completed(both_tools.run_kdeclare("verify", proposed))

    back = both_tools.write_moves("back.json", (1, 2), (2, 1))
    undo = both_tools.save_output("undo.json", both_tools.run_kdeclare("execute", back))
    both_tools.expect((1, 2), (2, 1))
    assert both_tools.parse_targets(undo) == both_tools.parse_targets(proposed)
    both_tools.run_kafkas_tool("execute", undo)
    both_tools.expect(*both_tools.parse_targets(proposed))


def test_kdeclare_accepts_files_of_kafkas_tool(both_tools: BothTools) -> None:
    topics = both_tools.write(
        "topics.json", f'{{"topics": [{{"topic": "{both_tools.topic}"}}], "version": 1}}'
    )
    proposed = both_tools.save_output(
        "proposed.json", both_tools.run_kafkas_tool("generate", topics, "--broker-list", "2,3")
    )
    both_tools.run_kdeclare("execute", proposed)
    both_tools.expect(*both_tools.parse_targets(proposed))
    assert both_tools.is_completed(both_tools.run_kafkas_tool("verify", proposed))

    back = both_tools.write_moves("back.json", (1, 2), (2, 1))
    undo = both_tools.save_output("undo.json", both_tools.run_kafkas_tool("execute", back))
    both_tools.expect((1, 2), (2, 1))
    assert "started moving log directory" in both_tools.run_kdeclare("execute", undo)
    both_tools.expect(*both_tools.parse_targets(proposed))


def test_throttled_move_is_executed_verified_and_unthrottled(both_tools: BothTools) -> None:
    both_tools.fill()
    there = both_tools.write_moves("there.json", (1, 3), (2, 3))
    out = both_tools.run_kdeclare("execute", there, "--throttle", "1000")
    assert "The inter-broker throttle limit was set to 1000 B/s\n" in out
    undo = both_tools.save_output("undo.json", out)
    assert f"{both_tools.topic}-0: replicas: 1,3,2. adding: 3. removing: 2.\n" in both_tools.run_kdeclare(
        "list"
    )
    still = both_tools.run_kdeclare("verify", there)
    assert still == both_tools.run_kafkas_tool("verify", there)
    assert f"Reassignment of partition {both_tools.topic}-1 is still in progress.\n" in still
    lists = {throttles.LEADER_REPLICAS_KEY: "0:1,0:2,1:2,1:1", throttles.FOLLOWER_REPLICAS_KEY: "0:3,1:3"}
    assert both_tools.read_throttles() == ({"1000"}, lists)

    both_tools.run_kdeclare("execute", there, code=3)
    out = both_tools.run_kdeclare("execute", there, "--additional", "--throttle", "50000000")
    assert both_tools.parse_targets(both_tools.save_output("undo-2.json", out)) == both_tools.parse_targets(
        undo
    )
    assert both_tools.read_throttles() == ({"50000000"}, lists)
    both_tools.expect((1, 3), (2, 3))
    kept = both_tools.run_kdeclare("verify", there, "--preserve-throttles")
    assert both_tools.is_completed(kept)
    assert "Clearing" not in kept
    assert both_tools.read_throttles() == ({"50000000"}, lists)
    cleared = both_tools.run_kdeclare("verify", there)
    assert cleared == (
        f"{kept}Clearing broker-level throttles on brokers 1,2,3\n"
        f"Clearing topic-level throttles on topic {both_tools.topic}\n"
    )
    assert both_tools.read_throttles() == ({None}, {})


@pytest.mark.thorough
def test_cancel_restores_replicas(both_tools: BothTools) -> None:
    both_tools.fill()
    there = both_tools.write_moves("there.json", (1, 3), (2, 3))
    both_tools.run_kdeclare("execute", there, "--throttle", "1000")
    names = f"{both_tools.topic}-0,{both_tools.topic}-1"
    out = both_tools.run_kdeclare("cancel", there, "--preserve-throttles")
    assert out.startswith(f"Successfully cancelled partition reassignments for: {names}\n")
    both_tools.expect((1, 2), (2, 1))
    assert both_tools.read_throttles()[0] == {"1000"}
    out = both_tools.run_kdeclare("cancel", there)
    assert out.startswith("None of the specified partition reassignments are active.\n")
    assert both_tools.read_throttles() == ({None}, {})
    assert both_tools.describe_replicas() == ["1,2", "2,1"]


def test_disallowed_factor_change_moves_only_other_partitions(both_tools: BothTools) -> None:
    mixed = both_tools.write_moves("mixed.json", (1, 2, 3), (2, 3))
    out = both_tools.run_kdeclare("execute", mixed, "--disallow-replication-factor-change", code=3)
    assert out.endswith(f"Successfully started partition reassignment for {both_tools.topic}-1\n")
    both_tools.expect((1, 2), (2, 3))
    both_tools.undo()
    both_tools.expect((1, 2), (2, 1))
    both_tools.run_kdeclare("execute", mixed)
    both_tools.expect((1, 2, 3), (2, 3))


@pytest.fixture(scope="module")
def two_dirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxStatus]:
    """Two brokers with two log directories each."""
    settings = SandboxSettings(tmp_path_factory.mktemp("dirs"), 2, 1, free_port(2), log_dirs=2)
    try:
        yield kafka_sandbox.start(settings, print)
    finally:
        kafka_sandbox.reset(settings.folder)


@pytest.mark.thorough
def test_replicas_move_between_log_directories(
    two_dirs: SandboxStatus, tools: KafkaTools, tmp_path: Path
) -> None:
    cluster = connect(two_dirs.bootstrap, {})
    bed = KafkaBed(cluster, two_dirs.bootstrap)
    both = BothTools(tools, bed, two_dirs.bootstrap, tmp_path, bed.create({0: (1,)}, name="relocated"))
    both.fill()
    paths = {broker: [d.path for d in found] for broker, found in cluster.log_dirs([]).items()}
    held = next(d.path for d in cluster.log_dirs([both.topic])[1] if d.sizes)
    (other,) = set(paths[1]) - {held}
    there = both.write(
        "there.json",
        dump_assignments([PartitionAssignment(TopicPartition(both.topic, 0), (1, 2), (other, paths[2][1]))]),
    )

    out = both.run_kdeclare("execute", there, "--replica-alter-log-dirs-throttle", "1000")
    undo = both.save_output("undo.json", out)
    assert "The replica-alter-dir throttle limit was set to 1000 B/s\n" in out
    assert f"moving log directory to {other} for replica relocated-0 with broker 1 \n" in out
    assert f"moving log directory to {paths[2][1]} for replica relocated-0 with broker 2 \n" in out
    both.expect((1, 2))
    still = both.run_kdeclare("verify", there)
    assert still == both.run_kafkas_tool("verify", there)
    assert "Reassignment of replica relocated-0-1 is still in progress.\n" in still
    assert "Reassignment of replica relocated-0-2 completed successfully.\n" in still
    assert bed.overrides(broker_resource(1)).get(throttles.LOG_DIRS_RATE_KEY) == "1000"

    both.run_kdeclare("execute", there, "--replica-alter-log-dirs-throttle", "100000000")

    def arrived() -> None:
        found = cluster.log_dirs([both.topic]).values()
        assert not any(log_dir.arriving for log_dirs in found for log_dir in log_dirs)

    bed.eventually(arrived)
    assert both.run_kdeclare("verify", there).count("completed successfully.") == 2
    assert throttles.LOG_DIRS_RATE_KEY not in bed.overrides(broker_resource(1))

    both.run_kafkas_tool("execute", undo)
    both.expect((1,))
    bed.eventually(arrived)
    both.run_kdeclare("execute", there, "--replica-alter-log-dirs-throttle", "1000")
    out = both.run_kdeclare("cancel", there)
    assert f"moving log directory to {held} for replica relocated-0 with broker 1 \n" in out
    assert throttles.LOG_DIRS_RATE_KEY not in bed.overrides(broker_resource(1))
    cluster.close()
