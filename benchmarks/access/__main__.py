"""``python -m benchmarks.access``: compare kdeclare with bare requests, while other clients are active."""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import kdeclare
from benchmarks.access import resources
from benchmarks.access.other_client import (
    ALTER,
    IDLE_S,
    PRODUCE,
    Latency,
    read_latencies,
    run_other_clients,
)
from benchmarks.clusters import HEAP, Bench, secured_broker
from benchmarks.measure import Cost, environment, run

NEW, CREATE, NOTHING = "plan, create all", "apply, create all", "plan, nothing to do"
UNDO, TENTH = "rollback of the creation", "apply, delete a tenth"
_LONGEST_ROLLBACK = 10_000
"""The maximum number of bindings that are all deleted. If there are more, only a tenth is deleted.

The time to delete all bindings grows with the square of their number.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one job, and the latencies of the other clients during the job."""

    kind: str
    count: int
    job: str
    ours: Cost
    bare_s: float
    others: Mapping[str, Latency]
    others_beside_bare: Mapping[str, Latency]


@dataclass
class Measurement:
    """Measures all jobs with ``count`` resources of one kind: first bare requests, then kdeclare."""

    bench: Bench
    folder: Path
    env: Mapping[str, str]
    kind: str
    count: int
    latencies: Path
    idle: list[tuple[float, float]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    bare: dict[str, tuple[float, Mapping[str, Latency]]] = field(default_factory=dict)

    @property
    def _is_partial(self) -> bool:
        return self.kind == resources.ACL and self.count > _LONGEST_ROLLBACK

    def run_bare(self) -> None:
        """Measure the bare requests. Each job opens a new connection."""
        deleted = self.count // 10 if self._is_partial else self.count
        for job, steps in (
            (NEW, ["read"]),
            (CREATE, ["create"]),
            (NOTHING, ["read"]),
            (TENTH if self._is_partial else UNDO, [f"delete={deleted}"]),
        ):
            self.settle()
            cost, latency = self._measure(["benchmarks.access.raw", *self._raw_arguments(), *steps])
            self.bare[job] = (cost.wall_s, latency)
            _report(f"bare requests: {job}", cost, latency)
        if self._is_partial:
            run(["benchmarks.access.raw", *self._raw_arguments(), "clear"], self.folder, self.env)

    def run_ours(self) -> None:
        """Measure the commands of kdeclare."""
        project = self.folder / "project"
        assert self.bench.client is not None
        resources.write_project(project, self.kind, self.count, self.bench.client, self.bench.bootstrap)
        run(["compileall", "-q", str(Path(kdeclare.__file__).parent)], project, self.env)
        self._add(NEW, "plan")
        self._add(CREATE, "apply", "--yes")
        self._add(NOTHING, "plan", "--detailed-exitcode")
        if not self._is_partial:
            self._add(UNDO, "rollback", "--yes")
            return
        manifests = sorted((project / "manifests").iterdir())
        for file in manifests[-len(manifests) // 10 :]:
            file.unlink()
        self._add(TENTH, "apply", "--yes", "--allow-deletes")

    def _add(self, job: str, *arguments: str) -> None:
        self.settle()
        cost, latency = self._measure(["kdeclare", *arguments], self.folder / "project")
        bare_s, beside_bare = self.bare[job]
        self.rows.append(Row(self.kind, self.count, job, cost, bare_s, latency, beside_bare))
        _report(job, cost, latency)

    def settle(self) -> None:
        """Wait until the broker is idle, and then record a few more seconds as a period without jobs."""
        self.bench.settle()
        begun = time.time()
        time.sleep(IDLE_S / 4)
        self.idle.append((begun, time.time()))

    def _measure(
        self, arguments: list[str], folder: Path | None = None
    ) -> tuple[Cost, Mapping[str, Latency]]:
        begun = time.time()
        cost = run(arguments, folder or self.folder, self.env)
        return cost, read_latencies(self.latencies, [(begun, time.time())])

    def _raw_arguments(self) -> list[str]:
        return [self.bench.bootstrap, self.kind, str(self.count)]


def _report(job: str, cost: Cost, latencies: Mapping[str, Latency]) -> None:
    print(
        f"{cost.wall_s:7.2f} s {cost.cpu_s:7.2f} s of CPU {cost.peak_mb:5.0f} MB {job}; other clients:"
        f" {_describe(latencies)}",
        file=sys.stderr,
    )


def _describe(latencies: Mapping[str, Latency]) -> str:
    return ", ".join(f"{name} p50 {x.p50:.0f} p99 {x.p99:.0f} ms" for name, x in latencies.items())


def measure(kind: str, count: int) -> tuple[list[Row], Mapping[str, Latency]]:
    """Measure all jobs. Return their rows, and the latencies of the other clients between jobs."""
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as temporary, secured_broker() as bench:
        folder = Path(temporary)
        env = {
            **environment(folder / "cache"),
            **resources.list_environment(count if kind == resources.SCRAM else 0),
            "KDECLARE_SECRET_KEY": "the key of a benchmark",
        }
        with run_other_clients(bench, folder / "latencies", env) as latencies:
            measurement = Measurement(bench, folder, env, kind, count, latencies)
            measurement.run_bare()
            measurement.run_ours()
        return measurement.rows, read_latencies(latencies, measurement.idle)


def render_table(rows: Iterable[Row]) -> str:
    """Render the figures as a Markdown table."""
    lines = [
        "| resources | job | s | CPU s | peak MB | bare requests s | ratio | produce p99 ms | bare"
        " | config change p99 ms | bare |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        noun = {resources.ACL: "bindings", resources.SCRAM: "users", resources.QUOTA: "quotas"}[row.kind]
        p99 = " | ".join(
            f"{row.others[client].p99:.0f} | {row.others_beside_bare[client].p99:.0f}"
            for client in (PRODUCE, ALTER)
        )
        lines.append(
            f"| {row.count:,} {noun} | {row.job} | {row.ours.wall_s:.2f} | {row.ours.cpu_s:.2f}"
            f" | {row.ours.peak_mb:.0f} | {row.bare_s:.2f} | {row.ours.wall_s / row.bare_s:.1f} | {p99} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.access", description=__doc__)
    parser.add_argument("--bindings", type=int, nargs="*", default=[10_000, 20_000], metavar="N")
    parser.add_argument("--users", type=int, nargs="*", default=[1000], metavar="N")
    parser.add_argument("--quotas", type=int, nargs="*", default=[1000], metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args()
    os.environ.setdefault("KAFKA_HEAP_OPTS", HEAP)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stop the broker, too
    busy = os.getloadavg()[0]
    rows: list[Row] = []
    idle: list[Mapping[str, Latency]] = []
    for kind, counts in (
        (resources.ACL, options.bindings),
        (resources.SCRAM, options.users),
        (resources.QUOTA, options.quotas),
    ):
        for count in counts:
            more_rows, latency = measure(kind, count)
            rows += more_rows
            idle.append(latency)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, load before {busy:.1f}"
    print(f"{machine}\n\n{render_table(rows)}\n")
    for latencies in idle:
        print(f"The other clients alone: {_describe(latencies)}.")
    if options.json is not None:
        figures = {
            "machine": machine,
            "rows": [asdict(row) for row in rows],
            "idle": [{n: asdict(x) for n, x in o.items()} for o in idle],
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
