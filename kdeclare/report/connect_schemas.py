"""The JSON Schemas of what ``connect worker-config`` prints."""

from typing import Annotated, Any, Literal

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.engine.planning.planfile_schema import CLOSED, DiagnosticDocument
from kdeclare.report.schemas import schemas_of

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
