"""The contents of schemas without their references: normalized texts, fingerprints, and differences."""

from collections.abc import Collection, Iterable
from functools import lru_cache

from kdeclare.core.jsontypes import hash_json
from kdeclare.core.units import format_count
from kdeclare.providers.schema_registry.client.port import SchemaContent, SchemaReference, SchemaType
from kdeclare.providers.schema_registry.schemas.avro.avro_schema import RECORDS, AvroSchema
from kdeclare.providers.schema_registry.schemas.comparison import (
    ParsedSchema,
    describe_differences,
    parse_schema,
)
from kdeclare.providers.schema_registry.schemas.differences import SchemaDifference
from kdeclare.providers.schema_registry.schemas.documentation import find_undocumented_parts
from kdeclare.providers.schema_registry.schemas.json_schema.json_schema import JsonSchema
from kdeclare.providers.schema_registry.schemas.json_text import as_mapping, as_sequence
from kdeclare.providers.schema_registry.schemas.layout import format_layout
from kdeclare.providers.schema_registry.schemas.problems import SchemaError, SchemaProblem
from kdeclare.providers.schema_registry.schemas.subject_names import find_record_name

_FINGERPRINT_LENGTH = 16
_ANY_REFERENCE = (SchemaReference("", "", 0),)
"""Placeholder references. With these, the parser accepts any unknown type."""


def find_problems(type_: SchemaType, text: str, references: Collection[str]) -> tuple[SchemaProblem, ...]:
    """Return the problems of a schema's text. references: the names of the schema's references."""
    content = SchemaContent(type_, text, tuple(SchemaReference(name, "", 0) for name in references))
    try:
        parse_schema(content)
    except SchemaError as e:
        return e.problems
    return ()


# A plan normalizes the same texts several times. A cache that is smaller than the plan would have no effect.
@lru_cache(maxsize=1 << 16)
def normalize_text(type_: SchemaType, text: str) -> str:
    """Return the text in the common layout, so that equal schemas have equal texts.

    If the text is not a valid schema, return it unchanged.
    """
    try:
        return "\n".join(format_layout(parse_schema(build_open_content(type_, text))))
    except SchemaError:
        return text


def compute_fingerprint(type_: SchemaType, text: str, references: Iterable[str]) -> str:
    """Return a hash that is equal for equal schemas with equal references.

    references: the references in the form of `format_reference`.
    """
    return hash_json([type_.value, normalize_text(type_, text), sorted(references)])[:_FINGERPRINT_LENGTH]


def format_reference(name: str, subject: str, fingerprint: str) -> str:
    """Return the form that views and changes show for a reference and the referenced content."""
    return f"{name} = {subject} @{fingerprint}"


def list_differences(type_: SchemaType, before: str, after: str) -> tuple[SchemaDifference, ...]:
    """Return the differences between two schemas of the same language."""
    return describe_differences(build_open_content(type_, before), build_open_content(type_, after))


def list_undocumented(type_: SchemaType, text: str) -> list[str]:
    """Return the paths of all undocumented parts of a schema; empty if the schema is not valid."""
    try:
        return [part.path for part in find_undocumented_parts(build_open_content(type_, text))]
    except SchemaError:
        return []


def build_open_content(type_: SchemaType, text: str) -> SchemaContent:
    """Return a schema whose unknown types are assumed to be defined by its references."""
    return SchemaContent(type_, text, _ANY_REFERENCE)


def summarize_schema(type_: SchemaType, text: str) -> str:
    """Return a few words that describe a schema: its name and its size."""
    try:
        parsed = parse_schema(build_open_content(type_, text))
    except SchemaError:
        return format_count(len(text), "character")
    name, size = find_record_name(parsed), _describe_size(parsed)
    return f"{name} ({size})" if name and size else name or size or f"{type_.value} schema"


def _describe_size(parsed: ParsedSchema) -> str:
    if isinstance(parsed, AvroSchema):
        root = as_mapping(parsed.root)
        if root.get("type") in RECORDS:
            return format_count(len(as_sequence(root["fields"])), "field")
        if isinstance(parsed.root, list):
            return f"union of {format_count(len(parsed.root), 'type')}"
        return str(root.get("type") or parsed.root)
    if isinstance(parsed, JsonSchema):
        properties = as_mapping(as_mapping(parsed.root).get("properties"))
        return format_count(len(properties), "property", "properties") if properties else ""
    return format_count(len(parsed.messages), "message")
