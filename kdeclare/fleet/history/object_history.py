"""The versions of one live object over time, and the changes between these versions."""

from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.live_codec import DescribesFields, HasOwnPaths
from kdeclare.core.provider.registry import CODECS
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.manifests.policies import TOPIC


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """The state of a live object in one snapshot.

    body: the body of the object; None if the object did not exist or could not be read.
    error: the reason why the object could not be read; otherwise None.
    """

    taken_at: datetime
    snapshot_id: str
    body: JsonObject | None
    error: str | None = None


class Turn(StrEnum):
    """How an object differs from its state in the previous snapshot in which it could be read."""

    APPEARED = "appeared"
    CHANGED = "changed"
    GONE = "gone"
    UNKNOWN = "unknown"  # the object could not be read


@dataclass(frozen=True, slots=True)
class FieldTurn:
    """One changed field. ``before`` and ``after`` are null if the field is not set.

    path: the path of the field, such as ``configs.retention.ms``.
    name: the name to display instead of the path; None to display the path.
    """

    path: str
    before: JsonValue
    after: JsonValue
    name: Annotated[str | None, Field(exclude=True)] = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ObjectTurn:
    """The change of an object between two snapshots.

    version: the object in the later snapshot.
    turn: the type of the change.
    seen_before: the time of the latest earlier snapshot in which the object was read; None if there is none.
    fields: the changed fields if ``turn`` is CHANGED; otherwise empty.
    """

    version: ObjectVersion
    turn: Turn
    seen_before: datetime | None = None
    fields: tuple[FieldTurn, ...] = ()

    @property
    def error(self) -> str | None:
        """The reason why the object could not be read; None if it was read."""
        return self.version.error


def list_turns(versions: Sequence[ObjectVersion], sort: str = TOPIC) -> list[ObjectTurn]:
    """Return the changes of an object between snapshots, oldest first.

    Each version is compared with the previous version that could be read. If the object could not be read in
    several consecutive snapshots, only the first of these snapshots is included.

    versions: the object in each snapshot, in any order.
    sort: the type of the object.
    """
    turns: list[ObjectTurn] = []
    last_known: ObjectVersion | None = None
    is_unreadable = False
    for version in sorted(versions, key=lambda v: (v.taken_at, v.snapshot_id)):
        last_read_at = last_known.taken_at if last_known else None
        if version.error is not None:
            if not is_unreadable:
                turns.append(ObjectTurn(version, Turn.UNKNOWN, last_read_at))
            is_unreadable = True
            continue
        is_unreadable = False
        before, after = last_known.body if last_known else None, version.body
        last_known = version
        if before is None or after is None:
            if before is not after:
                turns.append(ObjectTurn(version, Turn.GONE if after is None else Turn.APPEARED, last_read_at))
        elif before != after and (fields := compare_fields(sort, before, after)):
            turns.append(ObjectTurn(version, Turn.CHANGED, last_read_at, fields))
    return turns


def compare_fields(sort: str, before: JsonObject, after: JsonObject) -> tuple[FieldTurn, ...]:
    """Return the fields that differ between two bodies of a live object. sort: the type of the object."""
    from deepdiff import DeepDiff  # imported here because the import takes 0.3 s

    codec = CODECS.get(sort)
    field_describer = codec if isinstance(codec, DescribesFields) else None
    old_fields, new_fields = (
        field_describer.flatten_body(sort, body) if field_describer is not None else body
        for body in (before, after)
    )
    paths = set()
    for items in DeepDiff(old_fields, new_fields, view="tree", threshold_to_diff_deeper=0).values():
        paths |= {str(item.path(output_format="list")[0]) for item in items}
    return tuple(
        FieldTurn(
            path,
            old_fields.get(path),
            new_fields.get(path),
            field_describer.format_field_name(sort, path) if field_describer is not None else None,
        )
        for path in sorted(paths, key=_get_path_order)
    )


def has_paths_of_plans(sort: str) -> bool:
    """Whether plans use the same field paths as `compare_fields` for this object type. False if unknown."""
    codec = CODECS.get(sort)
    return isinstance(codec, DescribesFields) and not isinstance(codec, HasOwnPaths)


def list_element_fields(sort: str, versions: Iterable[ObjectVersion]) -> dict[str, list[JsonValue]]:
    """Return the elements of each list field, combined from all versions of an object, by path.

    An object that is itself an element of a set has a list field with only this element, in the form that
    plans use.
    """
    codec = CODECS.get(sort)
    found: dict[str, list[JsonValue]] = {}
    if isinstance(codec, DescribesFields):
        for body in (version.body for version in versions if version.body is not None):
            for path, value in codec.flatten_body(sort, body).items():
                if isinstance(value, list):
                    found.setdefault(path, []).extend(value)
    return found


def _get_path_order(path: str) -> tuple[bool, list[tuple[bool, int, str]]]:
    """Return a sort key for field paths: top-level fields first, and partition 9 before partition 10."""
    numbers = [(parse_whole_number(part), part) for part in path.split(".")]
    parts = [(number is not None, number or 0, part) for number, part in numbers]
    return "." in path, parts
