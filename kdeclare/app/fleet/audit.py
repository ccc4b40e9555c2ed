"""Auditing a fleet: what has drifted anywhere, since when, what policies say, and who should care."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kdeclare.app.fleet.job import Collected, FleetJob, FleetOptions, collect, fleet_job
from kdeclare.app.fleet.reach import Reach
from kdeclare.app.fleet.reading import read_declared
from kdeclare.app.fleet.snapshot import collect_live, snapshot_record
from kdeclare.app.policies import policies_in_force
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.progress import Progress, quietly
from kdeclare.core.provider.registry import CODECS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.policy_subjects import (
    Review,
    ReviewInputs,
    find_snapshot_judge,
)
from kdeclare.fleet.cluster_pass import NOTHING_KNOWN, Judge, Judged, KnownResources, Labels
from kdeclare.fleet.encoding import Row, unreachable_row
from kdeclare.fleet.findings import Audit, AuditRun, AuditSummary, Earlier, summary_from_json, summary_json
from kdeclare.fleet.rows import DECLARED, FINDINGS, LIVE, refuse_incomplete
from kdeclare.fleet.snapshots import SnapshotRecord
from kdeclare.fleet.storage import AUDITS, Storage, folder_here, records, refuse_other_fleet
from kdeclare.policy.checking import check_existing
from kdeclare.policy.configured import ConfiguredPolicy, by_kind
from kdeclare.policy.plain import PlainSubjects
from kdeclare.policy.subjects import subjects_of
from kdeclare.report.fleet.audit_markdown import audit_markdown
from kdeclare.report.fleet.audit_page import audit_html

if TYPE_CHECKING:
    from kdeclare.fleet.spark.audit import Compared
    from kdeclare.fleet.spark.tables import DataFrame, Workbench


_LATEST = "latest"


def known_audits(storage: Storage, since: str | None) -> tuple[str, ...]:
    """The ids of all audits of a folder, oldest first.

    since: an id, ``latest``, or None where any will do. Raises KdeclareError where it is not among them.
    """
    known = records(storage, AUDITS)
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


def earlier_audits(storage: Storage, since: str | None) -> Earlier | None:
    """The latest audit of a folder, and that to compare with; None where it holds none yet.

    since: as of `known_audits`. Raises KdeclareError.
    """
    known = known_audits(storage, since)
    if not known:
        return None
    newest = _summary(storage, known[-1])
    if since is None or since in (_LATEST, known[-1]):
        return Earlier(newest, newest)
    return Earlier(newest, _summary(storage, since))


def _summary(storage: Storage, audit_id: str) -> AuditSummary:
    path = f"{AUDITS}/{audit_id}.json"
    return summary_from_json(storage.read(path), f"{storage.uri}/{path}")


def judge_of(reach: Reach, name: str) -> Judge | None:
    """The judge of one cluster; for `fleet.spark.audit`, which calls it where the task runs."""

    def judge(
        live: LiveState, objects: Sequence[ResourceId], labels: Labels, known: KnownResources
    ) -> Judged:
        with reach.files(), policies_in_force(reach.workspace(name)) as in_force:
            return judge_objects(in_force.policies, live, objects, labels, known)

    return judge


def judge_objects(
    policies: Sequence[ConfiguredPolicy],
    live: LiveState,
    objects: Sequence[ResourceId],
    labels: Labels,
    known: KnownResources = NOTHING_KNOWN,
) -> Judged:
    """What policies say of objects of a snapshot, which have the names of their resources."""
    told: list[Judged] = []
    for kind, asked in by_kind(policies).items():
        own = {item.name: mine for item, mine in labels.items() if item.kind == kind}
        names = [item.name for item in objects if item.kind == kind]
        judge, subjects = find_snapshot_judge(kind), subjects_of(kind)
        start: Callable[[], Review]
        if kind in known.unread:
            told.append(Judged(unread=[policy.name for policy in asked]))
            continue
        if judge is not None:
            start = partial(judge.start_snapshot_review, live, names, own)
        elif isinstance(subjects, PlainSubjects) and kind in CODECS:
            desired, owned = known.find_desired(kind), known.find_owned(kind)
            names = subjects.find_existing(names, desired, live, owned)
            inputs = ReviewInputs(Connections(), live=live, labels=own, desired=desired, owned=owned)
            start = partial(subjects.review_snapshot, inputs)
        else:
            told.append(Judged(open=[policy.name for policy in asked]))
            continue
        if names:
            told.append(_ask(asked, kind, start, names))
    return _join(told)


def _ask(
    policies: Sequence[ConfiguredPolicy], kind: str, start: Callable[[], Review], names: Sequence[str]
) -> Judged:
    """All policies at once; where one wants what no snapshot holds, each alone."""
    try:
        found = check_existing(policies, kind, names, start())
        return Judged([verdict for verdicts in found for verdict in verdicts])
    except Fault:
        if len(policies) == 1:
            return Judged(open=[policies[0].name])
    return _join([_ask((policy,), kind, start, names) for policy in policies])


def _join(told: Sequence[Judged]) -> Judged:
    return Judged(
        [verdict for found in told for verdict in found.verdicts],
        [policy for found in told for policy in found.open],
        [policy for found in told for policy in found.unread],
    )


_DECLARED = Collected("declared", DECLARED, "Reading manifests", by_cluster=False)


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


EVERYTHING = Looking()
"""The clusters as they are, compared with the folder's latest audit."""


