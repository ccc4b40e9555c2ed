"""The output of ``fleet report``: the findings of a stored audit, as text, JSON or JSON lines."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from kdeclare.core.documents import Time, dump_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject
from kdeclare.fleet.audit_summary import AuditSummary
from kdeclare.fleet.finding_status import NEW
from kdeclare.fleet.findings import AuditRow, FindingKind, FindingSeverity
from kdeclare.fleet.stored_findings import ComparedFindings
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import format_count, join_nonempty, sanitize_for_terminal
from kdeclare.report.fleet.audit_wording import (
    format_kind_counts,
    group_equal_findings,
    mask_raw_value,
    sort_worst_first,
)
from kdeclare.report.fleet.finding_lines import render_finding_lines
from kdeclare.report.run.history_text import format_time


@dataclass(frozen=True, slots=True)
class BaselineAudit:
    """The earlier audit that findings are compared with."""

    schema_name = "BaselineAuditDocument"

    audit_id: str
    taken_at: Time


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """One finding of an audit."""

    schema_name = "ReportedFindingDocument"

    id: Annotated[str, Field(description="Stays the same in all audits while the finding is open.")]
    status: Annotated[
        str,
        Field(
            description="new or known, compared with the earlier audit; fixed if it is no longer open.",
            pattern="^(new|known|fixed)$",
        ),
    ]
    finding: FindingKind
    severity: FindingSeverity
    cluster: str
    kind: str
    name: str
    path: Annotated[str | None, Field(description="The field; null for findings about the whole resource.")]
    op: Annotated[
        str | None, Field(description="What an apply would do; null if an apply would not fix the finding.")
    ]
    before: Annotated[str | None, Field(description="The live value as JSON.")]
    after: Annotated[str | None, Field(description="The declared value as JSON.")]
    message: str
    labels: Annotated[Mapping[str, str], Field(description="The labels of the resource.")]
    source: Annotated[str | None, Field(description="The position of the manifest: file:line:column.")]
    first_seen: Time


@dataclass(frozen=True, slots=True)
class FindingsDocument:
    """The findings of a stored audit."""

    audit_id: str
    fleet: str
    taken_at: Time
    since: Annotated[BaselineAudit | None, Field(description="null without --since.")]
    findings: Annotated[tuple[ReportedFinding, ...], Field(description="The open findings, worst first.")]
    fixed: Annotated[tuple[ReportedFinding, ...], Field(description="Fixed findings; empty without --since.")]
    unseen: Annotated[int, Field(description="The number of earlier findings that were not checked again.")]


def build_findings_document(
    summary: AuditSummary, since: AuditSummary | None, compared: ComparedFindings
) -> FindingsDocument:
    """Build the JSON document with the findings of an audit.

    since: the earlier audit that the findings are compared with; None if there is no comparison.
    """
    return FindingsDocument(
        summary.audit_id,
        summary.fleet,
        summary.taken_at,
        None if since is None else BaselineAudit(since.audit_id, since.taken_at),
        tuple(map(build_reported_finding, sort_worst_first(compared.rows))),
        tuple(map(build_reported_finding, sort_worst_first(compared.fixed))),
        compared.unseen,
    )


def build_reported_finding(row: AuditRow) -> ReportedFinding:
    """Build the JSON document of a finding. Hashes of secrets are masked."""
    return ReportedFinding(
        row.id,
        row.status,
        row.finding,
        row.severity,
        row.cluster,
        row.kind,
        row.name,
        row.path,
        row.op,
        mask_raw_value(row.before),
        mask_raw_value(row.after),
        row.message,
        dict(sorted(row.labels.items())),
        row.source,
        row.first_seen,
    )


def render_json_lines(document: FindingsDocument) -> str:
    """Render each finding, open or fixed, as one JSON object on one line, with the id of the audit."""
    audit = {"audit_id": document.audit_id, "fleet": document.fleet}
    lines: Iterator[JsonObject] = (
        {**dump_document(finding), **audit} for finding in (*document.findings, *document.fixed)
    )
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def render_findings_text(
    summary: AuditSummary, since: AuditSummary | None, compared: ComparedFindings, style: Style = PLAIN
) -> str:
    """Render the findings as text. With an earlier audit, only new and fixed findings are listed."""
    taken = format_time(summary.taken_at)
    counts = format_kind_counts(Counter(row.finding for row in compared.rows)) or "no findings"
    lines = [
        style.bold(
            f"Audit {sanitize_for_terminal(summary.audit_id)} of {sanitize_for_terminal(summary.fleet)}"
        )
        + f", run at {taken}: {counts}."
    ]
    new_rows = [row for row in compared.rows if row.status == NEW]
    if since is not None:
        known_count = len(compared.rows) - len(new_rows)
        changes = join_nonempty(
            [f"{len(new_rows):,} new", f"{known_count:,} known", f"{len(compared.fixed):,} fixed"]
        )
        lines.append(
            f"Since audit {sanitize_for_terminal(since.audit_id)} ({format_time(since.taken_at)}): {changes}."
        )
    if compared.unseen:
        lines.append(f"{format_count(compared.unseen, 'earlier finding')} not checked again.")
    blocks = [("New:", new_rows), ("Fixed:", compared.fixed)] if since is not None else [("", compared.rows)]
    for title, rows in blocks:
        lines += _render_block(title, rows, summary, style)
    return "".join(f"{line}\n" for line in lines)


def _render_block(title: str, rows: Sequence[AuditRow], summary: AuditSummary, style: Style) -> Iterator[str]:
    if not rows:
        return
    yield ""
    if title:
        yield style.bold(title)
    yield from render_finding_lines(group_equal_findings(sort_worst_first(rows)), summary.taken_at, style)
