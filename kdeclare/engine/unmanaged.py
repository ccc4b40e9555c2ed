"""List the live objects that a project neither declares nor owns, by the same rules as audits."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from kdeclare.core.diagnostics import KdeclareError, summarize_diagnostics
from kdeclare.core.jsontypes import JsonValue, dump_canonical_json
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.known_resources import KnownResource
from kdeclare.core.live.live_codec import LiveCodec, LiveKey
from kdeclare.core.parts import Connections
from kdeclare.core.plans.unmanaged import UnmanagedListing, UnmanagedObject
from kdeclare.core.provider.connection import is_not_configured
from kdeclare.core.provider.provider_queries import find_codecs
from kdeclare.core.resources.fleet_capabilities import find_live_key, is_set_like, list_live_keys
from kdeclare.core.resources.ids import ResourceId


def list_unmanaged(
    connections: Connections, known: Iterable[KnownResource], permits: Callable[[ResourceId], bool]
) -> UnmanagedListing:
    """Return the live objects that no resource in ``known`` declares or owns.

    permits: returns whether a resource is in the scope of the project. Objects outside the scope are left out
        if resources of their kind have the same names as the objects. Internal objects of a system are always
        left out.
    """
    known_keys = {key for resource in known for key in _list_keys(resource)}
    counts: Counter[tuple[str, str]] = Counter()
    unread: list[str] = []
    for codec in find_codecs(connections):
        try:
            listing = codec.list_objects(connections)
            unread += [part.reason for part in listing.unread]
            for item in listing.objects:
                if item.key in known_keys or not _is_in_scope(item.key, permits):
                    continue
                if item.error is not None:
                    unread.append(f"{item.key.sort}/{item.key.key}: {item.error}")
                elif _is_reported(codec, item.key, item.body):
                    counts[item.key.sort, item.group or item.key.key] += 1
        except (Fault, KdeclareError) as problem:
            if not is_not_configured(problem):
                unread.append(_explain_failure(codec, problem))
    objects = tuple(UnmanagedObject(kind, name, count) for (kind, name), count in sorted(counts.items()))
    return UnmanagedListing(objects, tuple(unread))


def _list_keys(resource: KnownResource) -> Iterator[LiveKey]:
    yield from list_live_keys(resource.id, resource.body, resource.owned)
    if not is_set_like(resource.id.kind):  # also the object that the manifest now declares
        yield from list_live_keys(resource.id, resource.body, None)


def _is_in_scope(key: LiveKey, permits: Callable[[ResourceId], bool]) -> bool:
    resource = ResourceId(*key)
    has_same_name = find_live_key(resource, None, None) == key
    return not has_same_name or permits(resource)


def _is_reported(codec: LiveCodec, key: LiveKey, body: JsonValue) -> bool:
    return codec.is_reported(key, dump_canonical_json(body))


def _explain_failure(codec: LiveCodec, problem: Fault | KdeclareError) -> str:
    kinds = ", ".join(sorted(codec.sorts))
    reason = (
        summarize_diagnostics(problem.diagnostics) if isinstance(problem, KdeclareError) else str(problem)
    )
    return f"{kinds}: {reason.rstrip('.')}."
