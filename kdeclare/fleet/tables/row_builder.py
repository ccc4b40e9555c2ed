"""Build the rows that audits compare: declared resources and live objects; see `fleet.tables.rows`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

import pyarrow as pa

from kdeclare.core.diagnostics import KdeclareError, summarize_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_object, dump_canonical_json
from kdeclare.core.live.faults import Fault, UnsupportedFault
from kdeclare.core.live.known_resources import FindKnownResources, ListsKnownObjects, find_no_resources
from kdeclare.core.live.live_codec import (
    DeclaredFacts,
    LiveCodec,
    LiveKey,
    LiveListing,
    LiveObject,
    UnreadPart,
)
from kdeclare.core.parts import Connections
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.provider.connection import is_not_configured
from kdeclare.core.provider.provider_queries import find_codecs
from kdeclare.core.resources.fleet_capabilities import (
    encode_body,
    find_live_key,
    is_self_contained,
    list_elements,
    list_facts,
    list_removed_groups,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord, get_owned_labels
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.fleet.live_state import OTHER_SYSTEMS, UNUSED, hash_text
from kdeclare.fleet.tables.rows import CLUSTER, LIVE
from kdeclare.fleet.unused import UnusedSearch, read_unused

Row = dict[str, Any]

_NO_FACTS = DeclaredFacts([], [], [], None)


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """The cluster whose live objects were read, and the time at which reading started.

    cluster_id: the id of the cluster; None if the cluster could not be reached.
    labels: the labels of the cluster in the fleet file.
    """

    taken_at: datetime
    cluster: str
    cluster_id: str | None
    labels: Mapping[str, str]


def build_cluster_row(origin: RowOrigin, body: JsonValue) -> Row:
    """Build the row about a whole cluster in the table `LIVE`. body: see `fleet.live_state`."""
    return _build_live_columns(origin, CLUSTER, origin.cluster, body)


def build_live_row(origin: RowOrigin, live_object: LiveObject) -> Row:
    """Build the row of one live object in the table `LIVE`."""
    facts = live_object.facts
    return _build_live_columns(origin, *live_object.key, live_object.body) | {
        "error": live_object.error,
        "has": None if facts is None else facts.has,
        "keys": None if facts is None else facts.keys,
        "group_name": live_object.group,
    }


def build_unread_row(origin: RowOrigin, kind: str, name: str, reason: str) -> Row:
    """Build the row of an object, or of a whole cluster (kind `CLUSTER`), that could not be read."""
    return _build_live_columns(origin, kind, name, None) | {"error": reason}


def build_part_rows(origin: RowOrigin, parts: Iterable[UnreadPart]) -> Iterator[Row]:
    """Build the rows for the unread parts of a system: one row for each object type and key prefix."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        reasons.setdefault((part.sort, part.prefix), []).append(part.reason)
    for (sort, prefix), texts in sorted(reasons.items()):
        yield build_unread_row(origin, sort, prefix, " ".join(texts)) | {"is_part": True}


def build_declared_rows(
    cluster: str,
    desired: DesiredResource | None,
    id_: ResourceId,
    owned: OwnedRecord | None,
    contradiction: str | None = None,
) -> Iterator[Row]:
    """Build the rows of a declared or owned resource in the table `DECLARED`.

    contradiction: how the resource contradicts another resource of the project; otherwise None.

    A resource that is a set of live objects has one row for the whole set, one row for each element, and one
    row for each group of unmanaged objects that applying the resource deletes. Secrets are included only as
    hashes.
    """
    elements = list_elements(id_, _get_body(desired), owned)
    if elements is None:
        yield build_declared_row(cluster, desired, id_, owned) | {"contradiction": contradiction}
        return
    set_row = build_excluded_row(cluster, desired, id_, owned)
    # The second pass, over the whole cluster, needs the row with the whole set.
    source = None if desired is None or desired.source is None else str(desired.source)
    yield set_row | {"live_sort": "", "live_key": "", "source": source, "contradiction": contradiction}
    for element in elements:
        element_resource = (
            None if desired is None or element.body is None else replace(desired, body=element.body)
        )
        row = build_declared_row(cluster, element_resource, id_, element.owned)
        yield row | {"labels": set_row["labels"], **_build_key_columns(id_, element.key)}
    if desired is None:
        return
    for group, body in list_removed_groups(desired).items():
        row = build_declared_row(cluster, replace(desired, body=body), id_, None)
        yield row | {"live_sort": "", "live_key": group, "alone": True}


