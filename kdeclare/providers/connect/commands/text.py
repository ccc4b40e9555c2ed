"""What ``connect worker-config`` says: texts for people, and documents."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.diagnostics import Severity
from kdeclare.core.documents import Diagnostics, OneOf, Second, describe_as, publish_schemas
from kdeclare.core.frozen import dataclass
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.providers.connect.commands.describe_workers import (
    ChangedView,
    OverridesView,
    ProposalView,
    VerdictView,
    WorkersView,
    WorkerView,
    changed_exit_code,
    proposal_exit_code,
    workers_exit_code,
)
from kdeclare.providers.connect.worker_state import Certificate, Listener
from kdeclare.report.elements.diagnostics_text import diagnostics_text
from kdeclare.report.elements.terminal import PLAIN, Cell, Column, Cut, Painted, Style, table
from kdeclare.report.elements.values import clean, duration, key_of, plural, show

_Raw = Annotated[str | None, Field(description="Null: not overridden. A secret is '(sensitive)'.")]
_ExitCode = Annotated[int, Field(description="The command's own.")]


@dataclass(frozen=True, slots=True)
class WorkerDocument:
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
    served: Annotated[Certificate | None, Field(description="What a handshake of our own showed.")]
    listeners: tuple[Listener, ...]
    trouble: Annotated[str, Field(description="Why something of it is not known; empty if nothing is.")]


@dataclass(frozen=True, slots=True)
class WorkersDocument:
    """All workers at one time."""

    exit_code: _ExitCode
    taken_at: Annotated[Second, Field(description="UTC, ISO 8601.")]
    overrides: Annotated[tuple[str, ...], Field(description="The keys that are overridden.")]
    workers: tuple[WorkerDocument, ...]
    diagnostics: Diagnostics


@dataclass(frozen=True, slots=True)
class OverrideChangeDocument:
    """One key; equal before and after where it is sent once more."""

    key: str
    op: Annotated[str, OneOf("SET", "DELETE")]
    before: _Raw
    after: _Raw


@dataclass(frozen=True, slots=True)
class ProposalDocument:
    """A change that was only checked, or that a worker could not apply: nothing was written."""

    exit_code: _ExitCode
    valid: bool
    changes: tuple[OverrideChangeDocument, ...]
    workers: tuple[VerdictView, ...]
    diagnostics: Diagnostics


@dataclass(frozen=True, slots=True)
class BehindDocument:
    """A worker that has not followed, and why."""

    url: str
    message: str


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A change that was written."""

    exit_code: _ExitCode
    changes: tuple[OverrideChangeDocument, ...]
    seconds: Annotated[float, Field(description="Until all had followed, or time was up.")]
    behind: tuple[BehindDocument, ...]
    workers: tuple[WorkerDocument, ...]


def connect_schemas() -> dict[str, dict[str, Any]]:
    """By name; see `publish_schemas`."""
    return publish_schemas(
        {
            "connect-overrides": OverridesView,
            "connect-status": WorkersDocument,
            "connect-proposal": ProposalDocument,
            "connect-change": ChangedDocument,
        }
    )


def make_workers_document(view: WorkersView) -> WorkersDocument:
    """Return all workers."""
    workers = tuple(map(_describe_worker, view.workers))
    return WorkersDocument(int(workers_exit_code(view)), view.at, view.keys, workers, view.diagnostics)


def make_proposal_document(view: ProposalView) -> ProposalDocument:
    """Return what would change, and what every worker says of it."""
    changes = _describe_changes(view.fields)
    return ProposalDocument(int(proposal_exit_code(view)), view.is_good, changes, view.verdicts, view.notices)


def make_changed_document(view: ChangedView) -> ChangedDocument:
    """Return what came of a change."""
    return ChangedDocument(
        exit_code=int(changed_exit_code(view)),
        changes=_describe_changes(view.fields),
        seconds=round(view.seconds, 3),
        behind=tuple(BehindDocument(url, why) for url, why in view.behind.items()),
        workers=tuple(map(_describe_worker, view.workers.workers)),
    )


def _describe_changes(fields: Sequence[FieldChange]) -> tuple[OverrideChangeDocument, ...]:
    return tuple(
        describe_as(OverrideChangeDocument, change, key=key_of(change.path), op=change.op.value)
        for change in fields
    )


def _describe_worker(worker: WorkerView) -> WorkerDocument:
    seen, status = worker.seen, worker.seen.status
    applied = status.applied if status else None
    return WorkerDocument(
        url=seen.url,
        worker_id=status.worker_id if status else None,
        leader=status.leader if status else None,
        plugin_version=status.plugin_version if status else None,
        mode=status.mode if status else None,
        in_step=worker.is_in_step,
        step=worker.step,
        applied_offset=applied.offset if applied else None,
        applied_at=applied.at if applied else None,
        served=seen.served,
        listeners=status.listeners if status else (),
        trouble=seen.trouble,
    )


