"""The capabilities that policies need from kinds.

If policies can evaluate the resources of a kind, the kind either is a `PolicySubject` or creates the policy
requests itself (`MakesPolicyRequests`). A kind that creates the requests can delay reading values from the
system until a policy uses them.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Protocol, runtime_checkable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, SharedReads
from kdeclare.core.policies.policy_fields import PolicyWords
from kdeclare.core.policies.policy_request import (
    LabelSet,
    PolicyAction,
    PolicyEffect,
    PolicyRequest,
    UncertainRequest,
)
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord


@dataclass(frozen=True, slots=True)
class ReviewInputs:
    """The inputs of a `Review`, which creates the policy requests about several resources of one kind.

    subjects: the names of the resources, by action.
    live: the live state that was already read for ``selections``; None if nothing was read.
    labels: the future labels of all resources by name, including resources that are not evaluated.
    applied: the labels that resources had when they were last applied, by name.
    desired: the declared resources by name.
    owned: the ownership records by name.
    effects: the effects of the planned operations on these resources, by name. Policies can still deny them.
    shared_reads: the data that other steps of the same plan have read.
    """

    connections: Connections
    subjects: Mapping[PolicyAction, Sequence[str]] = field(default_factory=dict)
    live: LiveState | None = None
    selections: Selections = ()
    labels: Mapping[str, LabelSet] = field(default_factory=dict)
    applied: Mapping[str, LabelSet] = field(default_factory=dict)
    desired: Mapping[str, DesiredResource] = field(default_factory=dict)
    owned: Mapping[str, OwnedRecord] = field(default_factory=dict)
    effects: Mapping[str, Sequence[PolicyEffect]] = field(default_factory=dict)
    shared_reads: SharedReads = field(default_factory=SharedReads, compare=False)


class Review(Protocol):
    """Creates policy requests about several resources of one kind."""

    @property
    def fault(self) -> Fault | None:
        """The fault of the system if a value that a policy uses could not be read; otherwise None."""

    @property
    def is_busy(self) -> bool:
        """Whether a read from the system is in progress. Safe to use from any thread."""

    def make_request(self, name: str, effects: Sequence[PolicyEffect]) -> PolicyRequest:
        """Return the policy request for these effects and all effects that were accepted earlier."""

    def accept(self, name: str, effects: Sequence[PolicyEffect]) -> None:
        """Accept effects that no policy denied. Later requests include these effects."""

    def make_existing_request(self, name: str, action: PolicyAction, among: Collection[str]) -> PolicyRequest:
        """Return a policy request that tests a live resource. The request changes nothing.

        The states before and after the request are both the current state.
        action: the action of the request. among: the names of all resources that are tested.
        """


class DeclaredSubject(Protocol):
    """The manifest of one resource. Policies can evaluate it before a plan exists."""

    def make_request(self, labels: LabelSet, *, created: bool) -> UncertainRequest:
        """Return the policy request for applying the manifest.

        created: whether to assume that the resource does not exist yet.
        """


@runtime_checkable
class HasPolicyWords(Protocol):
    """A kind that defines the names that policy rules can use."""

    @property
    def policy_words(self) -> PolicyWords:
        """The names that a policy rule about this kind can use."""


@runtime_checkable
class PolicySubject(HasPolicyWords, Protocol):
    """A kind with resources that policies can evaluate.

    The state of a resource is a mapping by field name. Values that are or might be secrets are masked or left
    out. `OperationType.fields` returns the changes that an operation makes to a state.
    """

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """Return the fields that a manifest declares.

        Before a plan exists, the values of the other fields are unknown.
        """

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """Return all fields of the live resource; None if the resource does not exist."""


@runtime_checkable
class ListedForPolicies(Protocol):
    """A kind with live resources that policies can evaluate, even if no manifest declares the resources."""

    def select_every(self) -> Selections:
        """Return the selections that `list_live` needs."""

    def list_live(self, live: LiveState) -> Collection[str]:
        """Return the names of all resources that clients are allowed to change. Raises Fault.

        A resource and its live object can have different names (`FleetComparable.find_live_key`). In this
        case, return the keys of undeclared live objects, and the names of declared and owned resources.
        """


@runtime_checkable
class MakesPolicyRequests(HasPolicyWords, Protocol):
    """A kind that creates the policy requests about its own resources."""

    def find_declared(self, desired: DesiredResource) -> Mapping[str, DeclaredSubject]:
        """Return the resources of this kind, by name, that the given declared resource affects."""

    def find_policy_effects(self, op: Operation) -> Mapping[str, PolicyEffect]:
        """Return the effects of an operation on resources of this kind, by resource name."""

    def start_review(self, inputs: ReviewInputs) -> Review:
        """Return an object that creates policy requests about several resources of this kind."""


@runtime_checkable
class JudgedInSnapshots(Protocol):
    """A kind with resources that policies can evaluate in a snapshot, without a connection."""

    def start_snapshot_review(
        self, live: LiveState, names: Sequence[str], labels: Mapping[str, LabelSet]
    ) -> Review:
        """Return an object that creates policy requests about live resources in a snapshot.

        The object sends no requests to the system. If a policy uses a value that snapshots do not contain,
        `Review.fault` is set. names: the resources to evaluate. labels: the labels of all resources that have
        labels.
        """


@cache
def _find_snapshot_capability(kind: object) -> JudgedInSnapshots | None:
    return kind if isinstance(kind, JudgedInSnapshots) else None


def find_snapshot_subject(kind: str) -> JudgedInSnapshots | None:
    """Return the kind with this name if policies can evaluate its resources in snapshots; otherwise None."""
    return _find_snapshot_capability(KINDS.get(kind))


@runtime_checkable
class HasFieldSubjects(Protocol):
    """A kind whose resources can affect several policy subjects, each through different fields."""

    def find_field_subject(self, path: str) -> str | None:
        """Return the name of the policy subject that a change to this field affects. Verdicts use this name.

        Return None if the policy subject is the resource itself.
        """


@cache
def _find_field_subject_capability(kind: object) -> HasFieldSubjects | None:
    return kind if isinstance(kind, HasFieldSubjects) else None


def find_field_subject(kind: str, path: str) -> str | None:
    """Return the name of the policy subject that a change to this field affects. Verdicts use this name.

    Return None if the policy subject is the resource itself.
    """
    capability = _find_field_subject_capability(KINDS.get(kind))
    return capability.find_field_subject(path) if capability is not None else None


@cache
def _find_words_capability(kind: object) -> HasPolicyWords | None:
    return kind if isinstance(kind, PolicySubject | MakesPolicyRequests) else None


def find_policy_words(kind: str) -> PolicyWords | None:
    """Return the names that policy rules about a kind can use; None if policies cannot evaluate the kind."""
    capability = _find_words_capability(KINDS.get(kind))
    return capability.policy_words if capability is not None else None


def list_policy_kinds() -> tuple[str, ...]:
    """Return the kinds that policies can evaluate."""
    return tuple(name for name, kind in KINDS.items() if _find_words_capability(kind) is not None)


def format_kind(kind: str) -> str:
    """Return the name of a kind as words for a sentence: ``broker config`` for ``BrokerConfig``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", kind).lower()
