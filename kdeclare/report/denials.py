"""What is denied of a resource while the rest of it is done: topics of a move of several."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from kdeclare.core.changes import FieldChange
from kdeclare.core.diagnostics import Severity
from kdeclare.core.plan import Plan
from kdeclare.providers.kafka.reassignment.diff import PREFIX


def topics_denied(plan: Plan) -> Mapping[str, Collection[str]]:
    """The topics that policies deny, by resource; without what is blocked as a whole."""
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
    topics, whole = topics_denied(plan), set(guarded(plan))
    return {
        name: {f.path for f in change.fields if _is_denied(f, topics.get(name, ()), name in whole)}
        for change in plan.changes
        if (name := str(change.id)) in topics or name in whole
    }


def _is_denied(field: FieldChange, topics: Collection[str], whole: bool) -> bool:
    if not field.path.startswith(PREFIX):
        return False
    return whole or field.path.removeprefix(PREFIX).rpartition("-")[0] in topics


def _blocked(plan: Plan) -> set[str]:
    return {str(change.id) for change in plan.changes if change.blocked}
