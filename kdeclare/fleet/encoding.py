"""The rows of the two tables that a fleet is compared by, see `fleet.rows`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

import pyarrow as pa

from kdeclare.core.diagnostics import KdeclareError, gist
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_object, canonical_json
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import DeclaredFacts, LiveCodec, LiveKey, LiveListing, LiveObject
from kdeclare.core.parts import Connections
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.provider.connection import NOT_CONFIGURED
from kdeclare.core.provider.registry import find_codecs
from kdeclare.core.resources.capabilities import (
    encode_body,
    find_live_key,
    is_self_contained,
    list_elements,
    list_facts,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.resources.owned_record import OwnedRecord, read_owned_labels
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.fleet.live_state import OTHERS, fingerprint
from kdeclare.fleet.rows import CLUSTER, LIVE

Row = dict[str, Any]

_NO_FACTS = DeclaredFacts([], [], [], None)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and when live rows were read. cluster_id: None where the cluster was not reached."""

    taken_at: datetime
    cluster: str
    cluster_id: str | None
    labels: Mapping[str, str]


def cluster_row(origin: Origin, body: JsonValue) -> Row:
    """LIVE: the cluster itself; ``body`` as in `fleet.live_state`."""
    return _live(origin, CLUSTER, origin.cluster, body)


def live_row(origin: Origin, item: LiveObject) -> Row:
    """LIVE: one object."""
    facts = item.facts
    return _live(origin, *item.key, item.body) | {
        "error": item.error,
        "has": None if facts is None else facts.has,
        "keys": None if facts is None else facts.keys,
        "group_name": item.group,
    }


def unread_row(origin: Origin, kind: str, name: str, reason: str) -> Row:
    """LIVE: what could not be read, the cluster itself (kind `CLUSTER`) or one object of it."""
    return _live(origin, kind, name, None) | {"error": reason}


def declared_rows(
    cluster: str, desired: Desired | None, id_: ResourceId, owned: OwnedRecord | None
) -> Iterator[Row]:
    """DECLARED: a resource that is declared, owned or both; of one that is a set, a row for each element.

    Of secrets there are hashes only.
    """
    elements = list_elements(id_, _body_of(desired), owned)
    if elements is None:
        yield declared_row(cluster, desired, id_, owned)
        return
    whole = left_out_row(cluster, desired, id_, owned)
    yield whole | {"live_sort": "", "live_key": ""}  # what is compared with all of a cluster needs all of it
    for element in elements:
        part = None if desired is None or element.body is None else replace(desired, body=element.body)
        row = declared_row(cluster, part, id_, element.owned)
        yield row | {"labels": whole["labels"], **_key_columns(id_, element.key)}


def left_out_rows(
    cluster: str, desired: Desired | None, id_: ResourceId, owned: OwnedRecord | None
) -> Iterator[Row]:
    """DECLARED: the same of a resource that a selector leaves out: it is known, and not compared."""
    elements = list_elements(id_, _body_of(desired), owned)
    whole = left_out_row(cluster, desired, id_, owned)
    if elements is None:
        yield whole
        return
    yield whole | {"live_sort": "", "live_key": ""}
    for element in elements:
        yield whole | {"left_out": None, **_key_columns(id_, element.key)}


def declared_row(cluster: str, desired: Desired | None, id_: ResourceId, owned: OwnedRecord | None) -> Row:
    """DECLARED: one resource that is not a set, or one element."""
    key = find_live_key(id_, _body_of(desired), owned)
    row = _of_resource(cluster, desired, id_, owned) | {
        "owned": None if owned is None else canonical_json(dump_record(owned)),
        **_key_columns(id_, key),
    }
    if desired is None:
        return row
    facts = list_facts(desired, owned)
    return row | {
        "desired": _body(desired),
        "source": None if desired.source is None else str(desired.source),
        "alone": key is not None and is_self_contained(desired),
        "always": facts is None,
        **_fact_columns(facts or _NO_FACTS),
    }


def left_out_row(cluster: str, desired: Desired | None, id_: ResourceId, owned: OwnedRecord | None) -> Row:
    """DECLARED: one that a selector leaves out: nothing is found about it, but it counts for the others."""
    left_out = None if desired is None else _body(desired)
    key = find_live_key(id_, _body_of(desired), owned)
    row = _of_resource(cluster, desired, id_, owned) | _key_columns(id_, key)
    return row | {"alone": False, "left_out": left_out}