def build_excluded_rows(
    cluster: str, desired: DesiredResource | None, id_: ResourceId, owned: OwnedRecord | None
) -> Iterator[Row]:
    """Build the rows of a resource that the selector excludes from the comparison."""
    elements = list_elements(id_, _get_body(desired), owned)
    excluded_row = build_excluded_row(cluster, desired, id_, owned)
    if elements is None:
        yield excluded_row
        return
    yield excluded_row | {"live_sort": "", "live_key": ""}
    for element in elements:
        yield excluded_row | {"left_out": None, **_build_key_columns(id_, element.key)}


def build_declared_row(
    cluster: str, desired: DesiredResource | None, id_: ResourceId, owned: OwnedRecord | None
) -> Row:
    """Build one row of a declared or owned resource in the table `DECLARED`.

    For a resource that is a set of live objects, this is the row of one element.
    """
    key = find_live_key(id_, _get_body(desired), owned)
    row = _build_resource_row(cluster, desired, id_, owned) | {
        "owned": None if owned is None else dump_canonical_json(dump_record(owned)),
        **_build_key_columns(id_, key),
    }
    if desired is None:
        return row
    facts = list_facts(desired, owned)
    return row | {
        "desired": _dump_body(desired),
        "source": None if desired.source is None else str(desired.source),
        "alone": key is not None and is_self_contained(desired),
        "always": facts is None,
        **_build_fact_columns(facts or _NO_FACTS),
    }


def build_excluded_row(
    cluster: str, desired: DesiredResource | None, id_: ResourceId, owned: OwnedRecord | None
) -> Row:
    """Build one row of a resource that the selector excludes.

    The resource itself is not compared, but the comparison of other resources can depend on it.
    """
    excluded_body = None if desired is None else _dump_body(desired)
    key = find_live_key(id_, _get_body(desired), owned)
    row = _build_resource_row(cluster, desired, id_, owned) | _build_key_columns(id_, key)
    return row | {"alone": False, "left_out": excluded_body}


def build_declared_cluster_row(
    cluster: str,
    labels: Mapping[str, str],
    error: str | None = None,
    *,
    cluster_id: str | None = None,
    cleanup: PendingCleanup | None = None,
    policies: bool = False,
) -> Row:
    """Build the row about a whole cluster in the table `DECLARED`.

    error: the reason why the project or the state of the cluster could not be read; otherwise None.
    cluster_id: the id of the cluster to which the state belongs.
    cleanup: the pending cleanup of earlier runs.
    policies: whether the project has policies.
    """
    row = _build_declared_columns(cluster, CLUSTER, cluster) | {
        **_build_fact_columns(_NO_FACTS),
        "always": policies,
    }
    owned = dump_canonical_json(cleanup) if cleanup else None
    return row | {"owned": owned, "labels": dict(labels), "cluster_id": cluster_id, "error": error}


def _build_resource_row(
    cluster: str, desired: DesiredResource | None, id_: ResourceId, owned: OwnedRecord | None
) -> Row:
    labels = desired.labels if desired is not None else get_owned_labels(owned)
    return _build_declared_columns(cluster, id_.kind, id_.name) | {
        "labels": dict(labels),
        **_build_fact_columns(_NO_FACTS),
    }


def _get_body(desired: DesiredResource | None) -> object | None:
    return None if desired is None else desired.body


def _build_key_columns(id_: ResourceId, key: LiveKey | None) -> Row:
    """Return the columns with the type and key of the live object.

    If the type and key equal the kind and name of the resource, return no columns. This halves the size of
    the table.
    """
    if key is None or key == (id_.kind, id_.name):
        return {}
    return {"live_sort": key.sort, "live_key": key.key}


def _dump_body(desired: DesiredResource) -> str:
    return dump_canonical_json(encode_body(desired))


def _build_fact_columns(facts: DeclaredFacts) -> Row:
    return {"need": facts.need, "forbid": facts.forbid, "keys": facts.keys, "gone": facts.gone}


def _build_live_columns(origin: RowOrigin, kind: str, name: str, body: JsonValue) -> Row:
    body_json = None if body is None else dump_canonical_json(body)
    return {
        "taken_at": origin.taken_at,
        "cluster": origin.cluster,
        "cluster_id": origin.cluster_id,
        "kind": kind,
        "name": name,
        "body": body_json,
        "fingerprint": None if body_json is None else hash_text(body_json),
        "error": None,
        "labels": dict(origin.labels),
        "has": None,
        "keys": None,
        "group_name": None,
        "is_part": None,
    }


