"""Protect the resources that other projects own, according to their states at the same location.

The states are read only if the plan adopts, creates or deletes resources, because only these changes can
take a resource away from its owner.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from kdeclare.core.diagnostics import Diagnostic, denied, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.plans.state import State
from kdeclare.core.provider.registry import KINDS, list_cluster_sorts
from kdeclare.core.resources.adoption import SettingsLifecycle
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.fleet_capabilities import list_live_keys
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Difference, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord, UnboundRecord

OWNED_ELSEWHERE = "owned-elsewhere"
"""The code of diagnostics about resources that another project owns. A denial blocks the change."""

_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class OtherState:
    """The state of another project, or of this project in another environment.

    location: where the state is, for messages.
    """

    project: str
    env: str
    location: str
    state: State


ReadOtherStates = Callable[[], Sequence[OtherState]]


class _Owner(NamedTuple):
    """A resource in another state, with the project, the environment, and the location of that state."""

    project: str
    env: str
    location: str
    resource: ResourceId


def protect_owned_elsewhere(
    compared: Sequence[ResourceComparison], cluster_id: str, is_adopting: bool, read_states: ReadOtherStates
) -> list[ResourceComparison]:
    """Block the changes that take resources away from the projects that own them.

    A deletion is always blocked. An adoption or creation is blocked unless adoption is allowed. Settings of
    objects that always exist, such as the configs of a broker, are only reported: several projects can set
    different configs of one broker.

    cluster_id: the id of the cluster. Only states that belong to this cluster count.
    is_adopting: whether the plan adopts all existing resources (``--adopt``).
    """
    if not cluster_id or not any(map(_can_take_over, compared)):
        return list(compared)
    others = [other for other in read_states() if other.state.cluster_id == cluster_id]
    if not others:
        return list(compared)
    sorts = list_cluster_sorts()
    owners_by_key = _map_owners(others, sorts)
    return [_review(item, _find_owners(item, sorts, owners_by_key), is_adopting) for item in compared]


def _can_take_over(item: ResourceComparison) -> bool:
    return _is_new(item) or _is_deletion(item)


def _is_new(item: ResourceComparison) -> bool:
    return item.desired is not None and item.owned is None


def _is_deletion(item: ResourceComparison) -> bool:
    return item.change is not None and item.change.action is Action.DELETE


def _map_owners(others: Sequence[OtherState], sorts: Set[str]) -> Mapping[LiveKey, list[_Owner]]:
    """Return the resources in other states that each live object belongs to, by the key of the object."""
    owners_by_key: dict[LiveKey, list[_Owner]] = defaultdict(list)
    for other in others:
        for name, record in other.state.resources.items():
            resource = ResourceId.parse(name)
            for key in _list_keys(resource, None, record, sorts):
                owners_by_key[key].append(_Owner(other.project, other.env, other.location, resource))
    return owners_by_key


def _list_keys(
    resource: ResourceId, body: object | None, owned: OwnedRecord | None, sorts: Set[str]
) -> Iterator[LiveKey]:
    """Yield the keys of the live objects of a resource. sorts: the types of these objects."""
    if resource.kind not in KINDS or isinstance(owned, UnboundRecord):
        return
    yield from (key for key in list_live_keys(resource, body, owned) if key.sort in sorts)


def _find_owners(
    item: ResourceComparison, sorts: Set[str], owners_by_key: Mapping[LiveKey, list[_Owner]]
) -> list[_Owner]:
    body = item.desired.body if item.desired else None
    keys = dict.fromkeys(_list_keys(item.id, body, item.owned, sorts))
    return list(dict.fromkeys(owner for key in keys for owner in owners_by_key.get(key, ())))


def _review(item: ResourceComparison, owners: Sequence[_Owner], is_adopting: bool) -> ResourceComparison:
    """Report the other owners of a resource. A denial blocks the change and keeps the ownership record."""
    if not owners or (item.desired is None and not _is_deletion(item)):
        return item
    is_allowed = is_adopting or bool(item.desired and getattr(item.desired.body, "adopt", False))
    takes_over = _is_deletion(item) or (_is_new(item) and not is_allowed)
    is_blocked = takes_over and not _has_settings(item.id.kind)
    diagnostic = _report_owners(item, owners, is_blocked)
    difference = item.difference
    difference = replace(difference, diagnostics=(*difference.diagnostics, diagnostic))
    return replace(item, difference=_block(difference, item.owned) if is_blocked else difference)


def _block(difference: Difference, owned: OwnedRecord | None) -> Difference:
    change = difference.change
    if change is not None and not change.blocked:
        change = replace(change, blocked=OWNED_ELSEWHERE)
    return replace(difference, change=change, owned=owned)


def _has_settings(kind: str) -> bool:
    """Whether resources of a kind are settings of objects that always exist."""
    field = KINDS[kind].spec.model_fields.get("lifecycle")
    annotation = field.annotation if field is not None else None
    return isinstance(annotation, type) and issubclass(annotation, SettingsLifecycle)


def _report_owners(item: ResourceComparison, owners: Sequence[_Owner], is_blocked: bool) -> Diagnostic:
    names = [_describe(owner, item.id) for owner in owners]
    more = f", and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    verb = "is owned by" if item.owned is None else "is also owned by"
    detail = f"{item.id} {verb} {', '.join(names[:_MAX_NAMED])}{more}."
    place = item.desired.source if item.desired else item.change.source if item.change else None
    if _is_deletion(item):
        return (denied if is_blocked else warning)(
            OWNED_ELSEWHERE,
            "Another project owns the resource",
            f"{detail} A deletion would take the resource away from that project.",
            hint=f"Pass --forget {item.id} to stop managing it in this project."
            if item.desired is None and item.change is not None and item.change.source is None
            else "Remove the manifest, or release the resource in the other project.",
            place=place,
            resource=str(item.id),
        )
    return (denied if is_blocked else warning)(
        OWNED_ELSEWHERE,
        "Another project owns the resource",
        f"{detail} If both projects declare it, each apply can undo the changes of the other.",
        hint=f"To move the resource to this project, run 'kdeclare state transfer {owners[0].resource}' in "
        f"project '{owners[0].project}'. Otherwise, remove the manifest."
        if _is_new(item)
        else "Declare the resource in only one project, and release it in the other one with 'kdeclare state "
        f"rm {item.id}'.",
        place=place,
        resource=str(item.id),
    )


def _describe(owner: _Owner, resource: ResourceId) -> str:
    alias = "" if owner.resource == resource else f" as {owner.resource}"
    return f"project '{owner.project}' in environment '{owner.env}'{alias} (state: {owner.location})"
