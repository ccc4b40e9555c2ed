"""The base class of operation types for partitions.

For partitions that are being reassigned, views contain the target replicas.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue, as_ints
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import OperationType, View, with_args, with_inverse
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.arguments import PartitionsArgs
from kdeclare.providers.kafka.operations.kafka_operation_type import (
    KafkaOperationType,
    TopicEffect,
    build_identity_claims,
    build_identity_view,
)


class PartitionsOperationType(KafkaOperationType):
    """The base class of operation types whose arguments are partitions with replicas."""

    def select(self, op: Operation) -> Selections:
        """Select the topics of the operation's partitions."""
        return (KafkaSelection(collect_topics(get_targets(op))),)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the replicas of the partitions.

        For partitions that are being reassigned, return the target replicas.
        """
        state = live.get(KafkaState)
        targets = {p: state.replicas(TopicPartition.parse(p)) for p in get_targets(op)}
        replicas: dict[str, JsonValue] = {p: None if r is None else list(r) for p, r in targets.items()}
        return replicas | build_identity_view(collect_topics(get_targets(op)), state)

    def is_confined(self, op: Operation) -> bool:
        """Return whether the operation belongs to a Reassignment, or to the only topic of its partitions."""
        return is_confined_to_topics(op, collect_topics(get_targets(op)))

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return one field per partition whose replicas change."""
        return tuple(
            FieldChange(f"replicas.{name}", FieldOp.CHANGE, op.expect.get(name), replicas)
            for name, replicas in list_replicas(get_targets(op)).items()
            if op.expect.get(name) != replicas
        )

    def without_topics(self, op: Operation, topics: Set[str]) -> Operation | None:
        """Return the operation without the partitions of ``topics``, or None if no partition remains."""
        names = get_targets(op)
        remaining = [name for name in names if TopicPartition.parse(name).topic not in topics]
        return select_partitions(self, op, remaining) if remaining else None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim per partition, and the claims for the ids of the topics."""
        partitions = get_targets(op)
        return {p: f"replicas/{p}" for p in partitions} | build_identity_claims(collect_topics(partitions))

    def get_batch_key(self, op: Operation) -> str:
        """Return the id of the operation as the batch key, so that a request can contain several operations.

        This is safe because no two operations change the same partition.
        """
        return op.id

    def expected_state(self, op: Operation) -> View:
        """Return the target replicas."""
        return {**op.expect, **list_replicas(get_targets(op))}

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims for the replicas and leaders of the operation's partitions."""
        return frozenset(f"{what}/{p}" for p in get_targets(op) for what in ("replicas", "leader"))


def select_partitions(operation_type: OperationType, op: Operation, names: Sequence[str]) -> Operation:
    """Return a copy of ``op`` with only the partitions in ``names``."""
    all_args = get_arguments(op, PartitionsArgs)
    if len(names) == len(all_args.partitions):
        return op
    elements = (
        *names,
        *build_identity_claims(collect_topics(names)),
    )  # Look up only the named partitions, because an operation can contain thousands.
    args = replace(all_args, partitions={name: all_args.partitions[name] for name in names})
    expect = {element: op.expect[element] for element in elements if element in op.expect}
    selected = replace(op, args=args, expect=expect)
    return (
        with_args(selected, args) if operation_type.is_auxiliary else with_inverse(operation_type, selected)
    )


def is_confined_to_topics(op: Operation, topics: Set[str]) -> bool:
    """Return whether an operation belongs to a Reassignment, or to the only topic of its partitions."""
    kind, name = op.resource.kind, op.resource.name
    return kind == "Reassignment" or (kind == "Topic" and topics == {name})


def get_targets(op: Operation) -> Mapping[str, tuple[int, ...]]:
    """Return the target replicas of an operation, by partition."""
    return get_arguments(op, PartitionsArgs).partitions


def get_replicas_before(op: Operation, partition: str) -> tuple[int, ...]:
    """Return the expected replicas of a partition, or an empty tuple if the partition does not exist."""
    return as_ints(op.expect.get(partition) or ())


def list_replicas(targets: Mapping[str, tuple[int, ...]]) -> dict[str, list[int]]:
    """Convert the replicas of each partition to a list, as views require."""
    return {partition: list(replicas) for partition, replicas in targets.items()}


def collect_topics(partitions: Iterable[str]) -> frozenset[str]:
    """Return the topics of partitions. Partition names have the form ``<topic>-<n>``."""
    return frozenset(TopicPartition.parse(p).topic for p in partitions)


def merge_results(partitions: Iterable[str], results: Mapping[TopicPartition, Result]) -> Result:
    """Return the first fault of the partitions, with the number of further faults; None without faults."""
    faults = {p: results[TopicPartition.parse(p)] for p in partitions}
    refused = {p: fault for p, fault in faults.items() if fault is not None}
    if not refused:
        return None
    name, first = next(iter(refused.items()))
    others = f" ({len(refused) - 1} more partitions were refused)" if len(refused) > 1 else ""
    kind = FaultKind.UNKNOWN if any(f.kind is FaultKind.UNKNOWN for f in refused.values()) else first.kind
    return Fault(first.error, f"{name}: {first.message}{others}", kind)


def build_move_effects(op: Operation) -> Mapping[str, TopicEffect]:
    """Return the effects of a reassignment by topic, including a changed replication factor."""
    replicas: dict[str, dict[int, tuple[int, ...]]] = {}
    fields: dict[str, set[str]] = {}
    for name, target in get_targets(op).items():
        partition = TopicPartition.parse(name)
        replicas.setdefault(partition.topic, {})[partition.partition] = target
        topic_fields = fields.setdefault(partition.topic, {"assignments"})
        if op.expect.get(name) is not None and len(get_replicas_before(op, name)) != len(target):
            topic_fields.add("replicationFactor")
    return {t: TopicEffect(replicas=replicas[t], fields=frozenset(fields[t])) for t in replicas}
