"""Policy requests, through which policies see resources, and the capabilities by which kinds provide them.

A kind whose resources policies can evaluate is a `PolicySubject`. A kind that reads some values only when a
policy uses them creates the requests itself (`MakesPolicyRequests`).
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
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord

LabelSet = Mapping[str, str]


class PolicyAction(StrEnum):
    """What is done to the resource that a policy evaluates."""

    CREATE = "CREATE"
    MODIFY = "MODIFY"
    DELETE = "DELETE"


class PolicyViolation(Exception):
    """The error by which a policy denies a request. Its message is displayed to the user."""


class UnavailableError(BaseException):
    """The error that a policy uses a value that is not available. Policies should not catch this error."""


class UnavailableOffline(UnavailableError):
    """The error that a policy uses a value that only a system can provide."""


class UnavailableTracker:
    """Records which value was unavailable to a policy, because the policy might catch every exception."""

    def __init__(self) -> None:
        self._first: UnavailableError | None = None

    def withhold(self, what: UnavailableError) -> NoReturn:
        """Record and raise the error."""
        self._first = self._first or what
        raise what

    def forget(self) -> None:
        """Forget recorded errors, before another policy is evaluated."""
        self._first = None

    def tell(self) -> None:
        """Raise the first recorded error again, if there is one."""
        if self._first is not None:
            raise self._first


class OfflineRequest:
    """The base class of requests that are derived from manifests alone. Dataclasses define the fields.

    created: whether to assume that the resource does not exist yet. If false, it is unknown whether the
        resource exists.
    withholding: records the values that were unavailable to the current policy.
    """

    __slots__ = ()
    created: bool
    withholding: UnavailableTracker

    @property
    def action(self) -> PolicyAction:
        """CREATE if the resource is assumed not to exist; otherwise, reading the action raises an error."""
        return PolicyAction.CREATE if self.created else self._raise_unavailable()

    @property
    def principal(self) -> str | None:
        """Raises an error: the principal is unavailable, because there is no connection yet."""
        self._raise_unavailable()

    @property
    def labels_before(self) -> Mapping[str, str]:
        """Empty on CREATE; otherwise, reading the labels raises an error."""
        return {} if self.created else self._raise_unavailable()

    @property
    def pre_request_state(self) -> None:
        """None on CREATE; otherwise, reading the state raises an error."""
        return None if self.created else self._raise_unavailable()

    def _raise_unavailable(self) -> NoReturn:
        self.withholding.withhold(UnavailableOffline())


@dataclass(frozen=True, slots=True)
class PolicyField:
    """One field of the states that policies see.

    value_type: int, float, str, bool, or a list or dict of these; ``object`` if several types are possible.
    read: reads the field from a state; by default, it reads the item with the field's name.
    keys: for a mapping, the known keys with the types of their values, to detect misspelled keys. Other keys
        may exist, too.
    elements: for a mapping, the plural noun for its keys. nullable: whether the field is null when it is not
        set. Unset collections are empty.
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
    """Return the policy field for a model's annotation. A type that rules cannot express becomes object."""
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
    """The names that a rule about a kind can use.

    fields: the fields of the kind's states, by name. subject: an alias of ``resource.name``. before, after:
        aliases of the two states. is_name: returns whether a resource can have a given name.
    """

    fields: Mapping[str, PolicyField]
    subject: str = ""
    before: str = "before"
    after: str = "after"
    is_name: Callable[[str], bool] = bool

    def has_field(self, changed: str) -> bool:
        """Whether a request can change ``changed``, which is a field, or ``field.key`` for a mapping."""
        name, dot, key = changed.partition(".")
        policy_field = self.fields.get(name)
        return (
            policy_field is not None and (not dot or bool(key)) and bool(dot) == is_text_mapping(policy_field)
        )


class PolicyRequest(Protocol):
    """One request about one resource. Values are read only when they are used."""

    @property
    def action(self) -> PolicyAction:
        """The action that the request performs on the resource."""

    @property
    def name(self) -> str:
        """The name of the resource."""

    @property
    def principal(self) -> str | None:
        """The principal who sends the request, as the system knows it; None without authentication."""

    @property
    def labels(self) -> LabelSet:
        """The labels in the resource's manifest; for a deletion, the labels when the resource was last
        applied.
        """

    @property
    def labels_before(self) -> LabelSet:
        """The labels when the resource was last applied; empty if it was never applied."""

    @property
    def changed(self) -> frozenset[str]:
        """The fields that the request changes; for a creation, all declared fields."""

    @property
    def pre_request_state(self) -> object | None:
        """The current resource, read with the kind's `PolicyField`s; None for a creation."""

    @property
    def post_request_state(self) -> object | None:
        """The resource after the request; None for a deletion."""


