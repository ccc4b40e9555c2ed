"""Requests for topics as plain values, and a record of what a policy reads from one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kdeclare.policy.configured_policy import Policy
from kdeclare.policy.interface import Action, KnownImpact, PolicyViolation, RequestMetadata, TopicImpact


@dataclass(frozen=True)
class State:
    """A topic before or after a change (`TopicState`)."""

    num_partitions: int = 3
    replication_factor: int = 3
    replicas_assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """A request for a topic (`RequestMetadata`). sums: the results of `partitions_of`, by label set."""

    action: Action
    pre_request_state: State | None = None
    post_request_state: State | None = None
    changed: frozenset[str] = frozenset()
    topic: str = "orders"
    labels: Mapping[str, str] = field(default_factory=dict)
    labels_before: Mapping[str, str] = field(default_factory=dict)
    principal: str | None = None
    racks: Mapping[int, str | None] = field(default_factory=dict)
    record_count: int = 0
    sums: Mapping[frozenset[tuple[str, str]], int] = field(default_factory=dict)
    impact: TopicImpact = field(default_factory=KnownImpact)

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.topic

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """Return the count in ``sums``, or else 0."""
        return self.sums.get(frozenset(labels.items()), 0)


def make_assigned_state(*replicas: Sequence[int], configs: Mapping[str, str] | None = None) -> State:
    """Return a state with the brokers of each partition."""
    smallest = min(map(len, replicas))
    return State(len(replicas), smallest, dict(enumerate(replicas)), configs or {})


def make_creation(state: State, changed: frozenset[str] | None = None, **more: Any) -> Request:
    """Return a creation whose changed fields are all fields of the state, or ``changed``."""
    stated = {"assignments"} if state.replicas_assignments else {"partitions", "replicationFactor"}
    stated |= {f"configs.{key}" for key in state.configs}
    return Request(Action.CREATE, None, state, frozenset(stated) if changed is None else changed, **more)


def make_modification(pre: State, post: State, changed: frozenset[str] | None = None, **more: Any) -> Request:
    """Return a modification whose changed fields are those that differ between the states, or ``changed``."""
    fields = {
        "partitions": pre.num_partitions != post.num_partitions,
        "replicationFactor": pre.replication_factor != post.replication_factor,
        "assignments": any(
            replicas != post.replicas_assignments.get(n) for n, replicas in pre.replicas_assignments.items()
        ),
    }
    # Kafka adds partitions only with the replication factor of the existing ones, which are then reassigned
    pre_sizes, post_sizes = (set(map(len, s.replicas_assignments.values())) for s in (pre, post))
    fields["assignments"] |= bool(pre_sizes) and not post_sizes <= pre_sizes
    keys = pre.configs.keys() | post.configs.keys()
    fields |= {f"configs.{key}": pre.configs.get(key) != post.configs.get(key) for key in keys}
    different = frozenset(name for name, differs in fields.items() if differs)
    return Request(Action.MODIFY, pre, post, different if changed is None else changed, **more)


def make_deletion(pre: State, **more: Any) -> Request:
    """Return a deletion."""
    return Request(Action.DELETE, pre, None, **more)


class _ReadRecorder:
    """Forwards attribute reads and records their names, also for the states."""

    def __init__(self, inner: object, reads: list[str], prefix: str = "") -> None:
        self._inner, self._reads, self._prefix = inner, reads, prefix

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if isinstance(value, State):
            return _ReadRecorder(value, self._reads, name.partition("_")[0] + ".")
        if value is not None:
            self._reads.append(self._prefix + name)
        return value


_FREE = frozenset({"action", "topic", "name", "changed"})
"""What a request is about; that is known before anything is asked."""


def record_reads(policy: Policy, request: Request) -> set[str]:
    """Return what a policy reads besides the basic fields: ``labels``, ``post.configs``, ``racks``."""
    reads: list[str] = []
    find_violation(policy, cast(RequestMetadata, _ReadRecorder(request, reads)))
    return set(reads) - _FREE


def find_violation(policy: Policy, request: RequestMetadata) -> str | None:
    """Return the policy's reason to deny a request; None if it allows it."""
    try:
        policy.validate(request)
    except PolicyViolation as violation:
        return str(violation)
    return None
