"""Requests as a policy's author writes them down, to see what the policy says of them."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import NoReturn

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.policy_subjects import (
    LabelSet,
    PolicyAction,
    UnavailableError,
    UnavailableTracker,
    find_policy_words,
)
from kdeclare.policy.interface import Action
from kdeclare.policy.plain_requests import PlainRequest, PlainState, Values, list_fields

_ASSIGNMENT_FIELDS = frozenset({"partitions", "replicationFactor", "assignments"})
"""What a creation with assignments is about: the counts follow from them."""

Labels = frozenset[tuple[str, str]]
"""Labels as pairs, for looking them up."""


class MissingCaseField(UnavailableError):
    """A policy asks for what the case does not say.

    field_name: the field of the case, as it is called in the file.
    """

    def __init__(self, field_name: str) -> None:
        self.what = field_name
        super().__init__(field_name)


@dataclass(frozen=True, slots=True)
class CaseState:
    """A topic before or after, as far as a case says.

    name: ``pre`` or ``post``, for what is missing. partitions, factor: None is "not given".
    replicas: by partition, those that are given. overrides: None where nothing at all is given.
    states_factor: whether the factor is stated, and does not only follow from the replicas.
    withholding: that of the request.
    """

    name: str
    partitions: int | None = None
    factor: int | None = None
    replicas: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    overrides: Mapping[str, str] | None = None
    states_factor: bool = False
    withholding: UnavailableTracker = field(default_factory=UnavailableTracker, compare=False)

    @property
    def num_partitions(self) -> int:
        """As given, or as the assignments have it."""
        return self._require_value(self.partitions, "partitions")

    @property
    def replication_factor(self) -> int:
        """As given, or as the assignments have it."""
        return self._require_value(self.factor, "replicationFactor")

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """Those that are given; Kafka is to place the others."""
        self._require_state()
        return dict(self.replicas)

    @property
    def configs(self) -> Mapping[str, str]:
        """Those that are given; as in a manifest, there are no others."""
        self._require_state()
        return dict(self.overrides or {})

    def _require_value(self, value: int | None, field_name: str) -> int:
        self._require_state()
        if value is None:
            self.withholding.withhold(MissingCaseField(f"{self.name}.{field_name}"))
        return value

    def _require_state(self) -> None:
        if self.overrides is None:
            self.withholding.withhold(MissingCaseField(self.name))


@dataclass(frozen=True, slots=True)
class CaseRequest:
    """One request about one topic, as far as a case says; see `policy.interface.RequestMetadata`.

    stated: the fields that it is about, where the case says so; else they follow from the states.
    given_labels, given_before: the labels; of those before, None is "the same".
    rack_of, records, sums: None, or without what is asked for, is "not given".
    withholding: what the policy that is being asked was not told.
    """

    action: Action
    topic: str
    principal: str | None = None
    given_labels: Mapping[str, str] = field(default_factory=dict)
    pre_request_state: CaseState | None = None
    post_request_state: CaseState | None = None
    stated: frozenset[str] | None = None
    rack_of: Mapping[int, str | None] | None = None
    records: int | None = None
    sums: Mapping[Labels, int] = field(default_factory=dict)
    given_before: Mapping[str, str] | None = None
    withholding: UnavailableTracker = field(default_factory=UnavailableTracker, compare=False)

    def __post_init__(self) -> None:
        """What the states do not say is withheld by the request."""
        for name in ("pre_request_state", "post_request_state"):
            state: CaseState | None = getattr(self, name)
            if state is not None:
                object.__setattr__(self, name, replace(state, withholding=self.withholding))

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.topic

    @property
    def labels(self) -> Mapping[str, str]:
        """As given."""
        return dict(self.given_labels)

    @property
    def labels_before(self) -> Mapping[str, str]:
        """As given for before; else the same, on CREATE none."""
        if self.given_before is not None:
            return dict(self.given_before)
        return {} if self.action is Action.CREATE else self.labels

    @property
    def changed(self) -> frozenset[str]:
        """As stated, or what differs between the two states; on CREATE all that the state has."""
        if self.stated is not None:
            return self.stated
        post = self.post_request_state
        if post is None:
            return frozenset()
        return (
            _collect_created_fields(post)
            if self.pre_request_state is None
            else _collect_changed_fields(self.pre_request_state, post)
        )

    @property
    def racks(self) -> Mapping[int, str | None]:
        """By broker."""
        if self.rack_of is None:
            self.withholding.withhold(MissingCaseField("racks"))
        return dict(self.rack_of)

    @property
    def record_count(self) -> int:
        """0 on CREATE."""
        if self.action is Action.CREATE:
            return 0
        if self.records is None:
            self.withholding.withhold(MissingCaseField("records"))
        return self.records

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """As given for just these labels."""
        count = self.sums.get(frozenset(labels.items()))
        if count is None:
            label_text = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
            self.withholding.withhold(MissingCaseField(f"partitionsOf: {{{label_text}: …}}"))
        return count


def _collect_created_fields(post: CaseState) -> frozenset[str]:
    changed_fields = _find_changed_configs({}, post.configs)
    if post.replicas:
        return _ASSIGNMENT_FIELDS | changed_fields
    changed_fields |= {"partitions"} if post.partitions is not None else set()
    changed_fields |= {"replicationFactor"} if post.states_factor else set()
    return frozenset(changed_fields)


def _collect_changed_fields(pre: CaseState, post: CaseState) -> frozenset[str]:
    changed_fields = _find_changed_configs(pre.configs, post.configs)
    # what neither says anything of has not changed
    if (pre.partitions, post.partitions) != (None, None) and pre.num_partitions != post.num_partitions:
        changed_fields.add("partitions")
    if (pre.factor, post.factor) != (None, None) and pre.replication_factor != post.replication_factor:
        changed_fields |= {"replicationFactor", "assignments"}  # replicas are what changes it
    if any(replicas != post.replicas.get(number, replicas) for number, replicas in pre.replicas.items()):
        changed_fields.add("assignments")
    return frozenset(changed_fields)


def _find_changed_configs(pre: Mapping[str, str], post: Mapping[str, str]) -> set[str]:
    return {f"configs.{key}" for key in pre.keys() | post.keys() if pre.get(key) != post.get(key)}


@dataclass(frozen=True, slots=True)
class CaseResource:
    """What a case says of a resource of a kind other than Topic.

    before, after: the fields of the states; None is "not given". labels_before: None is "the same".
    """

    kind: str
    action: PolicyAction
    name: str
    principal: str | None = None
    labels: LabelSet = field(default_factory=dict)
    labels_before: LabelSet | None = None
    before: Values | None = None
    after: Values | None = None
    changed: frozenset[str] | None = None

    def make_request(self) -> PlainRequest:
        """Return the request. Raises LookupError where policies cannot judge the kind."""
        words = find_policy_words(self.kind)
        if words is None:
            raise LookupError(f"policies cannot judge resources of kind {self.kind}")
        withholding = UnavailableTracker()

        def build_state(side: str, values: Values | None) -> PlainState:
            def raise_missing(field_name: str) -> NoReturn:
                withholding.withhold(MissingCaseField(f"{side}.{field_name}"))

            if values is None:
                withholding.withhold(MissingCaseField(side))
            return PlainState(words, values, raise_missing)

        changed = self.changed
        if changed is None:
            before, after = self.before or {}, self.after or {}
            stated_fields = list_fields(words, before) | list_fields(words, after)
            changed = frozenset(f for f in stated_fields if _find_value(before, f) != _find_value(after, f))
        is_creation, is_deletion = self.action is PolicyAction.CREATE, self.action is PolicyAction.DELETE
        labels_before = self.labels if self.labels_before is None else self.labels_before
        return PlainRequest(
            self.action,
            self.name,
            self.labels,
            {} if is_creation else labels_before,
            frozenset() if is_deletion and self.changed is None else changed,
            lambda: build_state("before", self.before),
            lambda: build_state("after", self.after),
            lambda: self.principal,
            withholding,
        )


def _find_value(values: Values, path: str) -> object:
    name, dot, key = path.partition(".")
    value = values.get(name)
    return value.get(key) if dot and isinstance(value, Mapping) else value
