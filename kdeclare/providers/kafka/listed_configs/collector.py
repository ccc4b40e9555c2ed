"""Read the configs of groups and of client metrics subscriptions.

`providers.kafka.collector` reads the configs of topics and brokers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Collector, CollectResult, ExpectedObjects
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.error_names import CLUSTER_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery, Configs, merge_config_queries

LISTED_SCOPES = (ConfigScope.GROUP, ConfigScope.CLIENT_METRICS)
UNSUPPORTED = "UNSUPPORTED_VERSION"
"""The error if brokers cannot list the resources of a type."""

NOT_PERMITTED = (GROUP_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED)


@dataclass(frozen=True, slots=True)
class ListedConfigsSelection:
    """The groups and client metrics subscriptions whose configs a plan needs.

    every: the resource types for which to read all resources with overrides.
    """

    queries: Mapping[ConfigResource, ConfigQuery] = field(default_factory=dict)
    every: frozenset[ConfigScope] = frozenset()

    def merge(self, others: Sequence["ListedConfigsSelection"]) -> "ListedConfigsSelection":
        """See `Selection`."""
        selections = (self, *others)
        queries = merge_config_queries(
            query for selection in selections for query in selection.queries.values()
        )
        return ListedConfigsSelection(queries, self.every.union(*(other.every for other in others)))


@dataclass(frozen=True, slots=True)
class ListedConfigsState:
    """The configs of groups and of client metrics subscriptions.

    configs: by resource, all overrides and the keys that were requested by name.
    unreadable: the selected resources that brokers refuse to describe, each with the Fault.
    listed: the resources with overrides, for the types that were listed.
    listing_faults: by type, the Fault if its resources could not be listed.
    """

    configs: Mapping[ConfigResource, Configs] = field(default_factory=dict)
    unreadable: Mapping[ConfigResource, Fault] = field(default_factory=dict)
    listed: frozenset[ConfigResource] = frozenset()
    listing_faults: Mapping[ConfigScope, Fault] = field(default_factory=dict)

    def find_configs(self, resource: ConfigResource) -> Configs:
        """Return the configs of a resource, or an empty mapping if it has no overrides.

        Raises Fault if the configs cannot be read.
        """
        if resource in self.unreadable:
            raise self.unreadable[resource]
        return self.configs.get(resource, {})


def read_listed_configs(
    connections: Connections, selection: ListedConfigsSelection, *, counted: Iterable[ConfigScope] = ()
) -> ListedConfigsState:
    """Read the selected configs. Raises Fault if the cluster does not respond.

    counted: additional types whose resources are listed without reading their configs.
    """
    cluster = connections.get(KafkaConnection).cluster
    listed: set[ConfigResource] = set()
    listing_faults: dict[ConfigScope, Fault] = {}
    for scope in sorted(selection.every.union(counted)):
        try:
            listed |= cluster.list_config_resources(scope)
        except Fault as fault:
            if fault.error not in (*NOT_PERMITTED, UNSUPPORTED):
                raise
            listing_faults[scope] = fault
    selected = [resource for resource in sorted(listed) if resource.scope in selection.every]
    queries = merge_config_queries(
        [*selection.queries.values(), *(ConfigQuery(resource, overrides=True) for resource in selected)]
    )
    configs: dict[ConfigResource, Configs] = {}
    unreadable: dict[ConfigResource, Fault] = {}
    for resource, answer in _describe(cluster, queries).items():
        if isinstance(answer, Fault):
            unreadable[resource] = answer
        else:
            configs[resource] = answer
    return ListedConfigsState(configs, unreadable, frozenset(listed), listing_faults)


def _describe(
    cluster: Cluster, queries: Mapping[ConfigResource, ConfigQuery]
) -> Mapping[ConfigResource, Configs | Fault]:
    """Return the configs of each resource, or the Fault if brokers refuse to describe the resource.

    Raises Fault if a request might succeed later. Each type has its own request, because older brokers
    support fewer types.
    """
    answers: dict[ConfigResource, Configs | Fault] = {}
    for scope in LISTED_SCOPES:
        of_scope = [query for resource, query in queries.items() if resource.scope is scope]
        try:
            answers |= cluster.describe_configs_partially(of_scope) if of_scope else {}
        except Fault as fault:
            answers |= {query.resource: fault for query in of_scope}
    for answer in answers.values():
        if isinstance(answer, Fault) and answer.kind is not FaultKind.REFUSED:
            raise answer
    return answers


def _read_expected(
    connections: Connections, selection: ListedConfigsSelection, expected: ExpectedObjects
) -> CollectResult:
    """Read the selected configs.

    If the plan counts unmanaged objects, also list all resources of the selected types.
    """
    counted = {resource.scope for resource in selection.queries} if expected.reads_all_names else ()
    return CollectResult(read_listed_configs(connections, selection, counted=counted))


LISTED_CONFIGS = Collector(ListedConfigsSelection, read_listed_configs, read_expected=_read_expected)
"""The collector that reads the configs of groups and of client metrics subscriptions.

A plan that selects no groups and no subscriptions needs no permission to read them.
"""
