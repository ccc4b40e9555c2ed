"""Read connectors from Connect clusters."""

from collections.abc import Mapping
from dataclasses import replace

from kdeclare.core.live.collector import Collector, CollectResult, ExpectedObjects
from kdeclare.core.live.endpoints import EndpointStatus
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.endpoint_choice import EndpointChoice
from kdeclare.providers.connect.client.connectors_port import ConnectCluster, LiveConnector
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.live import (
    ClusterSnapshot,
    ConnectorKey,
    ConnectorSelection,
    ConnectorState,
    Endpoint,
)
from kdeclare.providers.connect.connector.settings import CLASS, NAME
from kdeclare.providers.connect.connector.status import TRANSITIONAL_STATES, describe_fault

_MAX_DESCRIBED = 8
"""The maximum number of connectors to describe one by one.

If more are selected, one request lists all connectors.
"""
_SETTLE_LIMIT_S = 10.0
_SETTLE_STEP_S = 0.5
_PROBE_NAME = "kdeclare"
"""The connector name in requests that only read the key definitions of a connector class."""


def read_connectors(connections: Connections, selection: ConnectorSelection) -> ConnectorState:
    """Read the selected connectors. The result includes Connect clusters that do not respond."""
    clients = connections.get(ConnectClients)
    named = _name_endpoints(clients, selection)
    return _restore_endpoints(clients, _read_named(clients, named), selection)


def _read_named(clients: ConnectClients, selection: ConnectorSelection) -> ConnectorState:
    return ConnectorState(
        {
            endpoint: _read_snapshot(clients, clients.choose_cluster(endpoint), selection, endpoint)
            for endpoint in selection.all_endpoints
        }
    )


def _name_endpoints(clients: ConnectClients, selection: ConnectorSelection) -> ConnectorSelection:
    """Replace omitted names with the name of the only Connect cluster.

    Manifests can omit the name of the Connect cluster, but states always contain it. Without this function,
    the Connect cluster would be read twice.
    """

    def find_name(endpoint: Endpoint) -> Endpoint:
        return clients.choose_cluster(endpoint).name or endpoint

    def add_name(key: ConnectorKey) -> ConnectorKey:
        return ConnectorKey(find_name(key.endpoint), key.connector)

    return ConnectorSelection(
        frozenset(map(add_name, selection.connectors)),
        frozenset(map(find_name, selection.endpoints)),
        frozenset((add_name(key), class_name) for key, class_name in selection.classes),
    )


def _restore_endpoints(
    clients: ConnectClients, state: ConnectorState, selection: ConnectorSelection
) -> ConnectorState:
    """Return the state, keyed by the names that the selection uses for the Connect clusters.

    For the only Connect cluster of the environment, the selection can contain None instead of the name.
    """
    names = {endpoint: clients.choose_cluster(endpoint).name for endpoint in selection.all_endpoints}
    return ConnectorState({endpoint: state.clusters[name or endpoint] for endpoint, name in names.items()})


def _read_snapshot(
    clients: ConnectClients, choice: EndpointChoice, selection: ConnectorSelection, endpoint: Endpoint
) -> ClusterSnapshot:
    if choice.name is None:
        return ClusterSnapshot(choice)
    cluster = clients.open_cluster(choice.name)
    try:
        return ClusterSnapshot(choice, _read_cluster(cluster, selection, endpoint))
    except Fault as fault:
        return ClusterSnapshot(choice, fault=fault)


def _read_cluster(
    cluster: ConnectCluster, selection: ConnectorSelection, endpoint: Endpoint
) -> Mapping[str, LiveConnector]:
    names = selection.list_names(endpoint)
    if endpoint in selection.endpoints or len(names) > _MAX_DESCRIBED:
        return cluster.list_connectors()
    described = ((name, cluster.describe_connector(name)) for name in names)
    return {name: connector for name, connector in described if connector is not None}


