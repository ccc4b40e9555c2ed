"""What the systems of a cluster have, as rows of `rows.LIVE`.

In part: an object that cannot be read has its error in place of its body, and the rest is there.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import pyarrow as pa

from kdeclare.core.connecting import NOT_CONFIGURED
from kdeclare.core.diagnostics import KdeclareError, gist
from kdeclare.core.faults import Fault
from kdeclare.core.jsontypes import Json
from kdeclare.core.live_codec import LiveCodec, LiveListing
from kdeclare.core.parts import Connections
from kdeclare.core.registry import find_codecs
from kdeclare.fleet.encoding import Origin, Row, cluster_row, live_row, unread_row
from kdeclare.fleet.live_state import OTHERS
from kdeclare.fleet.rows import CLUSTER, LIVE

ROWS_A_BATCH = 5_000


def live_rows(connections: Connections, name: str, labels: Mapping[str, str], now: datetime) -> Iterator[Row]:
    """All that a cluster has: itself, then the objects of each collector.

    name, labels: the cluster's in its fleet. now: when this began.
    Raises Fault before the first row, and never after it: what is lost later on is said row by row. Of a
    collector that is not the cluster's own, there is a row with the error for each sort of its objects.
    """
    listings: list[LiveListing] = []
    unread: list[tuple[LiveCodec, str]] = []
    body: dict[str, Json] = {}
    others: dict[str, Json] = {}
    system_id = None
    for codec in find_codecs(connections):
        if codec.identifies_system:
            listing = codec.list_objects(connections)
            body, system_id = listing.system, listing.system_id
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
