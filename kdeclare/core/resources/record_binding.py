"""Records of ownership: frozen values of their provider in memory, JSON in files.

`bind_record` is the only place where JSON from a file becomes a record, as `bind_arguments` is for what
operations take.
"""

from pydantic import ValidationError

from kdeclare.core.jsontypes import JsonObject, JsonValue, as_object, dump_json
from kdeclare.core.operations.argument_binding import explain_mismatch, get_adapter
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.owned_record import CodedRecord, OwnedRecord, UnboundRecord, narrow_record


def bind_record(kind: str, json: JsonValue) -> OwnedRecord | None:
    """Return the record that ``json`` holds for a resource of a kind; None for None.

    `UnboundRecord` where the kind does not take it, or is not installed.
    """
    if json is None:
        return None
    if kind not in KINDS:
        return UnboundRecord(json, f"no kind '{kind}' is installed")
    record = KINDS[kind].record
    if issubclass(record, CodedRecord):
        try:
            return record.from_json(as_object(json))
        except (TypeError, ValueError) as problem:
            return UnboundRecord(json, str(problem))
    try:
        # as JSON, since only then strictness takes a list for a tuple
        bound = get_adapter(record).validate_json(dump_json(json))
    except ValidationError as problem:
        return UnboundRecord(json, explain_mismatch(problem))
    return narrow_record(bound, record)


def dump_record(record: OwnedRecord | None) -> JsonValue:
    """Return the record as files hold it; the way back from `bind_record`."""
    if record is None:
        return None
    if isinstance(record, UnboundRecord):
        return record.json
    if isinstance(record, CodedRecord):
        return record.to_json()
    dumped: JsonObject = get_adapter(type(record)).dump_python(record, mode="json")
    return dumped


def protect_record(kind: str, record: OwnedRecord | None) -> OwnedRecord | None:
    """Return the record of a resource that nothing may delete."""
    return bind_record(kind, {**as_object(dump_record(record) or {}), "preventDestroy": True})
