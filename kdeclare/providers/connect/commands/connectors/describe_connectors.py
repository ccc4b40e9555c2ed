"""Read connectors for `kdeclare connector list` and `describe`. The functions here change nothing."""

from collections.abc import Mapping, Sequence

from kdeclare.app.adhoc.ownership import ResourceOwnership, load_ownership
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.resources.endpoint_choice import list_requested_endpoints
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, Secret, SecretRef
from kdeclare.core.suggestions import format_suggestion
from kdeclare.providers.connect.client.connectors_port import ConnectCluster, LiveConnector
from kdeclare.providers.connect.commands.connectors.connector_views import (
    ConnectorDetailView,
    ConnectorListView,
    ConnectorOffsetView,
    ConnectorTaskView,
    ConnectorView,
    UnreadableConnectView,
)
from kdeclare.providers.connect.connection import CONNECTION, ConnectClients
from kdeclare.providers.connect.connector.collector import read_password_keys
from kdeclare.providers.connect.connector.record import ConnectorRecord
from kdeclare.providers.connect.connector.settings import CLASS, CONNECTOR, redact_config
from kdeclare.providers.connect.connector.spec import ConnectorBody
from kdeclare.providers.connect.connector.status import FAILED, RUNNING, describe_fault, redact_message


@dataclass(frozen=True, slots=True)
class LocatedConnector:
    """A live connector. endpoint: the name of its Connect cluster."""

    endpoint: str
    live: LiveConnector


@dataclass(frozen=True, slots=True)
class ConnectorOwners:
    """The resources that declare and own one connector. A field is None if there is no such resource."""

    declared: tuple[ResourceId, ConnectorBody] | None
    owned: tuple[ResourceId, ConnectorRecord] | None

    @property
    def secret_keys(self) -> frozenset[str]:
        """The config keys whose values are secrets according to the manifest or the state."""
        config = self.declared[1].config if self.declared else {}
        applied = self.owned[1].config if self.owned else {}
        return frozenset(key for key, value in config.items() if isinstance(value, Secret)) | frozenset(
            key for key, value in applied.items() if isinstance(value, SecretRef)
        )


def list_connectors(workspace: Workspace, endpoint: str | None) -> ConnectorListView:
    """Return the connectors of one Connect cluster, or of all Connect clusters if ``endpoint`` is None.

    Raises KdeclareError.
    """
    views: list[ConnectorView] = []
    unreadable: list[UnreadableConnectView] = []
    with workspace.open_connections({"connect": CONNECTION}) as connections:
        clients = connections.get(ConnectClients)
        for name in list_endpoints(clients, endpoint):
            try:
                connectors = clients.open_cluster(name).list_connectors()
            except Fault as fault:
                unreadable.append(UnreadableConnectView(name, describe_fault(fault)))
                continue
            views += [_build_view(name, connector) for _, connector in sorted(connectors.items())]
    exit_code = ExitCode.ERROR if unreadable else ExitCode.OK
    return ConnectorListView(int(exit_code), tuple(views), tuple(unreadable))


def describe_connector(workspace: Workspace, name: str, endpoint: str | None) -> ConnectorDetailView:
    """Return one connector.

    Raises KdeclareError if the connector does not exist or if its name is ambiguous.
    """
    ownership = load_ownership(workspace)
    with workspace.open_connections({"connect": CONNECTION}) as connections:
        clients = connections.get(ConnectClients)
        (located,) = find_connectors(connections, [name], endpoint)
        cluster = clients.open_cluster(located.endpoint)
        password_keys = read_password_keys(cluster, located.live.config.get(CLASS, ""))
        offsets = _read_offsets(cluster, name)
        owners = find_owners(ownership, clients, located)
    live = located.live
    config = redact_config(live.config, password_keys)
    masked = {key: SENSITIVE_MASK if key in owners.secret_keys else value for key, value in config.items()}
    view = _build_view(located.endpoint, live)
    return ConnectorDetailView(
        view.connect,
        view.name,
        view.type,
        view.class_name,
        view.state,
        view.tasks_total,
        view.tasks_running,
        view.tasks_failed,
        live.worker_id,
        redact_message(live.trace) if live.state == FAILED else None,
        dict(sorted(masked.items())),
        tuple(
            ConnectorTaskView(
                task.id,
                task.state,
                task.worker_id,
                redact_message(task.trace) if task.state == FAILED else None,
            )
            for task in live.tasks
        ),
        offsets,
        str(owners.declared[0]) if owners.declared else None,
        str(owners.owned[0]) if owners.owned else None,
    )


