"""ACLs in fleet snapshots and audits: one object per binding."""

from collections.abc import Iterable, Iterator, Mapping

from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.live_codec import (
    DeclaredFacts,
    LiveFacts,
    LiveKey,
    LiveListing,
    LiveObject,
    hash_fact,
)
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.audit_rules import Element
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding, sort_bindings
from kdeclare.providers.kafka.acl.collector import (
    AclState,
    Visibility,
    build_acl_state,
    read_acls,
    require_visible,
)
from kdeclare.providers.kafka.acl.diff import BINDINGS_FIELD_PREFIX
from kdeclare.providers.kafka.acl.record import AclRecord, get_owned_bindings
from kdeclare.providers.kafka.acl.spec import AclBody

ACL = "Acl"
"""The type of live objects, which is also the name of the kind."""


class AclCodec:
    """See `LiveCodec`. Reads the bindings of a cluster with one DescribeAcls request."""

    name = "kafka-acls"
    sorts = frozenset({ACL})
    identifies_system = False
    groups = True
    context: tuple[object, ...] = ()
    nouns: Mapping[str, tuple[str, str]] = {}
    """The nouns for counts in reports. The mapping is empty, because reports do not count bindings."""
    internal_marker: str | None = None

    def list_objects(self, connections: Connections) -> LiveListing:
        """Read all bindings. Without an authorizer, there are none. Raises Fault if ACLs are not visible."""
        state = read_acls(connections)
        if state.visibility is Visibility.DISABLED:
            return LiveListing(None, iter(()))
        return LiveListing(None, _list_objects(require_visible(state)))

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> AclState:
        """Return the live bindings. The key of an object is the binding itself."""
        return build_acl_state(parse_binding(key.key) for key, _ in objects)

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Return whether the binding exists."""
        return live.get(AclState).has(parse_binding(key.key))

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return None: a binding has no id.

        A binding that is deleted and created again is the same binding.
        """
        return None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Return True: Kafka has no internal bindings, so audits report every unmanaged binding."""
        return True

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """See `DescribesFields`."""
        return {f"{BINDINGS_FIELD_PREFIX}{body['resource']}": [body["element"]]}

    def format_field_name(self, sort: str, path: str) -> str | None:
        """Return None: reports show the path of a binding, so no display name is needed."""
        return None


def list_acl_elements(body: AclBody | None, owned: AclRecord | None) -> Iterator[Element]:
    """Split an Acl into its declared and owned bindings, so that an audit can compare each binding."""
    declared = body.bindings if body is not None else {}
    applied = frozenset(get_owned_bindings(owned))
    for binding in sort_bindings([*declared, *applied]):
        part = None
        if body is not None:
            role = declared.get(binding)
            part = AclBody((binding.principal,), {} if role is None else {binding: role}, is_partial=True)
        record = AclRecord((binding,), owned.labels) if owned is not None and binding in applied else None
        yield Element(_make_key(binding), part, record)


def list_removed_principals(body: AclBody) -> Mapping[str, AclBody]:
    """Return, for each principal whose unmanaged bindings are to be deleted, a body without bindings.

    The bodies declare no bindings, so their diffs delete every binding of these principals.
    """
    principals = body.principals if body.remove_unmanaged else ()
    return {p: AclBody((p,), remove_unmanaged=True, is_partial=True) for p in principals}


def find_acl_key(body: AclBody | None, owned: OwnedRecord | None) -> LiveKey | None:
    """Return the key of the first declared or owned binding; None if there is no such binding."""
    for binding in (*(body.bindings if body is not None else ()), *get_owned_bindings(owned)):
        return _make_key(binding)
    return None


def list_acl_facts(body: AclBody) -> DeclaredFacts | None:
    """Return the facts of the bindings that the body declares; None if it declares no binding."""
    if not body.bindings:
        return None
    return DeclaredFacts([_hash_binding(binding) for binding in body.bindings])


def _list_objects(state: AclState) -> Iterator[LiveObject]:
    for binding in sort_bindings(state.bindings):
        yield LiveObject(
            _make_key(binding),
            {"resource": binding.resource, "element": binding.element},
            facts=LiveFacts([_hash_binding(binding)]),
            group=binding.principal,
        )


def _make_key(binding: Binding) -> LiveKey:
    return LiveKey(ACL, str(binding))


def _hash_binding(binding: Binding) -> int:
    return hash_fact("binding", str(binding))
