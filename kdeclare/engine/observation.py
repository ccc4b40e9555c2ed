"""Reading the live state of all systems that a plan or a run is about."""

from collections.abc import Iterable

from kdeclare.core.frozen import dataclass
from kdeclare.core.live.collector import Expected, Patience, Selection
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.provider.registry import find_collectors, load_collectors, type_of
from kdeclare.core.resources.ids import ResourceId


@dataclass(frozen=True, slots=True)
class Observed:
    """The live state, and what became of expected objects that it lacks: see `Sighting`."""

    live: LiveState
    pending: frozenset[ResourceId] = frozenset()
    unsettled: frozenset[ResourceId] = frozenset()


def observe(connections: Connections, selections: Iterable[Selection]) -> LiveState:
    """Read what is selected, and identify the systems. Raises Fault when one does not answer."""
    chosen = tuple(selections)
    parts = (collector.collect(connections, chosen) for collector in find_collectors(connections, chosen))
    return LiveState(*(part for part in parts if part is not None))


def observe_owned(
    connections: Connections, selections: Iterable[Selection], owned: Iterable[str], patience: Patience
) -> Observed:
    """Read what is selected, and all names, until what is selected and owned is shown. Raises Fault.

    owned: resource ids.
    """
    resources = tuple(map(ResourceId.parse, owned))
    expected = Expected(patience, owned=resources, reads_all_names=True)
    return _observe_until_shown(connections, tuple(selections), expected)


def observe_expected(
    connections: Connections,
    selections: Iterable[Selection],
    objects: Iterable[ResourceId],
    patience: Patience,
    *,
    await_unsettled: bool = False,
) -> Observed:
    """Read what is selected, until every one of these objects that exists is shown, or patience ends.

    await_unsettled: also wait for objects whose existence cannot be checked. Raises Fault.
    """
    expected = Expected(patience, objects=frozenset(objects), await_unsettled=await_unsettled)
    return _observe_until_shown(connections, tuple(selections), expected)


def select_all(operations: Iterable[Operation]) -> list[Selection]:
    """Return what the operations touch."""
    return [selection for op in operations for selection in type_of(op).select(op)]


def identify_system(live: LiveState, bound: str = "") -> str:
    """Return the id of the system that plans and states are bound to; empty where no system has one.

    bound: an id that comes first, if it is that of any system.
    """
    found = [id_ for id_ in (collector.identify(live) for collector in load_collectors()) if id_ is not None]
    return bound if bound in found else next(iter(found), "")


def _observe_until_shown(
    connections: Connections, selections: tuple[Selection, ...], expected: Expected
) -> Observed:
    collectors = find_collectors(connections, selections)
    seen = [collector.collect_expected(connections, selections, expected) for collector in collectors]
    found = [sighting for sighting in seen if sighting is not None]
    return Observed(
        LiveState(*(sighting.part for sighting in found)),
        frozenset().union(*(sighting.pending for sighting in found)),
        frozenset().union(*(sighting.unsettled for sighting in found)),
    )
