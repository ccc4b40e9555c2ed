"""``python -m benchmarks.starting``: measure short commands, including the start of the process."""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.clusters import cluster
from benchmarks.measure import Cost, environment, run

_TOPICS = tuple(f"starting-{n}" for n in range(20))
_WANTED_S = 0.8
_BARE = """\
import sys
from kafka import KafkaAdminClient
client = KafkaAdminClient(bootstrap_servers=sys.argv[1])
print(sorted(client.list_topics()))
"""
"""A program that prints the same list as ``kdeclare topic list``, with kafka-python alone."""


def main() -> None:
    """Measure, and print a table."""
    options = _options()
    with tempfile.TemporaryDirectory() as made, cluster(options.bootstrap) as bench:
        folder, env = Path(made), environment(Path(made) / "cache")
        (folder / "bare.py").write_text(_BARE)
        where = ["--bootstrap-server", bench.bootstrap]
        run(["kdeclare", "topic", "create", *_TOPICS, "--if-not-exists", "--yes", *where], folder, env)
        bench.settle()
        jobs = {
            "kafka-python alone": ["bare", bench.bootstrap],
            "kdeclare topic list": ["kdeclare", "topic", "list", *where],
            "kdeclare topic describe": ["kdeclare", "topic", "describe", _TOPICS[0], *where],
            "kdeclare topic alter": ["kdeclare", "topic", "alter", _TOPICS[0], "--partitions", "1", *where],
        }
        costs: dict[str, list[Cost]] = {name: [] for name in jobs}
        for _ in range(options.rounds + 1):
            for name, arguments in jobs.items():
                costs[name].append(run(arguments, folder, env))
        run(["kdeclare", "topic", "delete", *_TOPICS, "--yes", *where], folder, env)
    _print({name: found[1:] for name, found in costs.items()})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--bootstrap", help="an idle cluster (default: a temporary sandbox)")
    return parser.parse_args()


def _print(costs: dict[str, list[Cost]]) -> None:
    bare = _median([cost.wall_s for cost in costs["kafka-python alone"]])
    print(f"{'job':<26}{'median s':>10}{'max s':>8}{'CPU s':>8}{'× bare':>8}")
    for name, found in costs.items():
        walls = [cost.wall_s for cost in found]
        cpu = _median([cost.cpu_s for cost in found])
        median = _median(walls)
        print(f"{name:<26}{median:>10.2f}{max(walls):>8.2f}{cpu:>8.2f}{median / bare:>8.1f}")
    listed = _median([cost.wall_s for cost in costs["kdeclare topic list"]])
    print(f"topic list: {listed:.2f} s, target {_WANTED_S} s: {'met' if listed <= _WANTED_S else 'missed'}")


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


if __name__ == "__main__":
    main()
