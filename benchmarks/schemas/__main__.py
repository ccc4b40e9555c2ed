"""``python -m benchmarks.schemas``: compare kdeclare with bare requests, for many schemas."""

import argparse
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.clusters import free_port
from benchmarks.counted_commands import Bench, describe_machine, open_bench, write_figures
from benchmarks.measure import Cost
from kdeclare.sandbox import SandboxSettings

NEW, CREATE = "plan, create all", "apply, create all"
NOTHING, ONE, CHANGE = "plan, nothing to do", "plan, one change", "apply, one change"
_CHANGED = "subject-0000-value"
_BARE_CHANGED = "bare-changed-value"
_LEVEL_OF_HALF = "BACKWARD"


@dataclass(frozen=True, slots=True)
class Requests:
    """The HTTP requests of one command.

    reads: the number of requests that only read. changes: the methods and paths of all other requests.
    """

    reads: int
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of a job, and of the bare requests right before it."""

    ours: Cost
    requests: Requests
    bare: Cost


@dataclass
class Measurement:
    """Measures all jobs with ``count`` subjects, half of which have their own compatibility level."""

    bench: Bench
    count: int
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    revision: int = 0

    def write_project(self) -> None:
        """Write the project file and one manifest per subject."""
        self.bench.write_project({"registries": {"bench": {"urls": [self._url]}}})
        for number in range(self.count):
            self.declare(number)
        names = [f"subject-{number:04}-value" for number in range(self.count)]
        (self.bench.folder / "names").write_text("\n".join(names))
        (self.bench.folder / "bare-names").write_text("\n".join(f"bare-{name}" for name in names))

    def declare(self, number: int) -> None:
        """Write the manifest of a subject. The schema has twenty fields, like a typical record."""
        fields: list[object] = [
            {"name": f"field_{i}", "type": ["null", "string"], "default": None, "doc": f"The field {i}."}
            for i in range(20)
        ]
        if number == 0:
            fields += [{"name": f"added_{i}", "type": "int", "default": 0} for i in range(self.revision)]
        name = f"subject-{number:04}-value"
        schema = {"type": "record", "name": f"bench.Record{number}", "fields": fields}
        spec: dict[str, object] = {"type": "AVRO", "schema": schema}
        if number % 2 == 0:
            spec["compatibility"] = _LEVEL_OF_HALF
        self.bench.write_manifest(name, "Schema", name, spec)

    def measure(self, rounds: int) -> None:
        """Run all jobs. Bare requests alternate with commands."""
        self._kdeclare("warm-up", ["plan", "--no-preflight"])  # Python compiles modules
        self._send_bare("names", "read")
        self._add(NEW, "plan", bare=["names", "read"])
        self._add(CREATE, "apply", "--yes", bare=["bare-names", "create"])
        self._send_bare("bare-names", "purge")
        for _ in range(rounds):
            self._add(NOTHING, "plan", "--detailed-exitcode", bare=["names", "read"])
            self.revision += 1
            self.declare(0)
            self._add(ONE, "plan", "--detailed-exitcode", bare=["names", "read"], expected=2)
            self._add(CHANGE, "apply", "--yes", bare=["names", "read", _BARE_CHANGED])

    @property
    def _url(self) -> str:
        assert self.bench.sandbox.registry is not None
        return self.bench.sandbox.registry.url

    def _add(self, job: str, *arguments: str, bare: Sequence[str], expected: int = 0) -> None:
        bare_cost = self._send_bare(*bare)
        cost, requests = self._kdeclare(job, arguments, expected)
        _check(job, requests, self.count)
        self.samples.setdefault(job, []).append(Sample(cost, requests, bare_cost))

    def _send_bare(self, names: str, *more: str) -> Cost:
        command = ["benchmarks.schemas.raw", self._url, str(self.bench.folder / names), *more]
        return self.bench.run_bare(f"bare requests: {' '.join(more)}", command)

    def _kdeclare(self, job: str, arguments: Sequence[str], expected: int = 0) -> tuple[Cost, Requests]:
        cost, sent = self.bench.run_counted(job, arguments, expected)
        changes = tuple(_shorten(request.text) for request in sent if request.is_change)
        return cost, Requests(len(sent) - len(changes), changes)


def _shorten(request: str) -> str:
    return request.replace("/apis/ccompat/v7", "")


def _check(job: str, requests: Requests, count: int) -> None:
    """Raise RuntimeError unless the job sends exactly the necessary changes."""
    expected: set[str] = set()
    if job == CHANGE:
        expected = {f"POST /subjects/{_CHANGED}/versions"}
    if job == CREATE:
        expected = {f"POST /subjects/subject-{number:04}-value/versions" for number in range(count)}
        expected |= {f"PUT /config/subject-{number:04}-value" for number in range(0, count, 2)}
    if sorted(expected) != sorted(requests.changes):
        needless = sorted(set(requests.changes) - expected)[:5]
        raise RuntimeError(f"{job}: {len(requests.changes)} changes, not {len(expected)}: {needless}")


def render_table(count: int, samples: Mapping[str, Iterable[Sample]]) -> str:
    """Render the medians as a Markdown table."""
    lines = [
        "| subjects | job | s | CPU s | peak MB | reads | changes | bare requests s | CPU s | ratio |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for job, runs in samples.items():
        done = list(runs)
        wall_s, cpu_s, bare_s, bare_cpu_s = (
            statistics.median(values)
            for values in zip(
                *((d.ours.wall_s, d.ours.cpu_s, d.bare.wall_s, d.bare.cpu_s) for d in done), strict=True
            )
        )
        peak_mb = max(d.ours.peak_mb for d in done)
        sent = done[0].requests
        lines.append(
            f"| {count:,} | {job} | {wall_s:.2f} | {cpu_s:.2f} | {peak_mb:.0f} | {sent.reads:,}"
            f" | {len(sent.changes):,} | {bare_s:.2f} | {bare_cpu_s:.2f} | {wall_s / bare_s:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schemas", description=__doc__)
    parser.add_argument("--subjects", type=int, default=2000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args()
    machine = describe_machine(os.getloadavg()[0])
    with open_bench(lambda folder: SandboxSettings(folder, 1, 1, free_port(), registry=True)) as bench:
        measurement = Measurement(bench, options.subjects)
        measurement.write_project()
        measurement.measure(options.rounds)
    print(f"{machine}\n\n{render_table(options.subjects, measurement.samples)}")
    rows = {job: [asdict(one) for one in runs] for job, runs in measurement.samples.items()}
    write_figures(options.json, {"machine": machine, "subjects": options.subjects, "samples": rows})


if __name__ == "__main__":
    main()
