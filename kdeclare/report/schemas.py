"""JSON Schemas of documents that are described as TypedDicts."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter


def schemas_of(shapes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The JSON Schemas (2020-12) by name; ``docs/schemas/NAME.schema.json`` are their texts."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {
        name: head | TypeAdapter(shape).json_schema() | {"title": f"kdeclare {name}, format 1.0"}
        for name, shape in shapes.items()
    }
