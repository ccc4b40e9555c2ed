"""The planning hooks for moves of replicas."""

from collections.abc import Collection, Sequence

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanStep
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import ResourceComparison
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.plan_options import get_kafka_options
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.batching import batch_moves
from kdeclare.providers.kafka.reassignment.completion import is_reassignment
from kdeclare.providers.kafka.reassignment.move_checks import (
    add_await_steps,
    check_disk_capacity,
    drop_duplicate_moves,
    is_unguarded,
    report_unguarded,
    with_client_guard,
)
from kdeclare.providers.kafka.reassignment.pace import get_default_pace
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import get_move_cleanup
from kdeclare.providers.kafka.topic.diff import MOVE_IN_FLIGHT


class MovePlanning(PlanHooks):
    """The planning hooks for moves, including those that result from changes to topics."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Prepare the hooks of a plan. Raises KdeclareError if the state has a damaged pending cleanup."""
        self._connections = inputs.connections
        self._options = get_kafka_options(inputs.options)
        self._pace = get_default_pace(inputs.options)
        self._live = inputs.live.get(KafkaState)
        self._pending_cleanup = get_move_cleanup(inputs.state)

    @property
    def _cluster(self) -> Cluster:
        return self._connections.get(KafkaConnection).cluster

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Require the replication factor guard for moves."""
        if self._options.rf_guard == "client" and not self._live.cluster.rf_guard:
            operations = tuple(map(with_client_guard, operations))
        problems = [report_unguarded(op) for op in operations if is_unguarded(op, self._live)]
        return PlanStep(operations, tuple(problems))

    def settle(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Keep only one move of each partition. If requested, wait for reassignments by other clients."""
        notices: Sequence[Diagnostic] = ()
        if any(map(is_reassignment, operations)):
            operations, notices = drop_duplicate_moves(operations)
        waiting_resources = _find_waiting_resources(compared)
        if waiting_resources and (
            not self._options.override_reassignments or self._options.await_reassignments
        ):
            operations = add_await_steps(operations, waiting_resources, self._live)
        return PlanStep(operations, tuple(notices))

    def preflight(self, operations: tuple[Operation, ...]) -> tuple[Diagnostic, ...]:
        """Check that disks have space for the replicas that are copied."""
        return tuple(check_disk_capacity(operations, self._cluster, self._pace))

    def finalize(self, operations: tuple[Operation, ...]) -> PlanStep:
        """Split reassignments into batches, with a temporary throttle and a final leader election."""
        if not any(map(is_reassignment, operations)):
            return PlanStep(operations)
        operations, findings = batch_moves(
            operations, self._cluster, self._live, self._pace, self._pending_cleanup
        )
        return PlanStep(operations, tuple(findings))


def _find_waiting_resources(compared: Sequence[ResourceComparison]) -> Collection[ResourceId]:
    """Return the resources that may change while their partitions are being reassigned."""
    permitted = (d for i in compared for d in i.difference.diagnostics if d.code == MOVE_IN_FLIGHT)
    return {ResourceId.parse(d.resource) for d in permitted if d.resource and not d.is_blocking}
