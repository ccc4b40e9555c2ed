"""The Kafka provider, and the check for writes that brokers do not show yet.

Brokers respond with their own copy of the metadata, which lags slightly behind the controller. Dynamic broker
configs take effect even later.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from kdeclare.core.live.collector import PendingWrite
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import View, has_other_object
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.observed_effect import EffectRequest, ObservedEffect
from kdeclare.core.provider.installed_providers import resolve_group
from kdeclare.core.provider.provider import (
    ActivityWatch,
    Cleanup,
    CleanupRequest,
    ExaminationRequest,
    ExaminationResult,
    PlanSection,
    Provider,
)
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.providers.kafka.broker_config import BrokerConfigKind
from kdeclare.providers.kafka.collector import (
    CLUSTER,
    KafkaSelection,
    check_existence,
    find_principal,
    observe,
    select_topics,
)
from kdeclare.providers.kafka.config.catalog import is_likely_secret_key
from kdeclare.providers.kafka.connection import CONNECTION, KafkaConnection
from kdeclare.providers.kafka.consumer_group.group import KIND as GROUP_KIND
from kdeclare.providers.kafka.error_names import TOPIC_AUTHORIZATION_FAILED
from kdeclare.providers.kafka.fleet.codec import KafkaCodec
from kdeclare.providers.kafka.health import HEALTH_CHECKS
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.kind_groups import ACLS, CONSUMER_GROUPS, KIND_GROUPS, REPLICA_MOVES
from kdeclare.providers.kafka.operations.alter_configs import AlterConfigs
from kdeclare.providers.kafka.operations.delete_topic import DeleteTopic
from kdeclare.providers.kafka.operations.topics import CreateTopic, IncreasePartitions, get_topic_name
from kdeclare.providers.kafka.plan_options import ACL_LOCKOUT, LOCKOUT_HINT
from kdeclare.providers.kafka.planning import KafkaPlanning
from kdeclare.providers.kafka.reassignment.pace import REASSIGNMENTS
from kdeclare.providers.kafka.reassignment.placement_request import check_placement_conflicts
from kdeclare.providers.kafka.reassignment.shared_resource import SHARED_RESOURCE
from kdeclare.providers.kafka.topic.kind import TopicKind
from kdeclare.providers.kafka.topic.operations import check_colliding_names
from kdeclare.providers.kafka.typed_settings import is_secret_setting

_METADATA_ONLY_WRITES = frozenset(
    (verb, TopicKind.name)
    for verb in (CreateTopic.name, DeleteTopic.name, IncreasePartitions.name, AlterConfigs.name)
)
"""Pairs of operation type and kind that write only topic metadata."""


def find_invisible(connections: Connections, writes: Sequence[PendingWrite]) -> list[PendingWrite]:
    """Return the writes that brokers do not show yet. Raises Fault if the cluster does not respond."""
    cluster = connections.get(KafkaConnection).cluster
    if writes and cluster.is_caught_up():
        writes = [write for write in writes if _has_broker_configs(write.operation)]
    if not writes:
        return []
    selections = tuple(
        s for write in writes for s in get_operation_type(write.operation).select(write.operation)
    )
    try:
        live = LiveState(observe(cluster, CLUSTER.merge(selections) or KafkaSelection()))
        for group in KIND_GROUPS:
            if group.defines_type_of(selections):
                for collector in resolve_group(group).collectors:
                    part = collector.collect(connections, selections)
                    live = live if part is None else live.with_part(part)
    except Fault as fault:
        if fault.error != TOPIC_AUTHORIZATION_FAILED:
            raise
        # A different principal created these topics. This principal cannot see them, so do not wait for them.
        hidden = cluster.find_hidden_topics(sorted(select_topics(selections)))
        return find_invisible(connections, [w for w in writes if hidden.isdisjoint(_list_topics(w))])
    pending = [write for write in writes if _is_pending(write, live)]
    created = {
        w.operation.id: get_topic_name(w.operation) for w in pending if _is_topic_creation(w.operation)
    }
    absent = check_existence(cluster, created.values()).absent  # Another client deleted these topics.
    return [write for write in pending if created.get(write.operation.id) not in absent]


def is_all_visible(connections: Connections, written_types: Collection[tuple[str, str]]) -> bool:
    """Return whether brokers show all writes; False if a write changes more than topic metadata.

    Raises Fault.
    """
    if not _METADATA_ONLY_WRITES.issuperset(written_types):
        return False
    return connections.get(KafkaConnection).cluster.is_caught_up()


def _is_topic_creation(op: Operation) -> bool:
    return op.verb == "topic.create"


def _list_topics(write: PendingWrite) -> frozenset[str]:
    return frozenset(
        subject.name for subject in get_operation_type(write.operation).find_subjects(write.operation)
    )


def _has_broker_configs(op: Operation) -> bool:
    """Return whether the operation changes broker configs, which brokers apply after other metadata."""
    selection = CLUSTER.merge(get_operation_type(op).select(op))
    return selection is not None and any(
        resource.scope is ConfigScope.BROKER for resource in selection.configs
    )


def _is_pending(write: PendingWrite, live: LiveState) -> bool:
    """Return whether at least one element that the write changes still has its old value.

    A value that is neither the old nor the written value was set by another client and is not pending.
    """
    op = write.operation
    try:
        live_view = get_operation_type(op).compute_view(op, live)
    except Fault as fault:
        if fault.kind is not FaultKind.REFUSED:
            raise
        return False  # the principal cannot see the object, so it cannot wait for the write
    expected_view = get_operation_type(op).expected_state(op)
    if has_other_object(op, live_view):
        return False
    return any(
        element in expected_view
        and live_view.get(element) != expected_view[element]
        and _is_unchanged(op, element, live_view)
        for element in write.elements
    )


def _is_unchanged(op: Operation, element: str, live_view: View) -> bool:
    """Return whether an element of the view still has its old value; True if the old value is unknown.

    The old value is unknown for operations that remove throttles, because they have no expectations.
    """
    return element not in op.expect or bool(live_view.get(element) == op.expect[element])


# Few commands need these functions, so their modules are imported on first use.


def _examine(request: ExaminationRequest) -> ExaminationResult:
    from kdeclare.providers.kafka.doctor.examine import examine_cluster

    return examine_cluster(request)


def _start_watch(connections: Connections) -> ActivityWatch:
    from kdeclare.providers.kafka.reassignment.activity import MovesWatch

    return MovesWatch(connections)


def _describe_plan(operations: Sequence[Operation]) -> Iterator[PlanSection]:
    """Yield the Kafka sections of a plan: access of principals, replica moves, and offsets of groups."""
    sections: list[PlanSection | None] = []
    if ACLS.has_operation(operations):
        from kdeclare.providers.kafka.acl.plan_section import build_access_section

        sections.append(build_access_section(operations))
    if REPLICA_MOVES.has_operation(operations):
        from kdeclare.providers.kafka.reassignment.plan_section import build_moves_section

        sections.append(build_moves_section(operations))
    if CONSUMER_GROUPS.has_operation(operations):
        from kdeclare.providers.kafka.consumer_group.plan_section import build_offsets_section

        sections.append(build_offsets_section(operations))
    return (section for section in sections if section is not None)


def _observe_effects(request: EffectRequest) -> Iterator[ObservedEffect]:
    from kdeclare.providers.kafka.effects.kafka_effects import observe_kafka_effects

    return observe_kafka_effects(request)


def _find_cleanup(request: CleanupRequest) -> Cleanup | None:
    from kdeclare.providers.kafka.reassignment.cleanup import find_cleanup

    return find_cleanup(request)


PROVIDER = Provider(
    "kafka",
    kinds=(
        TopicKind(),
        BrokerConfigKind(),
    ),
    operation_types=(
        CreateTopic(),
        DeleteTopic(),
        IncreasePartitions(),
        AlterConfigs(),
    ),
    connection=CONNECTION,
    examine=_examine,
    kind_groups=KIND_GROUPS,
    collectors=(replace(CLUSTER, codec=KafkaCodec()),),
    plan_settings=REASSIGNMENTS,
    start_plan=KafkaPlanning,
    find_invisible=find_invisible,
    shows_all=is_all_visible,
    find_principal=find_principal,
    watch=_start_watch,
    find_cleanup=_find_cleanup,
    auxiliary_kinds=frozenset({SHARED_RESOURCE.kind, GROUP_KIND}),
    guards={ACL_LOCKOUT: LOCKOUT_HINT},
    health_checks=HEALTH_CHECKS,
    describe_plan=_describe_plan,
    observe_effects=_observe_effects,
    is_secret_setting=is_secret_setting,
    may_hold_secret=is_likely_secret_key,
    check_declared=check_colliding_names,
    find_contradictions=check_placement_conflicts,
)
