"""Groups and client metrics subscriptions in fleet snapshots and audits: one object per resource."""

import json
from collections.abc import Iterable, Iterator, Mapping, Set

from kdeclare.core.jsontypes import JsonObject, JsonValue, as_list, as_object, as_text
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveKey, LiveListing, LiveObject
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.fleet.codec import bind_config_entries, dump_config_entries, explain_unreadable
from kdeclare.providers.kafka.fleet.facts import ConfigAuditRules, compute_override_facts
from kdeclare.providers.kafka.fleet.history import flatten_body
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.listed_configs.collector import (
    LISTED_SCOPES,
    UNSUPPORTED,
    ListedConfigsSelection,
    ListedConfigsState,
    read_listed_configs,
)
from kdeclare.providers.kafka.live import ConfigEntry
from kdeclare.providers.kafka.operations.alter_configs import KINDS_BY_SCOPE
from kdeclare.providers.kafka.request_values import Configs

_KINDS_BY_SCOPE = {scope: KINDS_BY_SCOPE[scope] for scope in LISTED_SCOPES}
"""The name of the kind for each type of config resource. It is also the type of the live objects."""
_SCOPES_BY_KIND = {kind: scope for scope, kind in _KINDS_BY_SCOPE.items()}


def to_listed_resource(kind: str, name: str) -> ConfigResource:
    """Return the Kafka config resource of a GroupConfig or a ClientMetrics resource."""
    return ConfigResource(_SCOPES_BY_KIND[kind], name)


def count_unmanaged_configs(state: ListedConfigsState, known: Set[str]) -> int:
    """Count the listed resources that are not in ``known``, the ids of declared and owned resources."""
    return sum(f"{_KINDS_BY_SCOPE[r.scope]}/{r.name}" not in known for r in state.listed)


class ListedConfigsCodec:
    """See `LiveCodec`. Reading requires one ListConfigResources request per type, then DescribeConfigs."""

    name = "kafka-listed-configs"
    sorts = frozenset(_SCOPES_BY_KIND)
    identifies_system = False
    groups = False
    context: tuple[object, ...] = ()
    nouns: Mapping[str, tuple[str, str]] = {}
    """The nouns for counts in reports. The mapping is empty, because reports do not count these objects."""
    internal_marker: str | None = None

    def list_objects(self, connections: Connections) -> LiveListing:
        """Read all groups and client metrics subscriptions that have overrides.

        Raises Fault if the principal is not permitted to list groups or subscriptions. If brokers do not
        support listing groups or subscriptions, the snapshot records the error, and audits report the error
        only if a manifest declares a resource of this type.
        """
        state = read_listed_configs(connections, ListedConfigsSelection(every=frozenset(LISTED_SCOPES)))
        for fault in state.listing_faults.values():
            if fault.error != UNSUPPORTED:
                raise fault
        return LiveListing({"unlisted": sorted(state.listing_faults)}, _list_objects(state))

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> ListedConfigsState:
        """Convert the JSON of groups and client metrics subscriptions to their live configs."""
        configs: dict[ConfigResource, Configs] = {}
        for (kind, name), text in objects:
            resource = to_listed_resource(kind, name)
            configs[resource] = bind_config_entries(resource, json.loads(text)["configs"])
        scopes = as_list(as_object(json.loads(system))["unlisted"])
        fault = Fault(UNSUPPORTED, "these brokers cannot list resources of this type")
        return ListedConfigsState(
            configs, listing_faults={ConfigScope(as_text(name)): fault for name in scopes}
        )

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Return whether the resource has overrides; True if brokers cannot list resources of its type."""
        state, resource = live.get(ListedConfigsState), to_listed_resource(*key)
        return resource in state.configs or resource.scope in state.listing_faults

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return None, because groups and client metrics subscriptions have no ids besides their names."""
        return None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Return True, because Kafka itself sets no configs of groups or client metrics subscriptions."""
        return True

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """See `DescribesFields`."""
        return flatten_body(body)

    def format_field_name(self, sort: str, path: str) -> str | None:
        """Return None: reports use the same names for configs as plans, so no separate name is needed."""
        return None


class ListedConfigRules(ConfigAuditRules):
    """The audit rules for the configs of groups and of client metrics subscriptions."""

    def find_entries(
        self, resource: ResourceId, live: LiveState
    ) -> tuple[ConfigResource, Mapping[str, ConfigEntry]]:
        """See `ConfigAuditRules`."""
        config_resource = to_listed_resource(resource.kind, resource.name)
        return config_resource, live.get(ListedConfigsState).configs[config_resource]

    def get_scope(self, resource: ResourceId) -> ConfigScope:
        """See `ConfigAuditRules`."""
        return _SCOPES_BY_KIND[resource.kind]


def _list_objects(state: ListedConfigsState) -> Iterator[LiveObject]:
    for resource in sorted({*state.configs, *state.unreadable}):
        key = LiveKey(_KINDS_BY_SCOPE[resource.scope], resource.name)
        fault = state.unreadable.get(resource)
        if fault is not None:
            yield LiveObject(key, error=explain_unreadable(fault))
        else:
            entries = state.configs[resource]
            body = {"configs": dump_config_entries(resource, entries)}
            yield LiveObject(key, body, facts=compute_override_facts(resource, entries))
