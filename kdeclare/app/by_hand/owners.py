"""Whose business a change by hand is, when it is not one's own."""

from kdeclare.app.plan import load_manifests
from kdeclare.app.workspace import Workspace
from kdeclare.model.changes import Action
from kdeclare.model.diagnostics import Diagnostic, warning
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
    return (*notices, *map(_owned, claimed(plan.changes, loaded.desired, owned)))


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
