"""Find resources that contradict each other, or that several entries of a fleet manage in the same cluster.

Entries share a cluster if the id of the live cluster is the same. Only objects of the system that identifies
the cluster are compared, because names in other systems are valid only within an environment.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from enum import StrEnum
from typing import Any, NamedTuple

from kdeclare.core.provider.registry import list_cluster_sorts
from kdeclare.core.resources.ids import ResourceId
from kdeclare.fleet.findings import Finding, FindingKind, FindingSeverity
from kdeclare.fleet.tables.rows import CLUSTER, get_declared_live_key

Row = Mapping[str, Any]
ObjectKey = tuple[str, str, str]
"""The name of a cluster, and the type and key of a live object or the kind and name of a resource."""
Sharing = Mapping[str, frozenset[str]]
"""For each entry that shares its cluster, the names of the other entries of that cluster."""

CONTRADICTION_PATH = "manifests"
"""The path of a finding about a resource that contradicts another resource of the same project."""
CONTRADICTION_SEVERITY = FindingSeverity.HIGH
"""The severity of a contradiction. It is high because a project with a contradiction cannot be planned."""

_MAX_NAMED = 3


class Relation(StrEnum):
    """How another entry manages an object that an entry of the fleet declares or owns.

    The values are ordered, the worst relation first.
    """

    DIFFERENT = "declares it differently"
    DECLARED = "declares it, too"
    OWNED = "owns it, but no longer declares it"

    @property
    def rank(self) -> int:
        """The position of the relation among all relations: 0 for the worst."""
        return list(Relation).index(self)


class Rival(NamedTuple):
    """A resource of another entry that refers to the same live object as a resource of this entry.

    cluster: the name of the entry. kind, name: the resource.
    source: the position of the manifest; None if the resource is not declared.
    relation: see `Relation`.
    """

    cluster: str
    kind: str
    name: str
    source: str | None
    relation: str


def find_sharing(cluster_ids: Mapping[str, str | None]) -> Sharing:
    """Return the entries of a fleet that share a cluster with other entries.

    cluster_ids: the id of the cluster of each entry; None if the id is unknown.
    """
    names_by_id: dict[str, set[str]] = defaultdict(set)
    for name, id_ in cluster_ids.items():
        if id_ is not None:
            names_by_id[id_].add(name)
    return {
        name: frozenset(names - {name}) for names in names_by_id.values() if len(names) > 1 for name in names
    }


def find_contradictions(
    declared: Iterable[Row], compared_clusters: Collection[str]
) -> list[tuple[ObjectKey, Mapping[str, str] | None, Finding]]:
    """Return a finding for each resource that contradicts another resource of its project.

    Each finding comes with the labels of the resource.
    """
    return [
        ((row["cluster"], row["kind"], row["name"]), row["labels"], _build_contradiction_finding(row))
        for row in declared
        if row["contradiction"] is not None and row["cluster"] in compared_clusters
    ]


def _build_contradiction_finding(row: Row) -> Finding:
    return Finding(
        FindingKind.CONTESTED,
        CONTRADICTION_PATH,
        None,
        None,
        None,
        row["contradiction"],
        CONTRADICTION_SEVERITY,
        row["source"],
    )


def map_cluster_ids(declared: Mapping[str, Row], live: Mapping[str, Row]) -> dict[str, str | None]:
    """Return the id of the cluster of each entry.

    For a cluster that could not be read, return the cluster id that the state of the project contains.
    Without this id, findings of other entries of the same cluster would seem to be fixed.

    declared, live: the row about each whole cluster in the tables `DECLARED` and `LIVE`, by cluster name.
    """
    ids = {name: row["cluster_id"] for name, row in declared.items()}
    return ids | {name: row["cluster_id"] for name, row in live.items() if row["cluster_id"] is not None}


def find_claimed_elsewhere(declared: Iterable[Row], sharing: Sharing) -> Set[ObjectKey]:
    """Return, for each entry, the objects that only other entries of the same cluster declare or own.

    An audit does not report such an object as unmanaged.
    """
    own: set[ObjectKey] = set()
    elsewhere: set[ObjectKey] = set()
    for row, sort, key in _list_objects(declared, sharing):
        own.add((row["cluster"], sort, key))
        elsewhere.update((other, sort, key) for other in sharing[row["cluster"]])
    return elsewhere - own


def find_contested(
    declared: Iterable[Row], sharing: Sharing, compared_clusters: Collection[str]
) -> list[tuple[ObjectKey, Mapping[str, str] | None, Finding]]:
    """Return a finding for each resource whose objects another entry declares or owns.

    Each finding comes with the labels of the resource.

    compared_clusters: the entries whose resources can be compared.
    """
    rows_by_object: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row, sort, key in _list_objects(declared, sharing):
        if row["desired"] is not None or row["owned"] is not None:
            rows_by_object[sort, key].append(row)
    own_rows: dict[ObjectKey, list[Row]] = defaultdict(list)
    rivals: dict[ObjectKey, set[Rival]] = defaultdict(set)
    for rows in rows_by_object.values():
        for own in rows:
            found = {_compare(own, row) for row in rows if row["cluster"] in sharing[own["cluster"]]}
            if found and own["cluster"] in compared_clusters:
                resource = own["cluster"], own["kind"], own["name"]
                own_rows[resource].append(own)
                rivals[resource] |= found
    findings: list[tuple[ObjectKey, Mapping[str, str] | None, Finding]] = []
    for resource, contested_rows in own_rows.items():
        # an element that is no longer declared has no source, although its resource is declared
        source = max(row["source"] or "" for row in contested_rows) or None
        finding = build_contested_finding(ResourceId(*resource[1:]), source, rivals[resource])
        findings.append((resource, contested_rows[0]["labels"], finding))
    return findings


def _list_objects(declared: Iterable[Row], sharing: Sharing) -> Iterator[tuple[Row, str, str]]:
    """Yield the rows about single objects of shared clusters, each with the type and key of the object.

    Rows about a whole set of objects, or about a group of objects, are omitted.
    """
    sorts = list_cluster_sorts()
    for row in declared:
        if row["cluster"] not in sharing or row["kind"] == CLUSTER:
            continue
        sort, key = get_declared_live_key(row)
        if sort in sorts:
            yield row, sort, key


def _compare(own: Row, other: Row) -> Rival:
    relation = Relation.OWNED
    if other["desired"] is not None:
        is_different = own["desired"] is not None and own["desired"] != other["desired"]
        relation = Relation.DIFFERENT if is_different else Relation.DECLARED
    return Rival(other["cluster"], other["kind"], other["name"], other["source"], str(relation))


def build_contested_finding(resource: ResourceId, source: str | None, rivals: Iterable[Rival]) -> Finding:
    """Return the finding about a resource whose objects other entries declare or own.

    The finding is more severe if the declarations differ, because each apply of one entry then undoes what
    the other entry applied.

    source: the position of the manifest; None if the resource is not declared.
    """
    worst: dict[tuple[str, str, str], Rival] = {}
    for rival in sorted(rivals, key=lambda item: (item[:3], Relation(item.relation).rank, item.source or "")):
        worst.setdefault(rival[:3], rival)
    named = [_describe(rival, resource) for rival in worst.values()]
    more = f", and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
    is_disputed = any(rival.relation == Relation.DIFFERENT for rival in worst.values())
    others = f"{', '.join(named[:_MAX_NAMED])}{more}"
    message = f"Other projects of this cluster also manage this resource: {others}."
    if is_disputed:
        message += " Each project's apply undoes the other's changes."
    severity = FindingSeverity.HIGH if is_disputed else FindingSeverity.MEDIUM
    return Finding(FindingKind.CONTESTED, None, None, None, None, message, severity, source)


def _describe(rival: Rival, resource: ResourceId) -> str:
    id_ = ResourceId(rival.kind, rival.name)
    alias = "" if id_ == resource else f" as {id_}"
    source = "" if rival.source is None else f", {rival.source}"
    return f"{rival.cluster}{alias} ({rival.relation}{source})"
