"""An audit without Spark: one loop over all rows. It is what Spark's answers are held equal to."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.fleet.drift import found, other_cluster, unmanaged_group
from kdeclare.fleet.findings import FindingKind, Found
from kdeclare.fleet.rows import CLUSTER

Row = Mapping[str, Any]
Key = tuple[str, str, str]
"""Cluster, kind and name; of what is live, cluster, sort and key."""


def audit(
    declared: Iterable[Row], live: Iterable[Row], *, unmanaged_keys: bool = True
) -> Iterator[dict[str, Any]]:
    """What is found about every resource that is `alone`: cluster, kind, name and the columns of FOUND.

    In the order of clusters, kinds and names. Of a cluster of which one of the two rows of kind `CLUSTER`
    is missing or has an error, no other resource is compared. unmanaged_keys: whether keys that are neither
    declared nor owned are told. Raises KdeclareError where a table has something twice.
    """
    there = dict(_once(live, _id_of, "live"))
    wanted = [(_live_key(row), row) for _, row in _once(declared, _element_of, "declared")]
    own = {key: row for key, row in wanted if key[1] == CLUSTER}
    bodies = {key[0]: _cluster_body(own.get(key), row) for key, row in there.items() if key[1] == CLUSTER}
    pairs = [(_id_of(row), row, there.get(key, {})) for key, row in wanted]
    claimed = {key for key, _ in wanted}
    groups: Counter[Key] = Counter()
    for key, row in there.items():
        if key in claimed:
            continue
        if row["group_name"] is None or bodies.get(key[0]) is None:
            pairs.append((key, {}, row))
        else:
            groups[key[0], key[1], row["group_name"]] += 1
    found_rows = [*_compare(pairs, bodies, unmanaged_keys=unmanaged_keys), *_count(groups)]
    yield from sorted(found_rows, key=lambda row: (row["cluster"], row["kind"], row["name"]))


def _compare(
    pairs: Iterable[tuple[Key, Row, Row]], bodies: Mapping[str, str | None], *, unmanaged_keys: bool
) -> Iterator[dict[str, Any]]:
    for key, mine, seen in pairs:
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
            if unmanaged_keys or not item.is_unmanaged_key:
                yield _row(key, item)


def _count(groups: Mapping[Key, int]) -> Iterator[dict[str, Any]]:
    for key, count in groups.items():
        message = unmanaged_group(str(count), key[2])
        yield _row(key, Found(FindingKind.UNMANAGED, None, None, str(count), None, message))


def _row(key: Key, item: Found) -> dict[str, Any]:
    cluster, kind, name = key
    return {
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


def _id_of(row: Row) -> Key:
    return row["cluster"], row["kind"], row["name"]


def _live_key(row: Row) -> Key:
    """What a row of what is declared is joined on."""
    sort, key = row["live_sort"], row["live_key"]
    return row["cluster"], row["kind"] if sort is None else sort, row["name"] if key is None else key


def _element_of(row: Row) -> tuple[str, ...]:
    return (*_id_of(row), *_live_key(row))


_K = TypeVar("_K", bound=tuple[str, ...])


def _once(rows: Iterable[Row], key_of: Callable[[Row], _K], side: str) -> Iterator[tuple[_K, Row]]:
    seen: set[_K] = set()
    for row in rows:
        key = key_of(row)
        if key in seen:
            raise _twice(_id_of(row), side)
        seen.add(key)
        yield key, row


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


def proves_order(
    declared: Mapping[str, Any], live: Mapping[str, Any], *, unmanaged_keys: bool = True
) -> bool:
    """Whether the facts of two rows show that the diff would find nothing; null shows nothing.

    unmanaged_keys: whether a key that is neither declared nor owned is to be found.
    False says nothing at all. `fleet.spark` has the same rule in SQL; a test holds the two together.
    """
    hashes = [
        declared["need"],
        declared["forbid"],
        declared["keys" if unmanaged_keys else "gone"],
        live["has"],
        live["keys"],
    ]
    if declared["alone"] is not True or declared["always"] is not False or live["error"] is not None:
        return False
    if any(column is None for column in hashes):
        return False
    need, forbid, keys, has, overridden = map(frozenset, hashes)
    expected = overridden <= keys if unmanaged_keys else not overridden & keys
    return need <= has and not forbid & has and expected
