"""Moves of real data on real brokers: no data is lost, throttles work, and runs wait for a lost broker."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.port import Cluster
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.kafka.records import (
    MIB,
    Replicas,
    RunningCommand,
    Tools,
    count_records,
    expect,
    expect_no_changes,
    open_cluster,
    produce,
)
from tests.kafka.test_bad_input import Project
from tests.polling import retry_until_passes

pytestmark = pytest.mark.kafka

RECORDS = 2200
RECORD_BYTES = 100_000
PARTITIONS = 8
RATE_MIB = 15
LOST = 5
"""The broker that is killed: not the controller, and a destination of every partition."""
DESTINATIONS = (4, LOST)
QUOTA_WINDOW_S = 11
"""Kafka's throttle limits the mean over this period (replication.quota.window.num times .size.seconds): after
an idle period, a broker copies at full speed until it reaches that mean. The rate therefore only holds for
shorter periods while records flow."""
IDLE_S = 2.5
TOLERANCE = 1.15
"""Data that a broker has requested when the rate is reached still arrives: 1 MiB per partition. The rest is
noise."""


@pytest.fixture(scope="module")
def cluster(five: SandboxStatus) -> Iterator[Cluster]:
    opened = open_cluster(five.bootstrap)
    yield opened
    opened.close()


@pytest.fixture
def bed(five: SandboxStatus, cluster: Cluster) -> Iterator[KafkaBed]:
    """A client of the cluster; afterwards, no broker is down."""
    made = KafkaBed(cluster, five.bootstrap)
    try:
        yield made
    finally:
        kafka_sandbox.start_broker(five.folder, LOST)
    made.clean()


@pytest.fixture
def project(five: SandboxStatus, tmp_path: Path) -> Project:
    return Project(tmp_path, five.bootstrap)


def declare_move(project: Project, targets: Mapping[TopicPartition, Replicas], **more: str | int) -> None:
    partitions = [{"topic": p.topic, "partition": p.partition, "replicas": r} for p, r in targets.items()]
    project.declare(("Reassignment", "move", {"partitions": partitions, **more}))


@dataclass(frozen=True)
class Sample:
    """The bytes of a topic on each broker that responded, sampled between two points in time."""

    earliest: float
    latest: float
    sizes: Mapping[int, int]


@dataclass
class Sampler:
    """Samples the size of a topic in the brokers' log directories about every second."""

    cluster: Cluster
    topic: str
    samples: list[Sample] = field(default_factory=list)

    def take(self) -> None:
        """Take one sample; a broker that is down is omitted."""
        began = time.monotonic()
        try:
            found = self.cluster.log_dirs([self.topic])
        except Fault:
            return
        sizes = {b: sum(sum(d.sizes.values()) for d in dirs) for b, dirs in found.items()}
        self.samples.append(Sample(began, time.monotonic(), sizes))

    def held(self, broker: int) -> int:
        """Return the bytes of a broker in the last sample."""
        return self.samples[-1].sizes.get(broker, 0) if self.samples else 0

    def known(self, broker: int) -> list[Sample]:
        """Return the samples that include the broker."""
        return [sample for sample in self.samples if broker in sample.sizes]

    def first_stream(self, broker: int) -> list[Sample]:
        """Return the samples until no bytes arrive for some seconds, or the broker is gone."""
        stream: list[Sample] = []
        grew = self.samples[0].latest
        for sample in self.samples:
            held, before = sample.sizes.get(broker), stream[-1].sizes[broker] if stream else 0
            if held is None or (before and sample.earliest - grew > IDLE_S):
                break
            if held > before or not held:
                grew = sample.latest
            stream.append(sample)
        return stream

    def copying_s(self, broker: int) -> float:
        """Return the longest possible time from the first byte to the last."""
        known = self.known(broker)
        most = known[-1].sizes[broker]
        begin = max(sample.earliest for sample in known if sample.sizes[broker] == 0)
        return min(sample.latest for sample in known if sample.sizes[broker] == most) - begin


def find_highest_rate(samples: Sequence[Sample], broker: int, seconds: float) -> float:
    """Return the highest rate in MiB per second in any period of at least this length."""
    return max(
        (
            (two.sizes[broker] - one.sizes[broker]) / (two.latest - one.earliest) / MIB
            for one, two in combinations(samples, 2)
            if two.earliest - one.latest >= seconds
        ),
        default=0,
    )


@contextmanager
def sample_sizes(bootstrap: str, topic: str) -> Iterator[Sampler]:
    """Take samples as long as the block runs, and one at its end."""
    own = open_cluster(bootstrap)
    sampler = Sampler(own, topic)
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            sampler.take()
            stop.wait(1)

    thread = threading.Thread(target=run, daemon=True)
    sampler.take()
    thread.start()
    try:
        yield sampler
    finally:
        stop.set()
        thread.join(30)
        sampler.take()
        own.close()


