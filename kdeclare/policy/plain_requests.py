"""Policy requests for resources of any kind that implements `PolicySubject`."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import NoReturn, TypeVar, get_args, get_origin

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Selection
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import LiveState
from kdeclare.core.policies.policy_fields import PolicyWords, is_text_mapping
from kdeclare.core.policies.policy_request import (
    LabelSet,
    OfflineRequest,
    PolicyAction,
    PolicyEffect,
    PolicyViolation,
    UnavailableTracker,
    find_policy_action,
)
from kdeclare.core.policies.policy_subjects import PolicySubject, ReviewInputs
from kdeclare.core.provider.provider_queries import find_principal
from kdeclare.core.provider.registry import find_provider, get_operation_type
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Kind
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.engine.observation import observe

Values = Mapping[str, object]
_T = TypeVar("_T")


class PlainState(Mapping[str, object]):
    """The fields of a resource, as a policy sees them. Unset lists and mappings are empty."""

    def __init__(
        self,
        words: PolicyWords,
        values: Values,
        raise_missing: Callable[[str], NoReturn],
        *,
        is_partial: bool = False,
    ) -> None:
        """Create the state.

        values: the known values, by field name.
        raise_missing: a function that raises the error for a field whose value is unknown.
        is_partial: whether ``values`` can be incomplete. If True, lists and mappings count as unknown.
        """
        self._words, self._values, self._raise_missing, self._is_partial = (
            words,
            values,
            raise_missing,
            is_partial,
        )

    def __getitem__(self, name: str) -> object:
        value, policy_field = self._values.get(name), self._words.fields[name]
        collection_type = get_origin(policy_field.value_type)
        if collection_type is not None:
            return (
                self._raise_missing(name)
                if self._is_partial
                else value
                if value is not None
                else collection_type()
            )
        if value is None and policy_field.nullable and not self._is_partial:
            return None
        return self._raise_missing(name) if value is None else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._words.fields)

    def __len__(self) -> int:
        return len(self._words.fields)


@dataclass(frozen=True, slots=True)
class PlainEffect:
    """The effect of one operation on one resource."""

    created: bool = False
    deleted: bool = False
    fields: tuple[FieldChange, ...] = ()


def apply_effects(words: PolicyWords, values: Values, effects: Sequence[PlainEffect]) -> Values:
    """Apply effects to the values of a resource's fields, and return the new values."""
    result = dict(values)
    for change in (change for effect in effects for change in effect.fields):
        name, dot, key = change.path.partition(".")
        policy_field = words.fields.get(name)
        if policy_field is None:
            continue
        if not dot:
            result[name] = change.after
            continue
        old_value = result.get(name)
        entries: dict[object, object] = dict(old_value) if isinstance(old_value, Mapping) else {}
        element: object = int(key) if get_args(policy_field.value_type)[:1] == (int,) else key
        after = _apply_change(change, entries.pop(element, None))
        if after is not None:
            is_text = get_args(policy_field.value_type)[1:] == (str,)
            entries[element] = _as_text(after) if is_text else after
        result[name] = entries
    return result


def _apply_change(change: FieldChange, current: object) -> object:
    """Return the value of a field after a change.

    If the change adds or removes elements of a list, the other elements stay in the list. ``change.after``
    can lack some of them, because changes to other resources can affect the same list.
    """
    if not isinstance(current, list) or not isinstance(change.value, list | tuple):
        return change.after
    if change.op is FieldOp.APPEND:
        return [*current, *(element for element in change.value if element not in current)]
    if change.op is FieldOp.SUBTRACT:
        return [element for element in current if element not in change.value] or None
    return change.after


def list_fields(words: PolicyWords, values: Values) -> frozenset[str]:
    """Return the names of all fields that have a value, in the form of `PolicyRequest.changed`."""
    field_names: set[str] = set()
    for name, value in values.items():
        policy_field = words.fields.get(name)
        if policy_field is not None and value is not None:
            is_keyed = isinstance(value, Mapping) and is_text_mapping(policy_field)
            field_names |= (
                {f"{name}.{key}" for key in value} if is_keyed and isinstance(value, Mapping) else {name}
            )
    return frozenset(field_names)


@dataclass(frozen=True)
class PlainRequest:
    """A policy request for one resource; see `PolicyRequest`.

    find_before, find_after: functions that return the state before and after the request. ``find_before`` is
        not called for CREATE, and ``find_after`` is not called for DELETE.
    find_principal: a function that returns kdeclare's own principal in the system.
    """

    action: PolicyAction
    name: str
    labels: LabelSet
    labels_before: LabelSet
    changed: frozenset[str]
    find_before: Callable[[], PlainState]
    find_after: Callable[[], PlainState]
    find_principal: Callable[[], str | None]
    withholding: UnavailableTracker = field(default_factory=UnavailableTracker, compare=False)

    @property
    def principal(self) -> str | None:
        """kdeclare's own principal in the system."""
        return self.find_principal()

    @cached_property
    def pre_request_state(self) -> PlainState | None:
        """The resource before the request; None on CREATE."""
        return None if self.action is PolicyAction.CREATE else self.find_before()

    @cached_property
    def post_request_state(self) -> PlainState | None:
        """The resource after the request; None on DELETE."""
        return None if self.action is PolicyAction.DELETE else self.find_after()


