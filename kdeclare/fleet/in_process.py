"""An audit without Spark: one loop over all rows. It is what Spark's answers are held equal to."""

from collections.abc import Iterable, Iterator, Mapping

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.jsontypes import Json
from kdeclare.fleet.comparing import found, other_cluster
from kdeclare.fleet.rows import CLUSTER

Row = Mapping[str, Json]
Key = tuple[str, str, str]
"""Cluster, kind and name."""


def audit(
    declared: Iterable[Row], live: Iterable[Row], *, unmanaged_keys: bool = True
) -> Iterator[dict[str, Json]]:
    """What is found about every resource that is `alone`: cluster, kind, name and the columns of FOUND.

    In the order of clusters, kinds and names. Of a cluster of which one of the two rows of kind `CLUSTER`
    is missing or has an error, no other resource is compared. unmanaged_keys: whether keys that are neither
    declared nor owned are told. Raises KdeclareError where a table has a
    resource twice.
    """
    wanted, there = _by_key(declared, "declared"), _by_key(live, "live")
    bodies = {key[0]: _cluster_body(wanted.get(key), row) for key, row in there.items() if key[1] == CLUSTER}
    for key in sorted({*wanted, *there}):
        mine, seen = wanted.get(key, {}), there.get(key, {})
        if mine and not mine["alone"]:
            continue
        cluster, kind, name = key
        for item in found(
            kind,
            name,
            mine.get("desired"),
            mine.get("owned"),
            seen.get("body"),
            _error(mine, seen),
            bodies.get(cluster),
            (mine.get("labels") or {}).items(),
            mine.get("source"),
        ):
            if item.is_unmanaged_key and not unmanaged_keys:
                continue
            yield {
                "cluster": cluster,
                "kind": kind,
                "name": name,
                "finding": str(item.finding),
                "path": item.path,
                "op": item.op,
                "before": item.before,
                "after": item.after,
                "message": item.message,
            }


def _by_key(rows: Iterable[Row], side: str) -> dict[Key, Row]:
    found_rows: dict[Key, Row] = {}
    for row in rows:
        key = row["cluster"], row["kind"], row["name"]
        if key in found_rows:
            raise _twice(key, side)
        found_rows[key] = row
    return found_rows


def _cluster_body(declared: Row | None, live: Row) -> str | None:
    if declared is None or _error(declared, live) is not None:
        return None
    body: str | None = live["body"]
    return body


def _error(declared: Row, live: Row) -> str | None:
    """Why something is not known; both sides can have a reason, and so can the two together."""
    reasons = [row["error"] for row in (live, declared) if row and row["error"] is not None]
    if declared and live and None not in (planned := (declared["cluster_id"], live["cluster_id"])):
        reasons += [other_cluster(*planned)] if planned[0] != planned[1] else []
    return " ".join(reasons) or None


def _twice(key: Key, side: str) -> KdeclareError:
    cluster, kind, name = key
    return KdeclareError(
        error(
            "duplicate-resource",
            "A resource is there twice",
            f"{kind}/{name} of cluster '{cluster}' is in the {side} table more than once.",
            hint="Declare it once; if a snapshot holds it twice, take a new one.",
        )
    )
