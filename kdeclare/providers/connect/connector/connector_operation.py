"""The base class of the operation types for connectors."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, FaultCause, Result
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.operations.operation_type import OperationType
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.changes import Risk
from kdeclare.core.secrets.secret_refs import SecretRef, SecretSource, ValuePath
from kdeclare.providers.connect.client.connectors_port import (
    CONNECTOR_EXISTS,
    CONNECTOR_MISSING,
    ConnectCluster,
    LiveConnector,
)
from kdeclare.providers.connect.client.port import NOT_AUTHORIZED
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.arguments import ConfigArgs, ConnectorArgs
from kdeclare.providers.connect.connector.live import ConnectorKey, ConnectorSelection, ConnectorState
from kdeclare.providers.connect.connector.settings import CONNECTOR, find_path


class ConnectorOperationType(OperationType):
    """An operation type that changes one connector with one request.

    Connect has no request for several connectors. Every change to a config or a state starts a rebalance,
    during which Connect rejects further changes. Rejected changes are sent again.
    """

    arguments: type[Arguments] = ConnectorArgs
    access: ClassVar[Access] = Access.UPDATE
    """The kind of access to the connector that the footprint of the operation contains."""
    deletion_risk = Risk.DISRUPTIVE
    contents = "offsets"

    @property
    def can_be_refused_in_part(self) -> bool:
        """Return False: Connect accepts or refuses a request as a whole."""
        return False

    def describe_target(self, op: Operation) -> tuple[str, str]:
        """Return the Connect cluster and the connector."""
        return "connector", _get_args(op).location

    def is_confined(self, op: Operation) -> bool:
        """Whether the resource of the operation is a Connector.

        The name of the resource is not checked, because the connector can have a different name in Connect.
        """
        return op.resource.kind == CONNECTOR

    def select(self, op: Operation) -> Selections:
        """Select the connector that the operation changes."""
        args = _get_args(op)
        return (ConnectorSelection(frozenset({ConnectorKey(args.endpoint, args.connector)})),)

    def get_batch_key(self, op: Operation) -> str:
        """Return the name of the Connect cluster. Operations with the same key go into different batches.

        Therefore, a batch has only one operation per Connect cluster. The journal records the result of each
        request, and a run can stop after each request.
        """
        return _get_args(op).endpoint

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return all claims of the operation."""
        return frozenset(self.claims(op).values())

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim per element of the view."""
        location = _get_args(op).location
        return {element: f"connectors/{location}/{element}" for element in self.list_elements(op)}

    @abstractmethod
    def list_elements(self, op: Operation) -> Sequence[str]:
        """Return the names of the elements of the operation's view."""

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return a footprint that contains only the connector."""
        return (FootprintEntry(CONNECTOR, op.resource.name, self.access),)

    def find_element(self, op: Operation, at: ValuePath) -> str:
        """Return the name of the view element that the argument at the path ``at`` belongs to."""
        if len(at) > 1 and at[0] == "config":
            return find_path(str(at[1]))
        return super().find_element(op, at)

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Explain a fault: a missing permission, or a connector that already exists or is missing."""
        if fault.error == NOT_AUTHORIZED:
            right = f"permission to change connectors of {_get_args(op).endpoint}"
            return Explanation(FaultCause.NOT_AUTHORIZED, right)
        if fault.error == CONNECTOR_EXISTS and self.creates:
            return Explanation(FaultCause.EXISTS)
        if fault.error == CONNECTOR_MISSING and self.deletes:
            return Explanation(FaultCause.GONE_ALREADY)
        return Explanation()

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send one request per operation.

        Nothing is validated here; the provider's planning hooks validate configs.
        """
        clients = connections.get(ConnectClients)
        return {op.id: self._try_to_send(clients, op, secrets) for op in ops}

    def _try_to_send(self, clients: ConnectClients, op: Operation, secrets: SecretSource) -> Result:
        try:
            self.send(clients.open_cluster(_get_args(op).endpoint), op, secrets)
        except Fault as fault:
            return fault
        return None

    @abstractmethod
    def send(self, cluster: ConnectCluster, op: Operation, secrets: SecretSource) -> None:
        """Send the request of one operation. Raises Fault."""


def find_connector(op: Operation, live: LiveState) -> LiveConnector | None:
    """Return the connector of an operation; None if it does not exist.

    Raises Fault if the Connect cluster does not respond.
    """
    args = _get_args(op)
    return live.get(ConnectorState).get_cluster(args.endpoint).find(args.connector)


def reveal_config(args: ConfigArgs, secrets: SecretSource) -> dict[str, str]:
    """Return the config to send. Raises KdeclareError if a secret is not available."""
    return {
        key: secrets.reveal(stated) if isinstance(stated, SecretRef) else stated
        for key, stated in args.config.items()
    }


def _get_args(op: Operation) -> ConnectorArgs:
    return get_arguments(op, ConnectorArgs)
