"""The schema of overlays: that of manifests, less what the manifest beneath has to say already."""

from kdeclare.core.jsontypes import Json
from kdeclare.manifests.schema import definition_of, reachable


def overlay_of(manifests: Json) -> Json:
    """The schema of documents that merge over those of ``manifests`` (a schema of some kinds of resources).

    Mappings are merged key by key, so none of their fields has to be there but kind and name. A list
    replaces the one beneath, so what stands in a list is whole.
    """
    definitions: dict[str, Json] = manifests["$defs"]
    documents = map(definition_of, manifests["oneOf"])
    merged = reachable(manifests["oneOf"], definitions, in_lists=False)
    stated = {**{name: ["kind", "metadata"] for name in documents}, "Metadata": ["name"]}
    found = {
        name: {**schema, "required": stated.get(name, [])} if name in merged else schema
        for name, schema in definitions.items()
    }
    return {**manifests, "title": "kdeclare overlay", "$defs": found}
