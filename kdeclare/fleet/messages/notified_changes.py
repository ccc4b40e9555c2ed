"""Find the findings that a message about an audit reports: those that are new or fixed for one recipient.

A recipient sees only some findings, for example the urgent ones of one team. A finding is new for a recipient
if the recipient would see it now, and would not have seen it in the audit of the previous message. Therefore,
a finding also becomes new when it becomes more urgent or older than a limit, or when its acceptance expires.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.audit_results import Identity, build_audit_row, get_identity
from kdeclare.fleet.audit_summary import AuditSummary
from kdeclare.fleet.finding_conditions import FindingCondition
from kdeclare.fleet.finding_status import FIXED, NEW, choose_status, select_fixed
from kdeclare.fleet.findings import AuditRow

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Recipient:
    """Selects the findings that one recipient of messages sees.

    conditions: a finding must meet one of them; empty for all findings.
    team: the label ``team`` of the resources; None for all resources.
    """

    conditions: tuple[FindingCondition, ...] = ()
    team: str | None = None

    def has_interest(self, summary: AuditSummary, row: AuditRow) -> bool:
        """Return whether the recipient sees a finding of an audit."""
        if self.team is not None and row.labels.get("team", "") != self.team:
            return False
        return not self.conditions or any(
            condition.is_met(row.finding, row.severity, row.first_seen, summary.taken_at)
            for condition in self.conditions
        )


@dataclass(frozen=True, slots=True)
class AuditTables:
    """The findings of one stored audit. open_rows, unseen_rows: the tables ``findings`` and ``unseen``."""

    summary: AuditSummary
    open_rows: tuple[Row, ...]
    unseen_rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class NotifiedChanges:
    """The findings that one recipient sees.

    rows: the open findings, each with the status ``new`` or ``known``.
    fixed: the findings of the earlier audit that are no longer open.
    """

    rows: tuple[AuditRow, ...]
    fixed: tuple[AuditRow, ...]

    @property
    def new(self) -> tuple[AuditRow, ...]:
        """The open findings that are new for the recipient."""
        return tuple(row for row in self.rows if row.status == NEW)


def find_changes(audit: AuditTables, baseline: AuditTables | None, recipient: Recipient) -> NotifiedChanges:
    """Find what has changed for a recipient since an earlier audit.

    Findings that the audit did not check again are neither new nor fixed. The same applies to findings that
    have been accepted in the meantime, and to those of clusters that are no longer in the fleet.

    baseline: the earlier audit; None if there is none, so that all open findings are new.
    """
    earlier = {} if baseline is None else _select_rows(baseline, recipient)
    remaining = {get_identity(row) for row in (*audit.open_rows, *audit.unseen_rows)}
    rows = _select_open(audit.summary, audit.open_rows, recipient)
    clusters = {cluster.name for cluster in audit.summary.clusters}
    fixed = select_fixed(earlier, remaining, lambda row: row.cluster in clusters)
    return NotifiedChanges(
        tuple(replace(row, status=choose_status(identity, earlier)) for identity, row in rows.items()),
        tuple(replace(row, status=FIXED) for row in fixed),
    )


def _select_rows(audit: AuditTables, recipient: Recipient) -> dict[Identity, AuditRow]:
    return _select_open(audit.summary, (*audit.open_rows, *audit.unseen_rows), recipient)


def _select_open(
    summary: AuditSummary, rows: Iterable[Row], recipient: Recipient
) -> dict[Identity, AuditRow]:
    """Return the findings that a recipient sees, by identity. Accepted findings are left out."""
    findings = ((get_identity(row), build_audit_row(row)) for row in rows if row["accepted"] is None)
    return {identity: row for identity, row in findings if recipient.has_interest(summary, row)}
