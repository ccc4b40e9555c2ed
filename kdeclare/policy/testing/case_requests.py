"""Policy requests that are built from test cases. A test case can omit fields of a request."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import NoReturn

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.policies.policy_request import LabelSet, PolicyAction, UnavailableError, UnavailableTracker
from kdeclare.core.policies.policy_subjects import find_policy_words
from kdeclare.policy.interface import Action, KnownImpact, PolicyViolation, TopicImpact
from kdeclare.policy.plain_requests import PlainRequest, PlainState, Values, list_fields

_ASSIGNMENT_FIELDS = frozenset({"partitions", "replicationFactor", "assignments"})
"""The changed fields of a new topic whose request contains assignments.

The assignments also determine the partition count and the replication factor.
"""

Labels = frozenset[tuple[str, str]]
"""Labels as a hashable set of key-value pairs."""


class MissingCaseField(UnavailableError):
    """Raised if a policy reads a field that the test case does not set.

    field_name: the name of the field in the file.
    """

    def __init__(self, field_name: str) -> None:
        self.what = field_name
        super().__init__(field_name)


@dataclass(frozen=True, slots=True)
class CaseState:
    """A topic before or after the change in a test case.

    name: ``pre`` or ``post``, for messages about missing fields.
    partitions, factor: the partition count and the replication factor; None if unknown.
    replicas: the assignments in the case, by partition.
    overrides: the config overrides; None if the case does not contain this state.
    states_factor: whether the case sets the replication factor. If not, the replication factor is derived
        from the assignments.
    withholding: keeps track of missing fields that a policy reads. The request uses the same object.
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
        """The number of partitions in the case or, if the case does not set it, the number of assignments."""
        return self._require_value(self.partitions, "partitions")

    @property
    def replication_factor(self) -> int:
        """The replication factor in the case or, if the case does not set it, that of the assignments."""
        return self._require_value(self.factor, "replicationFactor")

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """The assignments in the case. Kafka will place partitions that have no assignment."""
        self._require_state()
        return dict(self.replicas)

    @property
    def configs(self) -> Mapping[str, str]:
        """The config overrides in the case. The topic has no other overrides."""
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


UNKNOWN = "unknown"
"""The value of a property of `policy.interface.TopicImpact` that kdeclare could not determine."""

Fact = int | Sequence[str] | None
"""The value of an impact property in a test case: a number, the names of groups, or `UNKNOWN`."""


@dataclass(frozen=True, slots=True)
class CaseImpact:
    """The impact of a request in a test case; see `policy.interface.TopicImpact`.

    given: the properties that the case sets, by their names in rules.
    withholding: keeps track of properties that a policy reads although the case does not set them.
    """

    topic: str
    given: Mapping[str, Fact] = field(default_factory=dict)
    withholding: UnavailableTracker = field(default_factory=UnavailableTracker, compare=False)

    @property
    def records(self) -> int:
        """The number of records."""
        return self._get_number("records")

    @property
    def bytes(self) -> int:
        """The size of the topic."""
        return self._get_number("bytes")

    @property
    def deleted_records(self) -> int:
        """The number of records that the request deletes."""
        return self._get_number("deletedRecords")

    @property
    def deleted_bytes(self) -> int:
        """The number of bytes that the request deletes."""
        return self._get_number("deletedBytes")

    @property
    def unread_records(self) -> int:
        """The number of records that the request deletes and that at least one group has not read."""
        return self._get_number("unreadRecords")

    @property
    def unread_groups(self) -> Sequence[str]:
        """The groups that have not read all of the records that the request deletes."""
        return self._get_names("unreadGroups")

    @property
    def active_consumers(self) -> int:
        """The number of group members that are assigned partitions of the topic."""
        return self._get_number("activeConsumers")

    @property
    def active_groups(self) -> Sequence[str]:
        """The groups whose members are assigned partitions of the topic."""
        return self._get_names("activeGroups")

    @property
    def active_producers(self) -> int:
        """The number of producers that wrote within the last hour or have an open transaction."""
        return self._get_number("activeProducers")

    @property
    def last_write_ms(self) -> int | None:
        """The timestamp of the newest record; None if there are no records."""
        value = self._get("lastWriteMs")
        return value if isinstance(value, int) else None

    def _get_number(self, name: str) -> int:
        value = self._get(name)
        return value if isinstance(value, int) else self._raise_missing(name)

    def _get_names(self, name: str) -> Sequence[str]:
        value = self._get(name)
        return value if isinstance(value, Sequence) else self._raise_missing(name)

    def _get(self, name: str) -> Fact:
        if name not in self.given:
            self._raise_missing(name)
        value = self.given[name]
        if value == UNKNOWN:
            raise PolicyViolation(
                f"'impact.{name}' of Topic/{self.topic} is unknown, so the policy cannot be evaluated: "
                "the test case sets no value."
            )
        return value

    def _raise_missing(self, name: str) -> NoReturn:
        self.withholding.withhold(MissingCaseField(f"impact.{name}"))