def _build_declared_columns(cluster: str, kind: str, name: str) -> Row:
    return {
        "cluster": cluster,
        "kind": kind,
        "name": name,
        "live_sort": None,
        "live_key": None,
        "desired": None,
        "left_out": None,
        "owned": None,
        "labels": {},
        "source": None,
        "alone": True,
        "always": True,
        "need": None,
        "forbid": None,
        "keys": None,
        "gone": None,
        "cluster_id": None,
        "error": None,
        "contradiction": None,
        "row_hash": None,
    }


ROWS_A_BATCH = 5_000


def read_live_rows(
    connections: Connections,
    name: str,
    labels: Mapping[str, str],
    now: datetime,
    find_known: FindKnownResources = find_no_resources,
    unused_search: UnusedSearch | None = None,
) -> Iterator[Row]:
    """Read a cluster, and yield the row about the whole cluster, then the rows of its live objects.

    Raises Fault before the first row if the cluster cannot be read. If another system of the environment
    cannot be read, yield one row with the error for each object type of that system, or for each unread part.

    name, labels: the name and labels of the cluster in the fleet file.
    now: the time at which reading starts.
    find_known: returns the resources of the project; called only if they are needed to read a system.
    unused_search: how to look for unused objects; None if unused objects are not listed.
    """
    listings: list[LiveListing] = []
    unread_codecs: list[tuple[LiveCodec, str]] = []
    body: JsonObject = {}
    other_systems: dict[str, JsonValue] = {}
    system_id = None
    for codec in find_codecs(connections):
        if codec.identifies_system:
            listing = codec.list_objects(connections)
            body, system_id = as_object(listing.system), listing.system_id
            listings.append(listing)
            continue
        try:
            listing = _list_objects(codec, connections, find_known)
        except (Fault, KdeclareError) as problem:
            reason = _explain_failure(problem)
            other_systems[codec.name] = {"error": reason}
            if not is_not_configured(problem) and not _is_irrelevant(problem, codec, find_known):
                unread_codecs.append((codec, reason))
        else:
            other_systems[codec.name] = {"system": listing.system}
            listings.append(listing)
    if system_id is None:
        system_id = next((item.system_id for item in listings if item.system_id is not None), None)
    origin = RowOrigin(now, name, system_id, labels)
    if other_systems:
        body = {**body, OTHER_SYSTEMS: other_systems}
    if unused_search is not None:
        body = {**body, UNUSED: read_unused(find_codecs(connections), connections, unused_search, now)}
    yield build_cluster_row(origin, body)
    for listing in listings:
        for item in listing.objects:
            yield build_live_row(origin, item)
        yield from build_part_rows(origin, listing.unread)
    for codec, reason in unread_codecs:
        for sort in sorted(codec.sorts):
            yield build_unread_row(origin, sort, "", reason)


def _is_irrelevant(problem: Exception, codec: LiveCodec, find_known: FindKnownResources) -> bool:
    """Return whether a failure to read objects can be ignored.

    It can be ignored if the system does not support the objects, and the project has none of them. Always
    return False for a snapshot: it is read without a project, and later audits might need the objects.
    """
    if not isinstance(problem, UnsupportedFault) or find_known is find_no_resources:
        return False
    return not find_known(codec.sorts)


def _list_objects(codec: LiveCodec, connections: Connections, find_known: FindKnownResources) -> LiveListing:
    if isinstance(codec, ListsKnownObjects):
        return codec.list_known_objects(connections, find_known(codec.sorts))
    return codec.list_objects(connections)


def _explain_failure(problem: Fault | KdeclareError) -> str:
    if isinstance(problem, KdeclareError):
        return summarize_diagnostics(problem.diagnostics)
    return f"The system cannot be read: {problem.message.strip().rstrip('.')} ({problem.error})."


def build_unreachable_row(name: str, labels: Mapping[str, str], now: datetime, reason: str) -> Row:
    """Build the row of a cluster that could not be read."""
    return build_unread_row(RowOrigin(now, name, None, labels), CLUSTER, name, reason)


def batch_rows(rows: Iterable[Row], schema: pa.Schema = LIVE) -> Iterator[pa.RecordBatch]:
    """Convert the rows of a table to Arrow batches of limited size."""
    rows = iter(rows)
    while batch := list(islice(rows, ROWS_A_BATCH)):
        yield pa.RecordBatch.from_pylist([_to_arrow_maps(row) for row in batch], schema)


def _to_arrow_maps(row: Row) -> dict[str, Any]:
    return {**row, "labels": list(row["labels"].items())}