def declared_cluster_row(
    cluster: str,
    labels: Mapping[str, str],
    error: str | None = None,
    *,
    cluster_id: str | None = None,
    cleanup: PendingCleanup | None = None,
    policies: bool = False,
) -> Row:
    """DECLARED: the cluster itself.

    error: why its project, or its state, could not be read. cluster_id: that which the state is about.
    cleanup: what runs have left in the cluster to be removed later. policies: whether its project has some,
    which have to be asked about all of it.
    """
    row = _declared(cluster, CLUSTER, cluster) | {**_fact_columns(_NO_FACTS), "always": policies}
    owned = canonical_json(cleanup) if cleanup else None
    return row | {"owned": owned, "labels": dict(labels), "cluster_id": cluster_id, "error": error}


def _of_resource(cluster: str, desired: Desired | None, id_: ResourceId, owned: OwnedRecord | None) -> Row:
    labels = desired.labels if desired is not None else read_owned_labels(owned)
    return _declared(cluster, id_.kind, id_.name) | {"labels": dict(labels), **_fact_columns(_NO_FACTS)}


def _body_of(desired: Desired | None) -> object | None:
    return None if desired is None else desired.body


def _key_columns(id_: ResourceId, key: LiveKey | None) -> Row:
    """What is as the resource itself is called is left out: then the table is half as large."""
    if key is None or key == (id_.kind, id_.name):
        return {}
    return {"live_sort": key.sort, "live_key": key.key}


def _body(desired: Desired) -> str:
    return canonical_json(encode_body(desired))


def _fact_columns(facts: DeclaredFacts) -> Row:
    return {"need": facts.need, "forbid": facts.forbid, "keys": facts.keys, "gone": facts.gone}


def _live(origin: Origin, kind: str, name: str, body: JsonValue) -> Row:
    text = None if body is None else canonical_json(body)
    return {
        "taken_at": origin.taken_at,
        "cluster": origin.cluster,
        "cluster_id": origin.cluster_id,
        "kind": kind,
        "name": name,
        "body": text,
        "fingerprint": None if text is None else fingerprint(text),
        "error": None,
        "labels": dict(origin.labels),
        "has": None,
        "keys": None,
        "group_name": None,
    }


def _declared(cluster: str, kind: str, name: str) -> Row:
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
    }


ROWS_A_BATCH = 5_000


def live_rows(connections: Connections, name: str, labels: Mapping[str, str], now: datetime) -> Iterator[Row]:
    """All that a cluster has: itself, then the objects of each collector.

    name, labels: the cluster's in its fleet. now: when this began.
    Raises Fault before the first row, and never after it: what is lost later on is said row by row. Of a
    collector that is not the cluster's own, there is a row with the error for each sort of its objects.
    """
    listings: list[LiveListing] = []
    unread: list[tuple[LiveCodec, str]] = []
    body: JsonObject = {}
    others: dict[str, JsonValue] = {}
    system_id = None
    for codec in find_codecs(connections):
        if codec.identifies_system:
            listing = codec.list_objects(connections)
            body, system_id = as_object(listing.system), listing.system_id
            listings.append(listing)
            continue
        try:
            listing = codec.list_objects(connections)
        except (Fault, KdeclareError) as problem:
            reason = _explain(problem)
            others[codec.name] = {"error": reason}
            if not _is_without(problem):
                unread.append((codec, reason))
        else:
            others[codec.name] = {"system": listing.system}
            listings.append(listing)
    if system_id is None:
        system_id = next((item.system_id for item in listings if item.system_id is not None), None)
    origin = Origin(now, name, system_id, labels)
    yield cluster_row(origin, {**body, OTHERS: others} if others else body)
    for listing in listings:
        for item in listing.objects:
            yield live_row(origin, item)
    for codec, reason in unread:
        for sort in sorted(codec.sorts):
            yield unread_row(origin, sort, "", reason)


def _explain(problem: Fault | KdeclareError) -> str:
    if isinstance(problem, KdeclareError):
        return gist(problem.diagnostics)
    return f"It cannot be read: {problem.message.strip().rstrip('.')} ({problem.error})."


def _is_without(problem: Fault | KdeclareError) -> bool:
    """Whether the environment says nothing of such a system, so that nothing of it is missing."""
    return isinstance(problem, KdeclareError) and {d.code for d in problem.diagnostics} == {NOT_CONFIGURED}


def unreachable_row(name: str, labels: Mapping[str, str], now: datetime, reason: str) -> Row:
    """The one row of a cluster that could not be read."""
    return unread_row(Origin(now, name, None, labels), CLUSTER, name, reason)


def record_batches(rows: Iterable[Row], schema: pa.Schema = LIVE) -> Iterator[pa.RecordBatch]:
    """Rows of one of the tables, a bounded number of them in a batch."""
    rows = iter(rows)
    while part := list(islice(rows, ROWS_A_BATCH)):
        yield pa.RecordBatch.from_pylist([_mapped(row) for row in part], schema)


def _mapped(row: Row) -> dict[str, Any]:
    """As Arrow takes maps."""
    return {**row, "labels": list(row["labels"].items())}