def audit_fleet(
    options: FleetOptions,
    looking: Looking = EVERYTHING,
    environ: Mapping[str, str] = os.environ,
    progress: Progress = quietly,
) -> Audit:
    """Compare every cluster with what is declared, and write tables and reports below ``options.out``.

    Runs on Spark, and needs Java. All of it is written, or nothing. A cluster that cannot be reached is in
    the audit with its error. Raises KdeclareError for a fleet file, a folder or an earlier audit that cannot
    be used, and where Spark fails.
    """
    from kdeclare.fleet.spark.audit import TABLES, summed_up, write_findings
    from kdeclare.fleet.spark.progress import watched
    from kdeclare.fleet.spark.tables import workbench

    _refuse_early(options, looking)
    with (
        fleet_job(options, environ, progress, looking.snapshot and looking.snapshot[0]) as job,
        workbench(job.spark, job.storage, job.identity) as bench,
    ):
        run = AuditRun(job.identity, job.fleet.name, job.began)
        before = earlier_audits(job.storage, looking.since)
        collect(job, bench, _DECLARED, partial(read_declared, job.reach))
        tables = _tables(job, bench, looking, before)
        with watched(job.spark, progress, "Comparing"):
            known = write_findings(bench, tables, partial(judge_of, job.reach))
        with watched(job.spark, progress, "Summing up"):
            audit = summed_up(bench, tables, run, before, known)
        audit = replace(audit, summary=replace(audit.summary, seconds=job.seconds))
        with bench.published({name: _place(name, job.identity) for name in TABLES}):
            job.storage.write_all(_reports(audit))
        return audit


def _tables(job: FleetJob, bench: "Workbench", looking: Looking, before: Earlier | None) -> "Compared":
    """All that is compared. Raises KdeclareError."""
    from kdeclare.fleet.spark.audit import Compared
    from kdeclare.fleet.spark.diff import Sight

    sight = Sight(job.names, job.fleet.left_out, looking.unmanaged_keys)
    tables = Compared(bench.read("declared", DECLARED), _live(job, bench, looking), sight)
    if before is None:
        return tables
    newest, since = before.newest.audit_id, before.since.audit_id
    remembered = {name: _remembered(job, name) for name in {newest, since}}
    return replace(tables, newest=remembered[newest], since=remembered[since])


def _remembered(job: FleetJob, audit_id: str) -> "DataFrame":
    """What an audit knew: what it found, and what it had not looked at again."""
    from kdeclare.fleet.spark.audit import REMEMBERED
    from kdeclare.fleet.spark.tables import read_table

    found, unseen = (
        read_table(job.spark, job.storage, _place(name, audit_id), FINDINGS) for name in REMEMBERED
    )
    return found.unionByName(unseen)


def _place(table: str, audit_id: str) -> str:
    return f"{table}/audit_id={audit_id}"


def _refuse_early(options: FleetOptions, looking: Looking) -> None:
    """Tell what folders of this machine lack before Spark is started."""
    out = folder_here(options.out)
    if out is not None:
        known_audits(out, looking.since)
    folder, wanted = looking.snapshot or (None, "")
    snapshots = folder_here(folder) if folder is not None else None
    if snapshots is not None:
        snapshot_record(snapshots, wanted)


def _live(job: FleetJob, bench: "Workbench", looking: Looking) -> "DataFrame":
    from kdeclare.fleet.spark.audit import refuse_altered
    from kdeclare.fleet.spark.counting import rows_by_cluster
    from kdeclare.fleet.spark.hadoop import open_storage
    from kdeclare.fleet.spark.tables import itself, read_table, with_unreachable

    if looking.snapshot is None:
        collect_live(job, bench)
        return bench.read("live", LIVE)
    folder, wanted = looking.snapshot
    storage = open_storage(folder, job.spark)
    refuse_other_fleet(storage, job.fleet.name)
    record = snapshot_record(storage, wanted)
    live = read_table(job.spark, storage, record.path, LIVE)
    live = live.where(live.cluster.isin(list(job.names)))
    known = [cluster for cluster in record.clusters if cluster.name in job.names]
    refuse_altered(live, known, f"{storage.uri}/{record.path}")
    live = with_unreachable(live, _missing_rows(job, record))
    refuse_incomplete("live", rows_by_cluster(itself(live)), job.names)
    return live


def _missing_rows(job: FleetJob, record: SnapshotRecord) -> list[Row]:
    """The rows of clusters that a snapshot does not name: nothing is known of them."""
    known = {cluster.name for cluster in record.clusters}
    reason = f"Snapshot {record.snapshot_id} does not have this cluster."
    return [
        unreachable_row(entry.name, entry.labels, record.taken_at, reason)
        for entry in job.fleet.clusters
        if entry.name not in known
    ]


def _reports(audit: Audit) -> Mapping[str, str]:
    """The latest face of a folder, and last the record, which is what makes the audit exist."""
    document = summary_json(audit.summary)
    return {
        "report.html": audit_html(audit),
        "report.md": audit_markdown(audit),
        "summary.json": document,
        f"{AUDITS}/{audit.summary.audit_id}.json": document,
    }
