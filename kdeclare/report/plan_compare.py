"""How two plans differ, resource by resource."""

from collections.abc import Mapping
from dataclasses import dataclass

from kdeclare.core.jsontypes import Json


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """One thing that two plans say otherwise; None is "says nothing of it".

    resource: its id, or ``plan`` for what is said of the whole.
    path: a field (``configs.retention.ms``; a and b are then {op, before, after}), what is said of
    the change (``action``, ``reason`` …), or empty where only one plan changes the resource
    (a or b is then {action, reason, risk, fields}, with the paths of the fields).
    """

    resource: str
    path: str
    a: Json
    b: Json


def compare_plans(a: Mapping[str, Json], b: Mapping[str, Json]) -> list[PlanDifference]:
    """What plan document ``b`` does otherwise than ``a``, in the order of resources and paths.

    Places in files and the order of changes are no differences.
    """
    from deepdiff import DeepDiff  # takes a third of a second: only who compares waits for it

    left, right = _subject(a), _subject(b)
    for same in [id_ for id_, body in left.items() if id_ in right and right[id_] == body]:
        del left[same], right[same]  # deepdiff takes its time for thousands of equal ones
    found = {}
    for items in DeepDiff(left, right, view="tree", threshold_to_diff_deeper=0).values():
        for item in items:
            resource, *rest = item.path(output_format="list")
            path = str(rest[0]) if rest else ""
            found[resource, path] = _difference(left, right, resource, path)
    return sorted(found.values(), key=lambda d: (d.resource != "plan", d.resource, d.path))


def _difference(
    left: Mapping[str, Json], right: Mapping[str, Json], resource: str, path: str
) -> PlanDifference:
    a, b = left.get(resource), right.get(resource)
    if path:
        return PlanDifference(resource, path, a and a.get(path), b and b.get(path))
    return PlanDifference(resource, "", _in_short(a), _in_short(b))


def _in_short(body: Json) -> Json:
    if body is None:
        return None
    said = {key: body[key] for key in ("action", "reason", "risk")}
    return said | {"fields": [key for key, value in body.items() if isinstance(value, dict)]}


def _subject(document: Mapping[str, Json]) -> dict[str, Json]:
    """What is compared: changes by resource, their fields by path."""
    head = {key: document[key] for key in ("project", "env", "undoes")}
    subject: dict[str, Json] = {"plan": head | {"cluster": document["cluster"]["id"]}}
    for change in document["changes"]:
        body = {key: change[key] for key in ("action", "reason", "risk")}
        body["blocked"] = change.get("blocked")
        for field in change["fields"]:
            body[field["path"]] = {key: field[key] for key in ("op", "before", "after")}
        subject[change["id"]] = body
    return subject
