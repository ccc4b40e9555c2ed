"""Bring states of earlier format versions to the current one, one numbered step at a time.

A step takes the JSON of version N and returns that of version N + 1. It only rewrites what the file says;
what takes a look at the cluster (a topic's id, say) is filled in by the next apply.
"""

from collections.abc import Callable, Mapping

from kdeclare.core.jsontypes import Json

CURRENT = 3
"""The version that is written. An older kdeclare refuses it, because it would lose what it does not know."""

Document = Mapping[str, Json]


def migrate_state(document: Document, version: int) -> Document:
    """The document of format ``version`` in the current format. Raises KeyError for an unknown version."""
    while version != CURRENT:
        document = STEPS[version](document)
        version += 1
    return {**document, "version": version}


def mark_unproven_parts(record: Json) -> Json:
    """An owned record of kdeclare 0.1 with what it cannot prove: which list elements kdeclare added.

    Until version 2 a record of ``{append, subtract}`` said what the manifest declared, whether or not the
    elements were there before. Only elements that kdeclare added may be subtracted later, so none counts.
    """
    if not isinstance(record, Mapping) or not isinstance(record.get("configs"), Mapping):
        return record
    configs = {
        key: {**value, "added": []} if _is_unproven(value) else value
        for key, value in record["configs"].items()
    }
    return {**record, "configs": configs}


def _is_unproven(value: Json) -> bool:
    return isinstance(value, Mapping) and "append" in value and "added" not in value


def _add_leftovers(document: Document) -> Document:
    """Version 2 may hold ``leftovers``; without the field there are none."""
    return document


def _prove_parts(document: Document) -> Document:
    """Version 3 says of lists declared in part which elements kdeclare added."""
    resources = document.get("resources")
    if not isinstance(resources, Mapping):
        return document  # whoever decodes it says what is wrong
    return {**document, "resources": {name: mark_unproven_parts(r) for name, r in resources.items()}}


STEPS: Mapping[int, Callable[[Document], Document]] = {1: _add_leftovers, 2: _prove_parts}
