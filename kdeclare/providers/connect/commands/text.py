"""What ``connect worker-config`` says, for people."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from kdeclare.core.changes import FieldChange, FieldOp
from kdeclare.core.diagnostics import Severity
from kdeclare.providers.connect.commands.views import (
    ChangedView,
    OverridesView,
    ProposalView,
    VerdictView,
    WorkersView,
    WorkerView,
)
from kdeclare.providers.connect.worker_state import Certificate
from kdeclare.report.diagnostics_text import diagnostics_text
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.table import Cell, Column, Cut, Painted, table
from kdeclare.report.values import clean, duration, key_of, plural, show

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
