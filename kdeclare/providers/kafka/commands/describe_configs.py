"""Read the live configs of topics, brokers, groups and client metrics subscriptions."""

from collections.abc import Sequence

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.commands.topic_selection import (
    is_topic_pattern,
    report_unknown_topic,
    select_named_topics,
)
from kdeclare.providers.kafka.commands.views import ConfigsView, ResourceConfigs
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.connection import CONNECTION, KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.listed_configs.collector import LISTED_SCOPES
from kdeclare.providers.kafka.live import ClusterInfo
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery, require_all_configs


@dataclass(frozen=True, slots=True)
class ResourceQuery:
    """The resources whose configs are shown.

    If ``names`` is empty and ``default`` is False, the configs of all resources of the type are shown.
    names: the names or ids of the resources. Names of topics can also be regular expressions.
    default: whether to show the cluster-wide defaults of brokers.
    """

    scope: ConfigScope
    names: tuple[str, ...] = ()
    default: bool = False


def describe_configs(
    workspace: Workspace, resource_query: ResourceQuery, *, everything: bool = False
) -> ConfigsView:
    """Return the overrides of the resources. Raises KdeclareError.

    everything: whether to also return inherited values, for all keys in kdeclare's catalog. Newer brokers can
        have keys that the catalog does not contain.
    """
    with workspace.open_connections({"kafka": CONNECTION}) as connections:
        cluster = connections.get(KafkaConnection).cluster
        names, unreachable_brokers = _resolve_names(cluster, resource_query)
        keys = frozenset(load_catalog(resource_query.scope).keys) if everything else frozenset()
        queries = [
            ConfigQuery(ConfigResource(resource_query.scope, name), keys, overrides=True) for name in names
        ]
        answers = cluster.describe_configs_partially(queries) if queries else {}
    refused = [fault for fault in answers.values() if isinstance(fault, Fault)]
    if resource_query.scope not in LISTED_SCOPES and any(f.kind is not FaultKind.REFUSED for f in refused):
        require_all_configs(answers)
    configs_by_resource = {r: answer for r, answer in answers.items() if not isinstance(answer, Fault)}
    refusals = [
        _report_refused(r, answer) for r, answer in sorted(answers.items()) if isinstance(answer, Fault)
    ]
    resources = tuple(
        ResourceConfigs(query.resource, dict(sorted(configs_by_resource[query.resource].items())))
        for query in queries
        if query.resource in configs_by_resource  # The topic may have been deleted in the meantime.
    )
    return ConfigsView(
        workspace.cluster_name,
        resources,
        everything,
        (*(_report_not_serving(Severity.WARNING, broker) for broker in unreachable_brokers), *refusals),
    )


def _resolve_names(cluster: Cluster, resource_query: ResourceQuery) -> tuple[list[str], list[str]]:
    """Return the names of the resources to query, and the brokers that cannot be queried."""
    if resource_query.scope is ConfigScope.TOPIC:
        return _resolve_topics(cluster, resource_query.names), []
    if resource_query.scope in LISTED_SCOPES:
        listed = cluster.list_config_resources(resource_query.scope) if not resource_query.names else ()
        return list(dict.fromkeys(resource_query.names)) or sorted(item.name for item in listed), []
    return _resolve_brokers(cluster.describe(), resource_query)


def _resolve_topics(cluster: Cluster, names: Sequence[str]) -> list[str]:
    has_exact_names = bool(names) and not any(map(is_topic_pattern, names))
    topics = cluster.topics(list(dict.fromkeys(names)) if has_exact_names else None)
    selection = select_named_topics(names, topics.keys())
    if selection.missing:
        existing_names = sorted(cluster.topics() if has_exact_names else topics)
        raise KdeclareError(*(report_unknown_topic(name, existing_names) for name in selection.missing))
    return list(selection.found)


def _resolve_brokers(info: ClusterInfo, resource_query: ResourceQuery) -> tuple[list[str], list[str]]:
    """Return the names to query, and the brokers that cannot be queried.

    An empty name selects the cluster-wide defaults of brokers.
    """
    covers_all = not resource_query.names and not resource_query.default
    registered_ids = [str(broker.id) for broker in info.brokers]
    ids = registered_ids if covers_all else list(dict.fromkeys(resource_query.names))
    unknown_ids = [broker for broker in ids if broker not in registered_ids]
    if unknown_ids:
        raise KdeclareError(*(_report_unknown_broker(broker, registered_ids) for broker in unknown_ids))
    unreachable_brokers = [broker for broker in ids if int(broker) not in info.serving_broker_ids]
    if unreachable_brokers and not covers_all:
        raise KdeclareError(*(_report_not_serving(Severity.ERROR, broker) for broker in unreachable_brokers))
    names = [broker for broker in ids if broker not in unreachable_brokers]
    return (["", *names] if covers_all or resource_query.default else names), unreachable_brokers


def _report_unknown_broker(broker: str, registered_ids: Sequence[str]) -> Diagnostic:
    ids_text = ", ".join(registered_ids)
    return error(
        "no-such-broker",
        "No such broker",
        f"Broker {broker} is not registered in the cluster.",
        hint=f"Use the id of a registered broker: {ids_text}.",
    )


def _report_not_serving(severity: Severity, broker: str) -> Diagnostic:
    return Diagnostic(
        severity,
        "broker-not-serving",
        "Broker is not available",
        f"Broker {broker} is registered but not available. Only the broker itself can return its configs.",
        hint=f"Start broker {broker}, then run the command again.",
        subject=broker,
    )


def _report_refused(resource: ConfigResource, fault: Fault) -> Diagnostic:
    return Diagnostic(
        Severity.WARNING,
        "configs-refused",
        "Configs not visible",
        f"The brokers refuse to describe the configs of {resource.scope.noun} {resource.name}: "
        f"{fault.message or 'no reason given'} ({fault.error}).",
        hint="Fix the reported problem, such as a missing DescribeConfigs permission.",
        subject=resource.name,
    )