@dataclass(frozen=True, slots=True)
class DeclaredRequest(OfflineRequest):
    """A policy request for the change that applying a manifest would make.

    The request contains only data that is known without a connection to a system.

    created: whether the resource is assumed not to exist yet.
    """

    name: str
    labels: LabelSet
    words: PolicyWords
    values: Values
    created: bool
    withholding: UnavailableTracker = field(default_factory=UnavailableTracker, compare=False)

    @property
    def changed(self) -> frozenset[str]:
        """All declared fields, if the resource does not exist yet.

        Otherwise, reading the property raises an error.
        """
        return list_fields(self.words, self.values) if self.created else self._raise_unavailable()

    @property
    def post_request_state(self) -> PlainState:
        """The state with the declared values.

        If the resource exists, policies cannot read lists or mappings.
        """
        is_partial = not self.created
        return PlainState(self.words, self.values, lambda _: self._raise_unavailable(), is_partial=is_partial)


@dataclass(frozen=True, slots=True)
class PlainDeclaredSubject:
    """A resource with the field values in its manifest; see `DeclaredSubject`."""

    name: str
    words: PolicyWords
    values: Values

    def make_request(self, labels: LabelSet, *, created: bool) -> DeclaredRequest:
        """Return a request for the change that applying the manifest would make.

        created: whether the resource is assumed not to exist yet.
        """
        return DeclaredRequest(self.name, labels, self.words, self.values, created)


class PlainReview:
    """Creates the policy requests for all resources of a kind that are evaluated together; see `Review`."""

    def __init__(self, kind: Kind, subject: PolicySubject, inputs: ReviewInputs) -> None:
        self._kind, self._subject, self._inputs = kind, subject, inputs
        self._words = subject.policy_words
        self._accepted: dict[str, tuple[PlainEffect, ...]] = {}
        self._is_reading = False
        self.fault: Fault | None = None

    @property
    def is_busy(self) -> bool:
        """Whether data is currently being read from the system."""
        return self._is_reading

    def make_request(self, name: str, effects: Sequence[PolicyEffect]) -> PlainRequest:
        """Return the request for the effects of operations on a resource.

        The state before the request includes all effects that were accepted earlier (see `accept`).
        """
        earlier_effects, own_effects = self._accepted.get(name, ()), _filter_plain_effects(effects)
        action = find_policy_action(effects)

        def compute_before() -> Values:
            return apply_effects(self._words, self._read_values(name), earlier_effects)

        def compute_after() -> Values:
            # Before a resource is created, the kind describes at most its identity, which no effect contains.
            values_before = (
                (self._find_values(name) or {}) if action is PolicyAction.CREATE else compute_before()
            )
            return apply_effects(self._words, values_before, own_effects)

        return PlainRequest(
            action,
            name,
            self._inputs.labels.get(name, {}),
            self._inputs.applied.get(name, {}),
            frozenset(change.path for effect in own_effects for change in effect.fields),
            lambda: self._build_state(name, compute_before()),
            lambda: self._build_state(name, compute_after()),
            lambda: self._principal,
        )

    def accept(self, name: str, effects: Sequence[PolicyEffect]) -> None:
        """Record that no policy has denied these effects on a resource.

        Later requests assume that the effects are applied.
        """
        self._accepted[name] = (*self._accepted.get(name, ()), *_filter_plain_effects(effects))

    def make_existing_request(self, name: str, action: PolicyAction, among: Collection[str]) -> PlainRequest:
        """Return a request in which the resource has its current state both before and after the request."""
        labels, values = self._inputs.labels.get(name, {}), self._read_values(name)
        is_creation = action is PolicyAction.CREATE
        return PlainRequest(
            action,
            name,
            labels,
            {} if is_creation else labels,
            list_fields(self._words, values) if is_creation else frozenset(),
            lambda: self._build_state(name, values),
            lambda: self._build_state(name, values),
            lambda: self._principal,
        )

    def _read_values(self, name: str) -> Values:
        values = self._find_values(name)
        if values is None:
            resource = ResourceId(self._kind.name, name)
            raise PolicyViolation(f"{resource} no longer exists, so policies cannot be evaluated.")
        return values

    def _find_values(self, name: str) -> Values | None:
        inputs, resource = self._inputs, ResourceId(self._kind.name, name)
        desired, owned = inputs.desired.get(name), inputs.owned.get(name)
        return self._subject.describe_live(resource, desired, self._live, owned)

    @cached_property
    def _live(self) -> LiveState:
        """The live state of the resources.

        Without a plan, the live state of all resources that are evaluated together is read on first use.
        """
        inputs = self._inputs
        if inputs.live is not None:
            return inputs.live
        names = {name for judged in inputs.subjects.values() for name in judged}
        selections = select_known(self._kind, names, inputs.desired, inputs.owned)
        return self._read(lambda: observe(inputs.connections, selections))

    @cached_property
    def _principal(self) -> str | None:
        return self._read(self._find_principal)

    def _find_principal(self) -> str | None:
        return find_principal(self._inputs.connections, self._kind.name)

    def _read(self, read: Callable[[], _T]) -> _T:
        self._is_reading = True
        try:
            return read()
        except Fault as fault:
            self.fault = fault
            raise
        finally:
            self._is_reading = False

    def _build_state(self, name: str, values: Values) -> PlainState:
        def raise_missing(field_name: str) -> NoReturn:
            resource = ResourceId(self._kind.name, name)
            raise PolicyViolation(
                f"'{field_name}' of {resource} is unknown, so the policy cannot be evaluated."
            )

        return PlainState(self._words, values, raise_missing)


