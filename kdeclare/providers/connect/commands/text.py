"""The output of ``connect worker-config`` as text and as JSON documents."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.diagnostics import Severity
from kdeclare.core.documents import Diagnostics, OneOf, Second, build_document, publish_schemas
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.providers.connect.commands.describe_workers import (
    ChangeView,
    OverridesView,
    ProposalView,
    VerdictView,
    WorkersView,
    WorkerView,
    get_change_exit_code,
    get_proposal_exit_code,
    get_workers_exit_code,
)
from kdeclare.providers.connect.worker_state import Certificate, Listener
from kdeclare.report.elements.diagnostics_text import render_diagnostics
from kdeclare.report.elements.terminal import PLAIN, Cell, Column, Elision, Style, StyledCell, render_table
from kdeclare.report.elements.values import (
    format_count,
    format_duration,
    format_value,
    sanitize_for_terminal,
    strip_configs_prefix,
)

_RawValue = Annotated[
    str | None, Field(description="Null if the key is not overridden. A secret is shown as '(sensitive)'.")
]
_ExitCode = Annotated[int, Field(description="The exit code of the command.")]


@dataclass(frozen=True, slots=True)
class WorkerDocument:
    """The state of one worker."""

    url: str
    worker_id: Annotated[
        str | None,
        Field(description="Null if the worker does not respond. The next three fields are then also null."),
    ]
    leader: bool | None
    plugin_version: str | None
    mode: str | None
    in_step: Annotated[bool, Field(description="Whether the worker uses the current overrides.")]
    step: Annotated[
        str,
        Field(description="'in step', or the reason why the worker does not use the current overrides."),
    ]
    applied_offset: int | None
    applied_at: str | None
    served: Annotated[Certificate | None, Field(description="The certificate from a TLS handshake.")]
    listeners: tuple[Listener, ...]
    trouble: Annotated[str, Field(description="The reason why information is missing, or an empty string.")]


@dataclass(frozen=True, slots=True)
class WorkersDocument:
    """The state of all workers."""

    exit_code: _ExitCode
    taken_at: Annotated[Second, Field(description="UTC, ISO 8601.")]
    overrides: Annotated[tuple[str, ...], Field(description="The overridden keys.")]
    workers: tuple[WorkerDocument, ...]
    diagnostics: Diagnostics


@dataclass(frozen=True, slots=True)
class OverrideChangeDocument:
    """The change to one key. If the same value is sent again, ``before`` and ``after`` are equal."""

    key: str
    op: Annotated[str, OneOf("SET", "DELETE")]
    before: _RawValue
    after: _RawValue


@dataclass(frozen=True, slots=True)
class ProposalDocument:
    """A change that was only validated, or that a worker could not apply. Nothing was written."""

    exit_code: _ExitCode
    valid: bool
    changes: tuple[OverrideChangeDocument, ...]
    workers: tuple[VerdictView, ...]
    diagnostics: Diagnostics


@dataclass(frozen=True, slots=True)
class BehindDocument:
    """A worker that has not applied the change, and the reason."""

    url: str
    message: str


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A change that was written."""

    exit_code: _ExitCode
    changes: tuple[OverrideChangeDocument, ...]
    seconds: Annotated[
        float, Field(description="The time until all workers had applied the change, or until the timeout.")
    ]
    behind: tuple[BehindDocument, ...]
    workers: tuple[WorkerDocument, ...]


