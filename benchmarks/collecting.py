"""``python -m benchmarks.collecting``: read whole clusters, one after another and concurrently."""

import argparse
import json
import multiprocessing
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.clusters import Bench
from benchmarks.topics import BATCH, configs, names
from kdeclare.core.parts import Connections
from kdeclare.fleet.tables.row_builder import batch_rows, read_live_rows
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.sandbox import GroupSettings, is_free, reset_group, start_group

HEAP = "-Xms512m -Xmx1024m"
"""The JVM heap of one broker (see `benchmarks.clusters.HEAP`)."""

_ONE_S = 4.0
_AT_ONCE = 1.8
_TIMEOUT_S = 60.0
_SEEN_S = 300.0


@dataclass(frozen=True, slots=True)
class Round:
    """The times of one round, in seconds.

    each: the time for each cluster alone.
    together: the time until all clusters have been read concurrently.
    """

    each: Sequence[float]
    together: float

    @property
    def gain(self) -> float:
        """How many times faster concurrent reading is."""
        return sum(self.each) / self.together


@contextmanager
def clusters(count: int, topics: int) -> Iterator[Sequence[str]]:
    """Yield the addresses of temporary clusters, each with one broker and ``topics`` topics."""
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as folder:
        settings = GroupSettings(Path(folder) / "sandbox", count, 1, 1, _free_port(count))
        try:
            status = start_group(settings, lambda _: None)
            addresses = [cluster.bootstrap for cluster in status.clusters]
            for address in addresses:
                _create(address, topics)
            Bench("", tuple(broker.pid for broker in status.brokers if broker.pid is not None)).settle()
            yield addresses
        finally:
            reset_group(settings)


def measured(addresses: Sequence[str], topics: int, rounds: int) -> list[Round]:
    """Read the clusters from running processes, like Spark's workers after their first task."""
    spawned = multiprocessing.get_context("spawn")
    done = []
    with ExitStack() as stack:
        pools = [stack.enter_context(ProcessPoolExecutor(1, spawned)) for _ in addresses]

        def begin(at: int) -> Future[float]:
            return pools[at].submit(_collect, addresses[at], topics)

        every = range(len(addresses))
        for at in every:
            begin(at).result()  # warm up imports and brokers
        for _ in range(rounds):
            each = [begin(at).result() for at in every]
            begun = time.perf_counter()
            for running in [begin(at) for at in every]:
                running.result()
            done.append(Round(each, time.perf_counter() - begun))
    return done


def _collect(address: str, topics: int) -> float:
    """Connect to a cluster, read it, encode it as Arrow, check the number of rows, and return the seconds."""
    begun = time.perf_counter()
    with closing(connect(address, {}, timeout_s=_TIMEOUT_S)) as cluster:
        rows = read_live_rows(Connections(KafkaConnection(cluster)), address, {}, datetime.now(UTC))
        read = sum(batch.num_rows for batch in batch_rows(rows))
    taken = time.perf_counter() - begun
    if read < topics:
        raise RuntimeError(f"{address} has {topics} topics, but only {read} rows were read")
    return taken


def _create(address: str, topics: int) -> None:
    made = [
        NewTopic(name, 1, 1, None, configs(number) | {"min.insync.replicas": "1"})
        for number, name in enumerate(names("topic", topics))
    ]
    with closing(connect(address, {}, timeout_s=_TIMEOUT_S)) as cluster:
        for at in range(0, topics, BATCH):
            for name, fault in cluster.create_topics(made[at : at + BATCH]).items():
                if fault is not None:
                    raise RuntimeError(f"{name}: {fault}")
        limit = time.monotonic() + _SEEN_S
        # The controller has created the topics, but a slow broker shows the topics later.
        while len(cluster.topics()) < topics:
            if time.monotonic() > limit:
                raise RuntimeError(f"{address} does not show its {topics} topics")
            time.sleep(1)


def _free_port(count: int) -> int:
    while True:
        settings = GroupSettings(Path("sandbox"), count, 1, 1, random.randrange(20_000, 30_000, 10))
        if all(is_free(port) for member in settings.members for port in member.ports(1)):
            return settings.port


def main() -> None:
    """Measure and print. Exit with code 1 if a figure misses its target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.collecting", description=__doc__)
    parser.add_argument("--clusters", type=int, default=2, metavar="N")
    parser.add_argument("--topics", type=int, default=5000, metavar="N", help="topics per cluster")
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="number of rounds; figures are medians"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args()
    os.environ.setdefault("KAFKA_HEAP_OPTS", HEAP)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stop the brokers, too
    busy = os.getloadavg()[0]
    with clusters(options.clusters, options.topics) as addresses:
        rounds = measured(addresses, options.topics, options.rounds)
    one = statistics.median(seconds for each in rounds for seconds in each.each)
    together = statistics.median(each.together for each in rounds)
    gain = statistics.median(each.gain for each in rounds)
    print(f"{os.cpu_count()} cores, medians of {options.rounds}; load before {busy:.1f}\n")
    print("| topics per cluster | one cluster s | clusters | concurrently s | speedup |")
    print("|---:|---:|---:|---:|---:|")
    print(f"| {options.topics:,} | {one:.2f} | {options.clusters} | {together:.2f} | {gain:.2f} |")
    if options.json is not None:
        content = {"topics": options.topics, "load_before": busy, "rounds": [asdict(each) for each in rounds]}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
    sys.exit(0 if one <= _ONE_S and gain >= _AT_ONCE else 1)


if __name__ == "__main__":
    main()
