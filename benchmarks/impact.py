"""``python -m benchmarks.impact``: what a plan costs more with the impact of its destructive changes.

The project has 1,000 topics on three brokers, ten of which get a shorter retention, and the cluster has 50
groups that read them. Plans with and without the impact alternate.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.clusters import cluster
from benchmarks.measure import environment, report, run
from benchmarks.topics import HOUR_MS, names, write_manifests, write_project
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.ids import TopicPartition

_GROUPS = 50
_PREFIX = "impact"


def main() -> int:
    """Run the benchmark, and print the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.impact", description=__doc__)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--destructive", type=int, default=10, help="how many topics get a shorter retention")
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as temporary, cluster() as bench:
        folder = Path(temporary)
        project = folder / "project"
        env = environment(folder / "cache")
        write_project(project, _PREFIX, options.topics, bench.bootstrap)
        write_manifests(project, _PREFIX, options.topics, 10 * HOUR_MS)
        run(["kdeclare", "apply", "--yes"], project, env)
        shortened = names(_PREFIX, options.topics)[: options.destructive]
        _commit_offsets(bench.bootstrap, shortened)
        write_manifests(project, _PREFIX, options.destructive, HOUR_MS)
        bench.settle()
        walls: dict[str, list[float]] = {"with": [], "without": []}
        cpus: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(options.pairs):
            for name, arguments in (("without", ["--no-impact"]), ("with", [])):
                cost = report(f"plan {name} impact", run(["kdeclare", "plan", *arguments], project, env))
                walls[name].append(cost.wall_s)
                cpus[name].append(cost.cpu_s)
        assert "Kafka deletes" in cost.output or "exceeds the new limits" in cost.output
    for unit, values in (("wall", walls), ("CPU", cpus)):
        differences = [
            after - before for after, before in zip(values["with"], values["without"], strict=True)
        ]
        print(
            f"{unit}: {statistics.median(values['without']):.2f} s without, "
            f"{statistics.median(differences):+.2f} s with the impact of {options.destructive} changes"
        )
    return 0


def _commit_offsets(bootstrap: str, topics: list[str]) -> None:
    client = connect(bootstrap, {})
    offsets = {TopicPartition(topic, 0): CommittedOffset(0) for topic in topics}
    try:
        pending = {f"group-{number}": offsets for number in range(_GROUPS)}
        while pending:
            results = client.groups.alter_offsets(pending)
            pending = {group: offsets for (group, _), result in results.items() if result is not None}
    finally:
        client.close()


if __name__ == "__main__":
    sys.exit(main())