class ResourceRequest(PolicyRequest, Protocol):
    """A request about a resource of a `PolicySubject`."""

    @property
    def pre_request_state(self) -> Mapping[str, object] | None:
        """The current resource, by field; None for a creation."""

    @property
    def post_request_state(self) -> Mapping[str, object] | None:
        """The resource after the request, by field; None for a deletion."""


class ResourcePolicy(ABC):
    """A policy in Python about resources of the `PolicySubject` that the project file names.

    A policy is instantiated without arguments and configured once. ``validate`` is called for one resource at
    a time, but possibly from different threads.
    """

    def configure(self, configs: Mapping[str, JsonValue]) -> None:  # noqa: B027  most have no settings
        """Apply the settings from the project file. Any exception raised here is displayed to the user."""

    @abstractmethod
    def validate(self, request: ResourceRequest) -> None:
        """Return if the request is allowed.

        Raises PolicyViolation to deny it. Any other exception denies the request as well, and so does any
        return value other than None.
        """

    def close(self) -> None:  # noqa: B027
        """Release the resources that ``configure`` or ``validate`` acquired."""


class UncertainRequest(PolicyRequest, Protocol):
    """A request with some unknown values."""

    @property
    def withholding(self) -> UnavailableTracker:
        """The values that were unavailable to the current policy."""


class PolicyEffect(Protocol):
    """The effect of an operation on one resource. Implementations can have more fields."""

    @property
    def created(self) -> bool:
        """Whether the operation creates the resource."""

    @property
    def deleted(self) -> bool:
        """Whether the operation deletes the resource."""


def find_policy_action(effects: Sequence[PolicyEffect]) -> PolicyAction:
    """Return the action on a resource, given the effects on the resource."""
    if any(effect.created for effect in effects):
        return PolicyAction.CREATE
    return PolicyAction.DELETE if any(effect.deleted for effect in effects) else PolicyAction.MODIFY


@dataclass(frozen=True, slots=True)
class ReviewInputs:
    """The inputs for requests about all resources of one kind that are evaluated together.

    subjects: the names of the resources, by action. live: the live state that was already read for
        ``selections``; None if nothing was read. labels: the future labels of all resources by name, even of
        resources that are not evaluated. applied: the labels that these resources had when they were last
        applied. desired: the declared resources by name. owned: the ownership records by name.
    """

    connections: Connections
    subjects: Mapping[PolicyAction, Sequence[str]] = field(default_factory=dict)
    live: LiveState | None = None
    selections: Selections = ()
    labels: Mapping[str, LabelSet] = field(default_factory=dict)
    applied: Mapping[str, LabelSet] = field(default_factory=dict)
    desired: Mapping[str, DesiredResource] = field(default_factory=dict)
    owned: Mapping[str, OwnedRecord] = field(default_factory=dict)


class Review(Protocol):
    """Creates the requests about all resources of one kind that are evaluated together."""

    @property
    def fault(self) -> Fault | None:
        """The fault of the system, if a policy used a value that could not be read."""

    @property
    def is_busy(self) -> bool:
        """Whether a read from the system is in progress; can be called from any thread."""

    def make_request(self, name: str, effects: Sequence[PolicyEffect]) -> PolicyRequest:
        """Return the request for these effects, in addition to the effects that were already accepted."""

    def accept(self, name: str, effects: Sequence[PolicyEffect]) -> None:
        """Add effects that were not denied; later requests are based on them."""

    def make_existing_request(self, name: str, action: PolicyAction, among: Collection[str]) -> PolicyRequest:
        """Return a request that creates the current live resource again, or modifies it without an effect.

        among: all resources for which the same request is made.
        """


class DeclaredSubject(Protocol):
    """What a manifest declares for one resource that policies evaluate."""

    def make_request(self, labels: LabelSet, *, created: bool) -> UncertainRequest:
        """Return the request to apply the manifest. With ``created``, assume that the resource does not
        exist.
        """


