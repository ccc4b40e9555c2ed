"""What tests of moves have in common: Kafka's own tools, and records that prove themselves."""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.exit_codes import ExitCode
from kdeclare.java import find_java
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.port import Cluster
from tests.commands import Ran
from tests.kafka.test_bad_input import Project
from tests.polling import retry_until_passes
from tests.startup_cache import BROKER, archive_options

TOPICS = "org.apache.kafka.tools.TopicCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
CONFIGS = "kafka.admin.ConfigCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"

MIB = 1024 * 1024
TOOL_TIMEOUT_S = 180

Replicas = tuple[int, ...]
Throttles = dict[str, dict[str, str]]
"""Overrides that throttle, by ``topic x`` or ``broker 1``, letter by letter as Kafka's tool shows them."""

_CONFIG = re.compile(r"  (\S+?)=(.*?) sensitive=(?:true|false) synonyms=.*")
_PARTITION = re.compile(r"Partition: (\d+)\tLeader: (\w+)\tReplicas: ([\d,]*)\tIsr: ([\d,]*)")


# Kafka's own tools


@dataclass(frozen=True)
class DescribedPartition:
    """One partition in the words of TopicCommand."""

    leader: int | None
    replicas: Replicas
    isr: frozenset[int]

    @property
    def in_order(self) -> bool:
        """Whether all replicas are in sync and the preferred one leads."""
        return self.isr == set(self.replicas) and self.leader == self.replicas[0]


@dataclass(frozen=True)
class ClusterView:
    """What Kafka's own tools show of a whole cluster."""

    partitions: Mapping[TopicPartition, DescribedPartition]
    moves: str
    throttled_topics: str
    throttled_brokers: Throttles

    @property
    def replicas(self) -> dict[TopicPartition, Replicas]:
        """The ordered replicas of every partition."""
        return {p: d.replicas for p, d in self.partitions.items()}

    def expect_rest(self) -> None:
        """Nothing moves, nothing is throttled, all replicas are in sync, and the preferred ones lead."""
        assert self.moves == "No partition reassignments found."
        assert (self.throttled_topics, self.throttled_brokers) == ("", {})
        assert {p: d for p, d in self.partitions.items() if not d.in_order} == {}


