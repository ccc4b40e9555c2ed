"""Find the resources of a project that manage a live object.

The key of the live object can differ from the name of the resource. For example, the key of a connector
contains its Connect cluster, and each element of an Acl resource has its own key.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kdeclare.app.policies import RULES
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.plans.state import State
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.fleet_capabilities import (
    find_live_key,
    is_fleet_comparable,
    is_set_like,
    list_elements,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord, UnboundRecord
from kdeclare.fleet.history.finding_history import FindingSubject
from kdeclare.fleet.history.object_history import ObjectVersion, list_element_fields
from kdeclare.manifests.load_manifests import find_manifests_of, load_project_manifests


@dataclass(frozen=True, slots=True)
class ObjectResources:
    """The names of the resources that manage a live object.

    is_complete: False if a resource of the kind may manage the object although it is not in ``names``.
    """

    names: frozenset[str]
    is_complete: bool

    def merge(self, other: "ObjectResources") -> "ObjectResources":
        """Combine the names in both objects. The result is complete only if both objects are complete."""
        return ObjectResources(self.names | other.names, self.is_complete and other.is_complete)


def find_by_key(key: LiveKey) -> ObjectResources:
    """Return the resource whose name is the key of the object.

    Audits use this name in findings about undeclared objects. The result is complete if the name of
    every resource of the kind is the key of its object.
    """
    return ObjectResources(
        frozenset({key.key}), is_object_of(ResourceId(key.sort, key.key), key, None) is True
    )


def build_subject(
    cluster: str, key: LiveKey, resources: ObjectResources, versions: Iterable[ObjectVersion]
) -> FindingSubject:
    """Build the query for the findings about an object. versions: the object in each snapshot."""
    elements = list_element_fields(key.sort, versions) if is_set_like(key.sort) else None
    return FindingSubject(cluster, key.sort, resources.names, elements)


def find_by_records(key: LiveKey, records: Mapping[ResourceId, Sequence[OwnedRecord]]) -> ObjectResources:
    """Return the resources that manage an object according to ownership records.

    Records of other kinds of resources are ignored.
    """
    found = {
        id_: [is_object_of(id_, key, record) for record in some]
        for id_, some in records.items()
        if id_.kind == key.sort
    }
    names = frozenset(id_.name for id_, answers in found.items() if True in answers)
    return ObjectResources(names, all(None not in answers for answers in found.values()))


def find_by_manifests(workspace: Workspace, key: LiveKey, state: State | None) -> ObjectResources:
    """Return the resources that the manifests declare for an object.

    The result is incomplete if manifests have errors.
    """
    owned = state.resources if state is not None else {}
    names, is_complete = set(), True
    try:
        declared = list(_list_declared(workspace, key.sort))
    except KdeclareError:
        return ObjectResources(frozenset(), is_complete=False)
    for item in declared:
        answer = is_object_of(item.id, key, owned.get(str(item.id)), item.body)
        is_complete = is_complete and answer is not None
        if answer:
            names.add(item.id.name)
    return ObjectResources(frozenset(names), is_complete)


def is_object_of(
    resource: ResourceId, key: LiveKey, owned: OwnedRecord | None, body: object | None = None
) -> bool | None:
    """Whether a resource of the kind ``key.sort`` manages the live object ``key``; None if unknown.

    owned, body: the ownership record and the declared body of the resource; None if unknown.
    """
    if isinstance(owned, UnboundRecord) or not is_fleet_comparable(resource.kind):
        return None
    if is_set_like(resource.kind):
        if owned is None and body is None:
            return None
        return key in list_element_keys(resource, owned, body)
    own_key = find_live_key(resource, body, owned)
    return None if own_key is None else own_key == key


def list_element_keys(
    resource: ResourceId, owned: OwnedRecord | None, body: object | None = None
) -> Collection[LiveKey]:
    """Return the key of each element if the resource is a set, such as an Acl; empty for other resources."""
    if isinstance(owned, UnboundRecord):
        return ()
    return {element.key for element in list_elements(resource, body, owned) or ()}


def _list_declared(workspace: Workspace, kind: str) -> Iterator[DesiredResource]:
    """Yield the declared resources of a kind. Secrets are not resolved, because keys do not contain them."""
    project = workspace.project
    paths = find_manifests_of(project, [kind])
    if not paths:
        return
    loaded = load_project_manifests(project, paths, KINDS, workspace.environ, rules=RULES)
    if loaded.has_errors:
        raise KdeclareError(*loaded.diagnostics)
    yield from (item for item in loaded.desired if item.id.kind == kind)
