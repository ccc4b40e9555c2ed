"""JSON Schemas of manifests, overlays and defaults for editors, built from the models that validate them."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema
from pydantic_core.core_schema import ModelSchema

from kdeclare.core.provider.provider_queries import find_plan_settings
from kdeclare.core.provider.registry import find_connection_settings, find_environment_settings
from kdeclare.core.resources.kind import Kind
from kdeclare.manifests.defaults import DEFAULTS, DefaultsKind, DefaultsSpec
from kdeclare.manifests.document_models import Declarable, build_envelope_model
from kdeclare.manifests.field_docs import find_field_doc
from kdeclare.manifests.fleet.accepted_drift_file import AcceptedDriftManifest
from kdeclare.manifests.fleet.fleet_file import build_fleet_model
from kdeclare.manifests.project_schema import build_project_model

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

MANIFEST_SCHEMA_ID = "urn:kdeclare:manifest:v1"
"""The ``$id`` of the schema of all manifests. It is a name, not an address, so no editor fetches it."""

OVERLAY_SCHEMA_ID = "urn:kdeclare:overlay:v1"
"""The ``$id`` of the schema of all overlays."""

_REFERENCE = "Reference"
_REFERENCE_TYPES = ("integer", "number", "boolean", "object", "array")
_FIELD_KEYWORDS = ("default", "description")
"""Schema keywords that describe a field, but do not restrict its value."""


class _DescribedSchemaGenerator(GenerateJsonSchema):
    """Generates schemas whose fields have descriptions, but no titles, which would repeat the field names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        return _describe_fields(schema["cls"], super().model_schema(schema))


def build_json_schema(kinds: Mapping[str, Declarable]) -> JsonSchemaValue:
    """Return one schema for project files, fleet files, accepted drift, and manifests of these kinds."""
    models: list[type[BaseModel]] = [build_envelope_model(kind) for kind in kinds.values()]
    models += [
        build_project_model(find_connection_settings(), find_plan_settings(), find_environment_settings()),
        build_fleet_model(find_connection_settings(), find_environment_settings()),
        AcceptedDriftManifest,
    ]
    mode: JsonSchemaMode = "validation"
    references, definitions = models_json_schema(
        [(model, mode) for model in models], schema_generator=_DescribedSchemaGenerator
    )
    schemas = {
        name: {key: _accept_references(value) for key, value in schema.items()}
        if "properties" in schema
        else _accept_references(schema)
        for name, schema in definitions["$defs"].items()
    }
    schemas[_REFERENCE] = {
        "type": "string",
        "pattern": r"^\$\{((var|env|file)\.[^{}:]+|each\.(key|value(\.[^{}:]+)?))\}$",
        "description": "${var.NAME}, ${env.NAME} or ${file.PATH}; with forEach, also ${each.key} or "
        "${each.value.FIELD}",
    }
    alternatives = [references[model, mode] for model in models]
    return {
        "$schema": _DIALECT,
        "$id": MANIFEST_SCHEMA_ID,
        "title": "kdeclare manifest",
        "oneOf": alternatives,
        "$defs": schemas,
    }


def get_definition_name(reference: JsonSchemaValue) -> str:
    """Return the name of the definition to which a schema refers (``$ref``)."""
    name: str = reference["$ref"].rpartition("/")[2]
    return name


def collect_reachable(
    schema: object, definitions: JsonSchemaValue, *, in_lists: bool = True
) -> dict[str, JsonSchemaValue]:
    """Return the definitions to which a schema refers directly or indirectly, by name.

    in_lists: whether to include definitions that are used only for the elements of lists.
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
    """Return the schema of a model, with descriptions for the fields that the model does not describe."""
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
    """Return a schema that also allows a reference (``${…}``) in place of each value that is not a string."""
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
    """Return the schema of overlays. manifests: the schema of manifests.

    An overlay requires only kind and name, because its mappings are merged key by key with the manifest. A
    list in an overlay replaces the list in the manifest, so the elements of the list must be complete.
    """
    definitions: dict[str, JsonSchemaValue] = manifests["$defs"]
    documents = map(get_definition_name, manifests["oneOf"])
    mergeable = collect_reachable(manifests["oneOf"], definitions, in_lists=False)
    required_fields = {**{name: ["kind", "metadata"] for name in documents}, "ManifestMetadata": ["name"]}
    schemas = {
        name: {**schema, "required": required_fields.get(name, [])} if name in mergeable else schema
        for name, schema in definitions.items()
    }
    return {**manifests, "$id": OVERLAY_SCHEMA_ID, "title": "kdeclare overlay", "$defs": schemas}


class DefaultsSchemaKind(DefaultsKind):
    """A `DefaultsKind` for the JSON Schema. Its model describes the fields of each kind.

    The model is not used to validate documents, because it is too strict for some valid documents.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        super().__init__(kinds)
        variants: Any = reduce(or_, (_build_variant(kind) for kind in kinds.values()))
        self.spec = create_model(
            f"{DEFAULTS}Spec", __base__=RootModel[Annotated[variants, Field(discriminator="kind")]]
        )


def _build_variant(kind: Kind) -> type[BaseModel]:
    """Return the model of the spec of Defaults for one kind.

    Defaults can omit fields that are required in manifests. If the kind has such fields, its model cannot be
    used for defaults, and any mapping is accepted.
    """
    has_required_field = any(field.is_required() for field in kind.spec.model_fields.values())
    kind_literal: Any = Literal[kind.name]
    fields: Any = dict[str, Any] if has_required_field else kind.spec
    return create_model(
        f"{DEFAULTS}Of{kind.name}", __base__=DefaultsSpec, kind=(kind_literal, ...), defaults=(fields, ...)
    )
