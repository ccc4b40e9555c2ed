"""``python -m benchmarks.impact``: measure how much longer a plan takes with the impact of its changes.

The project has 1,000 topics on three brokers. Ten topics contain records, are read by 50 groups, and are
changed, so that kdeclare determines all parts of an impact: records that Kafka deletes, groups, producers,
samples of records, moves and outages. Plans with and without the impact alternate.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import kafka

from benchmarks.clusters import cluster
from benchmarks.measure import environment, report, run
from benchmarks.topics import HOUR_MS, names, write_manifests, write_project
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.ids import TopicPartition

_GROUPS = 50
_RECORDS = 200
_CHANGES: tuple[tuple[str, str] | None, ...] = (
    ("retention.ms: ", "retention.ms: 1000 # "),
    ("retention.ms: ", "retention.ms: 60000 # "),
    ("retention.ms: ", "retention.bytes: 1000\n    retention.ms: "),
    ("partitions: 1", "partitions: 3"),
    ("partitions: 1", "partitions: 12"),
    ("max.message.bytes: ", "max.message.bytes: 100 # "),
    ("retention.ms: ", "cleanup.policy: [compact]\n    retention.ms: "),
    ("min.insync.replicas: 1", "min.insync.replicas: 2"),
    ("replicationFactor: 2", "replicationFactor: 3"),
    None,
)
"""The edit of each topic's manifest: a text and its replacement. None deletes the manifest."""

_CODES = {
    "deletable-records",
    "deleted-records",
    "unread-records",
    "writers",
    "keys-required",
    "copied-bytes",
    "not-writable",
}
"""Codes of observations that the plan must contain."""
_PREFIX = "impact"
_PLAN = ["kdeclare", "plan", "--allow-deletes"]


def main() -> int:
    """Run the benchmark, and print the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.impact", description=__doc__)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as temporary, cluster() as bench:
        folder = Path(temporary)
        project = folder / "project"
        env = environment(folder / "cache")
        write_project(project, _PREFIX, options.topics, bench.bootstrap, replicas=2)
        write_manifests(project, _PREFIX, options.topics, 10 * HOUR_MS, replicas=2)
        run(["kdeclare", "apply", "--yes"], project, env)
        changed = names(_PREFIX, options.topics)[: len(_CHANGES)]
        _write_records(bench.bootstrap, changed)
        _commit_offsets(bench.bootstrap, changed)
        _write_changes(project, changed)
        bench.settle()
        _check_codes(run([*_PLAN, "--format", "json"], project, env).output)
        walls: dict[str, list[float]] = {"with": [], "without": []}
        cpus: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(options.pairs):
            for name, arguments in (("without", ["--no-impact"]), ("with", [])):
                cost = report(f"plan {name} impact", run([*_PLAN, *arguments], project, env))
                walls[name].append(cost.wall_s)
                cpus[name].append(cost.cpu_s)
    for unit, values in (("wall", walls), ("CPU", cpus)):
        differences = [
            after - before for after, before in zip(values["with"], values["without"], strict=True)
        ]
        print(
            f"{unit}: {statistics.median(values['without']):.2f} s without, "
            f"{statistics.median(differences):+.2f} s with the impact of {len(_CHANGES)} changes"
        )
    return 0


def _write_changes(project: Path, topics: list[str]) -> None:
    for topic, change in zip(topics, _CHANGES, strict=True):
        manifest = project / "manifests" / f"{topic}.yaml"
        if change is None:
            manifest.unlink()
            continue
        text = manifest.read_text()
        assert change[0] in text, f"{manifest} has no {change[0]}"
        manifest.write_text(text.replace(*change, 1))


def _check_codes(output: str) -> None:
    """Fail unless the plan contains all observations in `_CODES`, and no observation is undetermined."""
    codes = {item["code"] for item in json.loads(output)["observations"]}
    assert codes >= _CODES, f"the plan has no {', '.join(sorted(_CODES - codes))}"
    assert "not-determined" not in codes, "the plan has unknown observations"


def _write_records(bootstrap: str, topics: list[str]) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    old_ms = int(time.time() * 1000) - 2 * HOUR_MS
    for topic in topics:
        for number in range(_RECORDS):
            producer.send(topic, bytes(200), str(number).encode(), timestamp_ms=old_ms)
    producer.flush()
    producer.close()


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
