"""The JSON Schemas of manifests and of overlays."""

from collections.abc import Mapping

from pydantic.json_schema import JsonSchemaValue

from kdeclare.app.policies import RULES
from kdeclare.core.provider.registry import KINDS
from kdeclare.manifests.editor_schema import DefaultsShape, definition_of, json_schema, overlay_of, reachable
from kdeclare.manifests.shapes import Declarable
from kdeclare.policy.testing.cases import PolicyTestKind

_SINGLES = {"Project": "ProjectManifest", "Fleet": "FleetManifest"}
"""Kinds of files that hold one document, and the models of those."""


def _find_declarable() -> Mapping[str, Declarable]:
    beside: tuple[Declarable, ...] = (DefaultsShape(KINDS), PolicyTestKind())
    return {**KINDS, **RULES, **{kind.name: kind for kind in beside}}


def known_kinds() -> tuple[str, ...]:
    """What a schema can be had of."""
    return (*_find_declarable(), *_SINGLES)


def overlaid_kinds() -> tuple[str, ...]:
    """What overlays can be of: resources; rules and defaults hold in all environments."""
    return (*KINDS,)


def manifest_schema(kind: str | None) -> JsonSchemaValue:
    """The schema of one kind, or of all that a file can hold. Raises KeyError for an unknown kind."""
    if kind is None:
        return json_schema(_find_declarable())
    whole = json_schema({} if kind in _SINGLES else {kind: _find_declarable()[kind]})
    [wanted] = [a for a in whole["oneOf"] if _SINGLES.get(kind) == _single(a)]
    definitions = reachable(wanted, whole["$defs"])
    head = {key: whole[key] for key in ("$schema", "title")}
    return {**head, **wanted, "$defs": definitions}


def overlay_schema(kind: str | None) -> JsonSchemaValue:
    """The schema of overlays over resources of one kind, or of all. Raises KeyError for an unknown kind."""
    whole = json_schema(KINDS if kind is None else {kind: KINDS[kind]})
    resources = [alternative for alternative in whole["oneOf"] if _single(alternative) is None]
    return overlay_of({**whole, "oneOf": resources, "$defs": reachable(resources, whole["$defs"])})


def _single(alternative: JsonSchemaValue) -> str | None:
    """The model that an alternative is, if it is that of a file."""
    name = definition_of(alternative)
    return name if name in _SINGLES.values() else None
