"""Auditing a fleet: what has drifted anywhere, since when, and who should care."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from kdeclare.app.fleet.job import FleetJob, FleetOptions, fleet_job
from kdeclare.app.fleet.judging import judge_of
from kdeclare.app.fleet.reading import read_declared
from kdeclare.app.fleet.snapshot import collect_live, snapshot_record
from kdeclare.fleet.local_storage import folder_here
from kdeclare.fleet.rows import DECLARED, FINDINGS, LIVE
from kdeclare.fleet.storage import Storage
from kdeclare.fleet.summary import Audit, AuditSummary
from kdeclare.model.diagnostics import KdeclareError, error
from kdeclare.planning.preflight import Progress
from kdeclare.report.audit_html import audit_html
from kdeclare.report.audit_json import summary_from_json, summary_json
from kdeclare.report.audit_markdown import audit_markdown

if TYPE_CHECKING:
    from kdeclare.fleet.spark.tables import DataFrame, Workbench

_AUDITS = "audits"
_LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Looking:
    """What an audit looks at.

    snapshot: the folder of the snapshot to take for live, and which one (an id, or ``latest``); None
        reads the clusters. since: the id of the audit to compare with; None is the latest of the folder.
    unmanaged_keys: whether keys of declared resources that nobody declared are findings.
    """

    snapshot: tuple[str, str] | None = None
    since: str | None = None
    unmanaged_keys: bool = True


def audit_fleet(
    options: FleetOptions, looking: Looking, environ: Mapping[str, str], progress: Progress
) -> Audit:
    """Compare every cluster with what is declared, and write tables and reports. Raises KdeclareError.

    All of it is written, or nothing.
    """
    from kdeclare.fleet.spark.auditing import TABLES, Compared, summed_up, write_findings
    from kdeclare.fleet.spark.progress import watched
    from kdeclare.fleet.spark.tables import read_table, workbench

    _refuse_early(options, looking)
    with (
        fleet_job(options, environ, progress) as job,
        workbench(job.spark, job.storage, job.identity) as bench,
    ):
        earlier = _earlier(job.storage, looking.since)
        _collect_declared(job, bench)
        live = _live(job, bench, looking)
        before = f"findings/audit_id={earlier.audit_id}" if earlier else None
        tables = Compared(
            bench.read("declared", DECLARED),
            live,
            read_table(job.spark, job.storage, before, FINDINGS) if before else None,
        )
        with watched(job.spark, progress, "Comparing"):
            write_findings(bench, tables, partial(judge_of, job.reach), unmanaged_keys=looking.unmanaged_keys)
        with watched(job.spark, progress, "Summing up"):
            audit = summed_up(bench, tables, job.identity, job.fleet.name, job.began, earlier)
        audit = replace(audit, summary=replace(audit.summary, seconds=job.seconds))
        with bench.published({name: f"{name}/audit_id={job.identity}" for name in TABLES}):
            job.storage.write_all(_reports(audit))
        return audit


def audits(storage: Storage) -> tuple[str, ...]:
    """The ids of all audits of a folder, oldest first."""
    return tuple(name.removesuffix(".json") for name in storage.names(_AUDITS) if name.endswith(".json"))


def _earlier(storage: Storage, since: str | None) -> AuditSummary | None:
    """The audit to compare with, if there is one. Raises KdeclareError."""
    known = _known(storage, since)
    if not known:
        return None
    path = f"{_AUDITS}/{since if since in known else known[-1]}.json"
    return summary_from_json(storage.read(path), f"{storage.uri}/{path}")


def _known(storage: Storage, since: str | None) -> tuple[str, ...]:
    """All audits of a folder. Raises KdeclareError where that to compare with is not among them."""
    known = audits(storage)
    if since not in (None, _LATEST, *known):
        raise KdeclareError(
            error(
                "no-audit",
                "No such audit",
                f"{storage.uri} holds no audit '{since}'.",
                hint=f"It holds {', '.join(known[-5:]) or 'none yet'}.",
            )
        )
    if since == _LATEST and not known:
        raise KdeclareError(
            error("no-audit", "No audit yet", f"{storage.uri} holds no audit to compare with.")
        )
    return known


def _refuse_early(options: FleetOptions, looking: Looking) -> None:
    """Tell what folders of this machine lack before Spark is started."""
    out = folder_here(options.out)
    if out is not None:
        _known(out, looking.since)
    folder, wanted = looking.snapshot or (None, "")
    snapshots = folder_here(folder) if folder is not None else None
    if snapshots is not None:
        snapshot_record(snapshots, wanted)


def _live(job: FleetJob, bench: "Workbench", looking: Looking) -> "DataFrame":
    from kdeclare.fleet.spark.auditing import refuse_altered
    from kdeclare.fleet.spark.hadoop import open_storage
    from kdeclare.fleet.spark.tables import read_table

    if looking.snapshot is None:
        collect_live(job, bench)
        return bench.read("live", LIVE)
    folder, wanted = looking.snapshot
    storage = open_storage(folder, job.spark)
    record = snapshot_record(storage, wanted)
    live = read_table(job.spark, storage, record.path, LIVE)
    live = live.where(live.cluster.isin(list(job.names)))
    refuse_altered(live, [c for c in record.clusters if c.name in job.names], f"{storage.uri}/{record.path}")
    return live


def _collect_declared(job: FleetJob, bench: "Workbench") -> None:
    from kdeclare.fleet.spark.progress import watched
    from kdeclare.fleet.spark.tasks import each_cluster

    rows = each_cluster(
        job.spark, job.names, partial(read_declared, job.reach), DECLARED, at_once=job.fleet.max_concurrent
    )
    with watched(job.spark, job.progress, "Reading manifests"):
        bench.write(rows, "declared")


def _reports(audit: Audit) -> Mapping[str, str]:
    """The latest face of a folder, and last the record, which is what makes the audit exist."""
    document = summary_json(audit.summary)
    return {
        "report.html": audit_html(audit),
        "report.md": audit_markdown(audit),
        "summary.json": document,
        f"{_AUDITS}/{audit.summary.audit_id}.json": document,
    }
