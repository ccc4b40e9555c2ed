"""Read the findings of stored audits, without reading the clusters again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from kdeclare.app.fleet.audit_records import LATEST, ReadTable, read_audit_summary, read_audit_table
from kdeclare.app.fleet.engine_choice import choose_engine
from kdeclare.app.fleet.job import Engine, FleetOptions, open_spark_storage
from kdeclare.app.fleet.local_job import require_local_storage
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.progress import Progress
from kdeclare.fleet.audit_results import MEMORY_TABLES
from kdeclare.fleet.audit_summary import AuditSummary
from kdeclare.fleet.findings import AuditRow
from kdeclare.fleet.stored_findings import ComparedFindings, compare_findings
from kdeclare.fleet.tables.record_ids import find_earlier_id
from kdeclare.fleet.tables.records import AUDITS, list_record_ids
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import FINDINGS
from kdeclare.fleet.tables.storage import Storage


@dataclass(frozen=True, slots=True)
class StoredFindings:
    """The findings of a stored audit.

    since: the audit with which the findings are compared; None without ``--since``.
    """

    summary: AuditSummary
    since: AuditSummary | None
    compared: ComparedFindings


def read_stored_findings(
    options: FleetOptions,
    audit_id: str,
    since: str | None,
    is_selected: Callable[[AuditSummary, AuditRow], bool],
    environ: Mapping[str, str],
    progress: Progress,
) -> StoredFindings:
    """Read the findings of an audit, and compare them with those of an earlier audit.

    audit_id: the id of the audit, or ``latest``.
    since: see `find_earlier_id`; None to show the status that the audit itself recorded for each finding.
    is_selected: returns whether the result includes a finding.

    Raises KdeclareError.
    """
    with open_audits(options, environ, progress) as (storage, read_table):
        audit_ids = list_record_ids(storage, AUDITS)
        shown_id = find_audit(storage, audit_ids, audit_id)
        baseline_id = find_baseline(since, audit_ids, shown_id)
        summary = read_audit_summary(storage, shown_id)
        baseline = None if baseline_id is None else read_audit_summary(storage, baseline_id)
        progress("Reading findings", 0, 0)

        def read_rows(audit: AuditSummary) -> Iterator[list[Row]]:
            return (read_audit_table(storage, audit, name, read_table) for name in MEMORY_TABLES)

        open_rows, unseen_rows = read_rows(summary)
        earlier = None
        if baseline is not None:
            earlier = [row for rows in read_rows(baseline) for row in rows]
    clusters = {cluster.name for cluster in summary.clusters}
    compared = compare_findings(
        open_rows, unseen_rows, earlier, clusters, lambda row: is_selected(summary, row)
    )
    return StoredFindings(summary, baseline, compared)


@contextmanager
def open_audits(
    options: FleetOptions, environ: Mapping[str, str], progress: Progress
) -> Iterator[tuple[Storage, ReadTable]]:
    """Open the folder of audits with the chosen engine. Yield the folder and a function that reads tables.

    Raises KdeclareError.
    """
    if choose_engine(options, environ) is Engine.LOCAL:
        from kdeclare.fleet.local.tables import read_rows

        local_storage = require_local_storage("--out", options.out)
        yield local_storage, lambda path: read_rows(local_storage, path, FINDINGS)
        return
    from kdeclare.fleet.spark.spark_errors import translate_spark_errors
    from kdeclare.fleet.spark.tables import read_table

    progress("Starting Spark", 0, 0)
    with open_spark_storage(options) as (spark, storage):

        def collect(path: str) -> list[Row]:
            with translate_spark_errors():
                return [row.asDict() for row in read_table(spark, storage, path, FINDINGS).collect()]

        yield storage, collect


def find_audit(storage: Storage, audit_ids: Sequence[str], audit_id: str) -> str:
    """Return the id of an audit that exists. audit_id: the id, or ``latest``. Raises KdeclareError."""
    if not audit_ids or audit_id not in (LATEST, *audit_ids):
        name = f" '{audit_id}'" if audit_ids else ""
        raise build_no_audit_error(f"There is no audit{name} in {storage.uri}.", audit_ids)
    return audit_ids[-1] if audit_id == LATEST else audit_id


def find_baseline(since: str | None, audit_ids: tuple[str, ...], shown_id: str) -> str | None:
    """Return the id of the earlier audit that ``since`` selects; None if ``since`` is None.

    Raises KdeclareError.
    """
    if since is None:
        return None
    try:
        return find_earlier_id(since, audit_ids, shown_id, "audit")
    except ValueError as reason:
        raise build_no_audit_error(str(reason), audit_ids) from None


def build_no_audit_error(detail: str, audit_ids: Sequence[str]) -> KdeclareError:
    """Return the error about an audit that does not exist. audit_ids: the existing audits."""
    hint = (
        f"Use the id of a recent audit: {', '.join(audit_ids[-5:])}."
        if audit_ids
        else "Use --out to pass the folder that kdeclare fleet audit wrote."
    )
    return KdeclareError(error("no-audit", "No such audit", detail, hint=hint))
