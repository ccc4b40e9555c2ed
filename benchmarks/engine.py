"""``python -m benchmarks.engine``: compare kdeclare with bare kafka-python calls that do the same."""

import argparse
import json
import os
import platform
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import kdeclare
from benchmarks.clusters import HEAP, Bench, cluster
from benchmarks.measure import Cost, environment, report, run
from benchmarks.topics import HOUR_MS, write_manifests, write_project

PLAN, DRIFT, CREATE = "plan, nothing to do", "plan, 1 % drifted", "apply, create all"
ALTER, UNALTER, UNCREATE = "apply, alter all", "rollback of the alteration", "rollback of the creation"
_ENDS = {DRIFT: 2}
"""The expected exit codes other than 0, by job."""


@dataclass
class Round:
    """One round: each job runs once with kdeclare and once with bare kafka-python calls."""

    bench: Bench
    folder: Path
    env: Mapping[str, str]
    prefix: str
    count: int
    ours: dict[str, Cost] = field(default_factory=dict)
    bare: dict[str, Cost] = field(default_factory=dict)

    def warm_up(self) -> None:
        """Run unmeasured calls first, because new brokers are slow and Python compiles new modules."""
        self.raw("warm", 300, "create", "read", "alter", "delete")

    def raw(self, prefix: str, count: int, *steps: str) -> Cost:
        """Wait until the brokers are idle, and measure bare kafka-python calls in a new process."""
        self.bench.settle()
        arguments = ["benchmarks.raw", self.bench.bootstrap, prefix, str(count), *steps]
        return report(f"bare calls for {count:,}: {' '.join(steps)}", run(arguments, self.folder, self.env))

    def kdeclare(self, job: str, *arguments: str) -> None:
        """Wait until the brokers are idle, and measure a command of kdeclare."""
        self.bench.settle()
        cost = run(["kdeclare", *arguments], self.folder / "project", self.env, _ENDS.get(job, 0))
        self.ours[job] = report(f"kdeclare for {self.count:,}: {job}", cost)

    def bare_life(self) -> None:
        """Measure the bare calls that create and delete the topics."""
        self.warm_up()
        self.bare[CREATE] = self.raw(self.prefix, self.count, "read", "create")
        self.bare[UNCREATE] = self.raw(self.prefix, self.count, "read", "delete")

    def whole_life(self) -> None:
        """Measure all kdeclare commands from creation to deletion, and the bare calls that read and alter."""
        project = self.folder / "project"
        write_project(project, self.prefix, self.count, self.bench.bootstrap)
        self.warm_up()
        run(["compileall", "-q", str(Path(kdeclare.__file__).parent)], project, self.env)
        run(["kdeclare", "plan", "--format", "json"], project, self.env)
        self.kdeclare(CREATE, "apply", "--yes")
        created = next(iter(sorted(project.glob("state/*/*/runs/*")))).name
        self.kdeclare(PLAN, "plan", "--detailed-exitcode")
        self.bare[PLAN] = self.raw(self.prefix, self.count, "read")
        self.raw(self.prefix, self.count // 100, f"alter={2 * HOUR_MS}")
        self.kdeclare(DRIFT, "plan", "--detailed-exitcode")
        self.bare[DRIFT] = self.raw(self.prefix, self.count, "read")
        self.bare[ALTER] = self.raw(self.prefix, self.count, "read", f"alter={2 * HOUR_MS}")
        self.bare[UNALTER] = self.raw(self.prefix, self.count, "read", f"alter={HOUR_MS}")
        write_manifests(project, self.prefix, self.count, 3 * HOUR_MS)
        self.kdeclare(ALTER, "apply", "--yes")
        self.kdeclare(UNALTER, "rollback", "--yes")
        self.kdeclare(UNCREATE, "rollback", created, "--yes")


@dataclass(frozen=True, slots=True)
class Row:
    """The medians of one job over all rounds. writes_s: the time of the bare calls that write."""

    topics: int
    job: str
    wall_s: float
    cpu_s: float
    peak_mb: float
    bare_s: float
    bare_cpu_s: float
    writes_s: float | None


def measured(count: int, rounds: int, bootstrap: str | None) -> list[Row]:
    """Measure all jobs with ``count`` topics."""
    done: list[Round] = []
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as temporary:
            folder = Path(temporary)
            env = environment(folder / "cache")
            with cluster(bootstrap) as bench:
                bare = Round(bench, folder, env, f"bare{number}", count)
                bare.bare_life()
            with cluster(bootstrap) as bench:
                life = Round(bench, folder, env, f"bench{number}", count, bare=bare.bare)
                life.whole_life()
        done.append(life)
    return [_row(count, job, done) for job in (PLAN, DRIFT, CREATE, ALTER, UNALTER, UNCREATE)]


def _row(count: int, job: str, rounds: Sequence[Round]) -> Row:
    ours = [one.ours[job] for one in rounds]
    bare = [one.bare[job] for one in rounds]
    reads = [json.loads(cost.output) for cost in bare]
    writes = [cost.wall_s - steps["read"] for cost, steps in zip(bare, reads, strict=True)]
    return Row(
        count,
        job,
        _median(cost.wall_s for cost in ours),
        _median(cost.cpu_s for cost in ours),
        max(cost.peak_mb for cost in ours),
        _median(cost.wall_s for cost in bare),
        _median(cost.cpu_s for cost in bare),
        None if job in (PLAN, DRIFT) else _median(writes),
    )


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 3)


def table(rows: Iterable[Row]) -> str:
    """Render the figures as a Markdown table."""
    lines = [
        "| topics | job | s | CPU s | peak MB | bare calls s | CPU s | ratio | bare writes alone s | ratio |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        ours = f"| {row.topics:,} | {row.job} | {row.wall_s:.2f} | {row.cpu_s:.2f} | {row.peak_mb:.0f} "
        bare = f"| {row.bare_s:.2f} | {row.bare_cpu_s:.2f} | {row.wall_s / row.bare_s:.1f} "
        alone = f"| {row.writes_s:.2f} | {row.wall_s / row.writes_s:.1f} |" if row.writes_s else "| – | – |"
        lines.append(ours + bare + alone)
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--topics", type=int, nargs="+", default=[1000, 5000], metavar="N")
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="number of rounds; figures are medians"
    )
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="use this cluster instead of a new one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args()
    os.environ.setdefault("KAFKA_HEAP_OPTS", HEAP)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stop the brokers, too
    busy = os.getloadavg()[0]
    rows = [row for count in options.topics for row in measured(count, options.rounds, options.bootstrap)]
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, medians of {options.rounds}; load before {busy:.1f}\n\n{table(rows)}")
    if options.json is not None:
        figures = {"machine": machine, "rounds": options.rounds, "load_before": busy}
        figures["rows"] = [asdict(row) for row in rows]
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
