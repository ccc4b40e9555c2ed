"""Bring plan documents of earlier formats to the current one, one numbered step at a time.

A migrated plan can be shown and rolled back. It is never applied: it was made by rules that no longer hold
(see `PlanFile.is_outdated`).
"""

from collections.abc import Callable, Mapping

from kdeclare.core.jsontypes import Json
from kdeclare.core.plan import FORMAT_VERSION
from kdeclare.engine.state.migrations import mark_unproven_parts

Document = Mapping[str, Json]


def migrate_plan(document: Document) -> dict[str, Json]:
    """A document of a format in `STEPS` in the current format; its ``plan_id`` stays as it is.

    Expects what kdeclare wrote (the id was checked); raises KeyError, TypeError or AttributeError for
    another shape.
    """
    while (version := document["format_version"]) != FORMAT_VERSION:
        target, step = STEPS[version]
        document = {**step(document), "format_version": target}
    return dict(document)


def _tell_risks_apart(document: Document) -> Document:
    """2.0 has a risk per field, and says which list elements kdeclare added.

    1.0 knew only the highest risk of a whole change, so that is what each of its fields gets: too much
    rather than too little.
    """
    return {
        **document,
        "max_deletes": None,
        "changes": [_with_risks(change) for change in document["changes"]],
        "ownership": [
            {**item, **{side: mark_unproven_parts(item[side]) for side in ("before", "after")}}
            for item in document["ownership"]
        ],
    }


def _with_risks(change: Document) -> Document:
    inherited = {"risk": change["risk"], "cause": "", "reason": change["reason"]}
    fields = [{**item, **inherited} for item in change["fields"]]
    return {**change, "risks": [change["risk"]], "fields": fields}


STEPS: Mapping[str, tuple[str, Callable[[Document], Document]]] = {"1.0": ("2.0", _tell_risks_apart)}
