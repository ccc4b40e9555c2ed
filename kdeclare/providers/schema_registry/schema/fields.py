"""The fields of subjects in plans, and their risks.

Operations contain the whole schema before and after a change. Plans show the individual differences instead,
such as ``schema.Order.price (type-changed)``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from kdeclare.core.jsontypes import JsonValue, as_text, dump_canonical_json, parse_json
from kdeclare.core.resources.changes import Action, FieldChange, FieldOp, Risk
from kdeclare.core.resources.plan_capabilities import Values
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaType
from kdeclare.providers.schema_registry.schema.content import (
    list_differences,
    normalize_text,
    summarize_schema,
)
from kdeclare.providers.schema_registry.schema.levels import LevelChange, compare_levels
from kdeclare.providers.schema_registry.schema.spec import LEVEL as LEVEL
from kdeclare.providers.schema_registry.schema.spec import TEXT as TEXT
from kdeclare.providers.schema_registry.schemas.differences import DifferenceKind, SchemaDifference

REGISTRY, SUBJECT = "registry", "subject"
TYPE, REFERENCES = "type", "references"
"""Names of fields of a subject. Together with `TEXT` and `LEVEL`, they also name the elements of views."""
VERSIONS, IDS = "versions", "ids"
"""The fields of a deletion: the soft-deleted versions, and the versions whose ids are lost."""

_READ_CAUSE = "Clients that use an earlier version may not be able to read the data."
_SAFE_KINDS = frozenset(
    {
        DifferenceKind.DEFAULT_ADDED,
        DifferenceKind.ALIASES_CHANGED,
        DifferenceKind.SYMBOL_ADDED,
        DifferenceKind.REQUIRED_REMOVED,
        DifferenceKind.RESERVED_ADDED,
        DifferenceKind.TYPE_ADDED,
        DifferenceKind.TYPES_REORDERED,
        DifferenceKind.IMPORT_ADDED,
        DifferenceKind.DOCUMENTATION_ADDED,
        DifferenceKind.DOCUMENTATION_REMOVED,
        DifferenceKind.DOCUMENTATION_CHANGED,
    }
)
"""Differences that hardly any client will notice."""


def list_location_fields(registry: str, subject: str) -> tuple[FieldChange, FieldChange]:
    """Return the fields that plans show only if a subject is created: its registry and its name."""
    return (
        FieldChange(REGISTRY, FieldOp.CHANGE, None, registry),
        FieldChange(SUBJECT, FieldOp.CHANGE, None, subject),
    )


def list_shown_fields(
    before_type: str | None, before: str | None, after_type: str, after: str
) -> tuple[FieldChange, ...]:
    """Return the field changes that a plan shows for a registration, except the change to the references.

    before, after: the texts, normalized or not. ``before`` is None if the subject is new.
    """
    after = normalize_text(SchemaType(after_type), after)
    before = None if before is None else normalize_text(SchemaType(as_text(before_type)), before)
    if before is None or before_type != after_type:
        summaries = (
            None if before is None else summarize_schema(SchemaType(as_text(before_type)), before),
            summarize_schema(SchemaType(after_type), after),
        )
        fields = [
            FieldChange(TYPE, FieldOp.CHANGE, before_type, after_type),
            FieldChange(TEXT, FieldOp.CHANGE, *summaries),
        ]
    else:
        type_ = SchemaType(after_type)
        fields = list(_list_differences(type_, before, after))
    action = Action.CREATE if before is None else Action.UPDATE
    return tuple(assess_schema_field(action, item) for item in fields)


def _list_differences(type_: SchemaType, before: str, after: str) -> Iterator[FieldChange]:
    """Yield one field for each difference.

    Differences of the same kind in the same part of the schema share one field.
    """
    grouped: dict[tuple[str, DifferenceKind], list[SchemaDifference]] = {}
    for item in list_differences(type_, before, after):
        grouped.setdefault((item.path, item.kind), []).append(item)
    for (path, kind), items in grouped.items():
        name = _name_field(path, kind)
        if name == TEXT:
            summaries = summarize_schema(type_, before), summarize_schema(type_, after)
            yield FieldChange(TEXT, FieldOp.CHANGE, *summaries)
            continue
        values = _join([item.before for item in items]), _join([item.after for item in items])
        yield FieldChange(name, FieldOp.CHANGE, *values)


def _name_field(path: str, kind: DifferenceKind) -> str:
    """Return the path of the field that shows all differences of one kind in one part of a schema."""
    if kind is DifferenceKind.TEXT_CHANGED:
        return TEXT
    return f"{TEXT}.{path} ({kind})" if path else f"{TEXT} ({kind})"


@lru_cache(maxsize=16)  # an audit describes each field of a schema separately
def describe_shown_fields(type_: SchemaType, before: str, after: str) -> Mapping[str, str]:
    """Return the differences in words, by the path of the field that shows them.

    before, after: the texts, normalized or not.
    """
    messages: dict[str, list[str]] = {}
    for item in list_differences(type_, before, after):
        messages.setdefault(_name_field(item.path, item.kind), []).append(item.message)
    return {path: "; ".join(items) for path, items in messages.items()}


def _join(values: list[JsonValue]) -> JsonValue:
    """Join values for display: one value stays as it is, and several become a list without None.

    Return None if there is no value.
    """
    present = [value for value in values if value is not None]
    joined: JsonValue = present if len(values) > 1 else values[0]
    return parse_json(dump_canonical_json(joined)) if joined not in (None, []) else None


def find_proven_schema_fields(shown: Mapping[str, Values], done: Mapping[str, Values]) -> frozenset[str]:
    """Return the paths of the schema fields if the plan shows exactly the changes that the operations make.

    Otherwise, return an empty set.

    shown, done: the values in the plan and in the operations, by path; see `Evidence`.
    """
    if TEXT not in done or TYPE not in done:
        return frozenset()
    types, texts = done[TYPE], done[TEXT]
    before_type, before = types[0], texts[0]
    expected = {
        item.path: (item.before, item.after)
        for item in list_shown_fields(
            None if before_type is None else as_text(before_type),
            None if before is None else as_text(before),
            as_text(types[-1]),
            as_text(texts[-1]),
        )
        if item.path != TYPE
    }
    shown_fields = {path: values for path, values in shown.items() if is_schema_path(path)}
    if {path: (values[0], values[-1]) for path, values in shown_fields.items()} != expected:
        return frozenset()
    return frozenset({*expected, TEXT})


def is_schema_path(path: str) -> bool:
    """Whether a field shows a change to the text of the schema."""
    return path == TEXT or path.startswith((f"{TEXT}.", f"{TEXT} ("))


def assess_schema_field(action: Action, field: FieldChange) -> FieldChange:
    """Return the field change with its risk, which does not depend on any other field."""
    risk, cause = _find_risk(action, field)
    return replace(field, risk=risk, cause=cause)


def _find_risk(action: Action, field: FieldChange) -> tuple[Risk, str]:
    if field.path == IDS:
        return Risk.IRREVERSIBLE, "Records that contain the ids of the deleted schemas can no longer be read."
    if action is Action.DELETE:
        return Risk.DISRUPTIVE, "Clients can no longer look up the subject, only its schemas by their ids."
    if field.path == LEVEL:
        return _assess_level(field)
    if action is Action.CREATE or not is_schema_path(field.path):
        return (Risk.DISRUPTIVE, _READ_CAUSE) if field.path == TYPE and field.before else (Risk.SAFE, "")
    return (Risk.SAFE, "") if _is_safe_difference(field) else (Risk.DISRUPTIVE, _READ_CAUSE)


def _assess_level(field: FieldChange) -> tuple[Risk, str]:
    if field.before is None:
        return Risk.SAFE, ""
    if field.after is not None:
        levels = CompatibilityLevel(as_text(field.before)), CompatibilityLevel(as_text(field.after))
        if compare_levels(*levels) in (LevelChange.STRICTER, LevelChange.SAME):
            return Risk.SAFE, ""
    return Risk.DISRUPTIVE, "The registry then accepts new versions that it would have refused before."


def _is_safe_difference(field: FieldChange) -> bool:
    _, _, kind = field.path.removesuffix(")").rpartition(" (")
    if kind == DifferenceKind.FIELD_ADDED:
        after = field.after
        is_avro_without_default = isinstance(after, Mapping) and "name" in after and "default" not in after
        return not is_avro_without_default
    return kind in _SAFE_KINDS


def build_level_field(before: str | None, after: str | None) -> FieldChange:
    """Return the field change for a level. None means that the subject has no level of its own."""
    return assess_schema_field(Action.UPDATE, FieldChange(LEVEL, FieldOp.CHANGE, before, after))


def build_references_field(before: Iterable[str], after: Iterable[str]) -> FieldChange:
    """Return the field change for the references, each in the form of `format_reference`."""
    return FieldChange(REFERENCES, FieldOp.CHANGE, list(before) or None, list(after) or None)
