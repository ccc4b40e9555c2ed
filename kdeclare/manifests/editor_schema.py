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
from kdeclare.manifests.document_models import Declarable, build_envelope_model
from kdeclare.manifests.field_docs import find_field_doc
from kdeclare.manifests.fleet.fleet_file import FleetManifest
from kdeclare.manifests.project import build_project_model

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "Reference"
_REFERENCE_TYPES = ("integer", "number", "boolean")
_FIELD_KEYWORDS = ("default", "description")
"""What a schema says of the field, whatever stands there."""


class _DescribedSchemaGenerator(GenerateJsonSchema):
    """With what fields are for, but without a title for each, which would only repeat its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        return _describe_fields(schema["cls"], super().model_schema(schema))


def build_json_schema(kinds: Mapping[str, Declarable]) -> JsonSchemaValue:
    """One schema for a document of any of the kinds, of rules too, or of kind Project or Fleet."""
    models: list[type[BaseModel]] = [build_envelope_model(kind) for kind in kinds.values()]
    models += [build_project_model(find_connection_settings(), find_plan_settings()), FleetManifest]
    mode: JsonSchemaMode = "validation"
    references, definitions = models_json_schema(
        [(model, mode) for model in models], schema_generator=_DescribedSchemaGenerator
    )
    schemas = {name: _accept_references(schema) for name, schema in definitions["$defs"].items()}
    schemas[_REFERENCE] = {
        "type": "string",
        "pattern": r"^\$\{(var|env|file)\.[^{}:]+\}$",
        "description": "${var.NAME}, ${env.NAME} or ${file.PATH}",
    }
    alternatives = [references[model, mode] for model in models]
    return {"$schema": _DIALECT, "title": "kdeclare manifest", "oneOf": alternatives, "$defs": schemas}


def get_definition_name(reference: JsonSchemaValue) -> str:
    """The name of the definition that a schema refers to."""
    name: str = reference["$ref"].rpartition("/")[2]
    return name


def collect_reachable(
    schema: object, definitions: JsonSchemaValue, *, in_lists: bool = True
) -> dict[str, JsonSchemaValue]:
    """The definitions that a schema refers to, however far, by name.

    in_lists: also what only elements of lists refer to.
    """
    reached: dict[str, JsonSchemaValue] = {}
    _add_reachable(schema, definitions, reached, () if in_lists else ("items",))
    return reached


def _add_reachable(
    schema: object,
    definitions: JsonSchemaValue,
    reached: dict[str, JsonSchemaValue],
    excluded_keys: Sequence[str],
) -> None:
    inner_schemas: Sequence[object] = schema if isinstance(schema, list) else ()
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str) and (name := get_definition_name(schema)) not in reached:
            reached[name] = definitions[name]
            _add_reachable(definitions[name], definitions, reached, excluded_keys)
        inner_schemas = [value for key, value in schema.items() if key not in excluded_keys]
    for inner_schema in inner_schemas:
        _add_reachable(inner_schema, definitions, reached, excluded_keys)


def _describe_fields(model: type[BaseModel], schema: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of a model with what its fields are for, where the model does not say so itself."""
    if "properties" not in schema:
        return schema
    descriptions = {name: find_field_doc(model, name) for name in schema["properties"]}
    properties = {
        name: field
        if "description" in field or not descriptions[name]
        else {**field, "description": descriptions[name]}
        for name, field in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _accept_references(schema: Any) -> Any:
    """Where a number or a truth value belongs, a reference to one may stand."""
    if isinstance(schema, list):
        return [_accept_references(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in _REFERENCE_TYPES:
        outer = {key: schema[key] for key in _FIELD_KEYWORDS if key in schema}
        inner = {key: value for key, value in schema.items() if key not in outer}
        return {"anyOf": [inner, {"$ref": f"#/$defs/{_REFERENCE}"}], **outer}
    return {key: _accept_references(value) for key, value in schema.items()}


def build_overlay_schema(manifests: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of documents that merge over those of ``manifests`` (a schema of some kinds of resources).

    Mappings are merged key by key, so none of their fields has to be there but kind and name. A list
    replaces the one beneath, so what stands in a list is whole.
    """
    definitions: dict[str, JsonSchemaValue] = manifests["$defs"]
    documents = map(get_definition_name, manifests["oneOf"])
    mergeable = collect_reachable(manifests["oneOf"], definitions, in_lists=False)
    required_fields = {**{name: ["kind", "metadata"] for name in documents}, "Metadata": ["name"]}
    schemas = {
        name: {**schema, "required": required_fields.get(name, [])} if name in mergeable else schema
        for name, schema in definitions.items()
    }
    return {**manifests, "title": "kdeclare overlay", "$defs": schemas}


class DefaultsSchemaKind(DefaultsKind):
    """Reads as `DefaultsKind`; its spec says more about the fields, and is too strict for them in part."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        super().__init__(kinds)
        variants: Any = reduce(or_, (_build_variant(kind) for kind in kinds.values()))
        self.spec = create_model(
            f"{DEFAULTS}Spec", __base__=RootModel[Annotated[variants, Field(discriminator="kind")]]
        )


def _build_variant(kind: Kind) -> type[BaseModel]:
    """Fields that have to be there in a manifest need not be in defaults, so they are left open."""
    has_required_field = any(field.is_required() for field in kind.spec.model_fields.values())
    kind_literal: Any = Literal[kind.name]
    fields: Any = dict[str, Any] if has_required_field else kind.spec
    return create_model(
        f"{DEFAULTS}Of{kind.name}", __base__=DefaultsSpec, kind=(kind_literal, ...), defaults=(fields, ...)
    )
