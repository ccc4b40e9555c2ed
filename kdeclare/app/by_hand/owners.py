"""Whose business a change by hand is, when it is not one's own."""

from collections.abc import Mapping
from dataclasses import replace

from kdeclare.app.plan import load_manifests
from kdeclare.app.workspace import Workspace
from kdeclare.app.write_back import declared_places, sources_of
from kdeclare.model.changes import Action
from kdeclare.model.diagnostics import Diagnostic, Place, warning
from kdeclare.model.ids import ResourceId
from kdeclare.model.plan import Plan
from kdeclare.planning.claimed import Claimed, claimed


def owner_notices(workspace: Workspace, plan: Plan) -> tuple[Diagnostic, ...]:
    """What of a plan by hand manifests speak of, said before anybody is asked.

    Nobody waits for manifests where a plan has no changes. Raises KdeclareError for a broken state.
    """
    state = workspace.store.read()
    owned = state.resources if state else {}
    if workspace.project.file is None or not plan.has_changes:
        return tuple(map(_owned, claimed(plan.changes, (), owned)))
    loaded = load_manifests(workspace, ())
    notices = () if not loaded.has_errors else (_unreadable(),)
    found = claimed(plan.changes, loaded.desired, owned)
    places = declared_places(sources_of(workspace), [item.change for item in found]) if found else {}
    return (*notices, *(_owned(_placed(item, places)) for item in found))


def _placed(found: Claimed, places: Mapping[tuple[ResourceId, str], Place]) -> Claimed:
    """With the place of the first field instead of the resource's."""
    exact = (places.get((found.change.id, path)) for path in found.fields)
    return replace(found, place=next((place for place in exact if place), found.place))


def _owned(found: Claimed) -> Diagnostic:
    change = found.change
    names = ", ".join(path.removeprefix("configs.") for path in found.fields)
    subject = f"{names} of {change.id}" if names else str(change.id)
    where = "is declared in a manifest" if found.place else "is owned by kdeclare, from an earlier apply"
    then = {
        Action.CREATE: "the next 'kdeclare apply' makes it what is declared there.",
        Action.DELETE: "the next 'kdeclare apply' creates it again.",
    }.get(change.action, "the next 'kdeclare apply' takes this change back.")
    if found.place is None:
        then = "no manifest declares it any more."
    return warning(
        "owned-by-manifests",
        "The manifests own this",
        f"{subject} {where}; {then}",
        hint="--write-manifest puts the change into the manifest." if found.place else "",
        place=found.place,
        resource=str(change.id),
    )


def _unreadable() -> Diagnostic:
    return warning(
        "manifests-unread",
        "Not all manifests can be read",
        "So it cannot be said of everything whether a manifest declares it.",
        hint="kdeclare validate says what is wrong with them.",
    )