@pytest.mark.thorough
def test_throttled_move_survives_loss_of_destination(
    five: SandboxStatus, project: Project, bed: KafkaBed
) -> None:
    topic = bed.delete_at_end(project.name("data"))
    here = {n: (1, 2) if n % 2 else (2, 1) for n in range(PARTITIONS)}
    bed.create(here, name=topic)
    produce(five.bootstrap, topic, RECORDS, RECORD_BYTES)
    targets: dict[TopicPartition, Replicas] = {
        TopicPartition(topic, n): DESTINATIONS if n % 2 else DESTINATIONS[::-1] for n in here
    }
    declare_move(project, targets, throttle=f"{RATE_MIB}MiB/s", batchSize=6)

    with sample_sizes(five.bootstrap, topic) as sampler:
        began = time.monotonic()
        process = RunningCommand(project.start("apply", "--yes"))
        retry_until_passes(lambda: expect(process.check_running() and sampler.held(LOST) > 90 * MIB))
        kafka_sandbox.kill_broker(five.folder, LOST)
        killed = time.monotonic()
        # the broker counts as down once its session times out after 9 s, and progress is reported every 10 s
        down = f"broker {LOST}, which is down"
        retry_until_passes(lambda: expect(process.check_running() and down in "".join(process.lines)))
        named = time.monotonic()
        while time.monotonic() - killed < 10:
            time.sleep(0.1)
        kafka_sandbox.start_broker(five.folder, LOST)
        back = time.monotonic()
        ran = process.wait_for_exit()
        took = time.monotonic() - began
    assert ran.code is ExitCode.OK, ran
    print(f"killed after {killed - began:.1f} s, named after {named - killed:.1f} s more")
    print(f"back after {back - killed:.1f} s; {took:.1f} s in all")
    print(ran.err)

    seen = Tools(five.bootstrap).wait_for_rest()
    assert {p: seen.replicas[p] for p in targets} == targets
    expect_no_changes(project)
    found = count_records(five.bootstrap, topic, RECORD_BYTES)
    assert found.keys() == set(range(RECORDS))
    assert set(found.values()) == {1}, "each record exists exactly once"

    for broker in DESTINATIONS:
        held, lasted = sampler.held(broker), sampler.copying_s(broker)
        in_stream = find_highest_rate(sampler.first_stream(broker), broker, 5)
        over_all = find_highest_rate(sampler.known(broker), broker, QUOTA_WINDOW_S)
        print(
            f"broker {broker}: {held / MIB:.0f} MiB in {lasted:.1f} s; at most {in_stream:.1f} MiB/s over 5 s"
            f" of the first batch, {over_all:.1f} MiB/s over {QUOTA_WINDOW_S} s of everything"
        )
        zero = sampler.samples[0].earliest
        print([(round(x.latest - zero, 1), round(x.sizes.get(broker, -MIB) / MIB)) for x in sampler.samples])
        assert held > RECORDS * RECORD_BYTES
        assert lasted >= held / MIB / RATE_MIB * 0.9
        assert 0 < in_stream <= RATE_MIB * TOLERANCE
        assert 0 < over_all <= RATE_MIB * TOLERANCE


@pytest.mark.thorough
def test_move_to_down_broker_times_out_and_is_cleaned_up_later(
    five: SandboxStatus, project: Project, bed: KafkaBed
) -> None:
    topic = bed.create({0: (1, 2)}, name=bed.delete_at_end(project.name("late")))
    bed.produce(topic, 20, 50_000)
    at = TopicPartition(topic, 0)
    declare_move(project, {at: (1, LOST)}, throttle="10MiB/s", timeout="5s")
    kafka_sandbox.kill_broker(five.folder, LOST)
    retry_until_passes(lambda: expect(any(b.id == LOST and b.fenced for b in bed.cluster.describe().brokers)))
    began = time.monotonic()
    ran = project("apply", "--yes")
    took = time.monotonic() - began
    assert ran.code is ExitCode.PARTIAL, ran
    assert f"Still moving after 5 s: {at} waits for broker {LOST} (down)." in ran.out, ran
    assert 5 <= took < 300
    still = project.done("status")
    assert f"{at}" in still.out
    assert f"broker {LOST} (down)" in still.out
    kafka_sandbox.start_broker(five.folder, LOST)
    watched = project.done("status", "--watch")
    assert "Idle." in watched.out, watched
    seen = Tools(five.bootstrap).wait_for_rest()
    assert seen.replicas[at] == (1, LOST)
    expect_no_changes(project)
    again = project.done("apply", "--yes")
    assert "No changes." in again.out
