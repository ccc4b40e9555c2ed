"""JSON Schemas of manifests and overlays."""

from collections.abc import Mapping

from pydantic.json_schema import JsonSchemaValue

from kdeclare.app.policies import RULES
from kdeclare.core.provider.registry import KINDS
from kdeclare.manifests.document_models import Declarable
from kdeclare.manifests.editor_schema import (
    DefaultsSchemaKind,
    build_json_schema,
    build_overlay_schema,
    collect_reachable,
    get_definition_name,
)
from kdeclare.policy.testing.cases import PolicyTestKind

DOCUMENT_MODELS = {
    "Project": "ProjectManifest",
    "Fleet": "FleetManifest",
    "AcceptedDrift": "AcceptedDriftManifest",
}
"""Kinds of documents that are not manifests of a project, and their models."""


def _find_declarable_kinds() -> Mapping[str, Declarable]:
    extra_kinds: tuple[Declarable, ...] = (DefaultsSchemaKind(KINDS), PolicyTestKind())
    return {**KINDS, **RULES, **{kind.name: kind for kind in extra_kinds}}


def list_schema_kinds() -> tuple[str, ...]:
    """List the kinds that have a schema."""
    return (*_find_declarable_kinds(), *DOCUMENT_MODELS)


def list_overlay_kinds() -> tuple[str, ...]:
    """List the kinds that overlays can change: the kinds of resources, but not policies or defaults."""
    return (*KINDS,)


def build_manifest_schema(kind: str | None) -> JsonSchemaValue:
    """Return the schema for manifests of one kind, or of all kinds if ``kind`` is None.

    Raises KeyError for an unknown kind.
    """
    if kind is None:
        return build_json_schema(_find_declarable_kinds())
    full_schema = build_json_schema({} if kind in DOCUMENT_MODELS else {kind: _find_declarable_kinds()[kind]})
    [kind_schema] = [a for a in full_schema["oneOf"] if DOCUMENT_MODELS.get(kind) == _find_document_model(a)]
    definitions = collect_reachable(kind_schema, full_schema["$defs"])
    head = {key: full_schema[key] for key in ("$schema", "$id", "title")}
    head["$id"] += f":{kind}"
    return {**head, **kind_schema, "$defs": definitions}


def build_overlay_file_schema(kind: str | None) -> JsonSchemaValue:
    """Return the schema for overlays of one kind, or of all kinds if ``kind`` is None.

    Raises KeyError for an unknown kind.
    """
    full_schema = build_json_schema(KINDS if kind is None else {kind: KINDS[kind]})
    resources = [
        alternative for alternative in full_schema["oneOf"] if _find_document_model(alternative) is None
    ]
    schema = build_overlay_schema(
        {**full_schema, "oneOf": resources, "$defs": collect_reachable(resources, full_schema["$defs"])}
    )
    return schema if kind is None else {**schema, "$id": f"{schema['$id']}:{kind}"}


def _find_document_model(alternative: JsonSchemaValue) -> str | None:
    name = get_definition_name(alternative)
    return name if name in DOCUMENT_MODELS.values() else None
