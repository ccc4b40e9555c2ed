"""Find unused live objects, if the fleet file enables this (``spec.unused``).

While a cluster is read, its provider determines which objects are unused (`ListsUnusedObjects`). The result
is stored in the field `UNUSED` of the cluster-level live state, so that snapshots contain it, and audits
with and without Spark report the same findings. Clusters that were read without the setting do not have this
field.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby
from typing import Any

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_object, dump_canonical_json, parse_json
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveCodec, LiveKey
from kdeclare.core.live.unused_objects import ListsUnusedObjects, UnusedListing, UnusedObject
from kdeclare.core.parts import Connections
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.units import format_count
from kdeclare.fleet.findings import Finding, FindingKind, FindingSeverity
from kdeclare.fleet.live_state import UNUSED
from kdeclare.fleet.tables.rows import get_declared_live_key

Row = Mapping[str, Any]
UncheckedObjects = frozenset[tuple[str, str]]
"""The types and keys of objects whose usage is unknown.

An empty key represents all objects of the type.
"""

FindCreatedObjects = Callable[[Collection[LiveKey], datetime], Collection[LiveKey]]
"""A function that returns which of the given live objects the project created after the given time."""


@dataclass(frozen=True, slots=True)
class UnusedSearch:
    """How an audit looks for unused objects.

    unused_for_s: after how many seconds without use an object counts as unused.
    find_created: finds the objects that the project created only recently. It is called only for objects that
        were never used, because their age is often unknown.
    """

    unused_for_s: float
    find_created: FindCreatedObjects


_FIGURES = ("records", "bytes", "newest_record_ms", "groups")
MAX_NAMED = 1_000
"""The maximum number of objects of unknown usage that a snapshot lists by name, for each reason and type."""


def read_unused(
    codecs: Iterable[LiveCodec], connections: Connections, search: UnusedSearch, read_at: datetime
) -> JsonObject:
    """Have the providers find unused objects, and return the value of the field `UNUSED`.

    An object that was never used and that the project created only recently is left out. If a provider cannot
    determine which objects are unused, the usage of all its objects is unknown.
    """
    objects: list[JsonValue] = []
    undetermined: list[JsonValue] = []
    warnings: list[JsonValue] = []
    for codec in codecs:
        if not isinstance(codec, ListsUnusedObjects):
            continue
        try:
            listing = codec.list_unused(connections, search.unused_for_s, read_at)
        except Fault as fault:
            reason = f"{fault.message.strip().rstrip('.')} ({fault.error})"
            undetermined += [_dump_gap(sort, reason, None, None) for sort in sorted(codec.unused_sorts)]
            continue
        unused_since = read_at - timedelta(seconds=search.unused_for_s)
        never_used = [item.key for item in listing.unused if item.newest_ms is None]
        created = search.find_created(never_used, unused_since) if never_used else ()
        objects += _dump_objects(item for item in listing.unused if item.key not in created)
        undetermined += _dump_undetermined(listing)
        warnings += listing.warnings
    return {"objects": objects, "undetermined": undetermined, "warnings": warnings}


def _dump_objects(unused: Iterable[UnusedObject]) -> Iterator[JsonObject]:
    for item in sorted(unused, key=lambda item: item.key):
        figures = dict(zip(_FIGURES, (item.records, item.size, item.newest_ms, item.readers), strict=True))
        yield {"kind": item.key.sort, "name": item.key.key, "message": item.message, "figures": {**figures}}


def _dump_undetermined(listing: UnusedListing) -> Iterator[JsonObject]:
    for reason, keys in sorted(listing.undetermined.items()):
        for sort, items in groupby(sorted(keys), key=lambda key: key.sort):
            names = [key.key for key in items]
            yield _dump_gap(sort, reason, len(names), names if len(names) <= MAX_NAMED else None)


def _dump_gap(sort: str, reason: str, count: int | None, names: Sequence[str] | None) -> JsonObject:
    """Build the entry about the objects of one type whose usage is unknown for the same reason.

    count, names: the number and the keys of the objects. ``names`` is None if there are too many. Both are
        None if no object of the type was checked.
    """
    return {"kind": sort, "reason": reason, "count": count, "names": None if names is None else [*names]}


@dataclass(frozen=True, slots=True)
class _Usage:
    objects: Sequence[Mapping[str, Any]] = ()
    undetermined: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()


@lru_cache(maxsize=256)
def _parse_usage(cluster: str) -> _Usage:
    field: Any = as_object(parse_json(cluster)).get(UNUSED)
    return _Usage() if field is None else _Usage(field["objects"], field["undetermined"], field["warnings"])


def has_unused_report(cluster: str | None) -> bool:
    """Whether the audit of a cluster has unused objects, objects of unknown usage, or warnings to report.

    cluster: the cluster-level live state as JSON; None if the cluster was not read.
    """
    usage = _Usage() if cluster is None else _parse_usage(cluster)
    return bool(usage.objects or usage.undetermined or usage.warnings)


def list_unchecked(cluster: str | None) -> UncheckedObjects:
    """Return the objects whose usage is unknown. cluster: see `has_unused_report`."""
    usage = _Usage() if cluster is None else _parse_usage(cluster)
    return frozenset(
        (gap["kind"], name)
        for gap in usage.undetermined
        for name in ([""] if gap["names"] is None else gap["names"])
    )


def find_unused(cluster: str, declared: Sequence[Row]) -> Iterator[tuple[ResourceId, Finding]]:
    """Yield a finding for each unused object, except those that the selector in the fleet file excludes.

    cluster: the cluster-level live state as JSON.
    declared: the rows of the cluster in the table `DECLARED`.
    """
    rows_by_key = {get_declared_live_key(row): row for row in declared}
    for item in _parse_usage(cluster).objects:
        row = rows_by_key.get(LiveKey(item["kind"], item["name"]))
        if row is not None and not (row["desired"] or row["owned"]):
            continue
        id_ = ResourceId(item["kind"], item["name"]) if row is None else ResourceId(row["kind"], row["name"])
        figures = dump_canonical_json(item["figures"])
        source = None if row is None else row["source"]
        yield (
            id_,
            Finding(
                FindingKind.UNUSED,
                None,
                None,
                figures,
                None,
                item["message"],
                FindingSeverity.LOW,
                source,
            ),
        )


def format_unchecked_notices(cluster: str) -> Iterator[str]:
    """Yield a sentence about each type of object whose usage is unknown, and the warnings of providers."""
    yield from _parse_usage(cluster).warnings
    for gap in _parse_usage(cluster).undetermined:
        noun = f"{gap['kind']} resource"
        if gap["count"] is None:
            yield f"It is unknown whether a {noun} is unused: {gap['reason']}."
            continue
        verb = "is" if gap["count"] == 1 else "are"
        yield f"It is unknown whether {format_count(gap['count'], noun)} {verb} unused: {gap['reason']}."
