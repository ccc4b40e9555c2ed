"""That edited manifests, loaded again, say what was wanted, and of everything else what they said before."""

from collections.abc import Iterable

from kdeclare.core.capabilities import find_editable
from kdeclare.core.changes import Action, Change
from kdeclare.core.diagnostics import UNKNOWN_SETTING, Diagnostic, KdeclareError, Place, error, gist
from kdeclare.core.ids import ResourceId
from kdeclare.core.kind import Desired
from kdeclare.manifests.load import Loaded


def check_outcome(before: Loaded, after: Loaded, changes: Iterable[Change]) -> None:
    """Raises KdeclareError (``not-as-wanted``) unless the edits do what ``changes`` say and no more."""
    known = {_key(problem) for problem in before.diagnostics}
    # whether there is a key that the catalogue does not know is for the cluster to say, and it took it
    new = [d for d in after.diagnostics if d.is_error and d.code != UNKNOWN_SETTING and _key(d) not in known]
    if new:
        raise KdeclareError(_refused(f"The manifests would be wrong: {gist(new)}", new[0]))
    were, are = ({item.id: item for item in loaded.desired} for loaded in (before, after))
    by_id = {change.id: change for change in changes}
    for resource in {**were, **are, **by_id}:
        if not _is_as_wanted(were.get(resource), are.get(resource), by_id.get(resource)):
            detail = f"{resource} would not be declared as wanted if the manifests were edited."
            raise KdeclareError(_refused(detail, None, resource))


def _is_as_wanted(was: Desired | None, now: Desired | None, change: Change | None) -> bool:
    if change is None:
        return was is not None and now is not None and (was.body, was.labels) == (now.body, now.labels)
    if change.action is Action.DELETE:
        return now is None
    if now is None or (was is not None and was.labels != now.labels):
        return False
    kind = find_editable(now.id.kind)
    before = was.body if was is not None else None
    return kind is not None and kind.is_as_changed(now.id.name, before, now.body, change)


def _key(problem: Diagnostic) -> tuple[str, str | None, str | None]:
    return problem.code, problem.resource, problem.subject


def _refused(detail: str, found: Diagnostic | None, resource: ResourceId | None = None) -> Diagnostic:
    place: Place | None = found.place if found is not None else None
    return error(
        "not-as-wanted",
        "Manifests not written",
        detail,
        hint="Change them by hand; kdeclare plan shows what is left to do.",
        place=place,
        resource=str(resource) if resource is not None else found.resource if found is not None else None,
    )
