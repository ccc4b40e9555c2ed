"""``python -m benchmarks.fleet.policy_audits``: measure whole audits on Spark, with and without policies.

The audits read real manifests, states and policies. Only the rows of the clusters come from generated files.
`benchmarks.fleet.policies` measures only the comparison of the tables.
"""

import argparse
import json
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.fleet.policies import RULES
from benchmarks.fleet.process import measure_peaks
from benchmarks.synthetic_fleet import write
from kdeclare.app.fleet import spark_audit
from kdeclare.app.fleet.audit import AuditOptions, audit_fleet
from kdeclare.app.fleet.job import Engine, FleetOptions
from kdeclare.core.plans.state import State
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.engine.state.local_store import LocalStore
from kdeclare.fleet.spark import session

_FIGURES = (
    ("time", "s"),
    ("CPU time", "s"),
    ("peak memory of the driver's Python", "MB"),
    ("peak memory of the driver's JVM", "MB"),
    ("peak memory of the tasks", "MB"),
)
"""The rows of the table, with their units."""


def read_live(data: str, locator: object, name: str) -> Iterator[pa.RecordBatch]:
    """Read the generated rows of a cluster, as `cluster_rows.read_live` does."""
    return iter(pq.read_table(Path(data) / "live" / f"{name}.parquet").to_batches())


def _write_manifests(data: Path, clusters: Sequence[str]) -> None:
    """Write the manifests and the state of each cluster, from the generated tables."""
    for name in clusters:
        folder = data / "manifests" / name
        if folder.exists():
            continue
        table = pq.read_table(data / "declared" / f"{name}.parquet")
        rows = [row for row in table.to_pylist(maps_as_pydicts="strict") if row["kind"] == "Topic"]
        cluster_id = pq.read_table(data / "live" / f"{name}.parquet", columns=["cluster_id"])[0][0].as_py()
        records = {
            f"Topic/{row['name']}": bind_record("Topic", json.loads(row["owned"]))
            for row in rows
            if row["owned"]
        }
        resources = {name: record for name, record in records.items() if record is not None}
        LocalStore(data / "state" / name / "default").overwrite(State("benchmark", 1, cluster_id, resources))
        folder.mkdir(parents=True)
        declared = [row for row in rows if row["desired"] is not None]
        (folder / "topics.yaml").write_text("---\n".join(map(_render_topic, declared)))


def _render_topic(row: Mapping[str, Any]) -> str:
    spec = json.loads(row["desired"])
    configs = "".join(f"    {key}: {json.dumps(value)}\n" for key, value in spec.pop("configs", {}).items())
    fields = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in spec.items())
    head = f"apiVersion: kdeclare/v1\nkind: Topic\nmetadata:\n  name: {row['name']}\n"
    labels = f"  labels: {json.dumps(row['labels'])}\n"
    return f"{head}{labels}spec:\n{fields}" + (f"  configs:\n{configs}" if configs else "")


def _write_fleet(data: Path, clusters: Sequence[str], *, with_policies: bool) -> Path:
    policies = data / "policies.d"
    policies.mkdir(exist_ok=True)
    for number, rule in enumerate(RULES):
        (policies / f"{number}.yaml").write_text(
            f"apiVersion: kdeclare/v1\nkind: Policy\nmetadata: {{name: rule-{number}}}\n"
            f"spec:\n  rule: {json.dumps(rule)}\n  message: not allowed\n"
        )
    more = ", policies.d" if with_policies else ""
    entries = "".join(
        f"    - {{name: {name}, bootstrapServers: '{name}:9092', manifests: [manifests/{name}{more}], "
        "state: state}\n"
        for name in clusters
    )
    file = data / f"fleet-{'with' if with_policies else 'without'}.yaml"
    file.write_text(
        f"apiVersion: kdeclare/v1\nkind: Fleet\nmetadata: {{name: synthetic}}\nspec:\n  clusters:\n{entries}"
    )
    return file


def _read_cpu_s() -> float:
    """Return the CPU time of this process and of all processes that it started, in seconds."""
    process = psutil.Process()
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        times = one.cpu_times()
        total += (
            times.user + times.system + (times.children_user + times.children_system if one != process else 0)
        )
    return total


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet.policy_audits", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder of the generated fleet"
    )
    parser.add_argument("--clusters", type=int, default=20, metavar="N")
    parser.add_argument("--topics", type=int, default=2_500, metavar="N", help="topics per cluster")
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="figures are medians of the rounds"
    )
    options = parser.parse_args()
    data = options.data / f"{options.clusters}-{options.topics}"
    write(data, options.clusters, options.topics)
    clusters = sorted(file.stem for file in (data / "live").glob("*.parquet"))
    _write_manifests(data, clusters)
    files = {choice: _write_fleet(data, clusters, with_policies=choice) for choice in (False, True)}
    module: Any = spark_audit
    module.read_live = partial(read_live, str(data))
    figures: dict[bool, list[tuple[float, ...]]] = {False: [], True: []}
    with session.spark_session("local[2]", {}, log=None) as spark:
        session.spark_session = lambda *_, **__: nullcontext(spark)  # type: ignore[assignment]
        for number in range(options.rounds + 1):
            for has_policies, file in files.items():
                out = data / "audits"
                shutil.rmtree(out, ignore_errors=True)
                started, cpu = time.perf_counter(), _read_cpu_s()
                with measure_peaks(psutil.Process().pid) as peaks:
                    audit = audit_fleet(
                        FleetOptions(file, str(out), engine=Engine.SPARK), AuditOptions(full=True)
                    )
                taken = time.perf_counter() - started, _read_cpu_s() - cpu, *peaks.values()
                counts = dict(audit.summary.found)
                print(
                    f"policies: {has_policies}, {taken[0]:.1f} s, CPU {taken[1]:.1f} s, "
                    f"{peaks['own']:.0f} MB, Java {peaks['jvm']:.0f} MB, tasks {peaks['rest']:.0f} MB, "
                    f"{counts}",
                    file=sys.stderr,
                )
                if number:  # the first round compiles the queries
                    figures[has_policies].append(taken)
    without, with_ = (
        [statistics.median(column) for column in zip(*figures[choice], strict=True)]
        for choice in (False, True)
    )
    print(f"{options.clusters * options.topics:,} topics in {options.clusters} clusters\n")
    print("| | without policies | with policies | ratio |")
    print("|---|---:|---:|---:|")
    for (name, unit), before, after in zip(_FIGURES, without, with_, strict=True):
        print(f"| {name} | {before:,.1f} {unit} | {after:,.1f} {unit} | {after / before:.2f} × |")


if __name__ == "__main__":
    from benchmarks.fleet import policy_audits  # so that tasks can import the functions

    policy_audits.main()
