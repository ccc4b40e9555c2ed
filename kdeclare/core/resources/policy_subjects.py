"""What policies see of resources, whatever their kind: requests, and how kinds say what is in them.

A kind whose resources policies can judge is a `PolicySubject`. One that shows more than plain values, because
it reads single facts only when a policy asks for them, makes the requests itself: `MakesPolicyRequests`.
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
    """What is done to what a policy judges."""

    CREATE = "CREATE"
    MODIFY = "MODIFY"
    DELETE = "DELETE"


class PolicyViolation(Exception):
    """Raised by a policy; its message is what people are told. It denies the request."""


class UnavailableError(BaseException):
    """A policy asks for what is not there to be told. No policy is meant to catch this."""


class UnavailableOffline(UnavailableError):
    """A policy asks for what only a system can tell."""


class UnavailableTracker:
    """What was withheld from whoever reads a request; a policy that catches everything hides it."""

    def __init__(self) -> None:
        self._first: UnavailableError | None = None

    def withhold(self, what: UnavailableError) -> NoReturn:
        """Raise it, and keep it in mind."""
        self._first = self._first or what
        raise what

    def forget(self) -> None:
        """Begin again: another policy is asked."""
        self._first = None

    def tell(self) -> None:
        """Raise again what was withheld first, if anything was."""
        if self._first is not None:
            raise self._first


class OfflineRequest:
    """What is the same for all requests that are foreseen from manifests alone; fields are their dataclass's.

    created: as if the resource were not there yet; otherwise only its system knows whether it is.
    withholding: what the policy that is being asked was not told.
    """

    __slots__ = ()
    created: bool
    withholding: UnavailableTracker

    @property
    def action(self) -> PolicyAction:
        """Whether the resource is there already, only its system knows."""
        return PolicyAction.CREATE if self.created else self._raise_unavailable()

    @property
    def principal(self) -> str | None:
        """Nobody is connected yet."""
        self._raise_unavailable()

    @property
    def labels_before(self) -> Mapping[str, str]:
        """None on CREATE."""
        return {} if self.created else self._raise_unavailable()

    @property
    def pre_request_state(self) -> None:
        """None on CREATE."""
        return None if self.created else self._raise_unavailable()

    def _raise_unavailable(self) -> NoReturn:
        self.withholding.withhold(UnavailableOffline())


@dataclass(frozen=True, slots=True)
class PolicyField:
    """One field of the states that policies see.

    value_type: int, float, str, bool, or a list or dict of these; ``object`` where it can be several.
    read: reads it of a state; by default the item of its name.
    keys: of a mapping: the keys that are known, with the types of their values, to find misspelt ones. A key
        that is not among them may exist, too.
    elements: of a mapping: what its keys stand for, in the plural. nullable: whether it can be unset; it is
    null then. Collections that are unset are empty.
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
    """Return what the annotation of a model's field comes to; what rules cannot type is an object."""
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
    """Whether a field is a mapping of names, so that each of its keys changes for itself."""
    return get_origin(policy_field.value_type) is dict and get_args(policy_field.value_type)[0] is str


@dataclass(frozen=True, eq=False)
class PolicyWords:
    """What a rule about a kind can speak of.

    fields: of its states, by name. subject: another name of ``resource.name``. before, after: other names of
    the two states. is_name: whether a resource can have a name.
    """

    fields: Mapping[str, PolicyField]
    subject: str = ""
    before: str = "before"
    after: str = "after"
    is_name: Callable[[str], bool] = bool

    def has_field(self, changed: str) -> bool:
        """Whether a request can be about this: a field, or ``field.key`` of a mapping."""
        name, dot, key = changed.partition(".")
        policy_field = self.fields.get(name)
        return (
            policy_field is not None and (not dot or bool(key)) and bool(dot) == is_text_mapping(policy_field)
        )


