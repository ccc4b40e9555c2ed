"""The findings of a stored audit, and what has changed since an earlier one."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.units import parse_duration
from kdeclare.fleet.audit_results import IDENTITY, build_audit_row
from kdeclare.fleet.findings import AuditRow

Row = Mapping[str, Any]
Identity = tuple[str | None, ...]
"""The values of the columns `IDENTITY`, which are the same in all audits as long as a finding is open."""

_AUDIT_ID = re.compile(r"(\d{8}T\d{6}Z)-[0-9a-f]{4}")
NEW, KNOWN, FIXED = "new", "known", "fixed"


@dataclass(frozen=True, slots=True)
class ComparedFindings:
    """The findings of one audit, compared with those of an earlier audit, the baseline.

    rows: the open findings, each with the status ``new`` or ``known``.
    fixed: the findings of the baseline that are no longer open; empty without a baseline.
    unseen: the number of earlier findings that the audit did not check again. They may still be open.
    """

    rows: tuple[AuditRow, ...]
    fixed: tuple[AuditRow, ...]
    unseen: int


def compare_findings(
    open_rows: Iterable[Row],
    unseen_rows: Iterable[Row],
    baseline: Sequence[Row] | None,
    is_selected: Callable[[AuditRow], bool],
) -> ComparedFindings:
    """Compare the findings of two audits.

    Accepted findings are left out. They count as neither new nor fixed.

    open_rows, unseen_rows: the tables ``findings`` and ``unseen`` of the audit.
    baseline: both tables of an earlier audit; None to keep the status that the audit itself has found.
    is_selected: whether the report shows a finding.
    """
    earlier = None if baseline is None else {_get_identity(row) for row in baseline}
    remaining: set[Identity] = set()
    found: list[AuditRow] = []
    for row in open_rows:
        remaining.add(_get_identity(row))
        finding = build_audit_row(row)
        if row["accepted"] is None and is_selected(finding):
            is_known = row["status"] == KNOWN if earlier is None else _get_identity(row) in earlier
            found.append(replace(finding, status=KNOWN if is_known else NEW))
    unseen_count = 0
    for row in unseen_rows:
        remaining.add(_get_identity(row))
        unseen_count += row["accepted"] is None and is_selected(build_audit_row(row))
    fixed = [
        replace(finding, status=FIXED)
        for row, finding in ((row, build_audit_row(row)) for row in baseline or ())
        if _get_identity(row) not in remaining and row["accepted"] is None and is_selected(finding)
    ]
    return ComparedFindings(tuple(found), tuple(fixed), unseen_count)


def _get_identity(row: Row) -> Identity:
    return tuple(row[column] for column in IDENTITY)


def find_baseline(text: str, audit_ids: Sequence[str], shown_id: str) -> str:
    """Return the id of the audit that ``--since`` names, among the audits before the shown one.

    text: the id of an audit, a duration (``7d``) or a day or time in UTC (``2026-11-20``). A duration or time
        means the latest audit that is at least this old, so that the report covers the whole period.
    audit_ids: the ids of all audits, oldest first.

    Raises ValueError with an explanation.
    """
    earlier = [id_ for id_ in audit_ids if id_ < shown_id]
    if text in earlier:
        return text
    if text == shown_id or text in audit_ids:
        raise ValueError(f"Audit {text} is not older than audit {shown_id}.")
    moment = _parse_moment(text, shown_id)
    times = dict(list_audit_times(earlier))
    candidates = [id_ for id_, time in times.items() if time <= moment]
    if candidates:
        return candidates[-1]
    oldest = next(iter(times), None)
    if oldest is None:
        raise ValueError(f"There is no audit before {shown_id}.")
    raise ValueError(f"No audit is that old. The oldest one is {oldest}.")


def list_audit_times(audit_ids: Iterable[str]) -> Iterator[tuple[str, datetime]]:
    """Yield the ids that contain the time of the audit, with this time."""
    for id_ in audit_ids:
        match = _AUDIT_ID.fullmatch(id_)
        if match is not None:
            yield id_, datetime.strptime(match[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def _parse_moment(text: str, shown_id: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    try:
        duration = timedelta(seconds=parse_duration(text))
    except ValueError:
        raise ValueError(
            f"'{text}' is not the id of an audit. Use an id, a duration such as 7d, or a day such as "
            "2026-11-20."
        ) from None
    times = dict(list_audit_times((shown_id,)))
    return times.get(shown_id, datetime.now(UTC)) - duration
