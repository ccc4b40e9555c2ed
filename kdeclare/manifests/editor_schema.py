"""The JSON Schemas that editors use, made from the models that validate: manifests, overlays, defaults."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema
from pydantic_core.core_schema import ModelSchema

from kdeclare.core.provider.registry import find_connection_settings, find_plan_settings
from kdeclare.core.resources.kind import Kind
from kdeclare.manifests.defaults import DEFAULTS, DefaultsKind, DefaultsSpec
from kdeclare.manifests.field_docs import find_field_doc
from kdeclare.manifests.fleet.fleet_file import FleetManifest
from kdeclare.manifests.project import project_model
from kdeclare.manifests.shapes import Declarable, envelope

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "Reference"
_SUBSTITUTED = ("integer", "number", "boolean")
_OF_FIELDS = ("default", "description")
"""What a schema says of the field, whatever stands there."""


class _Described(GenerateJsonSchema):
    """With what fields are for, but without a title for each, which would only repeat its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        return _describe_fields(schema["cls"], super().model_schema(schema))


def json_schema(kinds: Mapping[str, Declarable]) -> JsonSchemaValue:
    """One schema for a document of any of the kinds, of rules too, or of kind Project or Fleet."""
    models: list[type[BaseModel]] = [envelope(kind) for kind in kinds.values()]
    models += [project_model(find_connection_settings(), find_plan_settings()), FleetManifest]
    mode: JsonSchemaMode = "validation"
    references, definitions = models_json_schema(
        [(model, mode) for model in models], schema_generator=_Described
    )
    found = {name: _or_reference(schema) for name, schema in definitions["$defs"].items()}
    found[_REFERENCE] = {
        "type": "string",
        "pattern": r"^\$\{(var|env|file)\.[^{}:]+\}$",
        "description": "${var.NAME}, ${env.NAME} or ${file.PATH}",
    }
    alternatives = [references[model, mode] for model in models]
    return {"$schema": _DIALECT, "title": "kdeclare manifest", "oneOf": alternatives, "$defs": found}


def definition_of(reference: JsonSchemaValue) -> str:
    """The name of the definition that a schema refers to."""
    name: str = reference["$ref"].rpartition("/")[2]
    return name


def reachable(
    schema: object, definitions: JsonSchemaValue, *, in_lists: bool = True
) -> dict[str, JsonSchemaValue]:
    """The definitions that a schema refers to, however far, by name.

    in_lists: also what only elements of lists refer to.
    """
    found: dict[str, JsonSchemaValue] = {}
    _reach(schema, definitions, found, () if in_lists else ("items",))
    return found


def _reach(
    schema: object, definitions: JsonSchemaValue, found: dict[str, JsonSchemaValue], without: Sequence[str]
) -> None:
    inner: Sequence[object] = schema if isinstance(schema, list) else ()
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str) and (name := definition_of(schema)) not in found:
            found[name] = definitions[name]
            _reach(definitions[name], definitions, found, without)
        inner = [value for key, value in schema.items() if key not in without]
    for part in inner:
        _reach(part, definitions, found, without)


def _describe_fields(model: type[BaseModel], schema: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of a model with what its fields are for, where the model does not say so itself."""
    if "properties" not in schema:
        return schema
    words = {name: find_field_doc(model, name) for name in schema["properties"]}
    described = {
        name: field if "description" in field or not words[name] else {**field, "description": words[name]}
        for name, field in schema["properties"].items()
    }
    return {**schema, "properties": described}


def _or_reference(schema: Any) -> Any:
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


def overlay_of(manifests: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of documents that merge over those of ``manifests`` (a schema of some kinds of resources).

    Mappings are merged key by key, so none of their fields has to be there but kind and name. A list
    replaces the one beneath, so what stands in a list is whole.
    """
    definitions: dict[str, JsonSchemaValue] = manifests["$defs"]
    documents = map(definition_of, manifests["oneOf"])
    merged = reachable(manifests["oneOf"], definitions, in_lists=False)
    stated = {**{name: ["kind", "metadata"] for name in documents}, "Metadata": ["name"]}
    found = {
        name: {**schema, "required": stated.get(name, [])} if name in merged else schema
        for name, schema in definitions.items()
    }
    return {**manifests, "title": "kdeclare overlay", "$defs": found}


class DefaultsShape(DefaultsKind):
    """Reads as `DefaultsKind`; its spec says more about the fields, and is too strict for them in part."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        super().__init__(kinds)
        variants: Any = reduce(or_, (_variant(kind) for kind in kinds.values()))
        self.spec = create_model(
            f"{DEFAULTS}Spec", __base__=RootModel[Annotated[variants, Field(discriminator="kind")]]
        )


def _variant(kind: Kind) -> type[BaseModel]:
    """Fields that have to be there in a manifest need not be in defaults, so they are left open."""
    needs_some = any(field.is_required() for field in kind.spec.model_fields.values())
    only: Any = Literal[kind.name]
    fields: Any = dict[str, Any] if needs_some else kind.spec
    return create_model(
        f"{DEFAULTS}Of{kind.name}", __base__=DefaultsSpec, kind=(only, ...), defaults=(fields, ...)
    )
