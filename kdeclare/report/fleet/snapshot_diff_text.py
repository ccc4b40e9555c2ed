"""The output of ``fleet diff``: what differs between two snapshots, as text and JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated

from pydantic import Field

from kdeclare.core.documents import Second
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.history.object_history import FieldTurn, Turn
from kdeclare.fleet.history.snapshot_diff import ObjectChange, SnapshotDiff, UnknownPart
from kdeclare.fleet.tables.snapshots import SnapshotRecord
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import format_count, join_nonempty, sanitize_for_terminal
from kdeclare.report.fleet.snapshot_text import format_field_change, format_field_name
from kdeclare.report.run.history_text import format_time

_ICONS = {Turn.APPEARED: "+", Turn.GONE: "-", Turn.CHANGED: "~"}
_MAX_FIELDS = 60


@dataclass(frozen=True, slots=True)
class ComparedSnapshot:
    """One of the two snapshots that ``fleet diff`` compares."""

    schema_name = "ComparedSnapshotDocument"

    snapshot_id: str
    taken_at: Annotated[Second, Field(description="UTC, ISO 8601.")]


@dataclass(frozen=True, slots=True)
class ChangedObject:
    """A live object that appeared, disappeared or changed between the two snapshots."""

    schema_name = "ChangedObjectDocument"

    cluster: str
    kind: str
    name: str
    change: Turn
    fields: Annotated[
        tuple[FieldTurn, ...], Field(description="The changed fields; empty unless the object has changed.")
    ]


@dataclass(frozen=True, slots=True)
class UnknownObjects:
    """A part of the fleet that was not read in one of the snapshots."""

    schema_name = "UnknownObjectsDocument"

    cluster: str
    kind: Annotated[str | None, Field(description="The type of the objects; null for the whole cluster.")]
    name: Annotated[str | None, Field(description="The name of the object; null for several objects.")]
    prefix: Annotated[
        str | None,
        Field(description="The prefix of the names of the objects; null for all objects."),
    ]
    reason: str


@dataclass(frozen=True, slots=True)
class SnapshotDiffDocument:
    """The differences between two snapshots of a fleet."""

    fleet: str
    before: ComparedSnapshot
    after: ComparedSnapshot
    changes: tuple[ChangedObject, ...]
    unknown: tuple[UnknownObjects, ...]


def build_snapshot_diff_document(
    before: SnapshotRecord, after: SnapshotRecord, diff: SnapshotDiff
) -> SnapshotDiffDocument:
    """Build the JSON document of ``fleet diff``."""
    return SnapshotDiffDocument(
        after.fleet,
        ComparedSnapshot(before.snapshot_id, before.taken_at),
        ComparedSnapshot(after.snapshot_id, after.taken_at),
        tuple(ChangedObject(c.cluster, c.kind, c.name, c.change, c.fields) for c in diff.changes),
        tuple(
            UnknownObjects(part.cluster, part.kind, part.name, part.prefix, part.reason)
            for part in diff.unknown
        ),
    )


def render_snapshot_diff_text(
    before: SnapshotRecord, after: SnapshotRecord, diff: SnapshotDiff, style: Style = PLAIN
) -> str:
    """Render the differences as text, by cluster."""
    counts = Counter(change.change for change in diff.changes)
    summary = join_nonempty(f"{counts[turn]:,} {turn.value}" for turn in _ICONS if counts[turn])
    clusters = len({change.cluster for change in diff.changes})
    headline = f"{summary} in {format_count(clusters, 'cluster')}" if summary else "no changes"
    lines = [
        style.bold(f"{sanitize_for_terminal(after.fleet)}: {headline}."),
        f"From snapshot {_describe(before)} to {_describe(after)}.",
    ]
    for cluster, changes in groupby(diff.changes, key=lambda change: change.cluster):
        lines += ["", style.bold(sanitize_for_terminal(cluster))]
        lines += _render_changes(list(changes), style)
    if diff.unknown:
        lines += ["", style.bold("Not compared:"), *map(_render_unknown, diff.unknown)]
    return "".join(f"{line}\n" for line in lines)


def _describe(record: SnapshotRecord) -> str:
    return f"{sanitize_for_terminal(record.snapshot_id)} ({format_time(record.taken_at)})"


def _render_changes(changes: Sequence[ObjectChange], style: Style) -> Iterator[str]:
    colors = {Turn.APPEARED: style.green, Turn.GONE: style.red, Turn.CHANGED: style.yellow}
    for change in changes:
        resource = f"{sanitize_for_terminal(change.kind)}/{sanitize_for_terminal(change.name)}"
        yield f"  {colors[change.change](_ICONS[change.change])} {resource}"
        names = [format_field_name(field) for field in change.fields[:_MAX_FIELDS]]
        width = max(map(len, names), default=0)
        for name, field in zip(names, change.fields, strict=False):
            yield f"      {name:<{width}}  {format_field_change(field, style)}"
        if len(change.fields) > _MAX_FIELDS:
            yield style.dim(f"      … and {format_count(len(change.fields) - _MAX_FIELDS, 'more field')}")


def _render_unknown(part: UnknownPart) -> str:
    kind = f"  {part.kind}" if part.kind is not None else ""
    name = f"/{part.name}" if part.name is not None else ""
    if part.prefix is not None:
        name = f"/{part.prefix}…"
    return "  " + sanitize_for_terminal(f"{part.cluster}{kind}{name}  {part.reason}")
