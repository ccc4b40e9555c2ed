"""Configs of topics and brokers as they are. Nothing is changed, and no state is read."""

from collections.abc import Sequence

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.commands.topic_selection import chosen, is_pattern, not_there
from kdeclare.providers.kafka.commands.views import ConfigsView, ResourceConfigs
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.connection import CONNECTION, KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ClusterInfo
from kdeclare.providers.kafka.port import Cluster, ConfigQuery


@dataclass(frozen=True, slots=True)
class WhichResources:
    """Whose configs to look at, all of one type.

    names: of topics, exact or regular expressions; or ids of brokers.
    default: also what holds for all brokers of the cluster.
    Without names and default, all resources of the type.
    """

    scope: ConfigScope
    names: tuple[str, ...] = ()
    default: bool = False


def describe_configs(workspace: Workspace, which: WhichResources, *, everything: bool = False) -> ConfigsView:
    """What is set on the resources themselves; with ``everything`` also what holds there otherwise.

    Kafka is asked for keys by name then, those of the catalogue: a broker of a later release may have more.
    Raises KdeclareError.
    """
    with workspace.open_connections({"kafka": CONNECTION}) as connections:
        cluster = connections.get(KafkaConnection).cluster
        names, silent = _names(cluster, which)
        keys = frozenset(load_catalog(which.scope).keys) if everything else frozenset()
        queries = [ConfigQuery(ConfigResource(which.scope, name), keys, overrides=True) for name in names]
        found = cluster.configs(queries) if queries else {}
    resources = tuple(
        ResourceConfigs(query.resource, dict(sorted(found[query.resource].items())))
        for query in queries
        if query.resource in found  # a topic may be deleted at this very moment
    )
    return ConfigsView(
        workspace.cluster_name,
        resources,
        everything,
        tuple(_not_serving(Severity.WARNING, broker) for broker in silent),
    )


def _names(cluster: Cluster, which: WhichResources) -> tuple[list[str], list[str]]:
    """The resources to ask about, and the brokers that cannot be asked."""
    if which.scope is ConfigScope.TOPIC:
        return _topics(cluster, which.names), []
    return _brokers(cluster.describe(), which)


def _topics(cluster: Cluster, names: Sequence[str]) -> list[str]:
    exact = bool(names) and not any(map(is_pattern, names))
    topics = cluster.topics(list(dict.fromkeys(names)) if exact else None)
    meant = chosen(names, topics.keys())
    if meant.missing:
        there = sorted(cluster.topics() if exact else topics)
        raise KdeclareError(*(not_there(name, there) for name in meant.missing))
    return list(meant.found)


def _brokers(info: ClusterInfo, which: WhichResources) -> tuple[list[str], list[str]]:
    """As `_names`; the empty name is that of the cluster-wide defaults."""
    every = not which.names and not which.default
    there = [str(broker.id) for broker in info.brokers]
    ids = there if every else list(dict.fromkeys(which.names))
    unknown = [broker for broker in ids if broker not in there]
    if unknown:
        raise KdeclareError(*(_no_such_broker(broker, there) for broker in unknown))
    silent = [broker for broker in ids if int(broker) not in info.serving_broker_ids]
    if silent and not every:
        raise KdeclareError(*(_not_serving(Severity.ERROR, broker) for broker in silent))
    names = [broker for broker in ids if broker not in silent]
    return (["", *names] if every or which.default else names), silent


def _no_such_broker(broker: str, there: Sequence[str]) -> Diagnostic:
    known = ", ".join(there)
    return error("no-such-broker", "No such broker", f"There is no broker {broker}; there are {known}.")


def _not_serving(severity: Severity, broker: str) -> Diagnostic:
    return Diagnostic(
        severity,
        "broker-not-serving",
        "A broker is not serving",
        f"Broker {broker} is registered, but not serving, and nobody else tells its own configs.",
        subject=broker,
    )
