"""Describe a schema in a few words, whatever its language."""

from kdeclare.core.units import format_count
from kdeclare.providers.schema_registry.client.port import SchemaContent
from kdeclare.providers.schema_registry.schemas.avro.avro_schema import RECORDS, AvroSchema
from kdeclare.providers.schema_registry.schemas.comparison import ParsedSchema, parse_schema
from kdeclare.providers.schema_registry.schemas.json_schema.json_schema import JsonSchema
from kdeclare.providers.schema_registry.schemas.json_text import as_mapping, as_sequence
from kdeclare.providers.schema_registry.schemas.problems import SchemaError
from kdeclare.providers.schema_registry.schemas.subject_names import find_record_name


def summarize_content(content: SchemaContent) -> str:
    """Return a few words that describe a schema: its name and its size."""
    try:
        parsed = parse_schema(content)
    except SchemaError:
        return format_count(len(content.text), "character")
    name, size = find_record_name(parsed), _describe_size(parsed)
    return f"{name} ({size})" if name and size else name or size or f"{content.type.value} schema"


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
