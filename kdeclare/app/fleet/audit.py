"""Audit a fleet: find drift and its age, policy violations, and the owners of resources."""

import os
from collections.abc import Mapping
from dataclasses import replace

from kdeclare.app.fleet.audit_records import DEFAULT_AUDIT_OPTIONS, AuditOptions, list_audits
from kdeclare.app.fleet.engine_choice import choose_engine
from kdeclare.app.fleet.job import Engine, FleetOptions
from kdeclare.app.fleet.local_audit import audit_locally
from kdeclare.app.fleet.snapshot import read_snapshot_record
from kdeclare.app.fleet.spark_audit import audit_on_spark
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.fleet.audit_summary import Audit
from kdeclare.fleet.tables.storage import find_local_storage
from kdeclare.manifests.fleet.accepted_drift_file import load_accepted_drift
from kdeclare.manifests.fleet.fleet_file import open_fleet

__all__ = ["DEFAULT_AUDIT_OPTIONS", "AuditOptions", "audit_fleet"]


def audit_fleet(
    options: FleetOptions,
    audit_options: AuditOptions = DEFAULT_AUDIT_OPTIONS,
    environ: Mapping[str, str] = os.environ,
    progress: Progress = ignore_progress,
) -> Audit:
    """Compare every cluster with its manifests, and write tables and reports to ``options.out``.

    ``options.engine`` selects the engine: this process, or Spark, which needs Java. The results are written
    completely or not at all. An unreachable cluster is in the results with its error. Raises KdeclareError if
    the fleet file, a folder or an earlier audit is invalid, or if Spark fails.
    """
    _check_local_folders(options, audit_options)
    audit_options = replace(audit_options, accepted=load_accepted_drift(open_fleet(options.fleet, environ)))
    snapshot_folder = audit_options.snapshot and audit_options.snapshot[0]
    if choose_engine(options, environ, snapshot_folder) is Engine.LOCAL:
        return audit_locally(options, audit_options, environ, progress)
    return audit_on_spark(options, audit_options, environ, progress)


def _check_local_folders(options: FleetOptions, audit_options: AuditOptions) -> None:
    """Check that the chosen audit and snapshot exist, if their folders are local. Raises KdeclareError.

    Called before Spark is started, so that a wrong id is reported immediately.
    """
    results_storage = find_local_storage(options.out)
    if results_storage is not None:
        list_audits(results_storage, audit_options.since)
    snapshot_folder, snapshot_id = audit_options.snapshot or (None, "")
    snapshot_storage = find_local_storage(snapshot_folder) if snapshot_folder is not None else None
    if snapshot_storage is not None:
        read_snapshot_record(snapshot_storage, snapshot_id)
