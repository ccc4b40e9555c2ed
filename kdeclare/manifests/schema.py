"""The JSON Schema of manifests, which editors use; made from the same models that validate them."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema

from kdeclare.core.jsontypes import Json
from kdeclare.core.registry import find_connection_settings, find_plan_settings
from kdeclare.manifests.field_docs import field_doc
from kdeclare.manifests.fleet.spec import FleetManifest
from kdeclare.manifests.project import project_model
from kdeclare.manifests.shapes import Declarable, envelope

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "Reference"
_SUBSTITUTED = ("integer", "number", "boolean")
_OF_FIELDS = ("default", "description")
"""What a schema says of the field, whatever stands there."""


class _Untitled(GenerateJsonSchema):
    """Without a title for every field, which would only repeat its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema(kinds: Mapping[str, Declarable]) -> Json:
    """One schema for a document of any of the kinds, of rules too, or of kind Project or Fleet."""
    models: list[type[BaseModel]] = [envelope(kind.name, kind.spec) for kind in kinds.values()]
    models += [project_model(find_connection_settings(), find_plan_settings()), FleetManifest]
    mode: JsonSchemaMode = "validation"
    references, definitions = models_json_schema(
        [(model, mode) for model in models], schema_generator=_Untitled
    )
    found = {name: _told(name, _or_reference(schema)) for name, schema in definitions["$defs"].items()}
    found[_REFERENCE] = {
        "type": "string",
        "pattern": r"^\$\{(var|env|file)\.[^{}:]+\}$",
        "description": "${var.NAME}, ${env.NAME} or ${file.PATH}",
    }
    alternatives = [references[model, mode] for model in models]
    return {"$schema": _DIALECT, "title": "kdeclare manifest", "oneOf": alternatives, "$defs": found}


def definition_of(reference: Json) -> str:
    """The name of the definition that a schema refers to."""
    name: str = reference["$ref"].rpartition("/")[2]
    return name


def reachable(schema: Json, definitions: Json, *, in_lists: bool = True) -> dict[str, Json]:
    """The definitions that a schema refers to, however far, by name.

    in_lists: also what only elements of lists refer to.
    """
    found: dict[str, Json] = {}
    _reach(schema, definitions, found, () if in_lists else ("items",))
    return found


def _reach(schema: Json, definitions: Json, found: dict[str, Json], without: Sequence[str]) -> None:
    inner = schema if isinstance(schema, list) else ()
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str) and (name := definition_of(schema)) not in found:
            found[name] = definitions[name]
            _reach(definitions[name], definitions, found, without)
        inner = [value for key, value in schema.items() if key not in without]
    for part in inner:
        _reach(part, definitions, found, without)


def _told(model: str, schema: Json) -> Json:
    """The schema of a model with what each of its fields is for, as far as somebody has said so."""
    if "properties" not in schema:
        return schema
    words = {name: field_doc(model, name) for name in schema["properties"]}
    told = {n: {**f, "description": words[n]} if words[n] else f for n, f in schema["properties"].items()}
    return {**schema, "properties": told}


def _or_reference(schema: Json) -> Json:
    """Where a number or a truth value belongs, a reference to one may stand."""
    if isinstance(schema, list):
        return [_or_reference(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in _SUBSTITUTED:
        outer = {key: schema[key] for key in _OF_FIELDS if key in schema}
        inner = {key: value for key, value in schema.items() if key not in outer}
        return {"anyOf": [inner, {"$ref": f"#/$defs/{_REFERENCE}"}], **outer}
    return {key: _or_reference(value) for key, value in schema.items()}
