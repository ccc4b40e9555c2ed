"""The lines about findings in the text output of fleet commands."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from kdeclare.fleet.finding_status import FIXED
from kdeclare.fleet.findings import AuditRow, FindingKind, FindingSeverity
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import sanitize_for_terminal, strip_configs_prefix, truncate
from kdeclare.report.fleet.audit_wording import EqualFindings, format_age, format_change

_ICONS = {
    FindingKind.UNREACHABLE: "?",
    FindingKind.MISSING: "-",
    FindingKind.CHANGED: "~",
    FindingKind.CONTESTED: "=",
    FindingKind.POLICY: "!",
    FindingKind.PENDING: "+",
    FindingKind.ORPHANED: "○",
    FindingKind.UNMANAGED: "·",
    FindingKind.UNUSED: "z",
}


def render_finding_lines(
    groups: Sequence[EqualFindings], taken_at: datetime, style: Style = PLAIN
) -> Iterator[str]:
    """Render each group of findings that differ only in the resource.

    The first line shows the change. Up to two more lines show the names of the resources and the message.

    taken_at: the time of the audit, from which the ages of findings are computed.
    """
    width = max((len(group.first.finding.value) for group in groups), default=0)
    for group in groups:
        row = group.first
        kind = f"{_ICONS[row.finding]} {row.finding.value:<{width}}"
        label = _color_by_severity(row.severity, f"{row.severity.value:<6}  {kind}", style)
        where, resources = map(sanitize_for_terminal, (group.where, group.resources))
        age = _format_age(group.rows, taken_at, style)
        yield f"  {label}  {where}  {style.bold(resources)}{_format_field(row)}{age}"
        yield from (
            style.dim(f"      {sanitize_for_terminal(text)}") for text in (group.names, row.message) if text
        )


def _format_field(row: AuditRow) -> str:
    field_change = (
        f"  {sanitize_for_terminal(strip_configs_prefix(row.path))}  {truncate(format_change(row), 100)}"
        if row.path
        else ""
    )
    return field_change.rstrip()


def _format_age(rows: Sequence[AuditRow], taken_at: datetime, style: Style) -> str:
    age = format_age(rows, taken_at)
    if rows[0].status == FIXED:
        age = age and f"was {age}"
    return f"  {style.yellow(age)}" if age else ""


def _color_by_severity(severity: FindingSeverity, text: str, style: Style) -> str:
    if severity is FindingSeverity.HIGH:
        return style.red(text)
    return style.yellow(text) if severity is FindingSeverity.MEDIUM else text