class SnapshotReview(PlainReview):
    """Creates policy requests for resources in a snapshot."""

    def _find_principal(self) -> str | None:
        """Return None as the principal of requests, or raise Fault if the system authenticates clients.

        A snapshot does not record which principal took it. For a system that authenticates clients, None
        would wrongly mean that the request is not authenticated.
        """
        provider = find_provider(self._kind.name)
        if provider is not None and provider.find_principal is not None:
            raise Fault("NOT_IN_SNAPSHOT", "Snapshots do not record the principal that took them.")
        return None


@dataclass(frozen=True, slots=True)
class PlainSubjects:
    """Creates policy requests for a kind that does not create policy requests itself.

    subject: the kind, as a `PolicySubject`.
    """

    kind: Kind
    subject: PolicySubject

    @property
    def policy_words(self) -> PolicyWords:
        """The names of the variables and fields that rules for the kind can use."""
        return self.subject.policy_words

    def find_declared(self, desired: DesiredResource) -> Mapping[str, PlainDeclaredSubject]:
        """Return a mapping from the name of ``desired`` to ``desired`` as a subject of policies.

        The mapping is empty if ``desired`` is of a different kind.
        """
        if desired.id.kind != self.kind.name:
            return {}
        values = self.subject.describe_declared(desired)
        return {desired.id.name: PlainDeclaredSubject(desired.id.name, self.policy_words, values)}

    def find_policy_effects(self, op: Operation) -> Mapping[str, PlainEffect]:
        """Return the effects of an operation on resources of this kind, by resource name."""
        operation_type = get_operation_type(op)
        if operation_type.is_auxiliary:
            return {}
        changed = {op.resource, *operation_type.find_changed_resources(op)}
        subjects = {id_ for id_ in changed if id_.kind == self.kind.name}
        if not subjects:
            return {}
        created = operation_type.find_created_resource(op)
        deleted = operation_type.find_deleted_resource(op)
        fields = operation_type.fields(op)
        return {id_.name: PlainEffect(created == id_, deleted == id_, fields) for id_ in sorted(subjects)}

    def start_review(self, inputs: ReviewInputs) -> PlainReview:
        """Return a `Review` for resources that are evaluated together."""
        return PlainReview(self.kind, self.subject, inputs)

    def review_snapshot(self, inputs: ReviewInputs) -> SnapshotReview:
        """Return a `Review` for resources in a snapshot.

        inputs: the inputs of the evaluation, with the live state of the snapshot.
        """
        return SnapshotReview(self.kind, self.subject, inputs)

    def find_existing(
        self,
        names: Collection[str],
        desired: Mapping[str, DesiredResource],
        live: LiveState,
        owned: Mapping[str, OwnedRecord],
    ) -> list[str]:
        """Return the names of the resources that exist in the live state."""
        resources = {name: ResourceId(self.kind.name, name) for name in names}
        return [
            name
            for name, resource in resources.items()
            if self.subject.describe_live(resource, desired.get(name), live, owned.get(name)) is not None
        ]


def select_known(
    kind: Kind,
    names: Collection[str],
    desired: Mapping[str, DesiredResource],
    owned: Mapping[str, OwnedRecord],
) -> tuple[Selection, ...]:
    """Return the selections for reading the live state of these resources."""
    bodies = {name: desired[name].body if name in desired else None for name in sorted(names)}
    return tuple(s for name, body in bodies.items() for s in kind.select(name, body, owned.get(name)))


def _filter_plain_effects(effects: Sequence[PolicyEffect]) -> tuple[PlainEffect, ...]:
    return tuple(effect for effect in effects if isinstance(effect, PlainEffect))


def _as_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_as_text, value))
    if isinstance(value, dict):
        return ""  # a secret; only its reference is known
    return str(value).lower() if isinstance(value, bool) else str(value)
