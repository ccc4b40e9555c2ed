"""What moves of replicas leave to be done once they are over, as sections of the state's pending cleanup."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TypeAlias, TypeVar

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_bool, as_int, as_object, as_texts
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.plans.state import PendingCleanup, State


@dataclass(frozen=True, slots=True)
class ThrottledReplicas(Arguments):
    """What was put into a list of a topic: ``partition:broker``, …; fresh: nothing was set before."""

    elements: tuple[str, ...]
    fresh: bool


Rate: TypeAlias = str | tuple[str, ...]
"""Bytes a second; several where it is not known which of them took effect."""

Throttle: TypeAlias = Rate | ThrottledReplicas
"""What was set on one key: a broker's rate, or elements of a topic's list."""

Entries: TypeAlias = Mapping[str, Mapping[str, Throttle]]
"""Throttles by config resource as text (``BROKER/1``, ``TOPIC/orders``) and key."""

_THROTTLES, _ELECTIONS, _MOVES = "throttles", "elections", "moves"


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What is still to be done once moves that go on in the cluster are over.

    throttles: what kdeclare has set and not removed yet.
    elections: partitions (``topic-n``) whose preferred leader is to be elected, with that leader.
    moves: partitions that kdeclare has begun to move, and left to the cluster.
    """

    throttles: Entries = field(default_factory=dict)
    elections: Mapping[str, int] = field(default_factory=dict)
    moves: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.throttles or self.elections or self.moves)

    def write_to(self, cleanup: PendingCleanup) -> PendingCleanup:
        """Return the pending cleanup with these sections."""
        return with_moves(with_elections(with_throttles(cleanup, self.throttles), self.elections), self.moves)


def read_leftovers(cleanup: PendingCleanup) -> Leftovers:
    """Return the sections of moves. Raises KdeclareError where one is not of its type."""
    return Leftovers(read_throttles(cleanup), read_elections(cleanup), read_moves(cleanup))


def leftovers_of(state: State | None) -> Leftovers:
    """Return what moves have left in a state; nothing where there is no state. Raises KdeclareError."""
    return read_leftovers(state.pending_cleanup) if state is not None else Leftovers()


# Each section by itself, too: thousands of operations of one run change one of them each.


def read_throttles(cleanup: PendingCleanup) -> Entries:
    """Return what kdeclare has set and not removed yet. Raises KdeclareError where that cannot be read."""
    return _read(cleanup, _THROTTLES, _decode_entries, {})


def with_throttles(cleanup: PendingCleanup, throttles: Entries) -> PendingCleanup:
    """Return the pending cleanup with these throttles."""
    return _with(cleanup, _THROTTLES, {e: _encode_keys(keys) for e, keys in throttles.items()})


def read_elections(cleanup: PendingCleanup) -> Mapping[str, int]:
    """Return the leaders that are to be elected. Raises KdeclareError where they cannot be read."""
    return _read(cleanup, _ELECTIONS, _decode_elections, {})


def with_elections(cleanup: PendingCleanup, elections: Mapping[str, int]) -> PendingCleanup:
    """Return the pending cleanup with these elections."""
    return _with(cleanup, _ELECTIONS, elections)


def read_moves(cleanup: PendingCleanup) -> tuple[str, ...]:
    """Return the partitions that were left moving. Raises KdeclareError where they cannot be read."""
    return _read(cleanup, _MOVES, as_texts, ())


def with_moves(cleanup: PendingCleanup, moves: Iterable[str]) -> PendingCleanup:
    """Return the pending cleanup with these moves."""
    return _with(cleanup, _MOVES, list(moves))


def _with(cleanup: PendingCleanup, name: str, section: JsonValue) -> PendingCleanup:
    """All sections are stated, or none."""
    mine = {_THROTTLES: cleanup.get(_THROTTLES, {}), _ELECTIONS: cleanup.get(_ELECTIONS, {})}
    mine |= {_MOVES: cleanup.get(_MOVES, [])} | {name: section}
    others = {other: value for other, value in cleanup.items() if other not in mine}
    return {**others, **mine} if any(mine.values()) else others


_Section = TypeVar("_Section")


def _read(
    cleanup: PendingCleanup, name: str, decode: Callable[[JsonValue], _Section], absent: _Section
) -> _Section:
    if name not in cleanup:
        return absent
    try:
        return decode(cleanup[name])
    except (KeyError, TypeError) as problem:
        raise KdeclareError(
            error(
                "state-corrupt",
                "Stored state is damaged",
                f"In its 'leftovers', '{name}' is not of its type.",
                hint="Restore state.json.backup, or the version of the state that was committed or saved.",
            )
        ) from problem


def _decode_entries(json: JsonValue) -> Entries:
    return {
        entity: {key: _decode_throttle(throttle) for key, throttle in as_object(keys).items()}
        for entity, keys in as_object(json).items()
    }


def _decode_throttle(json: JsonValue) -> Throttle:
    if isinstance(json, str):
        return json
    if isinstance(json, Mapping):
        return ThrottledReplicas(as_texts(json["elements"]), as_bool(json["fresh"]))
    return as_texts(json)


def _encode_keys(keys: Mapping[str, Throttle]) -> JsonObject:
    return {key: _encode_throttle(throttle) for key, throttle in keys.items()}


def _encode_throttle(throttle: Throttle) -> JsonValue:
    if isinstance(throttle, ThrottledReplicas):
        return {"elements": list(throttle.elements), "fresh": throttle.fresh}
    return throttle if isinstance(throttle, str) else list(throttle)


def _decode_elections(json: JsonValue) -> Mapping[str, int]:
    return {partition: as_int(leader) for partition, leader in as_object(json).items()}
