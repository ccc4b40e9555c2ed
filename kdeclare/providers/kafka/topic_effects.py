"""What resources and operations make of topics, for whoever judges topics (KIP-201)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Protocol, runtime_checkable

from kdeclare.core.kind import Desired
from kdeclare.core.operations import Operation
from kdeclare.core.registry import KINDS, type_of

REPLICAS_FIELD = "replicas."
"""How the path of a field begins that is about the replicas of one partition, which follows."""


def find_field_topic(path: str) -> str | None:
    """Return the topic whose replicas a field is about; None where it is about something else."""
    partition = path.removeprefix(REPLICAS_FIELD)
    return None if partition == path else partition.rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class Effect:
    """What an operation makes of one topic; what it says nothing of stays as it is.

    created, deleted: whether the topic is there only afterwards, or only before.
    partitions, factor: of a creation None is "Kafka's default".
    replicas: by partition, those that are named.
    configs: the overrides as they will be; None is "no override".
    fields: what it is about, in the words of a plan: ``partitions``, ``replicationFactor``,
        ``assignments``, ``configs.<key>``.
    """

    created: bool = False
    deleted: bool = False
    partitions: int | None = None
    factor: int | None = None
    replicas: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)
    fields: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Stated:
    """What a resource says of a topic, as if the topic were created so.

    open: config keys whose value depends on what the topic has, if it is there already.
    placed: whether kdeclare chooses the replicas of a new topic, which takes a cluster.
    """

    effect: Effect
    open: frozenset[str] = frozenset()
    placed: bool = False


@runtime_checkable
class StatesTopics(Protocol):
    """A kind whose resources say something of topics."""

    def find_static_topic_state(self, name: str, body: Any) -> Mapping[str, Stated]:
        """Return what the resource says of which topics without asking any cluster."""


@runtime_checkable
class AffectsTopics(Protocol):
    """An operation type that makes something of topics."""

    def effects(self, op: Operation) -> Mapping[str, Effect]:
        """Return what ``op`` makes of which topics."""


# Looked up once: checks of protocols are slow, and a plan makes thousands of them.


@lru_cache(maxsize=1024)  # each unknown operation type is a value of its own
def _affecting_topics(operation_type: object) -> AffectsTopics | None:
    return operation_type if isinstance(operation_type, AffectsTopics) else None


@cache
def _stating_topics(kind: object) -> StatesTopics | None:
    return kind if isinstance(kind, StatesTopics) else None


def find_static_topic_state(desired: Desired) -> Mapping[str, Stated]:
    """Return what a resource says of which topics without asking any cluster."""
    kind = _stating_topics(KINDS[desired.id.kind])
    return kind.find_static_topic_state(desired.id.name, desired.body) if kind is not None else {}


def find_effects(op: Operation) -> Mapping[str, Effect]:
    """Return what an operation makes of which topics; steps that only accompany others make nothing."""
    operation_type = _affecting_topics(type_of(op))
    return operation_type.effects(op) if operation_type is not None else {}
