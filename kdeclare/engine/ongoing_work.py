"""Report ongoing work of recent runs for providers that have no `watch` function."""

from collections.abc import Iterator

from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.provider.installed_providers import resolve_completely
from kdeclare.core.provider.provider import Activity, OngoingWork, RecentRuns
from kdeclare.core.provider.provider_queries import find_connected_providers
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.observation import observe, select_all


def describe_ongoing_work(connections: Connections, runs: RecentRuns) -> Activity | None:
    """Return the recently executed operations whose work continues, according to their `Completion`.

    Providers with a `watch` function report their own work and are skipped. Return None if the recent runs
    have no operations of other providers. Raises Fault if a system does not respond.
    """
    providers = (resolve_completely(p) for p in find_connected_providers(connections) if p.watch is None)
    operation_types = {
        operation_type.name
        for provider in providers
        if any(own.completion is not None for own in provider.operation_types)
        for operation_type in provider.operation_types
    }
    if not operation_types:
        return None
    latest = {
        op.resource: (run_id, op) for run_id, op in _list_oldest_first(runs) if op.verb in operation_types
    }
    if not latest:
        return None
    live = observe(connections, select_all(op for _, op in latest.values()))
    ongoing: list[tuple[ResourceId, str, Operation]] = []
    for resource, (run_id, op) in latest.items():
        completion = get_operation_type(op).completion
        if completion is not None and completion.is_ongoing(op, live):
            ongoing.append((resource, run_id, op))
    count = len(ongoing)
    return Activity(
        headline=(f"{count:,} {'operation' if count == 1 else 'operations'} in progress",) if count else (),
        quiet="no work in progress",
        title="In progress:",
        ongoing=tuple(
            OngoingWork(str(resource), None, None, run_id, verb=op.verb)
            for resource, run_id, op in sorted(ongoing, key=lambda item: item[0])
        ),
    )


def _list_oldest_first(runs: RecentRuns) -> Iterator[tuple[str, Operation]]:
    """Yield the operations of recent runs, oldest first. The latest operation on a resource comes last."""
    for run_id, operations in reversed(list(runs.find())):
        for op in operations:
            yield run_id, op
