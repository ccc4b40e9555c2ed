"""Render JSON Schemas as tables of fields, with a section for each referenced object."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from scripts.reference.markdown import code, prose, table

Schema = Mapping[str, Any]
_LEFT_OUT = ("Reference",)
"""Types that the tables omit. A reference is accepted wherever a number or a boolean is accepted."""


def fields_table(schema: Schema, link: Mapping[str, str]) -> str:
    """Render a table of the fields of an object. link: links to the sections about other objects, by name."""
    required = schema.get("required", ())
    rows = (
        (code(name), _type(found, link), _default(found, name in required), _told(found))
        for name, found in schema.get("properties", {}).items()
    )
    return table(("field", "type", "default", "meaning"), rows)


def referred(schema: Schema, definitions: Mapping[str, Schema]) -> Iterator[str]:
    """Return the names of the objects that a schema refers to, directly or indirectly, nearest first."""
    seen: dict[str, None] = {}
    waiting = list(_names(schema))
    while waiting:
        name = waiting.pop(0)
        if name not in seen and name in definitions:
            seen[name] = None
            waiting += _names(definitions[name])
    return (name for name in seen if "properties" in definitions[name])


def _names(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield _name(schema)
        for inner in schema.values():
            yield from _names(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _names(inner)


def _name(reference: Schema) -> str:
    name: str = reference["$ref"].rpartition("/")[2]
    return name


def _type(schema: Schema, link: Mapping[str, str]) -> str:
    optional = schema.get("default", "") is None
    return " or ".join(dict.fromkeys(t for t in _types(schema, link) if t != "null" or not optional))


def _types(schema: Schema, link: Mapping[str, str]) -> Iterator[str]:
    """Yield the types and the constant values that a field accepts."""
    if "$ref" in schema:
        name = _name(schema)
        if name not in _LEFT_OUT:
            yield f"[{name}]({link[name]})" if name in link else code(name)
    elif alternatives := schema.get("anyOf") or schema.get("oneOf"):
        for alternative in alternatives:
            yield from _types(alternative, link)
    elif "const" in schema:
        yield code(_shown(schema["const"]))
    elif "enum" in schema:
        yield from (code(_shown(value)) for value in schema["enum"])
    elif isinstance(schema.get("type"), list):
        yield from schema["type"]
    elif schema.get("type") == "array":
        inner = _type(schema.get("items", {}), link)
        yield f"list of {inner}" if inner else "list"
    elif schema.get("type") == "object":
        more = schema.get("additionalProperties")
        inner = _type(more, link) if isinstance(more, Mapping) else ""
        yield f"map of {inner}" if inner else "map"
    else:
        yield f"{schema.get('type', 'any')}{_bounds(schema)}"


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" ({low:,} to {high:,})"
    return f" (from {low:,})" if low is not None else f" (to {high:,})" if high is not None else ""


def _default(schema: Schema, required: bool) -> str:
    if required:
        return "required"
    default = schema.get("default")
    says_more = default not in (None, [], "") and not isinstance(default, Mapping)
    return code(_shown(default)) if says_more else ""


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _told(schema: Schema) -> str:
    return prose(str(schema.get("description", "")))