@dataclass(frozen=True)
class Tools:
    """Kafka's own command-line tools at one cluster."""

    bootstrap: str

    def run(self, main_class: str, *arguments: str) -> str:
        """Its stdout; it must succeed."""
        command = [*_build_java_command(), main_class, "--bootstrap-server", self.bootstrap, *arguments]
        done = subprocess.run(
            command, env=_build_environ(), capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def describe(self) -> ClusterView:
        """Describe everything, side by side, as starting Java is what takes the time."""
        with ThreadPoolExecutor(3) as pool:
            topics = pool.submit(self.run, TOPICS, "--describe")
            moves = pool.submit(self.run, REASSIGN, "--list")
            brokers = pool.submit(self.run, CONFIGS, "--describe", "--entity-type", "brokers")
            throttled = "".join(f"{line}\n" for line in topics.result().splitlines() if "throttled" in line)
            return ClusterView(
                _parse_partitions(topics.result()),
                moves.result().strip(),
                throttled,
                _parse_throttles(brokers.result()),
            )

    def wait_for_rest(self) -> ClusterView:
        """The same, once nothing moves, nothing is throttled and leaders are the preferred ones."""
        found: list[ClusterView] = []

        def check() -> None:
            found.append(self.describe())
            found[-1].expect_rest()

        retry_until_passes(check)
        return found[-1]

    def throttles(self) -> Throttles:
        """What throttles on topics and brokers."""
        with ThreadPoolExecutor(2) as pool:
            kinds = ("topics", "brokers")
            texts = pool.map(lambda k: self.run(CONFIGS, "--describe", "--entity-type", k), kinds)
            return _parse_throttles("".join(texts))

    def verify(self, folder: Path, wanted: Mapping[TopicPartition, Replicas]) -> str:
        """What --verify says about these replicas; without taking any throttle away, as it would."""
        file = write_reassignment_file(folder / "verify.json", wanted)
        return self.run(REASSIGN, "--verify", "--preserve-throttles", "--reassignment-json-file", file)


def write_reassignment_file(file: Path, wanted: Mapping[TopicPartition, Replicas]) -> str:
    """A file as ReassignPartitionsCommand takes it; its name."""
    entries = (
        f'{{"topic": "{p.topic}", "partition": {p.partition}, "replicas": {list(replicas)}}}'
        for p, replicas in wanted.items()
    )
    file.write_text(f'{{"version": 1, "partitions": [{", ".join(entries)}]}}')
    return str(file)


@cache
def _build_java_command() -> tuple[str, ...]:
    logging = Path(kafka_sandbox.__file__).with_name("log4j2-tool.properties").as_uri()
    fast = (
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        "-Xmx256m",
        *archive_options(BROKER),
    )
    return (find_java(), *fast, f"-Dlog4j2.configurationFile={logging}")


@cache
def _build_environ() -> dict[str, str]:
    return {**os.environ, "CLASSPATH": kafka_sandbox.resolve_kafka_classpath()}


def _parse_partitions(text: str) -> dict[TopicPartition, DescribedPartition]:
    found: dict[TopicPartition, DescribedPartition] = {}
    for line in text.splitlines():
        topic, match = line.strip().partition("\t")[0].removeprefix("Topic: "), _PARTITION.search(line)
        if match:
            number, leader, replicas, isr = match.groups()
            found[TopicPartition(topic.strip(), int(number))] = DescribedPartition(
                int(leader) if leader.isdigit() else None, _parse_ids(replicas), frozenset(_parse_ids(isr))
            )
    return found


def _parse_ids(text: str) -> Replicas:
    return tuple(int(part) for part in text.split(",") if part)


def _parse_throttles(text: str) -> Throttles:
    """All that has to do with throttles, empty overrides as well."""
    found: Throttles = {}
    entity = ""
    for line in text.splitlines():
        if line.startswith(("Dynamic configs for ", "Default configs for ")):
            entity = line.removeprefix("Dynamic configs for ").removesuffix(" are:")
        elif (match := _CONFIG.fullmatch(line)) and ("throttled" in match[1] or "max.bytes" in match[1]):
            found.setdefault(entity, {})[match[1]] = match[2]
    return found


# records


def build_content(index: int, size: int) -> bytes:
    """The content of a record: printable, not to be compressed, and like no other's."""
    return hashlib.shake_128(b"%d" % index).hexdigest(size // 2).encode()


def produce(bootstrap: str, topic: str, count: int, size: int = 100_000) -> None:
    """Put records 0 to ``count`` into a topic, exactly once each, acknowledged by all replicas in sync.

    By Kafka's own producer: kafka-python computes checksums in Python, five times as slowly.
    """
    command = [*_build_java_command(), PRODUCER, "--bootstrap-server", bootstrap, "--topic", topic]
    command += ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    command += ["--batch-size", str(MIB), "--max-memory-bytes", str(64 * MIB), "--max-block-ms", "120000"]
    with subprocess.Popen(
        command, env=_build_environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        overdue = threading.Timer(TOOL_TIMEOUT_S, process.kill)
        overdue.start()
        try:
            for index in range(count):
                process.stdin.write(b"%d:%s\n" % (index, build_content(index, size)))
            process.stdin.close()
            said = process.stdout.read()
            assert (process.wait(), said) == (0, b"")
        finally:
            overdue.cancel()
            process.kill()


def count_records(bootstrap: str, topic: str, size: int = 100_000, seconds: float = 180) -> Counter[int]:
    """How often each record is there; every one must have the content that goes with its key."""
    import kafka

    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        check_crcs=False,  # in Python, slowly; the content is compared here
        max_partition_fetch_bytes=8 * MIB,
        fetch_max_bytes=64 * MIB,
        enable_auto_commit=False,
        group_id=None,
    )
    try:
        partitions = [kafka.TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        left = sum(consumer.end_offsets(partitions).values())
        found: Counter[int] = Counter()
        deadline = time.monotonic() + seconds
        while left > 0:
            assert time.monotonic() < deadline, f"{left} records of {topic} do not come"
            for records in consumer.poll(timeout_ms=1000).values():
                for record in records:
                    index = int(record.key)
                    assert record.value == build_content(index, size), f"record {index} has another content"
                    found[index] += 1
                left -= len(records)
        return found
    finally:
        consumer.close()


# kdeclare, with people around it

_HELD_BACK = """
import time
from pathlib import Path
from kdeclare.providers.kafka.client import KafkaCluster

send = KafkaCluster.reassign

def reassign(*arguments, **more):
    Path("asks").touch()
    while not Path("may").exists():
        time.sleep(0.02)
    return send(*arguments, **more)

KafkaCluster.reassign = reassign
from kdeclare.cli.main import run
run()
"""


@contextmanager
def hold_before_reassign(project: Project, *arguments: str) -> Iterator["RunningCommand"]:
    """kdeclare, held right before it asks for moves for as long as the block lasts."""
    for file in ("asks", "may"):
        (project.folder / file).unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", _HELD_BACK, *arguments],
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    heard = RunningCommand(process)
    try:
        retry_until_passes(lambda: expect((project.folder / "asks").exists() and process.poll() is None))
        yield heard
        (project.folder / "may").touch()
    except BaseException:
        process.kill()
        raise


def expect(holds: object) -> None:
    """For `retry_until_passes`."""
    assert holds


def set_pace(project: Project, **reassignments: str | int) -> None:
    """From now on the project file says how moves are gone about that say nothing else."""
    file = project.folder / "kdeclare.yaml"
    document = json.loads(file.read_text())
    document["spec"]["reassignments"] = reassignments
    file.write_text(json.dumps(document))


def expect_no_changes(project: Project) -> Ran:
    """The next plan has nothing to do, and says so."""
    ran = project("plan", "--detailed-exitcode")
    assert ran.code == 0, ran
    assert ran.out.startswith("No changes."), ran
    return ran


@dataclass
class RunningCommand:
    """A process whose stderr is read as it comes; ``lines`` grows."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._out: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stderr, self.lines), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stdout, self._out), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Iterable[str] | None, into: list[str]) -> None:
        for line in stream or ():
            into.append(line.rstrip("\n"))

    def check_running(self) -> bool:
        """True; what ends too early is shown at once."""
        if self.process.poll() is not None:
            raise RuntimeError(f"it has ended: {self.wait_for_exit()}")
        return True

    def wait_for_exit(self, seconds: float = 300) -> Ran:
        """Wait for it."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"it does not end: {self.lines} {self._out}") from None
        for reader in self._readers:
            reader.join(60)
        said = "\n".join(self.lines)
        assert "Traceback" not in said, said
        return Ran(ExitCode(code), "\n".join(self._out), said)


def open_cluster(bootstrap: str) -> Cluster:
    """Another client of the same cluster."""
    return connect(bootstrap, {})