@dataclass(frozen=True, slots=True)
class CaseRequest:
    """A request for one topic in a test case; see `policy.interface.RequestMetadata`.

    given_labels, given_before: the labels after and before the change. If ``given_before`` is None, the
        labels do not change.
    stated: the changed fields that the case lists; None to compare the states before and after the change.
    rack_of, records: the racks by broker, and the number of records; None if the case does not set them.
    sums: the total number of partitions for each combination of labels that the case sets.
    facts: the values of impact properties that the case sets, by their names in rules.
    withholding: keeps track of fields that the current policy reads although the case does not set them.
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
    facts: Mapping[str, Fact] = field(default_factory=dict)
    withholding: UnavailableTracker = field(default_factory=UnavailableTracker, compare=False)

    def __post_init__(self) -> None:
        """Make both states record missing fields in the ``withholding`` tracker of the request."""
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
        """The labels in the case."""
        return dict(self.given_labels)

    @property
    def labels_before(self) -> Mapping[str, str]:
        """The labels before the change. The default is the labels after the change; on CREATE, no labels."""
        if self.given_before is not None:
            return dict(self.given_before)
        return {} if self.action is Action.CREATE else self.labels

    @property
    def changed(self) -> frozenset[str]:
        """The changed fields in the case, or else the fields that differ between the states.

        On CREATE, the default is all fields of the new topic.
        """
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
        """The racks in the case, by broker id."""
        if self.rack_of is None:
            self.withholding.withhold(MissingCaseField("racks"))
        return dict(self.rack_of)

    @property
    def record_count(self) -> int:
        """The number of records in the case. On CREATE, 0."""
        if self.action is Action.CREATE:
            return 0
        if self.records is None:
            self.withholding.withhold(MissingCaseField("records"))
        return self.records

    @property
    def impact(self) -> TopicImpact:
        """The impact in the case. On CREATE, no impact."""
        if self.action is Action.CREATE:
            return KnownImpact()
        return CaseImpact(self.topic, self.facts, self.withholding)

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """Return the number of partitions that the case sets for exactly these labels."""
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
    # a field that neither state sets has not changed
    if (pre.partitions, post.partitions) != (None, None) and pre.num_partitions != post.num_partitions:
        changed_fields.add("partitions")
    if (pre.factor, post.factor) != (None, None) and pre.replication_factor != post.replication_factor:
        changed_fields |= {"replicationFactor", "assignments"}  # a new factor requires new replicas
    if any(replicas != post.replicas.get(number, replicas) for number, replicas in pre.replicas.items()):
        changed_fields.add("assignments")
    return frozenset(changed_fields)


def _find_changed_configs(pre: Mapping[str, str], post: Mapping[str, str]) -> set[str]:
    return {f"configs.{key}" for key in pre.keys() | post.keys() if pre.get(key) != post.get(key)}


@dataclass(frozen=True, slots=True)
class CaseResource:
    """A request for a resource that is not a topic, in a test case.

    labels_before: the labels before the change; None if the labels do not change.
    before, after: the values of the fields before and after the change; None if the case does not set them.
    changed: the changed fields that the case lists; None to compare ``before`` and ``after``.
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
        """Return the request for the policies. Raises LookupError if policies do not support the kind."""
        words = find_policy_words(self.kind)
        if words is None:
            raise LookupError(f"policies cannot check resources of kind {self.kind}")
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
