"""Client quotas in fleet snapshots and audits: one object per entity with limits."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
from kdeclare.core.resources.audit_rules import AuditRules, UnmanagedField
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, narrow
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.providers.kafka.client_quota.collector import QuotaState, read_quotas, require_visible
from kdeclare.providers.kafka.client_quota.diff import Limits, QuotaRecord
from kdeclare.providers.kafka.client_quota.entity import LiveLimit, QuotaEntity
from kdeclare.providers.kafka.client_quota.spec import LIMIT_FIELD_PREFIX, ClientQuotaBody

CLIENT_QUOTA = "ClientQuota"
"""The name of the kind, and of the type that live quotas have in snapshots."""


class QuotaCodec:
    """See `LiveCodec`. Reads the quotas of a cluster with one DescribeClientQuotas request."""

    name = "kafka-quotas"
    sorts = frozenset({CLIENT_QUOTA})
    identifies_system = False
    groups = False
    context: tuple[object, ...] = ()
    nouns: Mapping[str, tuple[str, str]] = {}
    """The nouns for counts in reports. The mapping is empty, because reports do not count quotas."""
    internal_marker: str | None = None

    def list_objects(self, connections: Connections) -> LiveListing:
        """Read all entities with limits.

        Raises Fault if the read fails or the principal is not permitted to describe quotas.
        """
        state = require_visible(read_quotas(connections))
        return LiveListing(None, _list_objects(state))

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> QuotaState:
        """Return the live limits from the JSON of the entities."""
        return QuotaState({QuotaEntity.parse_key(key.key): json.loads(text) for key, text in objects})

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Return whether the entity has limits."""
        return QuotaEntity.parse_key(key.key) in live.get(QuotaState).limits

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return None, because a quota entity has no identifier except its name."""
        return None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Return True: Kafka itself sets no limits, so reports contain all limits."""
        return True

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """See `DescribesFields`."""
        return {f"{LIMIT_FIELD_PREFIX}{key}": limit for key, limit in body.items()}

    def format_field_name(self, sort: str, path: str) -> str | None:
        """Return None: reports show the path of a limit, so no display name is needed."""
        return None


class QuotaRules(AuditRules):
    """Audit rules for the limits of one entity."""

    def list_unmanaged(
        self, resource: ResourceId, names: Sequence[str], live: LiveState
    ) -> Iterator[UnmanagedField]:
        """Return the limits that are neither declared nor owned."""
        (limits,) = live.get(QuotaState).limits.values()  # An audit compares one entity at a time.
        return (UnmanagedField(f"{LIMIT_FIELD_PREFIX}{key}", limits[key]) for key in names)

    def is_set_by_others(self, path: str, desired: DesiredResource, owned: OwnedRecord | None) -> bool:
        """Return whether the limit is neither declared nor owned, which means that another client set it."""
        key = path.removeprefix(LIMIT_FIELD_PREFIX)
        return (
            key not in desired.get_body(ClientQuotaBody).limits
            and key not in narrow(owned, QuotaRecord).limits
        )


def find_quota_key(body: ClientQuotaBody | None, owned: QuotaRecord | None) -> LiveKey | None:
    """Return the key of the owned entity or, if the resource is not owned, of the declared entity.

    If the manifest names a different entity, kdeclare denies the change, so the owned entity keeps its
    limits.
    """
    declared = body.entity if body is not None else None
    entity = owned.quota_entity if owned is not None else declared
    return LiveKey(CLIENT_QUOTA, entity.key) if entity is not None else None


def find_listed_entity(name: str, state: QuotaState) -> QuotaEntity | None:
    """Return the entity whose key is ``name``, or None if no entity with this key has limits."""
    try:
        entity = QuotaEntity.parse_key(name)
    except ValueError:
        return None
    return entity if entity in state.limits and entity.key == name else None


def list_quota_facts(body: ClientQuotaBody, owned: QuotaRecord | None) -> DeclaredFacts | None:
    """Return the facts about the declared limits of an entity, or None if the audit must compute the diff."""
    if body.ignored or (owned is not None and owned.quota_entity != body.entity):
        return None
    applied: Limits = owned.limits if owned is not None else {}
    declared_limits = {key: limit for key, limit in body.limits.items() if limit is not None}
    absent_keys = (
        None
        if body.remove_unmanaged
        else [_hash_key(key) for key in {*body.limits, *applied} - declared_limits.keys()]
    )
    required_facts = [_hash_limit(key, limit) for key, limit in declared_limits.items()]
    return DeclaredFacts(required_facts, keys=[_hash_key(key) for key in declared_limits], gone=absent_keys)


def _list_objects(state: QuotaState) -> Iterator[LiveObject]:
    for entity in sorted(state.limits, key=lambda entity: entity.key):
        limits = state.of(entity)
        facts = LiveFacts([_hash_limit(*item) for item in limits.items()], [_hash_key(key) for key in limits])
        yield LiveObject(LiveKey(CLIENT_QUOTA, entity.key), dict(limits), facts=facts)


def _hash_limit(key: str, limit: LiveLimit) -> int:
    return hash_fact("limit", key, str(limit))


def _hash_key(key: str) -> int:
    return hash_fact("key", key)
