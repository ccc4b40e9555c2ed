"""The JSON documents of ``connect worker-config``: what they hold, and how they are made."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.core.changes import FieldChange
from kdeclare.core.diagnostics import in_order
from kdeclare.engine.planning.plan_document import diagnostic_document, timestamp
from kdeclare.engine.planning.planfile_schema import CLOSED, DiagnosticDocument
from kdeclare.providers.connect.commands.views import (
    ChangedView,
    OverridesView,
    ProposalView,
    WorkersView,
    WorkerView,
    changed_exit_code,
    proposal_exit_code,
    workers_exit_code,
)
from kdeclare.providers.connect.worker_state import Certificate
from kdeclare.report.schemas import schemas_of
from kdeclare.report.values import key_of

_Raw = Annotated[str | None, Field(description="Null: not overridden. A secret is '(sensitive)'.")]
_Moment = Annotated[str, Field(description="UTC, ISO 8601.")]
_ExitCode = Annotated[int, Field(description="The command's own.")]


@with_config(CLOSED)
class CertificateDocument(TypedDict):
    """The leaf of a chain."""

    sha256: Annotated[str, Field(description="Hex of its DER.")]
    subject: str
    issuer: str
    not_before: _Moment
    not_after: _Moment


@with_config(CLOSED)
class ListenerDocument(TypedDict):
    """One listener, as its worker tells of it."""

    name: str
    port: int
    certificate: Annotated[CertificateDocument | None, Field(description="Null without TLS.")]


@with_config(CLOSED)
class WorkerDocument(TypedDict):
    """One worker."""

    url: str
    worker_id: Annotated[str | None, Field(description="Null, as the next three, where it is silent.")]
    leader: bool | None
    plugin_version: str | None
    mode: str | None
    in_step: Annotated[bool, Field(description="Whether it runs on the overrides as they are.")]
    step: Annotated[str, Field(description="'in step', or why it is not.")]
    applied_offset: int | None
    applied_at: str | None
    served: Annotated[CertificateDocument | None, Field(description="What a handshake of our own showed.")]
    listeners: list[ListenerDocument]
    trouble: Annotated[str, Field(description="Why something of it is not known; empty if nothing is.")]


@with_config(CLOSED)
class OverridesDocument(TypedDict):
    """What the workers share."""

    format_version: Literal["1.0"]
    overrides: Annotated[dict[str, str], Field(description="A secret is '(sensitive)'.")]


@with_config(CLOSED)
class WorkersDocument(TypedDict):
    """All workers at one time."""

    format_version: Literal["1.0"]
    exit_code: _ExitCode
    taken_at: _Moment
    overrides: Annotated[list[str], Field(description="The keys that are overridden.")]
    workers: list[WorkerDocument]
    diagnostics: list[DiagnosticDocument]


@with_config(CLOSED)
class OverrideChangeDocument(TypedDict):
    """One key; equal before and after where it is sent once more."""

    key: str
    op: Literal["SET", "DELETE"]
    before: _Raw
    after: _Raw


@with_config(CLOSED)
class VerdictOfWorkerDocument(TypedDict):
    """What one worker says of a change."""

    url: str
    valid: bool
    message: str


@with_config(CLOSED)
class ProposalDocument(TypedDict):
    """A change that was only checked, or that a worker could not apply: nothing was written."""

    format_version: Literal["1.0"]
    exit_code: _ExitCode
    valid: bool
    changes: list[OverrideChangeDocument]
    workers: list[VerdictOfWorkerDocument]
    diagnostics: list[DiagnosticDocument]


@with_config(CLOSED)
class BehindDocument(TypedDict):
    """A worker that has not followed, and why."""

    url: str
    message: str


@with_config(CLOSED)
class ChangedDocument(TypedDict):
    """A change that was written."""

    format_version: Literal["1.0"]
    exit_code: _ExitCode
    changes: list[OverrideChangeDocument]
    seconds: Annotated[float, Field(description="Until all had followed, or time was up.")]
    behind: list[BehindDocument]
    workers: list[WorkerDocument]


def connect_schemas() -> dict[str, dict[str, Any]]:
    """By name; see `schemas_of`."""
    return schemas_of(
        {
            "connect-overrides": OverridesDocument,
            "connect-status": WorkersDocument,
            "connect-proposal": ProposalDocument,
            "connect-change": ChangedDocument,
        }
    )


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