class PolicyRequest(Protocol):
    """One request about one resource. What is not read costs nothing."""

    @property
    def action(self) -> PolicyAction:
        """What is done to the resource."""

    @property
    def name(self) -> str:
        """The name of the resource."""

    @property
    def principal(self) -> str | None:
        """Who asks, as the system knows them; None without authentication."""

    @property
    def labels(self) -> LabelSet:
        """The labels of its manifest; of a deletion those that it had when it was last applied."""

    @property
    def labels_before(self) -> LabelSet:
        """The labels that it had when it was last applied; empty if it never was."""

    @property
    def changed(self) -> frozenset[str]:
        """The fields that the request is about; of a creation all that is stated."""

    @property
    def pre_request_state(self) -> object | None:
        """The resource as it is, read with the kind's `PolicyField`s; None of a creation."""

    @property
    def post_request_state(self) -> object | None:
        """The resource as it will be; None of a deletion."""


class ResourceRequest(PolicyRequest, Protocol):
    """A request about a resource of a `PolicySubject`."""

    @property
    def pre_request_state(self) -> Mapping[str, object] | None:
        """The resource as it is, by field; None of a creation."""

    @property
    def post_request_state(self) -> Mapping[str, object] | None:
        """The resource as it will be, by field; None of a deletion."""


class ResourcePolicy(ABC):
    """A policy in Python about resources of the `PolicySubject` that the project file names.

    An instance is made without arguments and configured once. ``validate`` is called for one resource at a
    time; not necessarily from the thread that configured it, nor always from the same one.
    """

    def configure(self, configs: Mapping[str, JsonValue]) -> None:  # noqa: B027  most have nothing to set
        """Take the settings from the project file. Whatever this raises is shown to people."""

    @abstractmethod
    def validate(self, request: ResourceRequest) -> None:
        """Return if the request is in order.

        Raises PolicyViolation if it is not. Anything else that it raises denies the request as well, and so
        does anything that it returns.
        """

    def close(self) -> None:  # noqa: B027
        """Let go of what ``configure`` or ``validate`` took."""


class UncertainRequest(PolicyRequest, Protocol):
    """A request of which not everything is known."""

    @property
    def withholding(self) -> UnavailableTracker:
        """What the policy that is being asked was not told."""


class PolicyEffect(Protocol):
    """What an operation makes of one resource; whoever says it knows what else it holds."""

    @property
    def created(self) -> bool:
        """Whether the resource is there only afterwards."""

    @property
    def deleted(self) -> bool:
        """Whether the resource is there only before."""


def find_policy_action(effects: Sequence[PolicyEffect]) -> PolicyAction:
    """Return what is done to a resource, by what becomes of it."""
    if any(effect.created for effect in effects):
        return PolicyAction.CREATE
    return PolicyAction.DELETE if any(effect.deleted for effect in effects) else PolicyAction.MODIFY


