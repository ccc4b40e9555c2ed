"""Build contents of schemas, and show problems and differences as lines."""

import json
from typing import Any

import pytest

from kdeclare.providers.schema_registry.client.port import SchemaContent, SchemaReference, SchemaType
from kdeclare.providers.schema_registry.schemas.comparison import describe_differences, parse_schema
from kdeclare.providers.schema_registry.schemas.problems import SchemaError


def build_avro(value: Any, *references: SchemaReference) -> SchemaContent:
    """Build an Avro schema; a string is a text, any other value is written as JSON."""
    return SchemaContent(SchemaType.AVRO, _write(value), references)


def build_json_schema(value: Any, *references: SchemaReference) -> SchemaContent:
    """Build a JSON Schema; a string is a text, any other value is written as JSON."""
    return SchemaContent(SchemaType.JSON, _write(value), references)


def build_protobuf(text: str, *references: SchemaReference) -> SchemaContent:
    """Build a Protobuf schema."""
    return SchemaContent(SchemaType.PROTOBUF, text, references)


def _write(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def list_problems(content: SchemaContent, dependencies: dict[str, SchemaContent] | None = None) -> list[str]:
    """Return the problems of an invalid schema."""
    with pytest.raises(SchemaError) as raised:
        parse_schema(content, dependencies)
    return [str(problem) for problem in raised.value.problems]


def list_messages(before: SchemaContent, after: SchemaContent) -> list[str]:
    """Return the messages of all differences."""
    return [difference.message for difference in describe_differences(before, after)]


def render_differences(before: SchemaContent, after: SchemaContent) -> str:
    """Return the differences for golden files, one per line."""
    return "".join(
        f"{difference.kind:22} {difference.path:24} {difference.message}\n"
        for difference in describe_differences(before, after)
    )
