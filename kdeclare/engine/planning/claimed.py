"""What of a change by hand is the business of manifests: declared there, or owned since they were applied."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kdeclare.core.capabilities import encode_body
from kdeclare.core.changes import Action, Change, FieldChange
from kdeclare.core.diagnostics import Place
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired


@dataclass(frozen=True, slots=True)
class Claimed:
    """A change that touches what is not its own.

    fields: paths as in the plan; empty where the resource as a whole is concerned.
    place: where it is declared; None where it is only owned, and no manifest declares it any more.
    """

    change: Change
    fields: tuple[str, ...]
    place: Place | None = None


def claimed(
    changes: Sequence[Change], declared: Iterable[Desired], owned: Mapping[str, Json]
) -> tuple[Claimed, ...]:
    """The changes that manifests, or what was last applied of them, say something else about."""
    stated = {str(desired.id): desired for desired in declared}
    found = []
    for change in changes:
        desired, record = stated.get(str(change.id)), owned.get(str(change.id))
        said = [item for item in (_record(desired) if desired else None, record) if item is not None]
        if not said:
            continue
        place = desired.source if desired else None
        if change.action is not Action.UPDATE:
            found.append(Claimed(change, (), place))
            continue
        paths = dict.fromkeys(f.path for f in change.fields if any(_is_stated(f, item) for item in said))
        if paths:
            found.append(Claimed(change, tuple(paths), place))
    return tuple(found)


def _record(desired: Desired) -> Json:
    return encode_body(desired)


def _is_stated(field: FieldChange, record: Mapping[str, Json]) -> bool:
    """Whether a record of ownership, or a body as data, says something of a field."""
    first, _, rest = field.path.partition(".")
    if first == "configs":
        return rest in record.get("configs", {}) or bool(record.get("removeUnmanaged"))
    assignments = record.get("assignments")
    if first != "assignments":
        return record.get(first) is not None or assignments is not None
    if assignments is not None or record.get("strategy") is not None:
        return True
    factor, is_new = record.get("replicationFactor"), field.before is None
    resized = factor is not None and len(field.after or ()) != factor
    return resized or (is_new and record.get("partitions") is not None)
