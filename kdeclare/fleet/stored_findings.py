"""The findings of a stored audit, and what has changed since an earlier one."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.audit_results import Identity, build_audit_row, get_identity
from kdeclare.fleet.finding_status import FIXED, choose_status, select_fixed
from kdeclare.fleet.findings import AuditRow

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ComparedFindings:
    """The findings of one audit, compared with those of an earlier audit, the baseline.

    rows: the open findings, each with the status ``new`` or ``known``.
    fixed: the findings of the baseline that are no longer open; empty without a baseline. Findings of
        clusters that the audit does not contain are left out.
    unseen: the number of earlier findings that the audit did not check again. They may still be open.
    """

    rows: tuple[AuditRow, ...]
    fixed: tuple[AuditRow, ...]
    unseen: int


def compare_findings(
    open_rows: Iterable[Row],
    unseen_rows: Iterable[Row],
    baseline: Sequence[Row] | None,
    clusters: Collection[str],
    is_selected: Callable[[AuditRow], bool],
) -> ComparedFindings:
    """Compare the findings of two audits.

    Accepted findings are left out. They count as neither new nor fixed.

    open_rows, unseen_rows: the tables ``findings`` and ``unseen`` of the audit.
    baseline: both tables of an earlier audit; None to keep the status that is stored in the audit.
    clusters: the names of the clusters in the audit.
    is_selected: whether the report shows a finding.
    """
    earlier = None if baseline is None else {get_identity(row): row for row in baseline}
    remaining: set[Identity] = set()
    found: list[AuditRow] = []
    for row in open_rows:
        remaining.add(get_identity(row))
        finding = build_audit_row(row)
        if row["accepted"] is None and is_selected(finding):
            status = finding.status if earlier is None else choose_status(get_identity(row), earlier)
            found.append(replace(finding, status=status))
    unseen_count = 0
    for row in unseen_rows:
        remaining.add(get_identity(row))
        unseen_count += row["accepted"] is None and is_selected(build_audit_row(row))
    fixed_rows = select_fixed(earlier or {}, remaining, lambda row: row["cluster"] in clusters)
    fixed_findings = (build_audit_row(row) for row in fixed_rows if row["accepted"] is None)
    fixed = tuple(replace(finding, status=FIXED) for finding in fixed_findings if is_selected(finding))
    return ComparedFindings(tuple(found), fixed, unseen_count)
