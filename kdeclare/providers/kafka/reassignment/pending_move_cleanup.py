"""The pending cleanup of replica moves in the state: throttles, leader elections and unfinished moves."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TypeAlias, TypeVar

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_bool, as_int, as_object, as_texts
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.plans.state import PendingCleanup, State


@dataclass(frozen=True, slots=True)
class ThrottledReplicas(Arguments):
    """Elements that kdeclare added to a topic's list of throttled replicas.

    elements: the added elements (``partition:broker``). fresh: whether the list was unset before the
    addition.
    """

    elements: tuple[str, ...]
    fresh: bool


ThrottleRate: TypeAlias = str | tuple[str, ...]
"""A rate in bytes per second, or several possible rates if it is unknown which of them took effect."""

ThrottleValue: TypeAlias = ThrottleRate | ThrottledReplicas
"""The value of a throttle entry: the rate of a broker, or elements of a list of throttled replicas."""

ThrottleEntries: TypeAlias = Mapping[str, Mapping[str, ThrottleValue]]
"""Throttle entries by config resource (such as ``BROKER/1`` or ``TOPIC/orders``) and by config key."""

_THROTTLES, _ELECTIONS, _MOVES = "throttles", "elections", "moves"


@dataclass(frozen=True, slots=True)
class PendingMoveCleanup:
    """The cleanup that is due once moves in the cluster have finished.

    throttles: throttles that kdeclare set and has not removed yet.
    elections: the preferred leaders that must be elected, by partition (``topic-n``).
    moves: partitions that kdeclare started to move, and whose moves might still be running.
    """

    throttles: ThrottleEntries = field(default_factory=dict)
    elections: Mapping[str, int] = field(default_factory=dict)
    moves: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether any cleanup of moves is pending."""
        return bool(self.throttles or self.elections or self.moves)

    def merge_into(self, cleanup: PendingCleanup) -> PendingCleanup:
        """Return a copy of ``cleanup`` that contains these throttles, elections and moves."""
        return with_moves(with_elections(with_throttles(cleanup, self.throttles), self.elections), self.moves)


def bind_move_cleanup(cleanup: PendingCleanup) -> PendingMoveCleanup:
    """Return the pending cleanup of moves. Raises KdeclareError if it has an invalid format."""
    return PendingMoveCleanup(bind_throttles(cleanup), bind_elections(cleanup), bind_moves(cleanup))


def get_move_cleanup(state: State | None) -> PendingMoveCleanup:
    """Return the pending cleanup of moves in a state, or an empty one if there is no state.

    Raises KdeclareError.
    """
    return bind_move_cleanup(state.pending_cleanup) if state is not None else PendingMoveCleanup()


# Each section can also be read and written separately: a run can have thousands of operations, and each
# changes only one section.


def bind_throttles(cleanup: PendingCleanup) -> ThrottleEntries:
    """Return the throttles that kdeclare has not removed yet. Raises KdeclareError for an invalid section."""
    return _bind_section(cleanup, _THROTTLES, _bind_entries, {})


def with_throttles(cleanup: PendingCleanup, throttles: ThrottleEntries) -> PendingCleanup:
    """Return a copy of the pending cleanup in which ``throttles`` replaces the recorded throttles."""
    return _with_section(cleanup, _THROTTLES, {e: _dump_keys(keys) for e, keys in throttles.items()})


def bind_elections(cleanup: PendingCleanup) -> Mapping[str, int]:
    """Return the preferred leaders to elect. Raises KdeclareError for an invalid section."""
    return _bind_section(cleanup, _ELECTIONS, _bind_leaders, {})


def with_elections(cleanup: PendingCleanup, elections: Mapping[str, int]) -> PendingCleanup:
    """Return a copy of the pending cleanup in which ``elections`` replaces the recorded elections."""
    return _with_section(cleanup, _ELECTIONS, elections)


def bind_moves(cleanup: PendingCleanup) -> tuple[str, ...]:
    """Return the partitions that may still be moving. Raises KdeclareError for an invalid section."""
    return _bind_section(cleanup, _MOVES, as_texts, ())


def with_moves(cleanup: PendingCleanup, moves: Iterable[str]) -> PendingCleanup:
    """Return a copy of the pending cleanup in which ``moves`` replaces the recorded moves."""
    return _with_section(cleanup, _MOVES, list(moves))


def _with_section(cleanup: PendingCleanup, name: str, section: JsonValue) -> PendingCleanup:
    """Return a copy of the pending cleanup with one section replaced.

    The copy contains all sections about moves, or none of them if all are empty.
    """
    sections = {_THROTTLES: cleanup.get(_THROTTLES, {}), _ELECTIONS: cleanup.get(_ELECTIONS, {})}
    sections |= {_MOVES: cleanup.get(_MOVES, [])} | {name: section}
    other_sections = {other: value for other, value in cleanup.items() if other not in sections}
    return {**other_sections, **sections} if any(sections.values()) else other_sections


_Section = TypeVar("_Section")


def _bind_section(
    cleanup: PendingCleanup, name: str, bind: Callable[[JsonValue], _Section], default: _Section
) -> _Section:
    if name not in cleanup:
        return default
    try:
        return bind(cleanup[name])
    except (KeyError, TypeError) as bind_error:
        raise KdeclareError(
            error(
                "state-corrupt",
                "Stored state is damaged",
                f"In the state, the value of '{name}' under 'leftovers' has the wrong type.",
                hint="Restore state.json.backup, or an earlier version of the state from version control or "
                "a backup.",
            )
        ) from bind_error


def _bind_entries(json: JsonValue) -> ThrottleEntries:
    return {
        entity: {key: _bind_throttle(throttle) for key, throttle in as_object(keys).items()}
        for entity, keys in as_object(json).items()
    }


def _bind_throttle(json: JsonValue) -> ThrottleValue:
    if isinstance(json, str):
        return json
    if isinstance(json, Mapping):
        return ThrottledReplicas(as_texts(json["elements"]), as_bool(json["fresh"]))
    return as_texts(json)


def _dump_keys(keys: Mapping[str, ThrottleValue]) -> JsonObject:
    return {key: _dump_throttle(throttle) for key, throttle in keys.items()}


def _dump_throttle(throttle: ThrottleValue) -> JsonValue:
    if isinstance(throttle, ThrottledReplicas):
        return {"elements": list(throttle.elements), "fresh": throttle.fresh}
    return throttle if isinstance(throttle, str) else list(throttle)


def _bind_leaders(json: JsonValue) -> Mapping[str, int]:
    return {partition: as_int(leader) for partition, leader in as_object(json).items()}
