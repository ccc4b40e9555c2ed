"""What ``connect worker-config`` says, for scripts."""

from collections.abc import Sequence
from typing import Any

from kdeclare.core.changes import FieldChange
from kdeclare.core.diagnostics import in_order
from kdeclare.engine.planning.plan_document import diagnostic_document, timestamp
from kdeclare.providers.connect.worker_state import Certificate
from kdeclare.report.connect_views import (
    ChangedView,
    OverridesView,
    ProposalView,
    WorkersView,
    WorkerView,
    changed_exit_code,
    proposal_exit_code,
    workers_exit_code,
)
from kdeclare.report.values import key_of

FORMAT_VERSION = "1.0"


def overrides_document(view: OverridesView) -> dict[str, Any]:
    """The overrides; of a secret ``(sensitive)``."""
    return {"format_version": FORMAT_VERSION, "overrides": dict(sorted(view.overrides.items()))}


def workers_document(view: WorkersView) -> dict[str, Any]:
    """All workers."""
    return {
        "format_version": FORMAT_VERSION,
        "exit_code": int(workers_exit_code(view)),
        "taken_at": timestamp(view.at),
        "overrides": list(view.keys),
        "workers": [_worker(worker) for worker in view.workers],
        "diagnostics": [diagnostic_document(d) for d in in_order(view.diagnostics)],
    }


def proposal_document(view: ProposalView) -> dict[str, Any]:
    """What would change, and what every worker says of it."""
    return {
        "format_version": FORMAT_VERSION,
        "exit_code": int(proposal_exit_code(view)),
        "valid": view.is_good,
        "changes": _fields(view.fields),
        "workers": [{"url": v.url, "valid": not v.words, "message": v.words} for v in view.verdicts],
        "diagnostics": [diagnostic_document(d) for d in in_order(view.notices)],
    }


def changed_document(view: ChangedView) -> dict[str, Any]:
    """What came of a change."""
    return {
        "format_version": FORMAT_VERSION,
        "exit_code": int(changed_exit_code(view)),
        "changes": _fields(view.fields),
        "seconds": round(view.seconds, 3),
        "behind": [{"url": url, "message": why} for url, why in view.behind.items()],
        "workers": [_worker(worker) for worker in view.workers.workers],
    }


def _fields(fields: Sequence[FieldChange]) -> list[dict[str, Any]]:
    return [{"key": key_of(f.path), "op": f.op.value, "before": f.before, "after": f.after} for f in fields]


def _worker(worker: WorkerView) -> dict[str, Any]:
    status, served = worker.seen.status, worker.seen.served
    return {
        "url": worker.seen.url,
        "worker_id": status.worker_id if status else None,
        "leader": status.leader if status else None,
        "plugin_version": status.plugin_version if status else None,
        "mode": status.mode if status else None,
        "in_step": worker.is_in_step,
        "step": worker.step,
        "applied_offset": status.applied.offset if status and status.applied else None,
        "applied_at": status.applied.at if status and status.applied else None,
        "served": _certificate(served),
        "listeners": [
            {"name": one.name, "port": one.port, "certificate": _certificate(one.certificate)}
            for one in (status.listeners if status else ())
        ],
        "trouble": worker.seen.trouble,
    }


def _certificate(certificate: Certificate | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    return {
        "sha256": certificate.sha256,
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "not_before": timestamp(certificate.not_before),
        "not_after": timestamp(certificate.not_after),
    }
