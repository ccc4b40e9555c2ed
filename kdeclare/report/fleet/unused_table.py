"""The table of unused objects in the reports of an audit."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from kdeclare.core.jsontypes import JsonValue, parse_json
from kdeclare.core.units import format_size
from kdeclare.fleet.findings import AuditRow, FindingKind

UNUSED_HEADER = ("cluster", "resource", "records", "bytes", "newest record", "groups")
_UNKNOWN = "?"


def select_unused(rows: Iterable[AuditRow]) -> tuple[list[AuditRow], list[AuditRow]]:
    """Split findings into those about unused objects (the largest objects first) and all others."""
    unused: list[AuditRow] = []
    others: list[AuditRow] = []
    for row in rows:
        (unused if row.finding is FindingKind.UNUSED else others).append(row)
    unused.sort(key=lambda row: (-(_get_number(row, "bytes") or 0), row.cluster, row.kind, row.name))
    return unused, others


def build_unused_cells(row: AuditRow) -> tuple[str, ...]:
    """Return the cells of an unused object's table row; see `UNUSED_HEADER`."""
    records, size, groups = (_get_number(row, name) for name in ("records", "bytes", "groups"))
    newest_ms = _get_number(row, "newest_record_ms")
    return (
        row.cluster,
        f"{row.kind}/{row.name}",
        _UNKNOWN if records is None else f"{records:,}",
        _UNKNOWN if size is None else format_size(size),
        _format_newest(row, newest_ms),
        _UNKNOWN if groups is None else f"{groups:,}",
    )


def format_unused_figures(row: AuditRow) -> str:
    """Summarize an unused object in a few figures: ``3,000 records, 3 MiB, newest 2024-12-27``."""
    _, _, records, size, newest, _ = build_unused_cells(row)
    has_records = _get_number(row, "newest_record_ms") is not None
    return ", ".join((f"{records} records", size, f"newest {newest}" if has_records else newest))


def sum_unused_bytes(rows: Iterable[AuditRow]) -> int:
    """Return the total size of unused objects in bytes. Objects of unknown size are left out."""
    return sum(_get_number(row, "bytes") or 0 for row in rows)


def _format_newest(row: AuditRow, newest_ms: int | None) -> str:
    """Format the day of the newest record in a topic.

    Kafka does not report when a topic was created. If no record was ever written to the topic, return the
    day of the first audit that found the topic unused instead.
    """
    if newest_ms is None:
        return f"never written, first found {row.first_seen.date()}"
    return str(datetime.fromtimestamp(newest_ms / 1000, UTC).date())


def _get_number(row: AuditRow, name: str) -> int | None:
    value = _parse_figures(row).get(name)
    return value if isinstance(value, int) else None


def _parse_figures(row: AuditRow) -> Mapping[str, JsonValue]:
    """Parse the figures in a finding about an unused object. Return an empty mapping if they are damaged."""
    try:
        figures = parse_json(row.before or "{}")
    except ValueError:
        return {}
    return figures if isinstance(figures, dict) else {}
