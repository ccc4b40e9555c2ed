"""``python -m benchmarks.fleet.cold DATA OUT [all]``: an audit of two tables, from the start of a process."""

import sys
from datetime import UTC, datetime
from pathlib import Path

from kdeclare.fleet.findings import AuditRun, summary_json
from kdeclare.fleet.rows import DECLARED, LIVE
from kdeclare.fleet.spark.audit import Compared, summed_up, write_findings
from kdeclare.fleet.spark.diff import Sight
from kdeclare.fleet.spark.session import spark_session
from kdeclare.fleet.spark.tables import schema_of, workbench
from kdeclare.fleet.storage import LocalStorage
from kdeclare.report.fleet.audit_markdown import audit_markdown
from kdeclare.report.fleet.audit_page import audit_html


def main() -> None:
    """What ``kdeclare fleet audit`` does once both tables are there; ``all`` with unmanaged keys."""
    data, out = map(Path, sys.argv[1:3])
    began = datetime.now(UTC)
    storage = LocalStorage(out)
    with spark_session("local[2]", {}, log=None) as spark, workbench(spark, storage, "cold") as bench:
        declared = spark.read.schema(schema_of(DECLARED)).parquet(str(data / "declared"))
        live = spark.read.schema(schema_of(LIVE)).parquet(str(data / "live"))
        tables = Compared(declared, live, Sight((), unmanaged_keys="all" in sys.argv[3:]))
        known = write_findings(bench, tables, lambda _: None)
        audit = summed_up(bench, tables, AuditRun("cold", "synthetic", began), None, known)
        storage.write("summary.json", summary_json(audit.summary))
        storage.write("report.md", audit_markdown(audit))
        storage.write("report.html", audit_html(audit))


if __name__ == "__main__":
    main()
