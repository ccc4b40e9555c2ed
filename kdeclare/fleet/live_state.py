"""Decode the live state of a cluster from the rows of a snapshot.

The row about a whole cluster contains the cluster-level live state as JSON: the state that all objects of the
cluster share. The field `OTHER_SYSTEMS` contains the shared state of every other system, by the name of the
system's collector: ``{"system": …}``, or ``{"error": "…"}`` if the system could not be read. The field
`UNUSED` is present if the fleet file enables the search for unused objects.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from kdeclare.core.jsontypes import JsonObject, as_object, as_text, dump_canonical_json, parse_json
from kdeclare.core.live.live_codec import LiveCodec, LiveKey
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.provider.registry import CODECS, load_codecs

OTHER_SYSTEMS = "others"
UNUSED = "unused"
"""The field with the unused objects, see `fleet.unused`."""
_NOT_COLLECTED = (
    "No objects of this kind were read. Either no system with such objects is configured for the cluster, "
    "or the snapshot was taken by an older version of kdeclare that did not support the system."
)


class NotReadError(Exception):
    """Raised if the live objects of a resource were not read. The message contains the reason."""


def hash_text(text: str) -> str:
    """Return the first 128 bits of the SHA-256 hash of a string, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]  # full hashes would be half of a snapshot's size


def decode_object(key: LiveKey, body: str | None, cluster: str) -> LiveState:
    """Return the live state that is needed to compare one resource.

    body: the live object as JSON; None if the object does not exist.
    cluster: the cluster-level live state as JSON.

    Raises NotReadError if objects of this type were not read.
    """
    codec = CODECS.get(key.sort)
    if codec is None:
        raise NotReadError(_NOT_COLLECTED)
    return LiveState(codec.decode(_get_system(codec, cluster), ((key, body),) if body is not None else ()))


def decode_cluster(cluster: str, objects: Iterable[tuple[LiveKey, str]]) -> LiveState:
    """Return the live state of a whole cluster. Systems that could not be read are omitted.

    cluster: the cluster-level live state as JSON.
    objects: the live objects as pairs of key and JSON.
    """
    by_sort: dict[str, list[tuple[LiveKey, str]]] = {}
    for item in objects:
        by_sort.setdefault(item[0].sort, []).append(item)
    parts: list[object] = []
    for codec in list_readable_codecs(cluster):
        collector_objects = (item for sort, items in by_sort.items() if sort in codec.sorts for item in items)
        parts.append(codec.decode(_get_system(codec, cluster), collector_objects))
    return LiveState(*parts)


def list_readable_codecs(cluster: str) -> tuple[LiveCodec, ...]:
    """Return the codecs of all systems that were read.

    cluster: the cluster-level live state as JSON.
    """
    return tuple(codec for codec in load_codecs() if _is_readable(codec, cluster))


def _is_readable(codec: LiveCodec, cluster: str) -> bool:
    if codec.identifies_system:
        return _has_own_state(cluster)
    return "system" in _parse_other_systems(cluster).get(codec.name, {})


@cache
def get_plan_context(codec: LiveCodec) -> PlanContext:
    """Return the `PlanContext` for comparing a single resource. codec: the codec of its live object."""
    return PlanContext(*codec.context)


def explain_unread(key: LiveKey, cluster: str) -> str | None:
    """Return the reason why objects of this type were not read; None if they were read.

    cluster: the cluster-level live state as JSON.
    """
    try:
        codec = CODECS.get(key.sort)
        if codec is None:
            raise NotReadError(_NOT_COLLECTED)
        _get_system(codec, cluster)
    except NotReadError as reason:
        return str(reason)
    return None


def _get_system(codec: LiveCodec, cluster: str) -> str:
    """Return the state that all objects of a system share, as JSON. Raises NotReadError."""
    if codec.identifies_system:
        if not _has_own_state(cluster):
            raise NotReadError(_NOT_COLLECTED)
        return cluster
    system_entry = _parse_other_systems(cluster).get(codec.name)
    if system_entry is None:
        raise NotReadError(_NOT_COLLECTED)
    if "error" in system_entry:
        raise NotReadError(system_entry["error"])
    return system_entry["system"]


@lru_cache(maxsize=256)
def _parse_other_systems(cluster: str) -> Mapping[str, Mapping[str, str]]:
    """Return the shared state or the error of each system other than the cluster, by collector name.

    The values are JSON strings, because codecs use the strings as keys of their caches.
    """
    entries = as_object(as_object(parse_json(cluster)).get(OTHER_SYSTEMS, {}))
    return {name: _parse_system_entry(as_object(entry)) for name, entry in entries.items()}


@lru_cache(maxsize=256)
def _has_own_state(cluster: str) -> bool:
    """Whether the cluster was read. If not, only other systems were read."""
    return bool(as_object(parse_json(cluster)).keys() - {OTHER_SYSTEMS, UNUSED})


def _parse_system_entry(entry: JsonObject) -> Mapping[str, str]:
    return (
        {"error": as_text(entry["error"])}
        if "error" in entry
        else {"system": dump_canonical_json(entry["system"])}
    )
