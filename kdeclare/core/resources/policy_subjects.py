"""The requests that policies evaluate, and the capabilities of kinds that policies need.

If policies can evaluate the resources of a kind, the kind either is a `PolicySubject` or creates the policy
requests itself (`MakesPolicyRequests`). A kind that creates the requests can delay reading values from the
system until a policy uses them.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import cache, partial
from types import UnionType
from typing import Annotated, Literal, NoReturn, Protocol, Union, get_args, get_origin, runtime_checkable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, SharedReads
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord

LabelSet = Mapping[str, str]


class PolicyAction(StrEnum):
    """What a policy request does to its resource."""

    CREATE = "CREATE"
    MODIFY = "MODIFY"
    DELETE = "DELETE"


RULE_TOO_SLOW = "the rule took too long for other resources, so it is no longer evaluated"
"""The reason for a verdict if a rule was too slow. On a less busy machine, the rule might be fast enough."""


class PolicyViolation(Exception):
    """Raised by a policy to deny a change. The message is displayed to the user."""


class UnavailableError(BaseException):
    """Raised if a policy uses a value that is not available. Policies should not catch this exception."""


class UnavailableOffline(UnavailableError):
    """Raised if a policy uses a value that must be read from a system, and there is no connection."""


class UnavailableTracker:
    """Remembers the errors about unavailable values, even if a policy catches them."""

    def __init__(self) -> None:
        self._first: UnavailableError | None = None

    def withhold(self, what: UnavailableError) -> NoReturn:
        """Record and raise the error."""
        self._first = self._first or what
        raise what

    def forget(self) -> None:
        """Forget the recorded errors before the next policy is evaluated."""
        self._first = None

    def tell(self) -> None:
        """Raise the first recorded error, if there is one."""
        if self._first is not None:
            raise self._first


class OfflineRequest:
    """The base class of policy requests that are derived from manifests alone. Subclasses add fields.

    created: whether to assume that the resource does not exist yet. If false, it is unknown whether the
        resource exists.
    withholding: records the values that were unavailable to the current policy.
    """

    __slots__ = ()
    created: bool
    withholding: UnavailableTracker

    @property
    def action(self) -> PolicyAction:
        """The action CREATE if the resource is assumed not to exist.

        Otherwise, the property raises an error.
        """
        return PolicyAction.CREATE if self.created else self._raise_unavailable()

    @property
    def principal(self) -> str | None:
        """Raises an error, because the principal is unknown without a connection."""
        self._raise_unavailable()

    @property
    def labels_before(self) -> Mapping[str, str]:
        """An empty mapping if the resource is assumed not to exist.

        Otherwise, the property raises an error.
        """
        return {} if self.created else self._raise_unavailable()

    @property
    def pre_request_state(self) -> None:
        """The value None if the resource is assumed not to exist. Otherwise, the property raises an error."""
        return None if self.created else self._raise_unavailable()

    def _raise_unavailable(self) -> NoReturn:
        self.withholding.withhold(UnavailableOffline())


@dataclass(frozen=True, slots=True)
class PolicyField:
    """One field of a resource, for policies.

    value_type: int, float, str, bool, or a list or dict of these; ``object`` if several types are possible.
    read: reads the field from the state of a resource; by default, reads the item with the field's name.
    keys: for a mapping, the known keys with the types of their values, to detect misspelled keys. Other keys
        are possible, too.
    elements: for a mapping, the plural noun for its keys.
    nullable: whether the field is null if it is not set. A collection that is not set is empty instead.
    """

    value_type: type
    read: Callable[[object], object] | None = None
    keys: Callable[[], Mapping[str, type]] | None = None
    elements: str = "keys"
    nullable: bool = False


_SCALARS = (str, bool, int, float)
_LISTS: Mapping[type, type] = {str: list[str], bool: list[bool], int: list[int], float: list[float]}
_DICTS: Mapping[type, type] = {
    str: dict[str, str],
    bool: dict[str, bool],
    int: dict[str, int],
    float: dict[str, float],
}


def build_policy_field(annotation: object) -> PolicyField:
    """Return the policy field for a spec field with this type annotation.

    A type that rules cannot express becomes ``object``.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        member_types = [argument for argument in arguments if argument is not type(None)]
        policy_field = build_policy_field(member_types[0]) if len(member_types) == 1 else PolicyField(object)
        is_scalar = get_origin(policy_field.value_type) is None
        return replace(policy_field, nullable=is_scalar and len(member_types) < len(arguments))
    if origin is Annotated:
        return build_policy_field(arguments[0])
    if origin is Literal:
        return build_policy_field(type(arguments[0]))
    if origin in (list, tuple):
        return PolicyField(_LISTS.get(build_policy_field(arguments[0]).value_type, list[object]))
    if origin is dict:
        return PolicyField(_DICTS.get(build_policy_field(arguments[1]).value_type, dict[str, object]))
    return PolicyField(next((scalar for scalar in _SCALARS if annotation is scalar), object))


