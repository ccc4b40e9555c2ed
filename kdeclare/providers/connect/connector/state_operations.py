"""The operation types `connector.state`, `connector.restart` and `connector.offsets.delete`."""

from collections.abc import Sequence

from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Operation, UndoResult
from kdeclare.core.operations.operation_type import View
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.changes import FieldChange, FieldOp, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.providers.connect.client.connectors_port import ConnectCluster, TargetState
from kdeclare.providers.connect.connector.arguments import (
    EXISTS,
    DeleteOffsetsArgs,
    RestartArgs,
    SetStateArgs,
)
from kdeclare.providers.connect.connector.completion import CONNECTOR_COMPLETION
from kdeclare.providers.connect.connector.config_operations import STATE, find_state_element
from kdeclare.providers.connect.connector.connector_operation import ConnectorOperationType, find_connector
from kdeclare.providers.connect.connector.diff import (
    TASKS_PATH,
    build_full_restart_field,
    build_restart_field,
)
from kdeclare.providers.connect.connector.settings import CONNECTOR
from kdeclare.providers.connect.connector.spec import bind_state
from kdeclare.providers.connect.connector.status import FAILED, RUNNING, list_failures


class SetConnectorState(ConnectorOperationType):
    """The operation type that pauses, stops or resumes a connector."""

    name = "connector.state"
    done_label = ("state of a connector changed", "states of connectors changed")
    arguments = SetStateArgs
    completion = CONNECTOR_COMPLETION

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return a footprint that contains the connector.

        If the operation prepares the deletion of the connector, it runs before the deletion.
        """
        access = Access.AFTER if _get_state_args(op).is_deletion else Access.UPDATE
        return (FootprintEntry(CONNECTOR, op.resource.name, access),)

    def find_deleted_resource(self, op: Operation) -> ResourceId | None:
        """Return the connector's resource id if the operation prepares the deletion of the connector."""
        return op.resource if _get_state_args(op).is_deletion else None

    def list_elements(self, op: Operation) -> Sequence[str]:
        """List the only view element: the state of the connector."""
        return [STATE]

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the target state of the connector; None if the connector does not exist."""
        return {STATE: find_state_element(find_connector(op, live))}

    def expected_state(self, op: Operation) -> View:
        """Return the view with the new state."""
        return {STATE: _get_state_args(op).state}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return the change to the connector's state."""
        args = _get_state_args(op)
        if args.is_deletion:
            return ()
        return (FieldChange(STATE, FieldOp.CHANGE, op.expect.get(STATE), args.state),)

    def send(self, cluster: ConnectCluster, op: Operation, secrets: SecretSource) -> None:
        """Send PUT /connectors/NAME/pause, stop or resume."""
        args = _get_state_args(op)
        cluster.set_state(args.connector, TargetState(args.state))

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the operation that restores the earlier state."""
        args = _get_state_args(op)
        before, current = op.expect.get(STATE), now.get(STATE)
        if current == before or (current is None and args.is_deletion):
            return UndoResult()
        if current != args.state:
            return UndoResult(conflicts=(STATE,))
        earlier_state = bind_state(before)
        if earlier_state is None:
            return UndoResult(lost=("the earlier state",))
        return UndoResult(self.name, SetStateArgs(args.endpoint, args.connector, earlier_state))


class RestartConnector(ConnectorOperationType):
    """The operation type that restarts a connector and its tasks, or only those that have failed."""

    name = "connector.restart"
    done_label = ("connector restarted", "connectors restarted")
    arguments = RestartArgs
    completion = CONNECTOR_COMPLETION

    def list_elements(self, op: Operation) -> Sequence[str]:
        """Return the only view element, which shows whether the connector or a task has failed."""
        return [TASKS_PATH]

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return whether the connector or a task has failed; None if the connector does not exist."""
        connector = find_connector(op, live)
        if connector is None:
            return {TASKS_PATH: None}
        return {TASKS_PATH: FAILED if list_failures(connector) else RUNNING}

    def expected_state(self, op: Operation) -> View:
        """Return a view without failures."""
        return {TASKS_PATH: RUNNING}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return the restart of the failed tasks, or of all tasks."""
        if get_arguments(op, RestartArgs).only_failed:
            return (build_restart_field(),)
        return (build_full_restart_field(str(op.expect[TASKS_PATH])),)

    def is_repeatable(self, op: Operation) -> bool:
        """Return True: a second restart loses no records."""
        return True

    def send(self, cluster: ConnectCluster, op: Operation, secrets: SecretSource) -> None:
        """Send POST /connectors/NAME/restart."""
        args = get_arguments(op, RestartArgs)
        cluster.restart_connector(args.connector, include_tasks=True, only_failed=args.only_failed)

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return no inverse: a restart changes nothing that could be restored."""
        return UndoResult()


class DeleteConnectorOffsets(ConnectorOperationType):
    """The operation type that deletes the offsets of a stopped connector before its deletion."""

    name = "connector.offsets.delete"
    done_label = ("offsets of a connector deleted", "offsets of connectors deleted")
    arguments = DeleteOffsetsArgs
    access = Access.AFTER
    deletion_risk = Risk.IRREVERSIBLE

    def find_deleted_resource(self, op: Operation) -> ResourceId:
        """Return the id of the resource whose deletion this operation prepares."""
        return op.resource

    def list_elements(self, op: Operation) -> Sequence[str]:
        """List the only element: whether the connector exists."""
        return [EXISTS]

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return whether the connector exists. Offsets change all the time, so the view omits them."""
        return {EXISTS: find_connector(op, live) is not None}

    def expected_state(self, op: Operation) -> View:
        """Return the view from before the operation, because the connector still exists."""
        return op.expect

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return no fields, because the operation is part of a deletion."""
        return ()

    def is_repeatable(self, op: Operation) -> bool:
        """Return True, because a second deletion has no effect."""
        return True

    def send(self, cluster: ConnectCluster, op: Operation, secrets: SecretSource) -> None:
        """Send DELETE /connectors/NAME/offsets."""
        cluster.delete_offsets(get_arguments(op, DeleteOffsetsArgs).connector)

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return no inverse, because the offsets cannot be restored."""
        return UndoResult(lost=("the offsets",))


SET_STATE, RESTART, DELETE_OFFSETS = SetConnectorState(), RestartConnector(), DeleteConnectorOffsets()


def _get_state_args(op: Operation) -> SetStateArgs:
    return get_arguments(op, SetStateArgs)