@runtime_checkable
class HasPolicyWords(Protocol):
    """A kind that has names for rules."""

    @property
    def policy_words(self) -> PolicyWords:
        """The names that a rule about the kind can use."""


@runtime_checkable
class PolicySubject(HasPolicyWords, Protocol):
    """A kind whose resources policies can evaluate.

    States are mappings by field name. They contain no known or possible secret. `OperationType.fields`
    reports how operations change a state.
    """

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """Return the fields that a manifest declares. A field that the manifest omits is unknown before a
        plan.
        """

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """Return the current resource with all fields; None if it does not exist."""


@runtime_checkable
class ListedForPolicies(Protocol):
    """A kind whose live resources policies can evaluate, declared or not."""

    def select_every(self) -> Selections:
        """Return what must be read to find all resources of the kind, in addition to the names of all
        objects.
        """

    def list_live(self, live: LiveState) -> Collection[str]:
        """Return the names of all resources except resources that only the system itself is allowed to
        change. Raises Fault.

        If the kind's resources are not named after their objects, return the keys of the objects
        (`FleetComparable.find_live_key`); declared or owned resources keep their own names.
        """


@runtime_checkable
class MakesPolicyRequests(HasPolicyWords, Protocol):
    """A kind that creates the requests about its resources itself."""

    def find_declared(self, desired: DesiredResource) -> Mapping[str, DeclaredSubject]:
        """Return the subjects of this kind that a resource of any kind declares something for, by name."""

    def find_policy_effects(self, op: Operation) -> Mapping[str, PolicyEffect]:
        """Return the effects of an operation on resources of this kind."""

    def start_review(self, inputs: ReviewInputs) -> Review:
        """Start creating requests about resources that are evaluated together."""


@runtime_checkable
class JudgedInSnapshots(Protocol):
    """A kind whose resources policies can evaluate in a snapshot of a system."""

    def start_snapshot_review(
        self, live: LiveState, names: Sequence[str], labels: Mapping[str, LabelSet]
    ) -> Review:
        """Start creating requests about live resources in a snapshot, without sending requests to any system.

        names: the resources to evaluate. labels: the labels of all resources that have labels. If a policy
            uses a value that snapshots do not contain, the review has a fault.
        """


@cache
def _find_snapshot_capability(kind: object) -> JudgedInSnapshots | None:
    return kind if isinstance(kind, JudgedInSnapshots) else None


def find_snapshot_subject(kind: str) -> JudgedInSnapshots | None:
    """Return the kind of this name, if policies can evaluate its resources in snapshots."""
    return _find_snapshot_capability(KINDS.get(kind))


@runtime_checkable
class HasFieldSubjects(Protocol):
    """A kind whose resources can change several policy subjects, each through separate fields."""

    def find_field_subject(self, path: str) -> str | None:
        """Return the name of a field's subject in verdicts; None if the subject is the whole resource."""


@cache
def _find_field_subject_capability(kind: object) -> HasFieldSubjects | None:
    return kind if isinstance(kind, HasFieldSubjects) else None


def find_field_subject(kind: str, path: str) -> str | None:
    """Return the name of a changed field's subject in verdicts; None if it is the resource itself."""
    capability = _find_field_subject_capability(KINDS.get(kind))
    return capability.find_field_subject(path) if capability is not None else None


@cache
def _find_words_capability(kind: object) -> HasPolicyWords | None:
    return kind if isinstance(kind, PolicySubject | MakesPolicyRequests) else None


def find_policy_words(kind: str) -> PolicyWords | None:
    """Return the names that rules about a kind can use; None if policies cannot evaluate the kind."""
    capability = _find_words_capability(KINDS.get(kind))
    return capability.policy_words if capability is not None else None


def list_policy_kinds() -> tuple[str, ...]:
    """Return the kinds that policies can evaluate."""
    return tuple(name for name, kind in KINDS.items() if _find_words_capability(kind) is not None)


def make_field_reader(name: str, policy_field: PolicyField) -> Callable[[object], object]:
    """Return a function that reads a field from a state."""
    return policy_field.read if policy_field.read is not None else partial(_read_item, name)


def _read_item(name: str, state: object) -> object:
    return state[name] if isinstance(state, Mapping) else None


def format_kind(kind: str) -> str:
    """Return a kind as words in a sentence: ``broker config`` for ``BrokerConfig``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", kind).lower()
