"""JSON documents that kdeclare prints and saves. Pydantic serializes the documents and derives their schemas.

Each document is a frozen dataclass whose fields are in the same order as in the JSON. A field that is
computed from other fields has ``init=False`` and is set in ``__post_init__``.

A published schema (docs/schemas) requires every field, except fields that kdeclare omits when they are empty,
and allows no additional fields. In a schema, a dataclass is named after its ``schema_name`` if it has one, or
after its class with ``Document`` appended.
"""

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from kdeclare.core.clock import format_second
from kdeclare.core.diagnostics import Diagnostic, sort_diagnostics
from kdeclare.core.jsontypes import JsonValue

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMAT_VERSION: Final = "1.0"

_Shape = TypeVar("_Shape")
_Dataclass = TypeVar("_Dataclass", bound="DataclassInstance")

_VERSION_SCHEMA = {"const": FORMAT_VERSION, "title": "Format Version", "type": "string"}


def format_time(moment: datetime) -> str:
    """Return a time in UTC as ISO 8601. Fractions of a second are included unless they are zero."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


Second = Annotated[datetime, PlainSerializer(format_second, return_type=str)]

Time = Annotated[datetime, PlainSerializer(format_time, return_type=str), Field(description="UTC, ISO 8601.")]

ResourceText = Annotated[str, Field(pattern=r"^[^/]+/.+$", description="Kind/name")]

PathText = Annotated[Path, PlainSerializer(str), WithJsonSchema({"type": "string"})]

Diagnostics = Annotated[
    tuple[Diagnostic, ...], PlainSerializer(sort_diagnostics, return_type=tuple[Diagnostic, ...])
]
"""Diagnostics, which are serialized in display order (see `sort_diagnostics`)."""


class _Opaque:
    """Hides the structure of a type from pydantic, which then accepts any value."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.any_schema()


Opaque = Annotated[_Shape, _Opaque()]
"""A value that is serialized according to its runtime type."""

Hidden = Annotated[_Shape, _Opaque(), Field(exclude=True)]
"""A value that is needed to render a document but is not part of the document's JSON."""


class OneOf:
    """Lists the allowed values of a string in the published schema."""

    def __init__(self, *allowed_values: str) -> None:
        self._allowed_values = allowed_values

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema) | {"enum": [*self._allowed_values]}


def build_document(document_type: type[_Dataclass], source: object, **overrides: object) -> _Dataclass:
    """Return a document built from the attributes of ``source``. Values in ``overrides`` take precedence."""
    copied_names = {
        field.name for field in fields(document_type) if field.init and hasattr(source, field.name)
    }
    return document_type(
        **{name: getattr(source, name) for name in copied_names - overrides.keys()}, **overrides
    )


def dump_document(value: object) -> dict[str, JsonValue]:
    """Return a dataclass as a JSON object. The first field is the format version."""
    document: dict[str, JsonValue] = _get_adapter(type(value)).dump_python(value, mode="json", by_alias=True)
    return {"format_version": FORMAT_VERSION, **document}


def publish_schemas(
    document_types: Mapping[str, type], *, name_enums: bool = False
) -> dict[str, JsonSchemaValue]:
    """Return the JSON Schemas (2020-12) of the documents, by name.

    ``docs/schemas`` contains the same schemas.

    name_enums: whether to define each enumeration once, under its name, instead of where it is used.
    """
    schema_header = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    titles = {name: {"title": f"kdeclare {name}, format {FORMAT_VERSION}"} for name in document_types}
    return {
        name: schema_header | _build_schema(shape, name_enums=name_enums) | titles[name]
        for name, shape in document_types.items()
    }


def parse_document(document_type: type[_Shape], text: str) -> _Shape:
    """Parse JSON into a dataclass. Raises ValueError if a value has the wrong type."""
    value = _get_adapter(document_type).validate_json(text, strict=True)
    if not isinstance(value, document_type):
        raise TypeError(f"expected a {document_type.__name__}, got a {type(value).__name__}")
    return value


_adapters: dict[type, TypeAdapter[object]] = {}
"""Pydantic adapters by document type, built on first use because building one takes several milliseconds."""


def _get_adapter(document_type: type) -> TypeAdapter[object]:
    if document_type not in _adapters:
        _adapters[document_type] = TypeAdapter(document_type)
    return _adapters[document_type]


def _build_schema(document_type: type, *, name_enums: bool) -> JsonSchemaValue:
    schema = _get_adapter(document_type).json_schema(mode="serialization", schema_generator=_PublishedSchema)
    definitions, references = {}, {}
    for name, definition in schema.pop("$defs", {}).items():
        if "enum" in definition and not name_enums:
            references[f"#/$defs/{name}"] = {key: definition[key] for key in ("enum", "type")}
        else:
            definitions[definition["title"]] = definition
            references[f"#/$defs/{name}"] = {"$ref": f"#/$defs/{definition['title']}"}
    if definitions:
        schema["$defs"] = {name: definitions[name] for name in sorted(definitions)}
    schema = _resolve_references(schema, references)
    if "format_version" not in schema["properties"]:  # `dump_document` adds this field to each dataclass
        schema["properties"] = {"format_version": _VERSION_SCHEMA, **schema["properties"]}
        schema["required"] = ["format_version", *schema["required"]]
    return schema


def _resolve_references(
    schema: JsonSchemaValue, references: Mapping[str, JsonSchemaValue]
) -> JsonSchemaValue:
    """Replace each ``$ref`` with its entry in ``references``.

    Also add a title to each property that does not refer to another schema.
    """
    resolved: JsonSchemaValue = {}
    for key, item in schema.items():
        if key == "$ref":
            resolved |= references[item]
        elif key in ("properties", "$defs"):
            resolved[key] = {name: _resolve_references(part, references) for name, part in item.items()}
        elif isinstance(item, dict):
            resolved[key] = _resolve_references(item, references)
        elif isinstance(item, list):
            resolved[key] = [
                _resolve_references(part, references) if isinstance(part, dict) else part for part in item
            ]
        else:
            resolved[key] = item
    for name, part in resolved.get("properties", {}).items():
        if any("$ref" in option for option in (part, *part.get("anyOf", ()))):
            part.pop("title", None)
        else:
            part.setdefault("title", name.replace("_", " ").title())
        resolved["properties"][name] = dict(sorted(part.items()))
    return dict(sorted(resolved.items()))


class _PublishedSchema(GenerateJsonSchema):
    """Generates schemas without default values, because documents contain all fields."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        base_schema, cls = super().dataclass_schema(schema), schema["cls"]
        summary = (getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
        name = cls.__name__
        title = getattr(cls, "schema_name", name if name.endswith("Document") else f"{name}Document")
        return base_schema | {"additionalProperties": False, "description": summary, "title": title}

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        if field["type"] == "dataclass-field":
            return field.get("serialization_exclude_if") is None
        return super().field_is_required(field, total)
