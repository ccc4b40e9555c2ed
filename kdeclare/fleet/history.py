"""What one topic was at several times, and what changed between them."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class TopicVersion:
    """One topic as one snapshot has it.

    body: None where the topic was not there. error: why nothing is known of it at that time; body is then
    None as well, and says nothing.
    """

    taken_at: datetime
    snapshot_id: str
    body: JsonObject | None
    error: str | None = None


class Turn(StrEnum):
    """What became of a topic from one snapshot to the next that knows of it."""

    APPEARED = "appeared"
    CHANGED = "changed"
    GONE = "gone"
    UNKNOWN = "unknown"  # it could not be read, so nothing can be told


@dataclass(frozen=True, slots=True)
class FieldTurn:
    """One field that is otherwise; null is "not set".

    path: ``configs.retention.ms``, ``partitions``, ``assignments.3`` (the replicas of partition 3),
    ``moves.3`` (its move), ``id`` (of a topic that was created anew), or what else leads there.
    """

    path: str
    before: JsonValue
    after: JsonValue


@dataclass(frozen=True, slots=True)
class TopicTurn:
    """What a snapshot has otherwise than the one before it.

    seen_before: when it was last read before; None for the first time. fields: of a topic that changed.
    """

    version: TopicVersion
    turn: Turn
    seen_before: datetime | None = None
    fields: tuple[FieldTurn, ...] = ()

    @property
    def error(self) -> str | None:
        """Why nothing is known, where nothing is."""
        return self.version.error


def turns(versions: Sequence[TopicVersion]) -> list[TopicTurn]:
    """The snapshots in which a topic is otherwise than before, oldest first; the others are left out.

    versions: in any order. A snapshot that could not read it changes nothing: what follows is compared with
    the last one that could. Of several in a row that could not, the first is told.
    """
    found: list[TopicTurn] = []
    known: TopicVersion | None = None
    blind = False
    for version in sorted(versions, key=lambda v: (v.taken_at, v.snapshot_id)):
        seen = known.taken_at if known else None
        if version.error is not None:
            if not blind:
                found.append(TopicTurn(version, Turn.UNKNOWN, seen))
            blind = True
            continue
        blind = False
        before, after = known.body if known else None, version.body
        known = version
        if before is None or after is None:
            if before is not after:
                found.append(TopicTurn(version, Turn.GONE if after is None else Turn.APPEARED, seen))
        elif before != after and (fields := _fields(before, after)):
            found.append(TopicTurn(version, Turn.CHANGED, seen, fields))
    return found


def _fields(before: JsonObject, after: JsonObject) -> tuple[FieldTurn, ...]:
    from deepdiff import DeepDiff  # takes a third of a second: only who compares waits for it

    left, right = _flat(before), _flat(after)
    paths = set()
    for items in DeepDiff(left, right, view="tree", threshold_to_diff_deeper=0).values():
        paths |= {str(item.path(output_format="list")[0]) for item in items}
    return tuple(FieldTurn(path, left.get(path), right.get(path)) for path in sorted(paths, key=_order))


def _flat(body: JsonObject) -> dict[str, JsonValue]:
    """The fields of a body by the paths that plans and findings have for them."""
    flat: dict[str, JsonValue] = {}
    for key, value in body.items():
        if key == "partitions" and isinstance(value, list):
            flat["partitions"] = len(value)
            for number, partition in enumerate(value):
                flat |= _parts(f"assignments.{number}", partition, "replicas")
        elif isinstance(value, dict):
            for name, item in value.items():
                flat |= _parts(f"{key}.{name}", item, "value")
        else:
            flat[key] = value
    return flat


_ABOUT = ("type", "sensitive", "read_only")
"""Parts of a config entry that say of its key what never changes."""


def _parts(path: str, item: JsonValue, main: str) -> dict[str, JsonValue]:
    """An item as it is, or its main part under the path itself and the others beneath it."""
    if not isinstance(item, dict) or main not in item:
        return {path: item}
    others = {f"{path}.{name}": value for name, value in item.items() if name not in (main, *_ABOUT)}
    return {path: item[main]} | others


def _order(path: str) -> tuple[bool, list[tuple[bool, int, str]]]:
    """What is said of the whole first, then by name; partition 10 comes after partition 9."""
    parts = [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in path.split(".")]
    return "." in path, parts
