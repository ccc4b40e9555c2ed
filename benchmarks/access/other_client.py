"""A client that changes a topic config every 20 ms on average: ``other_client BOOTSTRAP FILE``.

The changes go through the controller, like those of ACLs, so their latency shows how long the controller is
busy. Appends the time and the latency of each change to FILE, in seconds.
"""

import random
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka.admin import ConfigResource, NewTopic

from benchmarks.access.raw import connect

_TOPIC = "changed-by-another-client"
_SHORTEST_S, _LONGEST_S = 0.01, 0.03


@dataclass(frozen=True, slots=True)
class Latency:
    """The latencies of one period, in milliseconds."""

    count: int
    p50: float
    p99: float
    longest: float


def read_latencies(file: Path, periods: Iterable[tuple[float, float]]) -> Latency:
    """Return the latencies of the changes that began in one of the periods (seconds since the epoch)."""
    lines = [line.split() for line in file.read_text().splitlines()]
    spans = list(periods)
    latencies = sorted(
        1000 * float(latency)
        for at, latency in (line for line in lines if len(line) == 2)
        if any(begin <= float(at) < end for begin, end in spans)
    )
    return Latency(len(latencies), _rank(latencies, 0.5), _rank(latencies, 0.99), latencies[-1])


def _rank(latencies: Sequence[float], share: float) -> float:
    return latencies[min(len(latencies) - 1, int(len(latencies) * share))]


def main(bootstrap: str, file: str) -> None:
    """Change the config until the process is terminated."""
    client = connect(bootstrap)
    client.create_topics([NewTopic(_TOPIC, 1, 1)])
    with Path(file).open("a", buffering=1) as lines:
        for number in range(sys.maxsize):
            configs = {"retention.ms": str(1_000_000 + number % 1000)}
            at, begun = time.time(), time.perf_counter()
            client.alter_configs(
                [ConfigResource("TOPIC", _TOPIC, configs)], raise_on_unknown=False, incremental=True
            )
            lines.write(f"{at:.6f} {time.perf_counter() - begun:.6f}\n")
            time.sleep(random.uniform(_SHORTEST_S, _LONGEST_S))


if __name__ == "__main__":
    main(*sys.argv[1:])
