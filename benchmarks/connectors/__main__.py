"""``python -m benchmarks.connectors``: compare kdeclare with bare requests, for many connectors."""

import argparse
import os
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from benchmarks.clusters import free_port
from benchmarks.counted_commands import Bench, describe_machine, open_bench, write_figures
from benchmarks.measure import Cost
from kdeclare.sandbox import SandboxSettings

NEW, CREATE = "plan, create all", "apply, create all"
NOTHING, ONE = "plan, nothing to do", "plan, one change"
CHANGE, CHANGE_ONLY = "apply, one change", "apply, one change, --no-wait"
_WORKERS = 3
_TOPIC = "lines"
_CHANGED = "connector-0000"  # a source
_IDLE_CORES = 0.75
_IDLE_LIMIT_S = 45


@dataclass(frozen=True, slots=True)
class Requests:
    """The HTTP requests of one command.

    changes: methods and paths of the changes that workers accepted. rejected: the number of other changes,
        which are rejected during rebalances.
    """

    reads: int
    validations: int
    changes: tuple[str, ...]
    rejected: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of a job, and of the bare requests right before it. bare: None if the job has none."""

    ours: Cost
    requests: Requests
    bare: Cost | None


@dataclass
class Measurement:
    """Measures all jobs with ``count`` connectors, half of them sources and half sinks."""

    bench: Bench
    count: int
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    batch_size: int = 100

    def write_project(self) -> None:
        """Write the project file, a topic, and one manifest per connector."""
        (self.bench.folder / "data").mkdir()
        urls = [worker.url for worker in self.bench.sandbox.workers]
        endpoint = {"urls": urls, "tls": {"caFile": str(self.bench.sandbox.ca_file)}}
        self.bench.write_project({"connect": {"bench": endpoint}})
        self.bench.write_manifest(_TOPIC, "Topic", _TOPIC, {"partitions": 1, "replicationFactor": 1})
        for number in range(self.count):
            self.declare(number)

    def declare(self, number: int) -> None:
        """Write the manifest of a connector. Sources read an empty file, so no records flow."""
        name = f"connector-{number:04}"
        file = self.bench.folder / "data" / name
        if number % 2 == 0:
            file.touch()
            config = {"topic": _TOPIC, "file": str(file), "batch.size": str(self.batch_size)}
            spec: dict[str, object] = {"class": "FileStreamSource", "tasksMax": 1, "config": config}
        else:
            config = {"topics": _TOPIC, "file": str(file)}
            spec = {"class": "FileStreamSink", "tasksMax": 1, "config": config}
        self.bench.write_manifest(name, "Connector", name, spec)

    def measure(self, rounds: int) -> None:
        """Run all jobs. Bare requests alternate with commands."""
        self._kdeclare("warm-up", ["plan", "--no-preflight"])  # Python compiles modules
        self._send_bare([])
        self._add(NEW, "plan", bare=[])
        self._add(CREATE, "apply", "--yes", bare=None)
        self.settle()
        for _ in range(rounds):
            self._add(NOTHING, "plan", "--detailed-exitcode", bare=[])
            self._change_declared()
            self._add(ONE, "plan", "--detailed-exitcode", bare=[], expected=2)
            self._add(CHANGE, "apply", "--yes", bare=[_CHANGED, str(self.batch_size + 1)])
            self._change_declared()
            bare = [_CHANGED, str(self.batch_size + 1)]
            self._add(CHANGE_ONLY, "apply", "--yes", "--no-wait", bare=bare)

    def settle(self) -> None:
        """Wait until brokers and workers are idle, but at most 45 s: consumers are never quite idle."""
        limit = time.monotonic() + _IDLE_LIMIT_S
        while time.monotonic() < limit:
            before = self._cpu_s()
            time.sleep(2)
            if self._cpu_s() - before < 2 * _IDLE_CORES:
                return

    def memory_gib(self) -> float:
        """Return the resident memory of the workers."""
        return (
            sum(psutil.Process(w.pid).memory_info().rss for w in self.bench.sandbox.workers if w.pid) / 2**30
        )

    def _change_declared(self) -> None:
        self.batch_size += 10
        self.declare(0)

    def _add(self, job: str, *arguments: str, bare: Sequence[str] | None, expected: int = 0) -> None:
        bare_cost = None if bare is None else self._send_bare(bare)
        if bare:
            self.settle()  # the change of the bare requests starts a rebalance
        cost, requests = self._kdeclare(job, arguments, expected)
        _check(job, requests, self.count)
        self.samples.setdefault(job, []).append(Sample(cost, requests, bare_cost))

    def _send_bare(self, arguments: Sequence[str]) -> Cost:
        first = self.bench.sandbox.workers[0]
        command = ["benchmarks.connectors.raw", first.url, str(self.bench.sandbox.ca_file), *arguments]
        return self.bench.run_bare("bare requests", command)

    def _kdeclare(self, job: str, arguments: Sequence[str], expected: int = 0) -> tuple[Cost, Requests]:
        cost, sent = self.bench.run_counted(job, arguments, expected)
        sent_changes = [request for request in sent if request.is_change]
        accepted = tuple(r.text for r in sent_changes if r.status is not None and r.status < 300)
        validations = sum(request.text.endswith("/validate") for request in sent)
        reads = len(sent) - validations - len(sent_changes)
        return cost, Requests(reads, validations, accepted, len(sent_changes) - len(accepted))

    def _cpu_s(self) -> float:
        pids = [broker.pid for broker in self.bench.sandbox.brokers]
        pids += [worker.pid for worker in self.bench.sandbox.workers]
        return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids if pid is not None)


def _check(job: str, requests: Requests, count: int) -> None:
    """Raise RuntimeError unless the job sends exactly the necessary changes."""
    change = f"PUT /connectors/{_CHANGED}/config"
    expected: tuple[str, ...] = {CHANGE: (change,), CHANGE_ONLY: (change,)}.get(job, ())
    is_right = len(requests.changes) == count if job == CREATE else requests.changes == expected
    if not is_right:
        raise RuntimeError(f"{job}: unexpected changes: {requests.changes}")


def render_table(count: int, samples: Mapping[str, Iterable[Sample]]) -> str:
    """Render the medians as a Markdown table."""
    lines = [
        "| connectors | job | s | CPU s | peak MB | reads | validations | changes | rejected"
        " | bare requests s | CPU s | ratio | CPU ratio |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for job, runs in samples.items():
        done = list(runs)
        wall_s, cpu_s = (
            statistics.median(s) for s in zip(*((d.ours.wall_s, d.ours.cpu_s) for d in done), strict=True)
        )
        peak_mb = max(d.ours.peak_mb for d in done)
        reads = statistics.median(d.requests.reads for d in done)
        sent = done[0].requests
        rejected = statistics.median(d.requests.rejected for d in done)
        bare = [d.bare for d in done if d.bare is not None]
        compared = "– | – | – | –"
        if bare:
            bare_s, bare_cpu_s = (
                statistics.median(s) for s in zip(*((b.wall_s, b.cpu_s) for b in bare), strict=True)
            )
            compared = f"{bare_s:.2f} | {bare_cpu_s:.2f} | {wall_s / bare_s:.1f} | {cpu_s / bare_cpu_s:.1f}"
        lines.append(
            f"| {count:,} | {job} | {wall_s:.2f} | {cpu_s:.2f} | {peak_mb:.0f} | {reads:g}"
            f" | {sent.validations} | {len(sent.changes)} | {rejected:g} | {compared} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.connectors", description=__doc__)
    parser.add_argument("--connectors", type=int, default=500, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args()
    machine = describe_machine(os.getloadavg()[0])
    with open_bench(
        lambda folder: SandboxSettings(folder, 1, 1, free_port(), connect_workers=_WORKERS)
    ) as bench:
        measurement = Measurement(bench, options.connectors)
        measurement.write_project()
        measurement.measure(options.rounds)
        memory_gib = measurement.memory_gib()
    print(f"{machine}\n\n{render_table(options.connectors, measurement.samples)}\n")
    print(f"The {_WORKERS} workers take {memory_gib:.2f} GiB of memory.")
    rows = {job: [asdict(one) for one in runs] for job, runs in measurement.samples.items()}
    write_figures(options.json, {"machine": machine, "connectors": options.connectors, "samples": rows})


if __name__ == "__main__":
    main()
