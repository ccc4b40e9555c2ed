"""Determine which changes between two snapshots were made by runs of kdeclare.

Kafka does not record who made a change. The journals of runs record what each run did, and when. A run made a
change if it succeeded in the period between the two snapshots, and set the field to the value that the later
snapshot contains. If no recorded run made a change, it was made by another client, by another project, or by
a run that is no longer in the history. If a run in the period could have made the change, but its plan does
not show whether it did, the origin is unknown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final

from pydantic import Field

from kdeclare.core.documents import Second
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.changes import Action
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK
from kdeclare.fleet.history.object_history import FieldTurn, ObjectTurn, Turn

_PRECISION = timedelta(seconds=1)
"""The precision of the times in journals. Some journals contain only whole seconds."""


@dataclass(frozen=True, slots=True)
class RunWrite:
    """The changes that one run made to one live object.

    sent_at, ended_at: when the operations were sent, and when the last one ended.
    values: the values that the run set, by the path of the field; None for a field that it removed.
    is_about_object: whether the changed resource refers to the object. False if this is unknown.
    has_all_paths: whether ``values`` has all fields of the object that the run changed.
    """

    run_id: str
    user: str
    sent_at: datetime
    ended_at: datetime
    action: Action
    values: Mapping[str, JsonValue]
    is_about_object: bool = True
    has_all_paths: bool = True


_UNKNOWN: Final = "unknown"
"""The value that replaces the origin of a change if a run might have made the change."""
_Origin = RunWrite | str | None
"""The origin of a change: the `RunWrite` of a run, `_UNKNOWN`, or None if no recorded run made the change."""


@dataclass(frozen=True, slots=True)
class ChangeOrigin:
    """The origin of changed fields: the run that changed them, if a run is recorded."""

    schema_name = "ChangeOriginDocument"

    run_id: Annotated[
        str | None, Field(description="null if no recorded run of the project made the changes.")
    ]
    user: Annotated[str | None, Field(description="Who started the run.")]
    at: Annotated[Second | None, Field(description="When the operations of the run ended (UTC, ISO 8601).")]
    fields: Annotated[
        tuple[str, ...],
        Field(description="The changed fields; empty if the whole object was created or deleted."),
    ]
    is_unknown: Annotated[
        bool,
        Field(
            description="Whether a run of the project might have made the changes. If so, `run_id` is null."
        ),
    ] = False


def find_origins(turn: ObjectTurn, writes: Sequence[RunWrite]) -> tuple[ChangeOrigin, ...]:
    """Return the origins of the changes to an object between two snapshots, each with the changed fields.

    Return an empty tuple if the object could not be read, or if there is no earlier snapshot.

    writes: what the runs of the project changed in the object, oldest first.
    """
    if turn.turn is Turn.UNKNOWN or turn.seen_before is None:
        return ()
    earliest = turn.seen_before - _PRECISION
    period = [w for w in writes if w.sent_at <= turn.version.taken_at and w.ended_at >= earliest]
    if turn.turn is not Turn.CHANGED:
        action = Action.DELETE if turn.turn is Turn.GONE else Action.CREATE
        made = next((w for w in reversed(period) if w.is_about_object and w.action is action), None)
        if made is None and any(_might_have_made(write, action) for write in period):
            return (_build_origin(_UNKNOWN, ()),)
        return (_build_origin(made, ()),)
    by_origin: dict[str | None, tuple[_Origin, list[str]]] = {}
    for field in turn.fields:
        origin = _find_write(field, turn.fields, period)
        identity = origin.run_id if isinstance(origin, RunWrite) else origin
        by_origin.setdefault(identity, (origin, []))[1].append(field.path)
    return tuple(_build_origin(origin, paths) for origin, paths in by_origin.values())


def _might_have_made(write: RunWrite, action: Action) -> bool:
    """Whether a run could have created or deleted the object although its plan does not show ``action``.

    action: CREATE or DELETE. Some objects, such as quotas, exist only while a field is set, so an update can
        create or delete them.
    """
    if not write.is_about_object:
        return True
    if write.action is not Action.UPDATE or not write.values:
        return False
    return action is Action.CREATE or all(value is None for value in write.values.values())


def _find_write(field: FieldTurn, all_fields: Iterable[FieldTurn], writes: Sequence[RunWrite]) -> _Origin:
    """Return the latest write that set a field to its value in the later snapshot.

    Return `_UNKNOWN` if a write might have set the value, and None if no write did.
    """
    nothing: _Origin = None
    for write in reversed(writes):
        if not write.is_about_object:
            nothing = _UNKNOWN
            continue
        if field.path in write.values:
            value = write.values[field.path]
            if _is_equal(value, field.after):
                return write
            return _UNKNOWN if value == SENSITIVE_MASK else nothing
        if field.before is None and field.path.startswith("assignments."):
            # Kafka chooses the brokers of new partitions, so the plan contains only the partition count.
            count = next((other for other in all_fields if other.path == "partitions"), None)
            if count is not None and _is_equal(write.values.get("partitions"), count.after):
                return write
        if not write.has_all_paths:
            nothing = _UNKNOWN
    return nothing


def _is_equal(planned: JsonValue, live: JsonValue) -> bool:
    return list(_list_texts(planned)) == list(_list_texts(live))


def _list_texts(value: JsonValue) -> Iterator[str]:
    """Yield the elements of a list, a comma-separated string or a scalar as strings."""
    if isinstance(value, list):
        yield from map(str, value)
    elif isinstance(value, str):
        yield from value.split(",")
    elif value is not None:
        yield str(value)


def _build_origin(write: _Origin, paths: Sequence[str]) -> ChangeOrigin:
    if not isinstance(write, RunWrite):
        return ChangeOrigin(None, None, None, tuple(paths), is_unknown=write == _UNKNOWN)
    return ChangeOrigin(write.run_id, write.user, write.ended_at, tuple(paths))
