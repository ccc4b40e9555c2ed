"""Read the live state of every system that a plan or a run touches."""

from collections.abc import Iterable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import ExpectedObjects, Selection, WaitPolicy
from kdeclare.core.live.endpoints import EndpointStatus, ListsEndpoints
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.provider.provider_queries import find_collectors, find_collectors_of
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.ids import ResourceId


@dataclass(frozen=True, slots=True)
class Observation:
    """The live state, and the expected objects that it does not show; see `CollectResult`."""

    live: LiveState
    pending: frozenset[ResourceId] = frozenset()
    unsettled: frozenset[ResourceId] = frozenset()


def observe(connections: Connections, selections: Iterable[Selection]) -> LiveState:
    """Read the selected objects and the id of each system. Raises Fault if a system does not respond."""
    requested = tuple(selections)
    parts = (
        collector.collect(connections, requested) for collector in find_collectors(connections, requested)
    )
    return LiveState(*(part for part in parts if part is not None))


def observe_owned(
    connections: Connections, selections: Iterable[Selection], owned: Iterable[str], patience: WaitPolicy
) -> Observation:
    """Read the selected objects and the names of all objects, until all selected owned objects are visible.

    owned: the ids of the owned resources. Raises Fault if a system does not respond.
    """
    resources = tuple(map(ResourceId.parse, owned))
    expected = ExpectedObjects(patience, owned=resources, reads_all_names=True)
    return _observe_until_shown(connections, tuple(selections), expected)


def observe_expected(
    connections: Connections,
    selections: Iterable[Selection],
    objects: Iterable[ResourceId],
    patience: WaitPolicy,
    *,
    await_unsettled: bool = False,
) -> Observation:
    """Read the selected objects until all ``objects`` that exist are visible, or until ``patience`` runs out.

    await_unsettled: whether to also wait for objects whose existence cannot be checked.

    Raises Fault if a system does not respond.
    """
    expected = ExpectedObjects(patience, objects=frozenset(objects), await_unverifiable=await_unsettled)
    return _observe_until_shown(connections, tuple(selections), expected)


def select_all(operations: Iterable[Operation]) -> list[Selection]:
    """Return the selections of all live state that the operations touch."""
    return [selection for op in operations for selection in get_operation_type(op).select(op)]


def identify_system(live: LiveState, preferred_id: str = "") -> str:
    """Return the id of the system that plans and states are bound to; empty if no system has an id.

    preferred_id: the id to return if one of the systems has it.
    """
    system_ids = [
        id_ for id_ in (collector.identify(live) for collector in find_collectors_of(live)) if id_ is not None
    ]
    return preferred_id if preferred_id in system_ids else next(iter(system_ids), "")


def list_endpoints(live: LiveState) -> dict[str, EndpointStatus]:
    """Return the named endpoints that were read, by full name."""
    statuses: dict[str, EndpointStatus] = {}
    for collector in find_collectors_of(live):
        if isinstance(collector, ListsEndpoints):
            for name, status in collector.list_endpoints(live).items():
                # Two collectors can read the same endpoint. The result with more information is kept.
                if name not in statuses or status.id or status.problem:
                    statuses[name] = status
    return statuses


def _observe_until_shown(
    connections: Connections, selections: tuple[Selection, ...], expected: ExpectedObjects
) -> Observation:
    collectors = find_collectors(connections, selections)
    results = [collector.collect_expected(connections, selections, expected) for collector in collectors]
    collected = [sighting for sighting in results if sighting is not None]
    return Observation(
        LiveState(*(sighting.part for sighting in collected)),
        frozenset().union(*(sighting.pending for sighting in collected)),
        frozenset().union(*(sighting.unsettled for sighting in collected)),
    )
