"""Whose business a change by hand is, when it is not one's own: what manifests declare, and what is owned."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kdeclare.app.authoring.write_back import declared_places, sources_of
from kdeclare.app.plan import load_manifests
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, Place, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.capabilities import encode_body
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.resources.owned_record import OwnedRecord, read_owned_labels
from kdeclare.engine.planning.adhoc import Claimed, find_claimed


@dataclass(frozen=True, slots=True)
class Owners:
    """declared: what manifests say, by resource. owned: the records of the state.

    unread: whether not all manifests can be read.
    """

    declared: Mapping[str, Desired]
    owned: Mapping[str, OwnedRecord]
    unread: bool = False

    def labelled(self, desired: Iterable[Desired]) -> tuple[Desired, ...]:
        """With the labels that the resources have, as policies go by them."""
        return tuple(replace(item, labels=self._labels(str(item.id))) for item in desired)

    def protected(self, removals: Iterable[ResourceId]) -> frozenset[ResourceId]:
        """Those that a manifest says must not be destroyed, whether it has been applied or not."""
        return frozenset(id_ for id_ in removals if self._stated(str(id_)).get("preventDestroy"))

    def _labels(self, resource: str) -> Mapping[str, str]:
        declared = self.declared.get(resource)
        return declared.labels if declared else read_owned_labels(self.owned.get(resource))

    def _stated(self, resource: str) -> Mapping[str, JsonValue]:
        declared = self.declared.get(resource)
        return encode_body(declared) if declared else {}


def owners_of(workspace: Workspace) -> Owners:
    """What manifests and the state say. Raises KdeclareError for a broken state."""
    state = workspace.store.read()
    owned = state.resources if state else {}
    if workspace.project.file is None:
        return Owners({}, owned)
    loaded = load_manifests(workspace, ())
    return Owners({str(item.id): item for item in loaded.desired}, owned, loaded.has_errors)


def owner_notices(workspace: Workspace, plan: Plan, owners: Owners) -> tuple[Diagnostic, ...]:
    """What of a plan by hand is somebody's business, said before anybody is asked."""
    notices = (_unreadable(),) if owners.unread and plan.has_changes else ()
    found = find_claimed(plan.changes, owners.declared.values(), owners.owned)
    declared = [item.change for item in found if item.place]
    places = declared_places(sources_of(workspace), declared) if declared else {}
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