def is_text_mapping(policy_field: PolicyField) -> bool:
    """Whether a field is a mapping with string keys. Each key can change independently."""
    return get_origin(policy_field.value_type) is dict and get_args(policy_field.value_type)[0] is str


@dataclass(frozen=True, eq=False)
class PolicyWords:
    """The names that a policy rule about a kind can use.

    fields: the fields of a resource of the kind, by name.
    subject: an alias of ``resource.name``.
    before, after: aliases of the states before and after the request.
    is_name: returns whether a given name is valid for a resource.
    impact: the fields that describe the impact of a request, by name. A rule reads such a field as
        ``impact.<name>``. If there are such fields, the requests are of type `ImpactRequest`.
    """

    fields: Mapping[str, PolicyField]
    subject: str = ""
    before: str = "before"
    after: str = "after"
    is_name: Callable[[str], bool] = bool
    impact: Mapping[str, PolicyField] = field(default_factory=dict)

    def has_field(self, changed: str) -> bool:
        """Whether a request can change ``changed``: the name of a field, or ``field.key`` for a mapping."""
        name, dot, key = changed.partition(".")
        policy_field = self.fields.get(name)
        return (
            policy_field is not None and (not dot or bool(key)) and bool(dot) == is_text_mapping(policy_field)
        )


class PolicyRequest(Protocol):
    """A policy's view of a request to create, modify or delete one resource.

    Each property is read only when a policy uses it.
    """

    @property
    def action(self) -> PolicyAction:
        """The action that the request performs on the resource."""

    @property
    def name(self) -> str:
        """The name of the resource."""

    @property
    def principal(self) -> str | None:
        """The principal that sends the request; None if the system does not authenticate clients."""

    @property
    def labels(self) -> LabelSet:
        """The labels in the resource's manifest.

        If the request deletes the resource, these are the labels that were last applied.
        """

    @property
    def labels_before(self) -> LabelSet:
        """The last applied labels of the resource; empty if the resource was never applied."""

    @property
    def changed(self) -> frozenset[str]:
        """The names of the fields that the request changes.

        If it creates the resource, these are all declared fields.
        """

    @property
    def pre_request_state(self) -> object | None:
        """The current resource, in a form that `PolicyField` reads; None if the resource does not exist."""

    @property
    def post_request_state(self) -> object | None:
        """The resource after the request; None if the request deletes the resource."""


class ImpactRequest(PolicyRequest, Protocol):
    """A policy request with fields that describe its impact; see `PolicyWords.impact`."""

    @property
    def impact(self) -> object:
        """The impact, in a form that `PolicyField` reads. Reading an unknown value denies the request."""


class ResourceRequest(PolicyRequest, Protocol):
    """A policy request about a resource of a kind that is a `PolicySubject`."""

    @property
    def pre_request_state(self) -> Mapping[str, object] | None:
        """The current fields of the resource; None if the resource does not exist."""

    @property
    def post_request_state(self) -> Mapping[str, object] | None:
        """The fields of the resource after the request; None if the request deletes the resource."""


class ResourcePolicy(ABC):
    """A policy in Python about resources of one kind.

    The project file names the kind, which must be a `PolicySubject`. A policy is instantiated without
    arguments and configured once. ``validate`` is called for one resource at a time, but the calls can come
    from different threads.
    """

    def configure(self, configs: Mapping[str, JsonValue]) -> None:  # noqa: B027  most have no settings
        """Apply the settings from the project file. Any exception raised here is displayed to the user."""

    @abstractmethod
    def validate(self, request: ResourceRequest) -> None:
        """Return None if the request is allowed.

        Raise PolicyViolation to deny the request. Any other exception or return value also denies the
        request.
        """

    def close(self) -> None:  # noqa: B027
        """Release the resources that ``configure`` or ``validate`` acquired."""


class UncertainRequest(PolicyRequest, Protocol):
    """A policy request in which the values of some fields are unavailable."""

    @property
    def withholding(self) -> UnavailableTracker:
        """Records the values that were unavailable to the current policy."""


class PolicyEffect(Protocol):
    """The effect of an operation on one resource. Implementations can have more fields."""

    @property
    def created(self) -> bool:
        """Whether the operation creates the resource."""

    @property
    def deleted(self) -> bool:
        """Whether the operation deletes the resource."""


def find_policy_action(effects: Sequence[PolicyEffect]) -> PolicyAction:
    """Return the one action that these effects on a resource amount to."""
    if any(effect.created for effect in effects):
        return PolicyAction.CREATE
    return PolicyAction.DELETE if any(effect.deleted for effect in effects) else PolicyAction.MODIFY


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


def make_field_reader(name: str, policy_field: PolicyField) -> Callable[[object], object]:
    """Return a function that reads a field from the state of a resource."""
    return policy_field.read if policy_field.read is not None else partial(_read_item, name)


def _read_item(name: str, state: object) -> object:
    return state[name] if isinstance(state, Mapping) else None


def format_kind(kind: str) -> str:
    """Return the name of a kind as words for a sentence: ``broker config`` for ``BrokerConfig``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", kind).lower()
