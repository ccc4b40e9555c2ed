"""``python -m benchmarks.fleet.cold DATA OUT [all]``: audit the two tables of a fleet in a new process."""

import sys
from datetime import UTC, datetime
from pathlib import Path

from kdeclare.fleet.audit_summary import AuditRun, dump_summary
from kdeclare.fleet.spark.audit import ComparedTables, summarize_audit, write_findings
from kdeclare.fleet.spark.diff import AuditCoverage
from kdeclare.fleet.spark.overview import read_counts
from kdeclare.fleet.spark.session import spark_session
from kdeclare.fleet.spark.tables import open_workbench, to_spark_schema
from kdeclare.fleet.tables.rows import DECLARED, LIVE
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.report.fleet.audit_markdown import render_audit_markdown
from kdeclare.report.fleet.audit_page import render_audit_page


def main() -> None:
    """Run the steps of ``kdeclare fleet audit`` that follow the creation of both tables."""
    data, out = map(Path, sys.argv[1:3])
    began = datetime.now(UTC)
    storage = LocalStorage(out)
    with spark_session("local[2]", {}, log=None) as spark, open_workbench(spark, storage, "cold") as bench:
        declared = spark.read.schema(to_spark_schema(DECLARED)).parquet(str(data / "declared"))
        live = spark.read.schema(to_spark_schema(LIVE)).parquet(str(data / "live"))
        counts = read_counts(declared, live)
        overview = counts.require_complete(sorted(counts.rows))
        coverage = AuditCoverage((), unmanaged_keys="all" in sys.argv[3:])
        tables = ComparedTables(declared, live, overview, coverage)
        run = AuditRun("cold", "synthetic", began)
        known = write_findings(bench, tables, run, lambda _: None)
        audit = summarize_audit(bench, tables, run, None, known)
        storage.write("summary.json", dump_summary(audit.summary))
        storage.write("report.md", render_audit_markdown(audit))
        storage.write("report.html", render_audit_page(audit))


if __name__ == "__main__":
    main()
