"""Find ad hoc changes to resources that manifests declare or kdeclare owns, and warn about them."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from kdeclare.app.authoring.write_back import find_declared_positions, read_project_sources
from kdeclare.app.plan import load_manifests
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, SourcePosition, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.fleet_capabilities import (
    encode_body,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, ManifestExclusion
from kdeclare.core.resources.manifest_capabilities import find_editable
from kdeclare.core.resources.owned_record import OwnedRecord, get_owned_labels
from kdeclare.engine.planning.adhoc import ClaimedChange, find_claimed_changes


@dataclass(frozen=True, slots=True)
class ResourceOwnership:
    """The resources that manifests declare or that kdeclare owns.

    declared: the declared resources, by id. owned: the records in the state, by resource id.
    unread: whether some manifests cannot be read.
    exclusions: for each resource whose manifest is excluded from the environment, the field that excludes it.
    """

    declared: Mapping[str, DesiredResource]
    owned: Mapping[str, OwnedRecord]
    unread: bool = False
    exclusions: Mapping[ResourceId, ManifestExclusion] = field(default_factory=dict)

    def with_labels(self, desired: Iterable[DesiredResource]) -> tuple[DesiredResource, ...]:
        """Return the resources with their labels, which policies need.

        The labels of a resource come from its manifest or, if there is none, from the state.
        """
        return tuple(replace(item, labels=self._find_labels(str(item.id))) for item in desired)

    def protected(self, removals: Iterable[ResourceId]) -> frozenset[ResourceId]:
        """Return the ``removals`` whose manifests set ``preventDestroy``, even if this is not applied yet."""
        return frozenset(id_ for id_ in removals if self._encode_declared(str(id_)).get("preventDestroy"))

    def _find_labels(self, resource: str) -> Mapping[str, str]:
        declaration = self.declared.get(resource)
        return declaration.labels if declaration else get_owned_labels(self.owned.get(resource))

    def _encode_declared(self, resource: str) -> Mapping[str, JsonValue]:
        declaration = self.declared.get(resource)
        return encode_body(declaration) if declaration else {}


def load_ownership(workspace: Workspace) -> ResourceOwnership:
    """Load the declared and owned resources. Raises KdeclareError if the state cannot be read."""
    state = workspace.store.read()
    owned_records = state.resources if state else {}
    if workspace.project.file is None:
        return ResourceOwnership({}, owned_records)
    manifests = load_manifests(workspace, ())
    return ResourceOwnership(
        {str(item.id): item for item in manifests.desired},
        owned_records,
        manifests.has_errors,
        manifests.exclusions,
    )


def warn_owned_changes(
    workspace: Workspace, plan: Plan, ownership: ResourceOwnership
) -> tuple[Diagnostic, ...]:
    """Return warnings about planned ad hoc changes to declared or owned resources.

    The warnings are shown before the user confirms the changes.
    """
    notices = (_build_unreadable_warning(),) if ownership.unread and plan.has_changes else ()
    claimed_changes = find_claimed_changes(plan.changes, ownership.declared.values(), ownership.owned)
    declared_changes = [item.change for item in claimed_changes if item.place]
    positions = (
        find_declared_positions(read_project_sources(workspace), declared_changes) if declared_changes else {}
    )
    return (
        *notices,
        *(
            _build_owned_warning(
                _with_field_position(item, positions), ownership.exclusions.get(item.change.id)
            )
            for item in claimed_changes
        ),
    )


def _with_field_position(
    claimed: ClaimedChange, positions: Mapping[tuple[ResourceId, str], SourcePosition]
) -> ClaimedChange:
    field_positions = (positions.get((claimed.change.id, path)) for path in claimed.fields)
    return replace(claimed, place=next((place for place in field_positions if place), claimed.place))


def _build_owned_warning(claimed: ClaimedChange, exclusion: ManifestExclusion | None = None) -> Diagnostic:
    change = claimed.change
    field_names = ", ".join(path.removeprefix("configs.") for path in claimed.fields)
    subject = f"{field_names} of {change.id}" if field_names else str(change.id)
    owner_words = (
        "is declared in a manifest" if claimed.place else "is still owned by kdeclare after an earlier apply"
    )
    consequence = {
        Action.CREATE: "The next 'kdeclare apply' changes the resource to match the manifest.",
        Action.DELETE: "The next 'kdeclare apply' creates the resource again.",
    }.get(change.action, "The next 'kdeclare apply' reverts this change.")
    if claimed.place is None:
        consequence = (
            f"{exclusion.field} excludes its manifest from this environment."
            if exclusion is not None
            else "No manifest declares the resource anymore."
        )
    return warning(
        "owned-by-manifests",
        "Resource is managed by kdeclare",
        f"{subject} {owner_words}. {consequence}",
        hint=_suggest_edit(change) if claimed.place else "",
        place=claimed.place or (exclusion.place if exclusion is not None else None),
        resource=str(change.id),
    )


def _suggest_edit(change: Change) -> str:
    """Return a hint that says how to make the same change in the manifest."""
    if find_editable(change.id.kind) is None:
        return "Change the manifest, too."
    return "Pass --write-manifest to write the change into the manifest."


def _build_unreadable_warning() -> Diagnostic:
    return warning(
        "manifests-unread",
        "Not all manifests can be read",
        "Some changes may affect resources that an unreadable manifest declares.",
        hint="Run kdeclare validate to see the errors in the manifests.",
    )
