"""Collectors: how the live state of one system is read in bulk.

Members of a system can trail the others: `WaitPolicy` says how long kdeclare waits for them,
and `PendingWrite` for what.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Generic, Protocol, Self, TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.live_codec import LiveCodec
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.resources.ids import ResourceId

VISIBILITY_TIMEOUT_S = 120.0
"""How long kdeclare waits by default for a system to show what exists."""


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """How long to wait for members of a system that trail the others, and how to tell people about it."""

    limit_s: float = VISIBILITY_TIMEOUT_S
    progress: Progress = ignore_progress
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def less(self, seconds: float) -> "WaitPolicy":
        """What is left after ``seconds`` of waiting for the same."""
        return replace(self, limit_s=max(0.0, self.limit_s - seconds))


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """An acknowledged write that members of the system may not show yet.

    elements: the elements of the operation's view that it wrote and that no later write has replaced.
    until: when the wait ends; a write that is still not shown then is reported as drift.
    """

    run_id: str
    operation: Operation
    elements: frozenset[str]
    until: datetime


class Selection(Protocol):
    """What to read of one sort of live state: a frozen value of its provider."""

    def merge(self, others: Sequence[Self]) -> Self:
        """Return one selection of all that this one and the others select."""


Selections = tuple[Selection, ...]
"""What something reads; several selections of the same class are merged before anything is read."""

_Selected = TypeVar("_Selected", bound=Selection)


@dataclass(frozen=True, slots=True)
class ExpectedObjects:
    """Objects that should exist; a read waits for those that the system does not show yet.

    objects: what should exist. owned: resources that are owned; those that are also selected are expected.
    reads_all_names: read the names of all objects as well, because plans count unmanaged ones.
    await_unverifiable: also wait for objects whose existence cannot be checked.
    """

    patience: WaitPolicy
    objects: frozenset[ResourceId] = frozenset()
    owned: tuple[ResourceId, ...] = ()
    reads_all_names: bool = False
    await_unverifiable: bool = False


@dataclass(frozen=True, slots=True)
class CollectResult:
    """What was read, and what became of expected objects that are missing from it.

    part: of the live state. pending: objects that exist but that no member of the system showed in time.
    unsettled: objects of which the system did not say, because the client may not ask it.
    """

    part: object
    pending: frozenset[ResourceId] = frozenset()
    unsettled: frozenset[ResourceId] = frozenset()


@dataclass(frozen=True, slots=True)
class Collector(Generic[_Selected]):
    """Reads one sort of live state.

    selection_type: the class of its selections.
    read: reads all that a selection names in as few requests as possible. What it returns becomes the part
        of the `LiveState` of its class. Raises Fault when the system does not answer.
    base_selection: what is read in any case, as it says who the system is; None where nothing is.
    read_expected: reads as ``read`` does, until what is expected is shown; None where a system shows at once
        what exists. Raises Fault.
    find_id: the id of the system, as plans and states are bound to the first that has one; None where it has
        none, or was not read.
    codec: keeps its live state in snapshots of fleets; None where audits have nothing to compare with it.
    """

    selection_type: type[_Selected]
    read: Callable[[Connections, _Selected], object]
    base_selection: _Selected | None = None
    read_expected: Callable[[Connections, _Selected, ExpectedObjects], CollectResult] | None = None
    find_id: Callable[[LiveState], str | None] | None = None
    codec: LiveCodec | None = None

    def merge(self, selections: Iterable[Selection]) -> _Selected | None:
        """Merge the selections of this collector's class; None where there are none."""
        own_selections = [selection for selection in selections if isinstance(selection, self.selection_type)]
        if len(own_selections) > 1:
            return own_selections[0].merge(own_selections[1:])
        return own_selections[0] if own_selections else None

    def collect(self, connections: Connections, selections: Iterable[Selection]) -> object | None:
        """Read what is selected; None where nothing is. Raises Fault."""
        merged = self._merge_with_always(selections)
        return None if merged is None else self.read(connections, merged)

    def collect_expected(
        self, connections: Connections, selections: Iterable[Selection], expected: ExpectedObjects
    ) -> CollectResult | None:
        """Read what is selected, until what is expected is shown; None where nothing is. Raises Fault."""
        merged = self._merge_with_always(selections)
        if merged is None:
            return None
        if self.read_expected is None:
            return CollectResult(self.read(connections, merged))
        return self.read_expected(connections, merged, expected)

    def reads(self, selections: Iterable[Selection]) -> bool:
        """Whether any of the selections is one that it reads."""
        return any(isinstance(selection, self.selection_type) for selection in selections)

    def identify(self, live: LiveState) -> str | None:
        """Return the id of the system that was read; None where it has none."""
        return self.find_id(live) if self.find_id is not None else None

    def _merge_with_always(self, selections: Iterable[Selection]) -> _Selected | None:
        merged = self.merge(selections)
        return self.base_selection if merged is None else merged