def list_endpoints(clients: ConnectClients, endpoint: str | None) -> Sequence[str]:
    """Return the requested Connect cluster, or all Connect clusters of the environment.

    Raises KdeclareError if there is none.
    """
    return list_requested_endpoints(endpoint, clients.clusters, clients.choose_cluster)


def find_connectors(
    connections: Connections, names: Sequence[str], endpoint: str | None
) -> tuple[LocatedConnector, ...]:
    """Return the named connectors. endpoint: their Connect cluster; None to search all Connect clusters.

    Raises KdeclareError if a connector is missing or exists in several Connect clusters. Also raises
    KdeclareError if a Connect cluster cannot be read, because it could contain a connector with the same
    name.
    """
    clients = connections.get(ConnectClients)
    listed: dict[str, Mapping[str, LiveConnector]] = {}
    for cluster_name in list_endpoints(clients, endpoint):
        try:
            listed[cluster_name] = clients.open_cluster(cluster_name).list_connectors()
        except Fault as fault:
            raise KdeclareError(_report_unreadable(cluster_name, fault)) from None
    located: list[LocatedConnector] = []
    problems: list[Diagnostic] = []
    for name in dict.fromkeys(names):
        places = [cluster_name for cluster_name, connectors in listed.items() if name in connectors]
        if len(places) == 1:
            located.append(LocatedConnector(places[0], listed[places[0]][name]))
        elif places:
            problems.append(_report_ambiguous(name, places))
        else:
            problems.append(_report_missing(name, listed))
    if problems:
        raise KdeclareError(*problems)
    return tuple(located)


def find_owners(
    ownership: ResourceOwnership, clients: ConnectClients, located: LocatedConnector
) -> ConnectorOwners:
    """Return the resources that declare and own a connector."""
    key = (located.endpoint, located.live.name)
    declared = None
    for item in ownership.declared.values():
        if item.id.kind == CONNECTOR:
            body = item.get_body(ConnectorBody)
            if (clients.choose_cluster(body.endpoint).name, body.name) == key:
                declared = (item.id, body)
    owned = None
    for text, record in ownership.owned.items():
        if isinstance(record, ConnectorRecord) and (record.endpoint, record.connector) == key:
            owned = (ResourceId.parse(text), record)
    return ConnectorOwners(declared, owned)


def _build_view(endpoint: str, connector: LiveConnector) -> ConnectorView:
    states = [task.state for task in connector.tasks]
    return ConnectorView(
        endpoint,
        connector.name,
        connector.type,
        connector.config.get(CLASS, ""),
        connector.state,
        len(states),
        states.count(RUNNING),
        states.count(FAILED),
    )


def _read_offsets(cluster: ConnectCluster, name: str) -> tuple[ConnectorOffsetView, ...] | None:
    """Return the offsets; None if the worker does not report them. Credentials in strings are masked."""
    try:
        offsets = cluster.read_offsets(name)
    except Fault:
        return None
    return tuple(
        ConnectorOffsetView(
            _redact_values(item.partition), None if item.offset is None else _redact_values(item.offset)
        )
        for item in offsets
    )


def _redact_values(values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: redact_message(value) if isinstance(value, str) else value for key, value in values.items()}


def _report_unreadable(endpoint: str, fault: Fault) -> Diagnostic:
    return error(
        "endpoint-unreachable",
        "Connect cluster cannot be read",
        f"connect/{endpoint}: {describe_fault(fault)}.",
        hint="Check that the workers are running, or pass --connect to name another Connect cluster.",
    )


def _report_ambiguous(name: str, places: Sequence[str]) -> Diagnostic:
    return error(
        "ambiguous-connector",
        "Connector name is ambiguous",
        f"The connector '{name}' exists in the Connect clusters {', '.join(places)}.",
        hint="Pass --connect with the name of one of them.",
    )


def _report_missing(name: str, listed: Mapping[str, Mapping[str, LiveConnector]]) -> Diagnostic:
    known = sorted({other for connectors in listed.values() for other in connectors})
    return error(
        "unknown-connector",
        "Connector does not exist",
        f"The connector '{name}' does not exist in {', '.join(listed)}.",
        hint=format_suggestion(name, known) or "Run 'kdeclare connector list' to see all connectors.",
    )
