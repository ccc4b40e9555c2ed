"""Decode the live state of a cluster from the texts in rows, for the diff of a resource.

The body of a cluster's own row is the state that all objects of the cluster's own collector share. The shared
state of other collectors is in it under `OTHER_SYSTEMS`, by collector name: ``{"system": …}``, or
``{"error": "why it was not read"}``.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from kdeclare.core.jsontypes import JsonObject, as_object, as_text, dump_canonical_json, parse_json
from kdeclare.core.live.live_codec import LiveCodec, LiveKey
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.provider.registry import CODECS, load_codecs

OTHER_SYSTEMS = "others"
_NOT_COLLECTED = (
    "No objects of this kind were read: the cluster does not have their system, "
    "or the snapshot is older than the support for it."
)


class NotReadError(Exception):
    """The objects that a resource is compared with were not read; the message explains why."""


def hash_text(text: str) -> str:
    """Return the first 128 bits of the SHA-256 of a canonical text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]  # full hashes would be half of a snapshot's size


def decode_object(key: LiveKey, body: str | None, cluster: str) -> LiveState:
    """Return the live state for the diff of one resource. Raises NotReadError.

    body: the body of the object, None if it does not exist. cluster: the body of its cluster.
    """
    codec = CODECS.get(key.sort)
    if codec is None:
        raise NotReadError(_NOT_COLLECTED)
    return LiveState(codec.decode(_get_system(codec, cluster), ((key, body),) if body is not None else ()))


def decode_cluster(cluster: str, objects: Iterable[tuple[LiveKey, str]]) -> LiveState:
    """Return the live state of a whole cluster, as far as it was read, from its own body and its objects."""
    by_sort: dict[str, list[tuple[LiveKey, str]]] = {}
    for item in objects:
        by_sort.setdefault(item[0].sort, []).append(item)
    parts: list[object] = []
    for codec in list_readable_codecs(cluster):
        collector_objects = (item for sort, items in by_sort.items() if sort in codec.sorts for item in items)
        parts.append(codec.decode(_get_system(codec, cluster), collector_objects))
    return LiveState(*parts)


def list_readable_codecs(cluster: str) -> tuple[LiveCodec, ...]:
    """Return the codecs of the collectors that read anything, given the body of the cluster."""
    return tuple(codec for codec in load_codecs() if _is_readable(codec, cluster))


def _is_readable(codec: LiveCodec, cluster: str) -> bool:
    if codec.identifies_system:
        return _has_own_state(cluster)
    return "system" in _parse_other_systems(cluster).get(codec.name, {})


@cache
def get_plan_context(codec: LiveCodec) -> PlanContext:
    """Return the plan context for comparing a single resource."""
    return PlanContext(*codec.context)


def explain_unread(key: LiveKey, cluster: str) -> str | None:
    """Return why objects of this type were not read; None if they were read."""
    try:
        codec = CODECS.get(key.sort)
        if codec is None:
            raise NotReadError(_NOT_COLLECTED)
        _get_system(codec, cluster)
    except NotReadError as reason:
        return str(reason)
    return None


def _get_system(codec: LiveCodec, cluster: str) -> str:
    """Return the state that all objects of a collector share, as text."""
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
    """Return the entries of the other collectors; systems as text, because codecs cache decoded texts."""
    entries = as_object(as_object(parse_json(cluster)).get(OTHER_SYSTEMS, {}))
    return {name: _parse_system_entry(as_object(entry)) for name, entry in entries.items()}


@lru_cache(maxsize=256)
def _has_own_state(cluster: str) -> bool:
    """Whether the collector that identifies clusters read anything; False if there are only other systems."""
    return bool(as_object(parse_json(cluster)).keys() - {OTHER_SYSTEMS})


def _parse_system_entry(entry: JsonObject) -> Mapping[str, str]:
    return (
        {"error": as_text(entry["error"])}
        if "error" in entry
        else {"system": dump_canonical_json(entry["system"])}
    )
