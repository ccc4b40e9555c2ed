"""What `fleet audit` prints: the headline, what could not be read, where the findings are, the worst."""

from collections.abc import Iterator, Sequence

from kdeclare.fleet.findings import Audit, AuditRow, AuditSummary, Counts, FindingKind
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import clean, clipped, duration, key_of, plural
from kdeclare.report.fleet.audit_words import (
    NO_TEAM,
    by_total,
    change,
    headline,
    name_objects,
    since_line,
    sum_objects,
    teams_by_total,
    total,
    worst_first,
)
from kdeclare.report.fleet.cluster_table import Cell, table
from kdeclare.report.run.history_text import moment

_MANY = 20
_ICONS = {
    FindingKind.UNREACHABLE: "?",
    FindingKind.MISSING: "-",
    FindingKind.CHANGED: "~",
    FindingKind.POLICY: "!",
    FindingKind.PENDING: "+",
    FindingKind.ORPHANED: "○",
    FindingKind.UNMANAGED: "·",
}


def audit_text(audit: Audit, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. Of very many, the worst and a count."""
    blocks = [
        _head(audit.summary, style),
        _unread(audit.summary, style),
        _untold(audit.summary, style),
        _clusters(audit.summary, style),
        _teams(audit.summary, style),
        _findings(audit, style),
    ]
    texts = ["".join(f"{line}\n" for line in block) for block in blocks]
    return "\n".join(text for text in texts if text)


def _head(summary: AuditSummary, style: Style) -> Iterator[str]:
    quiet = not total(summary.found) and not summary.incomplete
    yield (style.green if quiet else style.bold)(headline(summary))
    took = (
        f"Audit {clean(summary.audit_id)}, taken {moment(summary.taken_at)} in {duration(summary.seconds)}."
    )
    yield style.dim(took)
    if summary.since is not None:
        yield since_line(summary)


def _unread(summary: AuditSummary, style: Style) -> Iterator[str]:
    unread = summary.incomplete
    if not unread:
        return
    yield style.red("Not read, or not all of it:")
    yield from _said([(cluster.name, cluster.error) for cluster in unread], style)


def _untold(summary: AuditSummary, style: Style) -> Iterator[str]:
    found = [(cluster.name, cluster.notice) for cluster in summary.clusters if cluster.notice is not None]
    if not found:
        return
    yield style.bold("Not told:")
    yield from _said(found, style)


def _said(clusters: Sequence[tuple[str, str | None]], style: Style) -> Iterator[str]:
    width = max(len(clean(name)) for name, _ in clusters[:_MANY])
    for name, text in clusters[:_MANY]:
        yield f"  {clean(name):<{width}}  {clean(text or '')}"
    yield from _more(len(clusters), style)


def _clusters(summary: AuditSummary, style: Style) -> Iterator[str]:
    found = by_total(summary.clusters)
    if not found:
        return
    rows: list[tuple[Cell, ...]] = [
        (clean(c.name), *_counts(c.found), sum_objects(c), c.declared) for c in found[:_MANY]
    ]
    yield from _table("CLUSTER", (name_objects(summary.clusters).upper(), "DECLARED"), rows, style)
    yield from _more(len(found), style)


def _teams(summary: AuditSummary, style: Style) -> Iterator[str]:
    teams = teams_by_total(summary)
    if not any(team for team, _ in teams):
        return  # nobody has labelled anything: it would say what the headline says
    rows: list[tuple[Cell, ...]] = [
        (clean(team) or NO_TEAM, *_counts(found)) for team, found in teams[:_MANY]
    ]
    yield from _table("TEAM", (), rows, style)
    yield from _more(len(teams), style)


def _table(name: str, others: tuple[str, ...], rows: list[tuple[Cell, ...]], style: Style) -> Iterator[str]:
    header = (name, *(kind.value.upper() for kind in FindingKind), "TOTAL", *others)
    yield from (f"  {line}" for line in table(header, rows, style))


def _counts(found: Counts) -> tuple[int, ...]:
    return *(found.get(kind, 0) for kind in FindingKind), total(found)


def _findings(audit: Audit, style: Style) -> Iterator[str]:
    rows = worst_first(audit.rows)
    if not rows:
        return
    yield style.bold("Findings, worst first:")
    shown = rows[:_MANY]
    words = max(len(row.finding.value) for row in shown)
    for row in shown:
        where = f"{clean(row.cluster)}  {style.bold(clean(f'{row.kind}/{row.name}'))}"
        word = _paint(row.finding, f"{_ICONS[row.finding]} {row.finding.value:<{words}}", style)
        yield f"  {word}  {where}{_field(row)}{style.yellow('  new') if row.status == 'new' else ''}"
        if row.message:
            yield style.dim(f"      {clean(row.message)}")
    more = len(rows) - len(shown) + audit.left_out
    if more:
        yield style.dim(f"  … and {plural(more, 'more finding')}")


def _field(row: AuditRow) -> str:
    said = f"  {clean(key_of(row.path))}  {clipped(change(row), 100)}" if row.path else ""
    return said.rstrip()


def _more(count: int, style: Style) -> Iterator[str]:
    if count > _MANY:
        yield style.dim(f"  … and {count - _MANY:,} more")


def _paint(kind: FindingKind, text: str, style: Style) -> str:
    if kind in (FindingKind.UNREACHABLE, FindingKind.MISSING, FindingKind.POLICY):
        return style.red(text)
    return style.yellow(text) if kind is FindingKind.CHANGED else text