def build_connect_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of the documents of ``connect worker-config``, by name."""
    return publish_schemas(
        {
            "connect-overrides": OverridesView,
            "connect-status": WorkersDocument,
            "connect-proposal": ProposalDocument,
            "connect-change": ChangedDocument,
        }
    )


def build_workers_document(view: WorkersView) -> WorkersDocument:
    """Return the JSON document with the state of all workers."""
    workers = tuple(map(_build_worker_document, view.workers))
    return WorkersDocument(int(get_workers_exit_code(view)), view.at, view.keys, workers, view.diagnostics)


def build_proposal_document(view: ProposalView) -> ProposalDocument:
    """Return the JSON document of a proposed change, with the verdict of every worker."""
    changes = _build_change_documents(view.fields)
    return ProposalDocument(
        int(get_proposal_exit_code(view)), view.is_good, changes, view.verdicts, view.notices
    )


def build_change_document(view: ChangeView) -> ChangedDocument:
    """Return the JSON document of a change that was made."""
    return ChangedDocument(
        exit_code=int(get_change_exit_code(view)),
        changes=_build_change_documents(view.fields),
        seconds=round(view.seconds, 3),
        behind=tuple(BehindDocument(url, why) for url, why in view.behind.items()),
        workers=tuple(map(_build_worker_document, view.workers.workers)),
    )


def _build_change_documents(fields: Sequence[FieldChange]) -> tuple[OverrideChangeDocument, ...]:
    return tuple(
        build_document(
            OverrideChangeDocument, change, key=strip_configs_prefix(change.path), op=change.op.value
        )
        for change in fields
    )


def _build_worker_document(worker: WorkerView) -> WorkerDocument:
    snapshot, status = worker.seen, worker.seen.status
    applied = status.applied if status else None
    return WorkerDocument(
        url=snapshot.url,
        worker_id=status.worker_id if status else None,
        leader=status.leader if status else None,
        plugin_version=status.plugin_version if status else None,
        mode=status.mode if status else None,
        in_step=worker.is_in_step,
        step=worker.step,
        applied_offset=applied.offset if applied else None,
        applied_at=applied.at if applied else None,
        served=snapshot.served,
        listeners=status.listeners if status else (),
        trouble=snapshot.trouble,
    )


_COLUMNS = (
    Column("WORKER"),
    Column("LEADER"),
    Column("STATE"),
    Column("CERTIFICATE", elision=Elision.MIDDLE, least=16),
    Column("SHA-256"),
    Column("UNTIL"),
    Column("LEFT", right=True),
)
_FINGERPRINT = 12


def render_overrides(view: OverridesView) -> str:
    """Format the overrides as text, with one line per key."""
    if not view.overrides:
        return "No overrides: the workers use their own configuration files.\n"
    width = max(len(sanitize_for_terminal(key)) for key in view.overrides)
    lines = (
        f"{sanitize_for_terminal(key):<{width}}  {format_value(value)}\n"
        for key, value in sorted(view.overrides.items())
    )
    return "".join(lines)


def render_workers(view: WorkersView, width: int | None = None, style: Style = PLAIN) -> str:
    """Format all workers and warnings as text. width: the columns of the terminal; None for no limit."""
    warnings = [d for d in view.diagnostics if d.severity is not Severity.INFO]  # infos are in the table
    blocks = [
        _render_summary(view, style),
        _render_table(view, width, style),
        render_diagnostics(warnings, style),
    ]
    return "\n".join(block for block in blocks if block)


def render_proposal(view: ProposalView, style: Style = PLAIN) -> str:
    """Format a proposed change and the verdicts of the workers as text."""
    return "\n".join([render_fields(view.fields, style), _render_verdicts(view.verdicts, style)])


def render_change(view: ChangeView, width: int | None = None, style: Style = PLAIN) -> str:
    """Format the workers that have applied a change, and the workers that have not, as text."""
    count = len(view.workers.workers)
    elapsed = format_duration(view.seconds)
    if view.behind:
        heading = style.red(
            f"Changed, but {len(view.behind)} of {format_count(count, 'worker')} did not apply the change:"
        )
        lines = [
            heading,
            *(
                f"  {style.red('✗')} {sanitize_for_terminal(url)}  {sanitize_for_terminal(why)}"
                for url, why in view.behind.items()
            ),
        ]
    else:
        lines = [
            style.green(f"Changed; {format_count(count, 'worker')} applied the change within {elapsed}.")
        ]
    return "".join(f"{line}\n" for line in lines) + "\n" + _render_table(view.workers, width, style)


def render_fields(fields: Sequence[FieldChange], style: Style = PLAIN) -> str:
    """Format the changes to fields as text, with one line per key."""
    width = max((len(sanitize_for_terminal(strip_configs_prefix(field.path))) for field in fields), default=0)
    lines = []
    for field in fields:
        after_text = (
            "(as in the worker's own file)" if field.op is FieldOp.DELETE else format_value(field.after)
        )
        repeat_note = "  (unchanged: sent again)" if field.before == field.after else ""
        name = f"{sanitize_for_terminal(strip_configs_prefix(field.path)):<{width}}"
        lines.append(
            f"  {style.yellow('~')} {name}  {format_value(field.before)} {style.dim('→')} "
            f"{after_text}{repeat_note}\n"
        )
    return "".join(lines)


def _render_verdicts(verdicts: Sequence[VerdictView], style: Style) -> str:
    urls_by_message: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.words:
            urls_by_message.setdefault(sanitize_for_terminal(verdict.words), []).append(
                sanitize_for_terminal(verdict.url)
            )
    count, failing_count = format_count(len(verdicts), "worker"), sum(map(len, urls_by_message.values()))
    if not failing_count:
        return style.green(f"{count} can apply this change.") + "\n"
    lines = [style.red(f"{failing_count} of {count} cannot apply this change:")]
    for message, urls in urls_by_message.items():
        lines += [f"  {style.red('✗')} {', '.join(urls)}", f"      {message}"]
    return "".join(f"{line}\n" for line in lines)


def _render_summary(view: WorkersView, style: Style) -> str:
    count, in_step_count = len(view.workers), sum(worker.is_in_step for worker in view.workers)
    keys = format_count(len(view.keys), "override")
    text = f"{in_step_count} of {format_count(count, 'worker')} in step with {keys}."
    return (style.green(text) if in_step_count == count else style.red(text)) + "\n"


def _render_table(view: WorkersView, width: int | None, style: Style) -> str:
    rows = [_build_row(worker, view.at, style) for worker in view.workers]
    return "".join(f"{line}\n" for line in render_table(_COLUMNS, rows, width, style))


def _build_row(worker: WorkerView, taken_at: datetime, style: Style) -> tuple[Cell, ...]:
    status, certificate = worker.seen.status, worker.seen.served
    leader_text = {True: "yes", False: "no", None: "?"}[status.leader] if status else "?"
    paint = style.green if worker.is_in_step else style.red
    return (
        sanitize_for_terminal(worker.seen.url),
        leader_text,
        StyledCell(_format_state(worker), paint),
        *(_format_certificate(certificate, taken_at) if certificate else ("", "", "", "")),
    )


def _format_state(worker: WorkerView) -> str:
    """Return the state of a worker in one word. The diagnostics contain the details."""
    if worker.is_in_step:
        return "in step"
    status = worker.seen.status
    return "silent" if status is None else "refused" if status.error else "behind"


def _format_certificate(certificate: Certificate, taken_at: datetime) -> Iterator[Cell]:
    yield sanitize_for_terminal(certificate.subject)
    yield certificate.sha256[:_FINGERPRINT]
    yield f"{certificate.not_after:%Y-%m-%d}"
    remaining = certificate.not_after - taken_at
    yield "expired" if remaining <= timedelta(0) else format_count(remaining.days, "day")
