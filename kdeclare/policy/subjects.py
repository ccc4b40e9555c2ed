"""The kinds that policies can check, and the input data of policies."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Selections, WaitPolicy
from kdeclare.core.parts import Connections, LiveState, SharedReads
from kdeclare.core.plans.plan import Ownership
from kdeclare.core.plans.policy_gate import Labels
from kdeclare.core.policies.policy_request import LabelSet, PolicyAction, PolicyEffect
from kdeclare.core.policies.policy_subjects import (
    ListedForPolicies,
    MakesPolicyRequests,
    PolicySubject,
    Review,
    ReviewInputs,
)
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.fleet_capabilities import find_live_key
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Kind
from kdeclare.core.resources.owned_record import OwnedRecord, get_owned_labels
from kdeclare.engine.observation import observe_owned
from kdeclare.manifests.policies import TOPIC
from kdeclare.policy.plain_requests import PlainSubjects, select_known

LabelsById = Mapping[ResourceId, LabelSet]


@cache
def _find_policy_subjects(kind: Kind) -> MakesPolicyRequests | None:
    if isinstance(kind, MakesPolicyRequests):
        return kind
    return PlainSubjects(kind, kind) if isinstance(kind, PolicySubject) else None


def get_policy_subjects(kind: str) -> MakesPolicyRequests:
    """Return the object that creates policy requests for a kind.

    Raises LookupError if policies do not support the kind.
    """
    resource_kind = KINDS.get(kind)
    subjects = _find_policy_subjects(resource_kind) if resource_kind is not None else None
    if subjects is None:
        raise LookupError(f"policies cannot check resources of kind {kind}")
    return subjects


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """The input data of policies: connections, live state, and declared and owned resources.

    live: the live state for ``selections``, or None if it has not been read yet.
    labels: the labels of each resource after the change.
    applied: the labels of each resource when it was last applied.
    shared_reads: the data that other steps of the same plan have read.
    """

    connections: Connections
    live: LiveState | None = None
    selections: Selections = ()
    desired: Mapping[ResourceId, DesiredResource] = field(default_factory=dict)
    owned: Mapping[ResourceId, OwnedRecord] = field(default_factory=dict)
    labels: LabelsById = field(default_factory=dict)
    applied: LabelsById = field(default_factory=dict)
    shared_reads: SharedReads = field(default_factory=SharedReads, compare=False)

    def start_review(
        self,
        kind: str,
        subjects: Mapping[PolicyAction, list[str]],
        effects: Mapping[str, Sequence[PolicyEffect]] | None = None,
    ) -> Review:
        """Return a `Review`, which creates the policy requests for resources of one kind.

        subjects: the names of the resources to check, by action. effects: the planned effects on these
            resources, by name.
        """
        return get_policy_subjects(kind).start_review(
            ReviewInputs(
                self.connections,
                subjects,
                self.live,
                self.selections,
                {id_.name: found for id_, found in self.labels.items() if id_.kind == kind},
                {id_.name: found for id_, found in self.applied.items() if id_.kind == kind},
                {id_.name: found for id_, found in self.desired.items() if id_.kind == kind},
                {id_.name: found for id_, found in self.owned.items() if id_.kind == kind},
                effects or {},
                self.shared_reads,
            )
        )


def read_existing(
    kinds: Iterable[str], context: PolicyContext
) -> tuple[LiveState, Selections, tuple[ResourceId, ...]]:
    """Read all resources of these kinds, and return their live state, the selections, and the resource ids.

    If a kind cannot list its resources, only declared and owned resources are read. Raises Fault if a system
    does not respond.
    """
    kinds_by_name = {name: KINDS[name] for name in kinds}
    selections = tuple(s for kind in kinds_by_name.values() for s in _select_existing(kind, context))
    live = observe_owned(context.connections, selections, (), WaitPolicy()).live
    names = {name: sorted(_find_existing_names(kind, live, context)) for name, kind in kinds_by_name.items()}
    return live, selections, tuple(ResourceId(kind, name) for kind, found in names.items() for name in found)


def _filter_known(
    kind: Kind, context: PolicyContext
) -> tuple[dict[str, DesiredResource], dict[str, OwnedRecord]]:
    desired = {id_.name: found for id_, found in context.desired.items() if id_.kind == kind.name}
    return desired, {id_.name: record for id_, record in context.owned.items() if id_.kind == kind.name}


def _select_existing(kind: Kind, context: PolicyContext) -> Selections:
    if isinstance(kind, ListedForPolicies):
        return kind.select_every()
    desired, owned = _filter_known(kind, context)
    return select_known(kind, desired.keys() | owned.keys(), desired, owned)


def _find_existing_names(kind: Kind, live: LiveState, context: PolicyContext) -> Collection[str]:
    desired, owned = _filter_known(kind, context)
    if isinstance(kind, ListedForPolicies):
        return _resolve_names(kind, kind.list_live(live), desired, owned)
    names = desired.keys() | owned.keys()
    if not isinstance(kind, PolicySubject):
        return names
    return PlainSubjects(kind, kind).find_existing(names, desired, live, owned)


def _resolve_names(
    kind: Kind,
    keys: Collection[str],
    desired: Mapping[str, DesiredResource],
    owned: Mapping[str, OwnedRecord],
) -> Collection[str]:
    """Convert the keys of live objects to resource names.

    keys: the keys of the live objects. The key and the name of a declared or owned resource can differ.
    """
    names = set(keys)
    for name in (*desired, *(owned.keys() - desired.keys())):
        body = desired[name].body if name in desired else None
        key = find_live_key(ResourceId(kind.name, name), body, owned.get(name))
        if key is not None and key.key != name and key.key in names:
            names.remove(key.key)
            names.add(name)
    return names


def find_declared_labels(desired: Iterable[DesiredResource], owned: Mapping[str, OwnedRecord]) -> LabelsById:
    """Return the labels of each resource: the declared labels, or else the labels that were applied last."""
    return {**find_owned_labels(owned), **{d.id: d.labels for d in desired}}


def find_planned_labels(owned: Mapping[str, OwnedRecord], ownership: Iterable[Ownership]) -> LabelsById:
    """Return the labels of each resource after a plan, according to the ownership changes in the plan."""
    records = ((str(item.id), item.after or item.before) for item in ownership)
    planned = {text: record for text, record in records if record is not None}
    return {**find_owned_labels(owned), **find_owned_labels(planned)}


def find_owned_labels(owned: Mapping[str, OwnedRecord]) -> dict[ResourceId, LabelSet]:
    """Return the labels of each resource when it was last applied."""
    return {
        ResourceId.parse(text): get_owned_labels(record)
        for text, record in owned.items()
        if record is not None
    }


def dump_labels(labels: LabelsById) -> Labels:
    """Convert labels to the form in plan files: topics are keyed by name, all other resources by id."""
    return {id_.name if id_.kind == TOPIC else str(id_): dict(found) for id_, found in labels.items()}


def parse_labels(labels: Labels) -> LabelsById:
    """Parse the labels in a plan file. A key without a slash is the name of a topic."""
    return {
        ResourceId.parse(text) if "/" in text else ResourceId(TOPIC, text): found
        for text, found in labels.items()
    }
