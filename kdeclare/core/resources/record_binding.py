"""Convert ownership records between frozen dataclasses in memory and JSON in files.

Only `bind_record` converts JSON from a file to a record. For the arguments of operations, `bind_arguments`
does the same.
"""

from pydantic import ValidationError

from kdeclare.core.jsontypes import JsonObject, JsonValue, as_object, dump_json
from kdeclare.core.operations.argument_binding import explain_mismatch, get_adapter
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.owned_record import CodedRecord, OwnedRecord, UnboundRecord, narrow_record


def bind_record(kind: str, json: JsonValue) -> OwnedRecord | None:
    """Return the ownership record that ``json`` encodes; None if ``json`` is None.

    If the kind rejects the record or is not installed, return `UnboundRecord`.
    """
    if json is None:
        return None
    if kind not in KINDS:
        return UnboundRecord(json, f"kind '{kind}' is not installed")
    record = KINDS[kind].record
    if issubclass(record, CodedRecord):
        try:
            return record.from_json(as_object(json))
        except (TypeError, ValueError) as problem:
            return UnboundRecord(json, str(problem))
    try:
        # Parsed as JSON, because only then does pydantic's strict mode accept a list for a tuple.
        bound = get_adapter(record).validate_json(dump_json(json))
    except ValidationError as problem:
        return UnboundRecord(json, explain_mismatch(problem))
    return narrow_record(bound, record)


def dump_record(record: OwnedRecord | None) -> JsonValue:
    """Return the record in the form that files contain; the inverse of `bind_record`."""
    if record is None:
        return None
    if isinstance(record, UnboundRecord):
        return record.json
    if isinstance(record, CodedRecord):
        return record.to_json()
    dumped: JsonObject = get_adapter(type(record)).dump_python(record, mode="json")
    return dumped


def protect_record(kind: str, record: OwnedRecord | None) -> OwnedRecord | None:
    """Return the record with ``preventDestroy`` set, so that kdeclare does not delete the resource."""
    return bind_record(kind, {**as_object(dump_record(record) or {}), "preventDestroy": True})
