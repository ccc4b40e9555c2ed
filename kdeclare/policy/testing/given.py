"""Requests as a policy's author writes them down, to see what the policy says of them."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import NoReturn

from kdeclare.core.frozen import dataclass
from kdeclare.core.resources.policy_subjects import (
    LabelSet,
    PolicyAction,
    Withheld,
    Withholding,
    find_policy_words,
)
from kdeclare.policy.interface import Action
from kdeclare.policy.plain import PlainRequest, PlainState, Values, list_fields

_ASSIGNED = frozenset({"partitions", "replicationFactor", "assignments"})
"""What a creation with assignments is about: the counts follow from them."""

Labels = frozenset[tuple[str, str]]
"""Labels as pairs, for looking them up."""


class NotGiven(Withheld):
    """A policy asks for what the case does not say.

    what: the field of the case, as it is called in the file.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)


@dataclass(frozen=True, slots=True)
class GivenState:
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
    withholding: Withholding = field(default_factory=Withholding, compare=False)

    @property
    def num_partitions(self) -> int:
        """As given, or as the assignments have it."""
        return self._given(self.partitions, "partitions")

    @property
    def replication_factor(self) -> int:
        """As given, or as the assignments have it."""
        return self._given(self.factor, "replicationFactor")

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """Those that are given; Kafka is to place the others."""
        self._must_be_there()
        return dict(self.replicas)

    @property
    def configs(self) -> Mapping[str, str]:
        """Those that are given; as in a manifest, there are no others."""
        self._must_be_there()
        return dict(self.overrides or {})

    def _given(self, value: int | None, what: str) -> int:
        self._must_be_there()
        if value is None:
            self.withholding.withhold(NotGiven(f"{self.name}.{what}"))
        return value

    def _must_be_there(self) -> None:
        if self.overrides is None:
            self.withholding.withhold(NotGiven(self.name))


@dataclass(frozen=True, slots=True)
class GivenRequest:
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
    pre_request_state: GivenState | None = None
    post_request_state: GivenState | None = None
    stated: frozenset[str] | None = None
    rack_of: Mapping[int, str | None] | None = None
    records: int | None = None
    sums: Mapping[Labels, int] = field(default_factory=dict)
    given_before: Mapping[str, str] | None = None
    withholding: Withholding = field(default_factory=Withholding, compare=False)

    def __post_init__(self) -> None:
        """What the states do not say is withheld by the request."""
        for name in ("pre_request_state", "post_request_state"):
            state: GivenState | None = getattr(self, name)
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
        return _created(post) if self.pre_request_state is None else _modified(self.pre_request_state, post)

    @property
    def racks(self) -> Mapping[int, str | None]:
        """By broker."""
        if self.rack_of is None:
            self.withholding.withhold(NotGiven("racks"))
        return dict(self.rack_of)

    @property
    def record_count(self) -> int:
        """0 on CREATE."""
        if self.action is Action.CREATE:
            return 0
        if self.records is None:
            self.withholding.withhold(NotGiven("records"))
        return self.records

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """As given for just these labels."""
        found = self.sums.get(frozenset(labels.items()))
        if found is None:
            written = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
            self.withholding.withhold(NotGiven(f"partitionsOf: {{{written}: …}}"))
        return found


def _created(post: GivenState) -> frozenset[str]:
    found = _configs_that_differ({}, post.configs)
    if post.replicas:
        return _ASSIGNED | found
    found |= {"partitions"} if post.partitions is not None else set()
    found |= {"replicationFactor"} if post.states_factor else set()
    return frozenset(found)


def _modified(pre: GivenState, post: GivenState) -> frozenset[str]:
    found = _configs_that_differ(pre.configs, post.configs)
    # what neither says anything of has not changed
    if (pre.partitions, post.partitions) != (None, None) and pre.num_partitions != post.num_partitions:
        found.add("partitions")
    if (pre.factor, post.factor) != (None, None) and pre.replication_factor != post.replication_factor:
        found |= {"replicationFactor", "assignments"}  # replicas are what changes it
    if any(replicas != post.replicas.get(number, replicas) for number, replicas in pre.replicas.items()):
        found.add("assignments")
    return frozenset(found)


def _configs_that_differ(pre: Mapping[str, str], post: Mapping[str, str]) -> set[str]:
    return {f"configs.{key}" for key in pre.keys() | post.keys() if pre.get(key) != post.get(key)}


@dataclass(frozen=True, slots=True)
class GivenResource:
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
        withholding = Withholding()

        def state(side: str, values: Values | None) -> PlainState:
            def missing(field_name: str) -> NoReturn:
                withholding.withhold(NotGiven(f"{side}.{field_name}"))

            if values is None:
                withholding.withhold(NotGiven(side))
            return PlainState(words, values, missing)

        changed = self.changed
        if changed is None:
            before, after = self.before or {}, self.after or {}
            stated = list_fields(words, before) | list_fields(words, after)
            changed = frozenset(f for f in stated if _value_of(before, f) != _value_of(after, f))
        creates, deletes = self.action is PolicyAction.CREATE, self.action is PolicyAction.DELETE
        labels_before = self.labels if self.labels_before is None else self.labels_before
        return PlainRequest(
            self.action,
            self.name,
            self.labels,
            {} if creates else labels_before,
            frozenset() if deletes and self.changed is None else changed,
            lambda: state("before", self.before),
            lambda: state("after", self.after),
            lambda: self.principal,
            withholding,
        )


def _value_of(values: Values, path: str) -> object:
    name, dot, key = path.partition(".")
    whole = values.get(name)
    return whole.get(key) if dot and isinstance(whole, Mapping) else whole
