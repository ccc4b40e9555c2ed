"""Restart, pause, resume and stop connectors ad hoc."""

from collections.abc import Collection, Sequence

from kdeclare.app.adhoc.ownership import load_ownership
from kdeclare.app.adhoc.run import AdhocCommand, AdhocOptions, AdhocRequest, run_adhoc
from kdeclare.app.apply import ApplyOptions
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import Connections
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.connect.client.connectors_port import LiveConnector
from kdeclare.providers.connect.commands.connectors.describe_connectors import (
    ConnectorOwners,
    LocatedConnector,
    find_connectors,
    find_owners,
)
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.collector import read_password_keys
from kdeclare.providers.connect.connector.settings import CLASS, CONNECTOR, redact_config
from kdeclare.providers.connect.connector.spec import ConnectorBody, RestartName, StateName
from kdeclare.providers.connect.connector.status import PAUSED, STOPPED, find_target_state, list_failures
from kdeclare.report.adhoc import AdhocLabels, AdhocResult

WORDING = AdhocLabels(
    follow_hint="Follow the progress with 'kdeclare connector list'.",
    look_hint="Check the connectors with 'kdeclare connector list'.",
)


@dataclass(frozen=True, slots=True)
class ConnectorChange:
    """The requested change: either a new state or a restart."""

    state: StateName | None = None
    restart: RestartName | None = None


def change_connectors(
    workspace: Workspace,
    names: Sequence[str],
    endpoint: str | None,
    change: ConnectorChange,
    options: AdhocOptions,
    apply_options: ApplyOptions,
) -> AdhocResult | None:
    """Change connectors. Return the result, or None if the user declined. Raises KdeclareError.

    If a connector is declared or owned, the plan shows the change under the id of the connector's resource.
    endpoint: the Connect cluster; None to search all Connect clusters of the environment.
    """

    def build_request(connections: Connections) -> AdhocRequest:
        clients = connections.get(ConnectClients)
        ownership = load_ownership(workspace)
        used = {*ownership.declared, *ownership.owned}
        desired: list[DesiredResource] = []
        failed: dict[str, tuple[Diagnostic, ...]] = {}
        left_out: dict[str, str] = {}
        for located in find_connectors(connections, names, endpoint):
            owners = find_owners(ownership, clients, located)
            resource = _choose_resource(located, owners, used)
            if change.restart is not None and find_target_state(located.live) in (PAUSED, STOPPED):
                failed[str(resource)] = (_report_not_running(resource, located.live),)
            elif change.restart == "failed" and not list_failures(located.live):
                left_out[str(resource)] = "Neither the connector nor a task has failed."
            else:
                desired.append(
                    DesiredResource(resource, _build_body(clients, located, owners.secret_keys, change))
                )
        return AdhocRequest(tuple(desired), failed=failed, left_out=left_out)

    return run_adhoc(workspace, AdhocCommand(build_request, words=WORDING), options, apply_options)


def _build_body(
    clients: ConnectClients, located: LocatedConnector, secret_keys: frozenset[str], change: ConnectorChange
) -> ConnectorBody:
    """Return the requested change as a body.

    The body contains the live config without secrets, so that policies can evaluate the config.
    """
    class_name = located.live.config.get(CLASS, "")
    password_keys = read_password_keys(clients.open_cluster(located.endpoint), class_name) | secret_keys
    config = redact_config(located.live.config, password_keys)
    return ConnectorBody(
        located.live.name,
        class_name,
        {key: str(value) for key, value in config.items()},
        located.endpoint,
        state=change.state,
        is_partial=True,
        restart=change.restart,
    )


def _choose_resource(located: LocatedConnector, owners: ConnectorOwners, used: Collection[str]) -> ResourceId:
    """Return the id of the declared or owned resource for a connector.

    If there is none, return an id that no resource uses.
    """
    for owner in (owners.declared, owners.owned):
        if owner is not None:
            return owner[0]
    resource = ResourceId(CONNECTOR, located.live.name)
    # The manifest of a connector in another Connect cluster can have this name.
    return (
        resource
        if str(resource) not in used
        else ResourceId(CONNECTOR, f"{resource.name}-{located.endpoint}")
    )


def _report_not_running(resource: ResourceId, live: LiveConnector) -> Diagnostic:
    return error(
        "connector-not-running",
        "Connector is not running",
        f"{resource} is {live.state}. A restart has no effect until the connector is resumed.",
        hint=f"Run 'kdeclare connector resume {live.name}'.",
        resource=str(resource),
    )
