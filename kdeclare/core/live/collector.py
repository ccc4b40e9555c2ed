"""Collectors, which read the live state of one system in bulk.

Members of a system, such as Kafka brokers, can lag behind. `WaitPolicy` defines how long kdeclare waits for
lagging members. `PendingWrite` is a write that some members might not show yet.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Generic, Protocol, Self, TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.endpoints import EndpointStatus
from kdeclare.core.live.live_codec import LiveCodec
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.resources.ids import ResourceId

VISIBILITY_TIMEOUT_S = 120.0
"""How long kdeclare waits by default, in seconds, for a system to show objects that are known to exist."""


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """The maximum time to wait for lagging members of a system, and a callback for progress reports."""

    limit_s: float = VISIBILITY_TIMEOUT_S
    progress: Progress = ignore_progress
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def less(self, seconds: float) -> "WaitPolicy":
        """Return a copy whose time limit is ``seconds`` shorter, but not below 0."""
        return replace(self, limit_s=max(0.0, self.limit_s - seconds))


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """An acknowledged write that some members of the system might not show yet.

    elements: the view elements that the operation wrote, except elements that a later operation overwrote.
    until: the time at which kdeclare stops waiting. If the system still does not show the write at that time,
        kdeclare reports the difference as drift.
    """

    run_id: str
    operation: Operation
    elements: frozenset[str]
    until: datetime


class Selection(Protocol):
    """The objects or settings whose live state must be read.

    Each provider defines its own frozen classes.
    """

    def merge(self, others: Sequence[Self]) -> Self:
        """Return a selection that includes this selection and all of ``others``."""


Selections = tuple[Selection, ...]
"""All selections to read. Selections of the same class are merged before reading."""

_Selected = TypeVar("_Selected", bound=Selection)


@dataclass(frozen=True, slots=True)
class ExpectedObjects:
    """Objects that should exist. A read waits until the system shows these objects.

    patience: the maximum time to wait. objects: the objects that should exist.
    owned: the owned resources. If an owned resource is selected, its object should also exist.
    reads_all_names: whether to read the names of all objects. Plans need the names to count unmanaged
    objects.
    await_unverifiable: whether to also wait for objects whose existence cannot be checked.
    """

    patience: WaitPolicy
    objects: frozenset[ResourceId] = frozenset()
    owned: tuple[ResourceId, ...] = ()
    reads_all_names: bool = False
    await_unverifiable: bool = False


@dataclass(frozen=True, slots=True)
class CollectResult:
    """The live state that was read, and the expected objects that are missing from it.

    part: the live state that was read.
    pending: objects that exist, but that no member of the system showed in time.
    unsettled: objects whose existence is unknown, because the client is not authorized to read these objects.
    """

    part: object
    pending: frozenset[ResourceId] = frozenset()
    unsettled: frozenset[ResourceId] = frozenset()


@dataclass(frozen=True, slots=True)
class Collector(Generic[_Selected]):
    """Reads one type of live state.

    selection_type: the class of the selections that the collector reads.
    read: reads everything that a selection names, in as few requests as possible. The result becomes a part
        of the `LiveState`. Raises Fault if the system does not respond.
    base_selection: the selection that is read if nothing else is selected, to identify the system; None if
        nothing is read in this case.
    read_expected: like ``read``, but repeats the read until the system shows the expected objects; None if
        the system shows existing objects immediately. Raises Fault.
    find_id: returns the id of the system, or None if the system has no id or was not read. Plans and states
        are bound to the first system that has an id.
    codec: serializes the live state for fleet snapshots; None if audits do not compare this live state.
    find_endpoints: returns the named endpoints that were read, by full name (``connect/eu``), including the
        endpoints that did not respond; None if the system has no named endpoints.
    """

    selection_type: type[_Selected]
    read: Callable[[Connections, _Selected], object]
    base_selection: _Selected | None = None
    read_expected: Callable[[Connections, _Selected, ExpectedObjects], CollectResult] | None = None
    find_id: Callable[[LiveState], str | None] | None = None
    codec: LiveCodec | None = None
    find_endpoints: Callable[[LiveState], Mapping[str, EndpointStatus]] | None = None

    def merge(self, selections: Iterable[Selection]) -> _Selected | None:
        """Merge the selections that this collector reads. Return None if there are no such selections."""
        own_selections = [selection for selection in selections if isinstance(selection, self.selection_type)]
        if len(own_selections) > 1:
            return own_selections[0].merge(own_selections[1:])
        return own_selections[0] if own_selections else None

    def collect(self, connections: Connections, selections: Iterable[Selection]) -> object | None:
        """Read the selected live state. Return None if nothing has to be read. Raises Fault."""
        merged = self._merge_with_always(selections)
        return None if merged is None else self.read(connections, merged)

    def collect_expected(
        self, connections: Connections, selections: Iterable[Selection], expected: ExpectedObjects
    ) -> CollectResult | None:
        """Like `collect`, but repeat the read until the system shows the expected objects. Raises Fault."""
        merged = self._merge_with_always(selections)
        if merged is None:
            return None
        if self.read_expected is None:
            return CollectResult(self.read(connections, merged))
        return self.read_expected(connections, merged, expected)

    def reads(self, selections: Iterable[Selection]) -> bool:
        """Whether this collector reads any of the selections."""
        return any(isinstance(selection, self.selection_type) for selection in selections)

    def identify(self, live: LiveState) -> str | None:
        """Return the id of the system that was read; None if the system has no id."""
        return self.find_id(live) if self.find_id is not None else None

    def list_endpoints(self, live: LiveState) -> Mapping[str, EndpointStatus]:
        """Return the named endpoints that were read, by full name."""
        return self.find_endpoints(live) if self.find_endpoints is not None else {}

    def _merge_with_always(self, selections: Iterable[Selection]) -> _Selected | None:
        merged = self.merge(selections)
        return self.base_selection if merged is None else merged


class AnyCollector(Protocol):
    """A `Collector` with any type of selection."""

    def collect(self, connections: Connections, selections: Iterable[Selection]) -> object | None:
        """Read the selected live state. Return None if nothing has to be read. Raises Fault."""

    def collect_expected(
        self, connections: Connections, selections: Iterable[Selection], expected: ExpectedObjects
    ) -> CollectResult | None:
        """Like `collect`, but repeat the read until the system shows the expected objects. Raises Fault."""

    def reads(self, selections: Iterable[Selection]) -> bool:
        """Whether this collector reads any of the selections."""

    def identify(self, live: LiveState) -> str | None:
        """Return the id of the system that was read; None if the system has no id."""

    @property
    def codec(self) -> LiveCodec | None:
        """The codec for the live state in fleet snapshots; None if snapshots do not store the live state."""
