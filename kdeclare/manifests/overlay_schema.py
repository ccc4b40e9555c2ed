"""The schema of overlays: that of manifests, less what the manifest beneath has to say already."""

from typing import Any

from kdeclare.model.jsontypes import Json


def overlay_of(manifests: Json) -> Json:
    """The schema of documents that merge over those of ``manifests`` (a schema of some kinds of resources).

    Mappings are merged key by key, so none of their fields has to be there but kind and name. A list
    replaces the one beneath, so what stands in a list is whole.
    """
    definitions: dict[str, Json] = manifests["$defs"]
    documents = [_name(alternative) for alternative in manifests["oneOf"]]
    merged = _merged([*documents], definitions)
    stated = {**{name: ["kind", "metadata"] for name in documents}, "Metadata": ["name"]}
    found = {
        name: {**schema, "required": stated.get(name, [])} if name in merged else schema
        for name, schema in definitions.items()
    }
    return {**manifests, "title": "kdeclare overlay", "$defs": found}


def _merged(names: list[str], definitions: dict[str, Json]) -> set[str]:
    """The definitions that some mapping leads to, from document to field to field."""
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            names += _reached(definitions[name])
    return found


def _reached(schema: Any) -> list[str]:
    """What a schema refers to, but for the elements of lists."""
    if isinstance(schema, list):
        return [name for inner in schema for name in _reached(inner)]
    if not isinstance(schema, dict):
        return []
    here = [_name(schema)] if isinstance(schema.get("$ref"), str) else []
    return here + [name for key, inner in schema.items() if key != "items" for name in _reached(inner)]


def _name(reference: Json) -> str:
    name: str = reference["$ref"].rpartition("/")[2]
    return name