@dataclass(frozen=True, slots=True)
class ReviewInputs:
    """What the requests about all resources of one kind that are judged together are made from.

    subjects: their names, by what is done to them. live: what has been read already, as ``selections`` asked
    for it; None where nothing has. labels: as they will be, by name, judged or not; applied: as they were
    when last applied. desired: what is declared, and owned: the records of ownership, by name.
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
    """Makes the requests about all resources of one kind that are judged together."""

    @property
    def fault(self) -> Fault | None:
        """What the system answered instead, if a policy asked for something that could not be read."""

    @property
    def is_busy(self) -> bool:
        """Whether the system is being asked for something; any thread may look."""

    def make_request(self, name: str, effects: Sequence[PolicyEffect]) -> PolicyRequest:
        """Return what these effects ask for, on what has been accepted before."""

    def accept(self, name: str, effects: Sequence[PolicyEffect]) -> None:
        """Keep what was not denied; what is judged later is judged on it."""

    def make_existing_request(self, name: str, action: PolicyAction, among: Collection[str]) -> PolicyRequest:
        """Return a request for a live resource as it is: created so, or modified without any effect.

        among: all resources of which the same is asked.
        """


class DeclaredSubject(Protocol):
    """What a manifest says of one resource that policies judge."""

    def make_request(self, labels: LabelSet, *, created: bool) -> UncertainRequest:
        """Return what applying the manifest asks for; with ``created`` as if the resource were not there."""


@runtime_checkable
class HasPolicyWords(Protocol):
    """A kind that rules can speak of."""

    @property
    def policy_words(self) -> PolicyWords:
        """What a rule about the kind can speak of."""


@runtime_checkable
class PolicySubject(HasPolicyWords, Protocol):
    """A kind whose resources policies can judge.

    States are mappings by the names of the fields. They hold no value of anything that is or may be secret.
    What operations make of a state is told by `OperationType.fields`.
    """

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """Return what a manifest states; a field that it leaves out is not known before a plan."""

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """Return the resource as it is, all fields; None where it does not exist."""


@runtime_checkable
class ListedForPolicies(Protocol):
    """A kind of which policies can judge what the system has, declared or not."""

    def select_every(self) -> Selections:
        """Return what must be read to see all resources of the kind, beyond the names of all objects."""

    def list_live(self, live: LiveState) -> Collection[str]:
        """Return the names of all, but for those that only the system itself may change. Raises Fault.

        Of a kind whose resources are not named after their objects, the keys of the objects
        (`FleetComparable.find_live_key`): what is declared or owned is then known by its own name.
        """


@runtime_checkable
class MakesPolicyRequests(HasPolicyWords, Protocol):
    """A kind that makes the requests about its resources itself."""

    def find_declared(self, desired: DesiredResource) -> Mapping[str, DeclaredSubject]:
        """Return what a resource of any kind says of which resources of this one."""

    def find_policy_effects(self, op: Operation) -> Mapping[str, PolicyEffect]:
        """Return what an operation makes of which resources of this kind."""

    def start_review(self, inputs: ReviewInputs) -> Review:
        """Begin to make requests about resources that are judged together."""


@runtime_checkable
class JudgedInSnapshots(Protocol):
    """A kind of which policies can judge what a snapshot of a system has."""

    def start_snapshot_review(
        self, live: LiveState, names: Sequence[str], labels: Mapping[str, LabelSet]
    ) -> Review:
        """Begin to make requests about live resources as they are; no system is asked for anything.

        names: of those that are judged. labels: of all that have some. Where a policy asks for what no
        snapshot holds, its review has a fault.
        """


@cache
def _find_snapshot_capability(kind: object) -> JudgedInSnapshots | None:
    return kind if isinstance(kind, JudgedInSnapshots) else None


def find_snapshot_subject(kind: str) -> JudgedInSnapshots | None:
    """Return the kind of this name, if policies can judge what a snapshot has of it."""
    return _find_snapshot_capability(KINDS.get(kind))


@runtime_checkable
class HasFieldSubjects(Protocol):
    """A kind whose resources can change several others that policies judge, each with fields of its own."""

    def find_field_subject(self, path: str) -> str | None:
        """Return what a field is about, as verdicts name it; None if it is about the resource as a whole."""


@cache
def _find_field_subject_capability(kind: object) -> HasFieldSubjects | None:
    return kind if isinstance(kind, HasFieldSubjects) else None


def find_field_subject(kind: str, path: str) -> str | None:
    """Return what a field of a change is about, as verdicts name it; None: the changed resource itself."""
    capability = _find_field_subject_capability(KINDS.get(kind))
    return capability.find_field_subject(path) if capability is not None else None


@cache
def _find_words_capability(kind: object) -> HasPolicyWords | None:
    return kind if isinstance(kind, PolicySubject | MakesPolicyRequests) else None


def find_policy_words(kind: str) -> PolicyWords | None:
    """Return what rules about a kind can speak of; None where policies cannot judge it."""
    capability = _find_words_capability(KINDS.get(kind))
    return capability.policy_words if capability is not None else None


def list_policy_kinds() -> tuple[str, ...]:
    """Return the kinds that policies can judge."""
    return tuple(name for name, kind in KINDS.items() if _find_words_capability(kind) is not None)


def make_field_reader(name: str, policy_field: PolicyField) -> Callable[[object], object]:
    """Return what reads a field of a state."""
    return policy_field.read if policy_field.read is not None else partial(_read_item, name)


def _read_item(name: str, state: object) -> object:
    return state[name] if isinstance(state, Mapping) else None


def format_kind(kind: str) -> str:
    """Return a kind in the words of a sentence: ``broker config`` for ``BrokerConfig``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", kind).lower()
