"""The JSON Schemas of manifests and of overlays."""

from collections.abc import Mapping

from kdeclare.app.policies import RULES
from kdeclare.core.jsontypes import Json
from kdeclare.core.registry import KINDS
from kdeclare.manifests.defaults_schema import DefaultsShape
from kdeclare.manifests.overlay_schema import overlay_of
from kdeclare.manifests.schema import definition_of, json_schema, reachable
from kdeclare.manifests.shapes import Declarable
from kdeclare.policy.testing.cases import PolicyTestKind

_SINGLES = {"Project": "ProjectManifest", "Fleet": "FleetManifest"}
"""Kinds of files that hold one document, and the models of those."""

_BESIDE: tuple[Declarable, ...] = (DefaultsShape(KINDS), PolicyTestKind())
_DECLARABLE: Mapping[str, Declarable] = {**KINDS, **RULES, **{kind.name: kind for kind in _BESIDE}}


def known_kinds() -> tuple[str, ...]:
    """What a schema can be had of."""
    return (*_DECLARABLE, *_SINGLES)


def overlaid_kinds() -> tuple[str, ...]:
    """What overlays can be of: resources; rules and defaults hold in all environments."""
    return (*KINDS,)


def manifest_schema(kind: str | None) -> Json:
    """The schema of one kind, or of all that a file can hold. Raises KeyError for an unknown kind."""
    if kind is None:
        return json_schema(_DECLARABLE)
    whole = json_schema({} if kind in _SINGLES else {kind: _DECLARABLE[kind]})
    [wanted] = [a for a in whole["oneOf"] if _SINGLES.get(kind) == _single(a)]
    definitions = reachable(wanted, whole["$defs"])
    head = {key: whole[key] for key in ("$schema", "title")}
    return head | wanted | {"$defs": definitions}


def overlay_schema(kind: str | None) -> Json:
    """The schema of overlays over resources of one kind, or of all. Raises KeyError for an unknown kind."""
    whole = json_schema(KINDS if kind is None else {kind: KINDS[kind]})
    resources = [alternative for alternative in whole["oneOf"] if _single(alternative) is None]
    return overlay_of({**whole, "oneOf": resources, "$defs": reachable(resources, whole["$defs"])})


def _single(alternative: Json) -> str | None:
    """The model that an alternative is, if it is that of a file."""
    name = definition_of(alternative)
    return name if name in _SINGLES.values() else None
