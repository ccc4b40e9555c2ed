"""Read the findings about one resource from all stored audits."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from kdeclare.app.fleet.audit_records import build_table_path, read_audit_summary
from kdeclare.app.fleet.engine_choice import choose_engine
from kdeclare.app.fleet.job import Engine, FleetOptions, open_spark_storage
from kdeclare.app.fleet.local_job import require_local_storage
from kdeclare.app.fleet.stored_findings import build_no_audit_error
from kdeclare.core.progress import Progress
from kdeclare.fleet.audit_results import MEMORY_TABLES
from kdeclare.fleet.audit_summary import require_all_rows
from kdeclare.fleet.history.finding_history import (
    FindingEpisode,
    FindingSubject,
    ResourceAudit,
    list_episodes,
    select_subject,
)
from kdeclare.fleet.tables.records import AUDITS, list_record_ids
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import FINDINGS
from kdeclare.fleet.tables.storage import Storage

_ReadRows = Callable[[str], tuple[int, list[Row]]]
"""Reads the table at a path.

Returns the total number of rows, and the rows about the resource whose history is shown.
"""


def read_finding_history(
    options: FleetOptions, subject: FindingSubject, environ: Mapping[str, str], progress: Progress
) -> tuple[FindingEpisode, ...]:
    """Return the findings about one object, in the order in which they were first seen.

    Audits that do not include the cluster are left out.

    options: ``out`` is the folder of audits.

    Raises KdeclareError if there is no audit, or if rows of an audit are missing.
    """
    with _open_findings(options, subject, environ, progress) as (storage, read_rows):
        audit_ids = list_record_ids(storage, AUDITS)
        if not audit_ids:
            raise build_no_audit_error(f"There is no audit in {storage.uri}.", audit_ids)
        audits = []
        for number, audit_id in enumerate(audit_ids):
            progress("Reading findings", number, len(audit_ids))
            summary = read_audit_summary(storage, audit_id)
            if all(item.name != subject.cluster for item in summary.clusters):
                continue
            tables = []
            for name in MEMORY_TABLES:
                path = build_table_path(name, audit_id)
                count, rows = read_rows(path)
                require_all_rows(summary, name, count, f"{storage.uri}/{path}")
                tables.append(rows)
            audits.append(ResourceAudit(summary.taken_at, *tables))
    return tuple(list_episodes(audits))


@contextmanager
def _open_findings(
    options: FleetOptions, subject: FindingSubject, environ: Mapping[str, str], progress: Progress
) -> Iterator[tuple[Storage, _ReadRows]]:
    if choose_engine(options, environ) is Engine.LOCAL:
        from kdeclare.fleet.local.tables import read_rows

        local_storage = require_local_storage("--audits", options.out)

        def read_local_rows(path: str) -> tuple[int, list[Row]]:
            rows = read_rows(local_storage, path, FINDINGS)
            return len(rows), [dict(row) for row in select_subject(rows, subject)]

        yield local_storage, read_local_rows
        return
    from kdeclare.fleet.spark.history import read_subject_findings

    progress("Starting Spark", 0, 0)
    with open_spark_storage(options) as (spark, storage):
        yield storage, lambda path: read_subject_findings(spark, storage, path, subject)
