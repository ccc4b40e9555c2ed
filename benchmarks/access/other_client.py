"""Two other clients of the same broker: ``other_client BOOTSTRAP FILE``.

One sends a record every 20 ms on average, and waits for its acknowledgement. The other changes a topic config
every 100 ms. The broker forwards this change to the controller, which also handles changes to ACLs. Appends
to FILE one line per request: the client, the time and the latency in seconds.
"""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaProducer
from kafka.admin import ConfigResource, NewTopic

from benchmarks.access.raw import connect, get_connection
from benchmarks.clusters import Bench

PRODUCE, ALTER = "produce", "alter"
IDLE_S = 15.0
"""How long the clients run before a measurement, in seconds.

During this time, the JVM of the broker compiles the code that handles requests.
"""

_TOPIC = "topic-of-another-client"
_INTERVALS_S = {PRODUCE: 0.02, ALTER: 0.1}


@dataclass(frozen=True, slots=True)
class Latency:
    """The latencies of one client in one period, in milliseconds."""

    count: int
    p50: float
    p99: float


def read_latencies(file: Path, periods: Iterable[tuple[float, float]]) -> dict[str, Latency]:
    """Return the latencies of the requests that began in one of the periods (seconds since the epoch)."""
    spans = list(periods)
    latencies: dict[str, list[float]] = {PRODUCE: [], ALTER: []}
    *lines, _ = file.read_text().split("\n")  # the last line may be incomplete
    for line in lines:
        client, at, latency = line.split()
        if any(begin <= float(at) < end for begin, end in spans):
            latencies[client].append(1000 * float(latency))
    return {client: _summarize(sorted(values)) for client, values in latencies.items()}


@contextmanager
def run_other_clients(bench: Bench, file: Path, env: Mapping[str, str]) -> Iterator[Path]:
    """Run the other clients until the ``with`` block ends, and yield the file with their latencies."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.access.other_client", bench.bootstrap, str(file)], env=env
    )
    try:
        time.sleep(IDLE_S)
        yield file
        assert process.poll() is None, "the other clients failed"
    finally:
        process.terminate()
        process.wait()


def _summarize(latencies: Sequence[float]) -> Latency:
    if not latencies:
        return Latency(0, 0.0, 0.0)
    return Latency(len(latencies), latencies[len(latencies) // 2], latencies[int(len(latencies) * 0.99)])


def main(bootstrap: str, file: str) -> None:
    """Send requests until the process is terminated, and append the latencies to ``file``."""
    client = connect(bootstrap)
    client.create_topics([NewTopic(_TOPIC, 1, 1)])
    producer = KafkaProducer(**get_connection(bootstrap))

    def produce() -> None:
        producer.send(_TOPIC, b"record").get(60)

    def alter() -> None:
        configs = {"retention.ms": str(random.randrange(1_000_000, 2_000_000))}
        client.alter_configs(
            [ConfigResource("TOPIC", _TOPIC, configs)], raise_on_unknown=False, incremental=True
        )

    with Path(file).open("a", buffering=1) as lines:

        def send_all(name: str, send: Callable[[], None]) -> None:
            while True:
                at, begun = time.time(), time.perf_counter()
                send()
                lines.write(f"{name} {at:.6f} {time.perf_counter() - begun:.6f}\n")
                time.sleep(random.uniform(0.5, 1.5) * _INTERVALS_S[name])

        threading.Thread(target=send_all, args=(ALTER, alter), daemon=True).start()
        send_all(PRODUCE, produce)


if __name__ == "__main__":
    main(*sys.argv[1:])
