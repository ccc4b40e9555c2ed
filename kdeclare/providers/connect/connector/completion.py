"""Wait until connectors and their tasks have the requested state, or until they have failed."""

from collections.abc import Sequence

from kdeclare.core.clock import Clock
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.completion import Completion, WorkProgress, WorkTracker
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import WORK_FAILED, WORK_OVERRIDDEN, MoveProgress, OperationResult, Status
from kdeclare.providers.connect.client.connectors_port import LiveConnector
from kdeclare.providers.connect.connector.arguments import (
    ConfigureConnectorArgs,
    ConnectorArgs,
    CreateConnectorArgs,
    SetStateArgs,
)
from kdeclare.providers.connect.connector.live import ConnectorState
from kdeclare.providers.connect.connector.status import (
    RUNNING,
    TRANSITIONAL_STATES,
    describe_status,
    find_target_state,
    has_reached,
    list_failures,
)

TIMEOUT = "work-timeout"

_LIMIT_S = 120.0
"""The time limit for reaching a state, in seconds. Workers start connectors only after a rebalance."""
_SETTLE_S = 2.0
_SETTLE_FAILURE_S = 5.0
"""How long a changed connector must keep showing a failure before the failure counts, in seconds.

For a few seconds after a change, workers still report the tasks from before the change.
"""


class ConnectorCompletion(Completion):
    """Detects that a connector and its tasks have the state that an operation requested."""

    def is_ongoing(self, op: Operation, live: LiveState) -> bool:
        """Whether the connector still has to reach the requested state.

        Return False for a missing connector.
        """
        snapshot = live.get(ConnectorState).get_cluster(_get_args(op).endpoint)
        if not snapshot.is_readable:
            return True  # the worker may respond again
        connector = snapshot.find(_get_args(op).connector)
        return connector is not None and not _is_settled(op, connector)

    def find_failure(self, op: Operation, live: LiveState) -> OperationResult | None:
        """Return the failure of a connector or task that must be RUNNING."""
        connector = _find_connector(op, live)
        if connector is None or (find_awaited_state(op) or find_target_state(connector)) != RUNNING:
            return None
        failures = list_failures(connector)
        if not failures:
            return None
        what = "created" if isinstance(op.args, CreateConnectorArgs) else "changed"
        message = f"The connector was {what}, but {'; '.join(failures)}."
        return OperationResult(op.id, Status.FAILED, WORK_FAILED, message)

    def find_settle_s(self, op: Operation, *, has_failed: bool) -> float:
        """Return how many seconds the workers must keep reporting the final status of the connector.

        Only then does the operation count as finished. A failure must be reported for 5 seconds if the
        connector existed before the operation. In all other cases, 2 seconds are enough.
        """
        is_new = isinstance(op.args, CreateConnectorArgs)
        return _SETTLE_FAILURE_S if has_failed and not is_new else _SETTLE_S

    def find_limit_s(self, op: Operation) -> float:
        """Return the time limit for reaching the state."""
        return _LIMIT_S

    def report_timeout(self, op: Operation, limit_s: float, live: LiveState | None) -> OperationResult:
        """Report that the connector has not reached the state yet, with its last known status."""
        state = find_awaited_state(op) or "in a stable state"
        status = "no worker responded"
        if live is not None and live.get(ConnectorState).get_cluster(_get_args(op).endpoint).is_readable:
            status = describe_status(_find_connector(op, live))
        message = f"The connector is not {state} after {limit_s:g} s: {status}. Plan again to see the result."
        return OperationResult(op.id, Status.STARTED, TIMEOUT, message)

    def report_overridden(self, op: Operation) -> OperationResult:
        """Report that the connector is stable, but does not have the requested config and state."""
        text = (
            "The connector does not have the requested config and state, because another client changed it. "
            "If the platform of the workers adds config keys, list these keys under 'ignore'."
        )
        return OperationResult(op.id, Status.FAILED, WORK_OVERRIDDEN, text)

    def start_tracking(
        self, connections: Connections, clock: Clock, operations: Sequence[Operation]
    ) -> WorkTracker:
        """Return a tracker that counts the connectors."""
        return _ConnectorTracker()


CONNECTOR_COMPLETION = ConnectorCompletion()


def find_awaited_state(op: Operation) -> str | None:
    """Return the state that a connector must have after an operation; None for any stable state."""
    if isinstance(op.args, CreateConnectorArgs):
        return op.args.state or RUNNING
    if isinstance(op.args, ConfigureConnectorArgs):
        return op.args.awaited
    return op.args.state if isinstance(op.args, SetStateArgs) else RUNNING


@dataclass(frozen=True, slots=True)
class _ConnectorTracker:
    """Counts the connectors that have reached their desired state. See `WorkTracker`."""

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """Return the number of connectors that have reached their desired state."""
        if not working:
            return None
        connectors = [(op, _find_connector(op, live)) for op in working]
        reached_count = sum(item is not None and _is_settled(op, item) for op, item in connectors)
        progress = MoveProgress(reached_count, len(working), 0, 0, noun="connector", member="worker")
        return WorkProgress("Waiting for connectors and their tasks", progress)


def _is_settled(op: Operation, connector: LiveConnector) -> bool:
    state = find_awaited_state(op)
    if state is not None:
        return has_reached(connector, state)
    return connector.state not in TRANSITIONAL_STATES and has_reached(connector, connector.state)


def _find_connector(op: Operation, live: LiveState) -> LiveConnector | None:
    snapshot = live.get(ConnectorState).get_cluster(_get_args(op).endpoint)
    return snapshot.find(_get_args(op).connector) if snapshot.is_readable else None


def _get_args(op: Operation) -> ConnectorArgs:
    return get_arguments(op, ConnectorArgs)
