"""What is denied of a resource while the rest of it is done: topics of a move of several."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from kdeclare.core.changes import Change, FieldChange
from kdeclare.core.diagnostics import Severity
from kdeclare.core.plan import Plan
from kdeclare.core.policy_subjects import find_field_subject


def subjects_denied(plan: Plan) -> Mapping[str, Collection[str]]:
    """What policies deny within resources, as verdicts name it; without what is blocked as a whole."""
    blocked = _blocked(plan)
    found: dict[str, set[str]] = defaultdict(set)
    for verdict in plan.verdicts:
        if verdict.denies and verdict.topic is not None and verdict.resource not in blocked:
            found[verdict.resource].add(verdict.topic)
    return found


def guarded(plan: Plan) -> list[str]:
    """The resources of changes that a guard denies and something is left of, one for each denial."""
    acting = {str(change.id) for change in plan.changes} - _blocked(plan)
    denials = (d.resource for d in plan.diagnostics if d.severity is Severity.DENIED)
    return [resource for resource in denials if resource in acting]


def fields_denied(plan: Plan) -> Mapping[str, Collection[str]]:
    """The paths of the fields that will stay as they are, by resource; without what is blocked as a whole."""
    subjects, whole = subjects_denied(plan), set(guarded(plan))
    return {
        name: {f.path for f in change.fields if _is_denied(change, f, subjects.get(name, ()), name in whole)}
        for change in plan.changes
        if (name := str(change.id)) in subjects or name in whole
    }


def _is_denied(change: Change, field: FieldChange, subjects: Collection[str], whole: bool) -> bool:
    subject = find_field_subject(change.id.kind, field.path)
    return subject is not None and (whole or subject in subjects)


def _blocked(plan: Plan) -> set[str]:
    return {str(change.id) for change in plan.changes if change.blocked}