def _collect_expected(
    connections: Connections, selection: ConnectorSelection, expected: ExpectedObjects
) -> CollectResult:
    """Read connectors for a plan or a run.

    Wait briefly while selected connectors are in transitional states.
    """
    patience = expected.patience
    started_at = patience.monotonic()
    limit_s = min(patience.limit_s, _SETTLE_LIMIT_S)
    clients = connections.get(ConnectClients)
    named = _name_endpoints(clients, selection)
    if expected.reads_all_names:
        named = replace(named, endpoints=frozenset(named.all_endpoints))
    while True:
        state = _read_named(clients, named)
        if not _is_transitional(state, named) or patience.monotonic() - started_at >= limit_s:
            break
        patience.sleep(_SETTLE_STEP_S)
    detailed = _add_details(clients, state, named, with_classes=expected.reads_all_names)
    return CollectResult(_restore_endpoints(clients, detailed, selection))


def _is_transitional(state: ConnectorState, selection: ConnectorSelection) -> bool:
    selected = (state.get_cluster(key.endpoint).connectors.get(key.connector) for key in selection.connectors)
    return any(connector is not None and connector.state in TRANSITIONAL_STATES for connector in selected)


def _add_details(
    clients: ConnectClients, state: ConnectorState, selection: ConnectorSelection, *, with_classes: bool
) -> ConnectorState:
    """Add the ids of the Connect clusters to the state. For plans, also add data about connector classes."""
    snapshots = dict(state.clusters)
    for endpoint, snapshot in state.clusters.items():
        if not snapshot.is_readable:
            continue
        cluster = clients.open_cluster(snapshot.name)
        try:
            identified = replace(snapshot, system_id=cluster.identify().kafka_cluster_id)
            snapshots[endpoint] = (
                _add_classes(cluster, identified, selection, endpoint) if with_classes else identified
            )
        except Fault as fault:
            snapshots[endpoint] = ClusterSnapshot(snapshot.choice, fault=fault)
    return ConnectorState(snapshots)


def _add_classes(
    cluster: ConnectCluster, snapshot: ClusterSnapshot, selection: ConnectorSelection, endpoint: Endpoint
) -> ClusterSnapshot:
    """Add the PASSWORD keys of the selected connectors' classes to the snapshot of a Connect cluster.

    If class names must be compared, also add the list of installed classes.
    """
    names = selection.list_names(endpoint)
    live_classes = {
        name: snapshot.connectors[name].config.get(CLASS, "") for name in names if name in snapshot.connectors
    }
    declared_classes = {key.connector: name for key, name in selection.classes if key.endpoint == endpoint}
    needs_classes = any(
        live_classes.get(name, class_name) != class_name for name, class_name in declared_classes.items()
    )
    class_names = sorted({*declared_classes.values(), *live_classes.values()} - {""})
    return replace(
        snapshot,
        classes=cluster.list_plugins() if needs_classes else (),
        password_keys={name: read_password_keys(cluster, name) for name in class_names},
    )


def read_password_keys(cluster: ConnectCluster, class_name: str) -> frozenset[str]:
    """Return the keys that a class defines as PASSWORD; empty if the class is not installed. Raises Fault.

    The request contains only the name of the class, so that the class does not connect to other systems.
    """
    try:
        validation = cluster.validate_config(_PROBE_NAME, {CLASS: class_name, NAME: _PROBE_NAME})
    except Fault as fault:
        if fault.kind is not FaultKind.REFUSED:
            raise
        return frozenset()
    return frozenset(item.name for item in validation.definitions.values() if item.type == "PASSWORD")


def list_endpoint_statuses(live: LiveState) -> Mapping[str, EndpointStatus]:
    """Return the Connect clusters that were read, by full name. See `Collector.find_endpoints`."""
    state = live.find(ConnectorState) or ConnectorState()
    return {
        snapshot.full_name: EndpointStatus(
            snapshot.system_id, "" if snapshot.fault is None else describe_fault(snapshot.fault)
        )
        for snapshot in state.clusters.values()
        if snapshot.choice.name is not None
    }


CONNECTORS = Collector(
    ConnectorSelection,
    read_connectors,
    read_expected=_collect_expected,
    find_endpoints=list_endpoint_statuses,
)
"""The collector of connectors. A plan without connectors sends no request."""
