"""Compare two snapshots of a fleet: which live objects have appeared, are gone or have changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import as_object, parse_json
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.provider.registry import CODECS
from kdeclare.fleet.history.object_history import FieldTurn, Turn, compare_fields
from kdeclare.fleet.live_state import explain_unread
from kdeclare.fleet.tables.rows import CLUSTER
from kdeclare.fleet.tables.snapshots import SnapshotRecord

Row = Mapping[str, Any]
RowPair = tuple[Row | None, Row | None]
"""The rows of a live object in the earlier and in the later snapshot; None if the snapshot has no row."""
ObjectKey = tuple[str, str, str]
"""The name of a cluster, and the type and key of a live object."""


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """A live object that differs between two snapshots.

    change: APPEARED, CHANGED or GONE. fields: the changed fields if ``change`` is CHANGED; otherwise empty.
    """

    cluster: str
    kind: str
    name: str
    change: Turn
    fields: tuple[FieldTurn, ...] = ()


@dataclass(frozen=True, slots=True)
class UnknownPart:
    """A part of a fleet that is missing from one of the snapshots, so that it cannot be compared.

    kind: the type of the objects; None for a whole cluster.
    name: the key of the object if only one object is missing; otherwise None.
    prefix: the prefix of the keys if only objects with this prefix are missing; otherwise None.
    """

    cluster: str
    kind: str | None
    name: str | None
    reason: str
    prefix: str | None = None

    def covers(self, kind: str, name: str) -> bool:
        """Whether an object of the cluster belongs to the part."""
        if self.kind is None:
            return True
        return self.kind == kind and self.name in (None, name) and name.startswith(self.prefix or "")


@dataclass(frozen=True, slots=True)
class SnapshotSide:
    """One of the two snapshots that are compared.

    notes: the rows about whole clusters, and the rows of objects that could not be read.
    """

    record: SnapshotRecord
    notes: Sequence[Row]


@dataclass(frozen=True, slots=True)
class SnapshotDiff:
    """The differences between two snapshots, sorted by cluster, kind and name.

    changes: the live objects that differ. unknown: the parts of the fleet that cannot be compared.
    """

    changes: tuple[ObjectChange, ...]
    unknown: tuple[UnknownPart, ...]


def find_differing_rows(before: Iterable[Row], after: Iterable[Row]) -> Iterator[RowPair]:
    """Pair the rows of two snapshots. Objects with equal bodies are left out."""
    earlier = {_get_key(row): row for row in before if row["kind"] != CLUSTER}
    for row in after:
        if row["kind"] == CLUSTER:
            continue
        other = earlier.pop(_get_key(row), None)
        if other is None or other["fingerprint"] != row["fingerprint"]:
            yield other, row
    yield from ((row, None) for row in earlier.values())


def select_notes(rows: Iterable[Row]) -> list[Row]:
    """Return the rows about whole clusters, and the rows of objects that could not be read."""
    return [row for row in rows if row["kind"] == CLUSTER or row["error"] is not None]


def build_snapshot_diff(before: SnapshotSide, after: SnapshotSide, pairs: Iterable[RowPair]) -> SnapshotDiff:
    """Compute the differences between two snapshots. pairs: see `find_differing_rows`."""
    unread = _index_parts(_list_unread(before, after))
    unsupported = _index_parts(_list_unsupported(before, after))
    single_objects = {(part.cluster, part.kind, part.name): part for part in unread.values()}
    several_objects = [part for part in (*unread.values(), *unsupported.values()) if part.name is None]
    by_cluster: dict[str, list[UnknownPart]] = {}
    for part in several_objects:
        by_cluster.setdefault(part.cluster, []).append(part)
    changes: list[ObjectChange] = []
    unknown = dict(unread)
    for earlier, later in pairs:
        row = later if later is not None else earlier
        assert row is not None, "a pair has at least one row"
        cluster, kind, name = _get_key(row)
        covering_parts = (part for part in by_cluster.get(cluster, ()) if part.covers(kind, name))
        unknown_part = next(covering_parts, single_objects.get((cluster, kind, name)))
        if unknown_part is not None:
            unknown[_get_part_key(unknown_part)] = unknown_part
        elif name != "" and (change := _build_change(earlier, later)) is not None:
            changes.append(change)
    return SnapshotDiff(
        tuple(sorted(changes, key=lambda item: (item.cluster, item.kind, item.name))),
        tuple(unknown[key] for key in sorted(unknown)),
    )


def _build_change(earlier: Row | None, later: Row | None) -> ObjectChange | None:
    row = later if later is not None else earlier
    assert row is not None, "a pair has at least one row"
    key = _get_key(row)
    if earlier is None or later is None:
        return ObjectChange(*key, Turn.APPEARED if earlier is None else Turn.GONE)
    fields = compare_fields(
        key[1], as_object(parse_json(earlier["body"])), as_object(parse_json(later["body"]))
    )
    return ObjectChange(*key, Turn.CHANGED, fields) if fields else None


def _list_unread(before: SnapshotSide, after: SnapshotSide) -> Iterator[UnknownPart]:
    """Yield what could not be read: clusters, types of objects, parts of systems, and single objects."""
    names = {item.name for side in (before, after) for item in side.record.clusters}
    for side in (before, after):
        for missing in sorted(names - {item.name for item in side.record.clusters}):
            reason = f"Snapshot {side.record.snapshot_id} does not include this cluster."
            yield UnknownPart(missing, None, None, reason)
        for row in side.notes:
            cluster, kind, name = _get_key(row)
            if row["error"] is None:
                continue
            if kind == CLUSTER:
                yield UnknownPart(cluster, None, None, row["error"])
            elif row["is_part"]:
                yield UnknownPart(cluster, kind, None, row["error"], name or None)
            else:
                yield UnknownPart(cluster, kind, name or None, row["error"])


def _list_unsupported(before: SnapshotSide, after: SnapshotSide) -> Iterator[UnknownPart]:
    """Yield the types of objects that were not read."""
    for side in (before, after):
        for row in side.notes:
            if row["kind"] == CLUSTER:
                for sort, reason in _list_unread_sorts(row["body"]):
                    yield UnknownPart(row["cluster"], sort, None, reason)


def _index_parts(parts: Iterable[UnknownPart]) -> dict[tuple[str, ...], UnknownPart]:
    """Index the missing parts of a fleet. If both snapshots lack a part, keep only the first reason."""
    indexed: dict[tuple[str, ...], UnknownPart] = {}
    for part in parts:
        indexed.setdefault(_get_part_key(part), part)
    return indexed


def _get_part_key(part: UnknownPart) -> tuple[str, ...]:
    return part.cluster, part.kind or "", part.name or part.prefix or ""


def _list_unread_sorts(body: str | None) -> Iterator[tuple[str, str]]:
    """Yield the types of objects that a cluster's snapshot does not contain, each with the reason."""
    for sort in sorted(CODECS) if body is not None else ():
        reason = explain_unread(LiveKey(sort, ""), body) if body is not None else None
        if reason is not None:
            yield sort, reason


def _get_key(row: Row) -> ObjectKey:
    return row["cluster"], row["kind"], row["name"]