_COLUMNS = (
    Column("WORKER"),
    Column("LEADER"),
    Column("STATE"),
    Column("CERTIFICATE", cut=Cut.MIDDLE, least=16),
    Column("SHA-256"),
    Column("UNTIL"),
    Column("LEFT", right=True),
)
_FINGERPRINT = 12


def overrides_text(view: OverridesView) -> str:
    """A line a key; ends in a new line."""
    if not view.overrides:
        return "No overrides: the workers run on their own files.\n"
    width = max(len(clean(key)) for key in view.overrides)
    lines = (f"{clean(key):<{width}}  {show(value)}\n" for key, value in sorted(view.overrides.items()))
    return "".join(lines)


def workers_text(view: WorkersView, width: int | None = None, style: Style = PLAIN) -> str:
    """All workers, then what there is to say of them. width: columns of the terminal, None for no bound."""
    said = [d for d in view.diagnostics if d.severity is not Severity.INFO]  # that stands in the table
    blocks = [_summary(view, style), _table(view, width, style), diagnostics_text(said, style)]
    return "\n".join(block for block in blocks if block)


def proposal_text(view: ProposalView, style: Style = PLAIN) -> str:
    """What would change, and what the workers say of it."""
    return "\n".join([fields_text(view.fields, style), _verdicts(view.verdicts, style)])


def changed_text(view: ChangedView, width: int | None = None, style: Style = PLAIN) -> str:
    """Who has followed, and who has not."""
    count = len(view.workers.workers)
    took = duration(view.seconds)
    if view.behind:
        head = style.red(f"Changed, but {len(view.behind)} of {plural(count, 'worker')} did not follow:")
        lines = [
            head,
            *(f"  {style.red('✗')} {clean(url)}  {clean(why)}" for url, why in view.behind.items()),
        ]
    else:
        lines = [style.green(f"Changed; {plural(count, 'worker')} followed within {took}.")]
    return "".join(f"{line}\n" for line in lines) + "\n" + _table(view.workers, width, style)


def fields_text(fields: Sequence[FieldChange], style: Style = PLAIN) -> str:
    """A line a key."""
    width = max((len(clean(key_of(field.path))) for field in fields), default=0)
    lines = []
    for field in fields:
        after = "(as in the worker's own file)" if field.op is FieldOp.DELETE else show(field.after)
        same = "  (as it is: told again)" if field.before == field.after else ""
        name = f"{clean(key_of(field.path)):<{width}}"
        lines.append(f"  {style.yellow('~')} {name}  {show(field.before)} {style.dim('→')} {after}{same}\n")
    return "".join(lines)


def _verdicts(verdicts: Sequence[VerdictView], style: Style) -> str:
    said: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.words:
            said.setdefault(clean(verdict.words), []).append(clean(verdict.url))
    count, bad = plural(len(verdicts), "worker"), sum(map(len, said.values()))
    if not bad:
        return style.green(f"{count} can apply this.") + "\n"
    lines = [style.red(f"{bad} of {count} cannot apply this:")]
    for words, urls in said.items():
        lines += [f"  {style.red('✗')} {', '.join(urls)}", f"      {words}"]
    return "".join(f"{line}\n" for line in lines)


def _summary(view: WorkersView, style: Style) -> str:
    count, steady = len(view.workers), sum(worker.is_in_step for worker in view.workers)
    keys = plural(len(view.keys), "override")
    text = f"{steady} of {plural(count, 'worker')} in step with {keys}."
    return (style.green(text) if steady == count else style.red(text)) + "\n"


def _table(view: WorkersView, width: int | None, style: Style) -> str:
    rows = [_row(worker, view.at, style) for worker in view.workers]
    return "".join(f"{line}\n" for line in table(_COLUMNS, rows, width, style))


def _row(worker: WorkerView, at: datetime, style: Style) -> tuple[Cell, ...]:
    status, served = worker.seen.status, worker.seen.served
    leads = {True: "yes", False: "no", None: "?"}[status.leader] if status else "?"
    paint = style.green if worker.is_in_step else style.red
    return (
        clean(worker.seen.url),
        leads,
        Painted(_state(worker), paint),
        *(_shown(served, at) if served else ("", "", "", "")),
    )


def _state(worker: WorkerView) -> str:
    """In a word; the diagnostics say more."""
    if worker.is_in_step:
        return "in step"
    status = worker.seen.status
    return "silent" if status is None else "refused" if status.error else "behind"


def _shown(certificate: Certificate, at: datetime) -> Iterator[Cell]:
    yield clean(certificate.subject)
    yield certificate.sha256[:_FINGERPRINT]
    yield f"{certificate.not_after:%Y-%m-%d}"
    left = certificate.not_after - at
    yield "over" if left <= timedelta(0) else plural(left.days, "day")
