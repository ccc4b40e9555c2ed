"""``python -m benchmarks.fleet.engines``: audit fleets of several sizes with both engines.

Each audit runs in a new process, because starting the process takes most of the time for small fleets.
"""

import argparse
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import environment, run
from benchmarks.synthetic_fleet import write
from kdeclare.fleet.audit_summary import AuditRun, dump_summary
from kdeclare.fleet.local.audit import LocalTables, write_audit
from kdeclare.fleet.local.tables import open_local_workbench, read_rows
from kdeclare.fleet.tables.rows import CLUSTER, DECLARED, LIVE
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.report.fleet.audit_markdown import render_audit_markdown
from kdeclare.report.fleet.audit_page import render_audit_page

_CLUSTERS = 20


def audit_locally(data: Path, out: Path) -> None:
    """Run the steps of an audit that follow the creation of both tables, like `benchmarks.fleet.cold`."""
    began, source = datetime.now(UTC), LocalStorage(data)
    with open_local_workbench(LocalStorage(out), "local") as bench:
        declared = read_rows(source, "declared", DECLARED)
        live = read_rows(source, "live", LIVE)
        names = sorted(row["cluster"] for row in live if row["kind"] == CLUSTER)
        tables = LocalTables(declared, live, names)
        audit = write_audit(bench, tables, AuditRun("local", "synthetic", began), None, lambda _: None)
        bench.storage.write("summary.json", dump_summary(audit.summary))
        bench.storage.write("report.md", render_audit_markdown(audit))
        bench.storage.write("report.html", render_audit_page(audit))


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet.engines", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder of the generated fleets"
    )
    parser.add_argument(
        "--topics", type=int, nargs="+", default=[1_000, 20_000, 50_000, 100_000], metavar="N"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="number of rounds; figures are medians"
    )
    options = parser.parse_args()
    print("| topics | local | Spark | local / Spark | memory of the local engine |")
    print("|---:|---:|---:|---:|---:|")
    for topics in options.topics:
        data, out = options.data / str(topics), options.data / "out"
        write(data, _CLUSTERS, topics // _CLUSTERS)
        out.mkdir(exist_ok=True)
        costs: dict[str, list[tuple[float, float]]] = {"local": [], "spark": []}
        with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as cache:
            for number in range(options.rounds):
                for name, module in (
                    ("local", "benchmarks.fleet.engines"),
                    ("spark", "benchmarks.fleet.cold"),
                ):
                    target = out / f"{name}-{topics}-{number}"
                    cost = run([module, str(data), str(target), "all"], out, environment(Path(cache)))
                    costs[name].append((cost.wall_s, cost.peak_mb))
        local, spark = (
            [statistics.median(values) for values in zip(*costs[name], strict=True)] for name in costs
        )
        print(
            f"| {topics:,} | {local[0]:.1f} s | {spark[0]:.1f} s | {local[0] / spark[0]:.2f} × "
            f"| {local[1]:.0f} MB |",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[3:] == ["all"]:
        audit_locally(*map(Path, sys.argv[1:3]))
    else:
        main()
