"""Reads show the replicas from before or after a reassignment, but never the union of both."""

import random
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from kdeclare.providers.kafka.collector import KafkaSelection, observe
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.port import Cluster
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.kafka.records import open_cluster

pytestmark = pytest.mark.kafka

TOPICS = 8
READS = 150
PAUSE_S = 0.2
"""Moves of empty topics take about 0.1 s. Many reads then fall into the moments in which moves end."""


class Mover(threading.Thread):
    """Another client that moves random partitions that are not being moved yet, until it is stopped."""

    def __init__(self, cluster: Cluster, topics: list[str]) -> None:
        super().__init__(daemon=True)
        self.cluster = cluster
        self.partitions = [TopicPartition(name, index) for name in topics for index in (0, 1)]
        self.moves = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        chance = random.Random(0)
        while not self.stopped.wait(chance.uniform(0, PAUSE_S)):
            ongoing = self.cluster.moves()
            free = [partition for partition in self.partitions if partition not in ongoing]
            targets = {p: tuple(chance.sample((1, 2, 3), 2)) for p in chance.sample(free, len(free) // 2)}
            results = self.cluster.reassign(targets, allow_replication_factor_change=False)
            assert all(result is None for result in results.values()), results
            self.moves += len(targets)


@pytest.fixture
def bed(sandbox: SandboxStatus) -> Iterator[KafkaBed]:
    made = KafkaBed(open_cluster(sandbox.bootstrap), sandbox.bootstrap)
    yield made
    made.clean()
    made.cluster.close()


@pytest.mark.thorough
def test_reads_never_show_union_of_replicas(bed: KafkaBed, sandbox: SandboxStatus) -> None:
    topics = [bed.create({0: (1, 2), 1: (2, 3)}) for _ in range(TOPICS)]
    mover = Mover(bed.cluster, topics)
    mover.start()
    sizes: list[int] = []
    try:
        for _ in range(READS):
            with closing(open_cluster(sandbox.bootstrap)) as cluster:
                for _ in range(2):
                    live = observe(cluster, KafkaSelection(frozenset(topics)))
                    sizes += [len(live.replicas(partition) or ()) for partition in mover.partitions]
    finally:
        mover.stopped.set()
        mover.join(60)
    assert not mover.is_alive()
    assert mover.moves > READS, "too few moves to show anything"
    assert set(sizes) == {2}, f"{sizes.count(3)} of {len(sizes)} partitions were shown with 3 replicas"
