"""The planning hooks of the Kafka provider, for checks that need several resources."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache, cached_property
from typing import Protocol, runtime_checkable

from kdeclare.core.diagnostics import Diagnostic, Severity, denied, info, warning
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.plan import Verdict
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanStep
from kdeclare.core.provider.group_hooks import GroupHooks
from kdeclare.core.provider.registry import KINDS, get_operation_type
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.providers.kafka.collector import CLUSTER, KafkaSelection, warn_moves_not_visible
from kdeclare.providers.kafka.config.config_value import UNKNOWN_CONFIG
from kdeclare.providers.kafka.config.hidden_configs import (
    find_needed_unreadable,
    leave_unreadable,
    warn_unreadable_configs,
)
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, is_topic
from kdeclare.providers.kafka.impact.reading_order import ReadingOrder
from kdeclare.providers.kafka.kind_groups import (
    ACLS,
    CLIENT_QUOTAS,
    KIND_GROUPS,
    REPLICA_MOVES,
    SCRAM_USERS,
)
from kdeclare.providers.kafka.listed_configs.collector import LISTED_SCOPES
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.arguments import DeleteTopicArgs
from kdeclare.providers.kafka.plan_options import get_kafka_options
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.load_aware_placer import LoadAwarePlacer
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import get_move_cleanup
from kdeclare.providers.kafka.reassignment.placement_request import (
    PlacementContext,
    check_placement_conflicts,
    collect_excluded_brokers,
)
from kdeclare.providers.kafka.request_values import ConfigQuery
from kdeclare.providers.kafka.topic.diff import MOVE_IN_FLIGHT
from kdeclare.providers.kafka.topic.operations import check_renames, order_colliding_names
from kdeclare.providers.kafka.topic.replaced_topics import check_replaced_topics

_PLACEMENT_FIELDS = {"replicas", "assignments", "replicationFactor"}
_AWAITED_HINT = "Run kdeclare apply. It waits until the reassignment is finished, and then continues."
_OVERRIDDEN_HINT = (
    "Run kdeclare apply. It redirects the partitions, because you passed --override-reassignments."
)


class KafkaPlanning(PlanHooks):
    """The planning hooks for placement and topics. They also call the hooks of the groups of kinds."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Prepare the hooks for one plan. Raises KdeclareError if the state has a damaged pending cleanup."""
        self._inputs = inputs
        self._options = get_kafka_options(inputs.options)
        self._live = inputs.live.get(KafkaState)
        self._pending_cleanup = get_move_cleanup(inputs.state)
        self._shared_load: LoadAwarePlacer | None = None
        self._group_hooks = GroupHooks(KIND_GROUPS, inputs)
        if self._live.moves:  # changes to topics may have to wait for them
            self._group_hooks.start([REPLICA_MOVES])

    @cached_property
    def _foreign_move_topics(self) -> Set[str]:
        """The topics with an in-flight reassignment that kdeclare did not start."""
        own_moves = frozenset(self._pending_cleanup.moves)
        return {partition.topic for partition in self._live.moves if str(partition) not in own_moves}

    def prepare(self) -> PlacementContext:
        """Create the placer that all resources share, so that it considers the total load of brokers."""
        inputs = self._inputs
        inputs.shared_reads.get(ReadingOrder, lambda: ReadingOrder(groups_first=inputs.shows_impact))
        self._shared_load = LoadAwarePlacer(
            self._live, collect_excluded_brokers(self._inputs.desired, self._live)
        )
        return PlacementContext(self._shared_load)

    def review_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        """Remove diagnostics about config keys that are not in the catalog but that the cluster knows."""
        cluster = self._inputs.connections.get(KafkaConnection).cluster
        return check_unknown_keys(cluster, self._live, diagnostics, preflight=self._inputs.has_preflight)

    def withhold(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        """Leave objects unchanged if the principal cannot describe them."""
        if self._live.hidden or self._live.unreadable:
            selection = self._build_selection(resource, desired, owned)
            hidden_topics = sorted(selection.topics & self._live.hidden)
            if hidden_topics:
                return _leave_hidden(resource, desired, owned, hidden_topics)
            needed = find_needed_unreadable(self._live, selection, desired)
            if needed is not None:
                return leave_unreadable(resource, desired, owned, self._live.unreadable[needed])
        results = (hooks.withhold(resource, desired, owned) for hooks in self._group_hooks.list_started())
        return next((difference for difference in results if difference is not None), None)

    def review_difference(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        owned: OwnedRecord | None,
        difference: Difference,
    ) -> Difference:
        """Allow changes that wait for a reassignment. Block changes to resources with pending writes."""
        if desired is not None and any(d.code == MOVE_IN_FLIGHT for d in difference.diagnostics):
            difference = self._permit_moving(resource, desired, owned, difference)
        if resource in self._inputs.pending:
            return _hold_back(resource, owned, difference)
        for hooks in self._group_hooks.list_started():
            difference = hooks.review_difference(resource, desired, owned, difference)
        return difference

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Require topic ids for deletions.

        Also delay or deny the creation of topics whose names collide with existing topics.
        """
        inputs, options, live = self._inputs, self._options, self._live
        problems = [] if live.moves_fault is None else [warn_moves_not_visible(live.moves_fault)]
        problems += warn_unreadable_configs(live, compared)
        problems += check_placement_conflicts(inputs.desired, live.topics)
        if not options.delete_by_name:
            problems += [report_missing_topic_id(op) for op in operations if is_deletion_by_name(op)]
        if not inputs.by_hand:  # For ad hoc requests, the brokers report colliding names.
            operations, collisions = order_colliding_names(operations, live.topics)
            problems += [*collisions, *check_renames(compared, collisions)]
        for hooks in self._group_hooks.list_for(operations):
            step = hooks.refine(operations, compared)
            operations, problems = step.operations, [*problems, *step.diagnostics]
        return PlanStep(operations, tuple(problems))

    def guard(self, operations: tuple[Operation, ...]) -> tuple[Verdict, ...]:
        """Return the verdicts of the hooks of all kinds."""
        hooks = self._group_hooks.list_for(operations)
        return tuple(verdict for own_hooks in hooks for verdict in own_hooks.guard(operations))

    def settle(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Call the hooks of the groups of kinds."""
        problems: tuple[Diagnostic, ...] = ()
        for hooks in self._group_hooks.list_for(operations):
            step = hooks.settle(operations, compared)
            operations, problems = step.operations, (*problems, *step.diagnostics)
        return PlanStep(operations, problems)

    def preflight(self, operations: tuple[Operation, ...]) -> tuple[Diagnostic, ...]:
        """Check that topics can be re-created."""
        cluster = self._inputs.connections.get(KafkaConnection).cluster
        problems = check_replaced_topics(operations, cluster, self._live.topics)
        hooks = self._group_hooks.list_for(operations)
        return (*problems, *(d for own_hooks in hooks for d in own_hooks.preflight(operations)))

    def finalize(self, operations: tuple[Operation, ...]) -> PlanStep:
        """Explain racks that affect the chosen replicas. Call the hooks of the groups of kinds."""
        findings: list[Diagnostic] = []
        if self._shared_load is not None and self._shared_load.has_moved:
            from kdeclare.providers.kafka.reassignment.placement import explain_rack_layout

            racks = explain_rack_layout(self._live.cluster.brokers)
            findings += [info("racks", "Uneven rack layout", text) for text in racks]
        for hooks in self._group_hooks.list_for(operations):
            step = hooks.finalize(operations)
            operations, findings = step.operations, [*findings, *step.diagnostics]
        return PlanStep(operations, tuple(findings))

    def observe_impact(
        self, operations: tuple[Operation, ...], changes: Sequence[Change]
    ) -> Iterable[Observation]:
        """Return the impact on records, on clients, and on the access of clients.

        Also return how much data the reassignments copy. New topics have no impact. The modules are imported
        only for plans that need them.
        """
        if all(change.action is Action.CREATE and is_topic(change.id) for change in changes) and not (
            REPLICA_MOVES.has_operation(operations)
        ):
            return
        from kdeclare.providers.kafka.impact.impact_reader import get_impact_reader
        from kdeclare.providers.kafka.impact.topic_impact import observe_topics

        inputs, live = self._inputs, self._live
        cluster = inputs.connections.get(KafkaConnection).cluster
        reader = get_impact_reader(inputs.shared_reads, cluster)
        yield from observe_topics(reader, live, operations, changes)
        if REPLICA_MOVES.has_operation(operations):
            from kdeclare.providers.kafka.impact.move_impact import observe_moves

            yield from observe_moves(cluster, live, operations, reader.compute_deadline())
        if _may_affect_access(operations, changes):
            from kdeclare.providers.kafka.impact.access.access_impact import observe_access

            yield from observe_access(reader, inputs.live, inputs.desired, operations, changes)

    def locate_members(self, operations: Sequence[Operation]) -> Mapping[int, str]:
        """Return the racks by broker id. The mapping is empty if no operation places replicas."""
        if not any(get_operation_type(op).list_placements(op) for op in operations):
            return {}
        return {broker.id: broker.rack for broker in self._live.cluster.brokers if broker.rack is not None}

    def count_unmanaged(self, known: Set[str]) -> int:
        """Count the objects of all kinds that are neither declared nor owned, except for internal topics."""
        topics = (topic for topic in self._live.topics.values() if not topic.internal)
        unmanaged = sum(f"Topic/{topic.name}" not in known for topic in topics)
        return unmanaged + sum(hooks.count_unmanaged(known) for hooks in self._group_hooks.list_started())

    def _build_selection(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> KafkaSelection:
        selections = KINDS[resource.kind].select(resource.name, desired.body if desired else None, owned)
        return CLUSTER.merge(selections) or KafkaSelection()

    def _permit_moving(
        self,
        resource: ResourceId,
        desired: DesiredResource,
        owned: OwnedRecord | None,
        difference: Difference,
    ) -> Difference:
        """Change the denial for an in-flight reassignment to a warning if an option permits the change.

        The denial also becomes a warning if an earlier run started the reassignment, because apply waits for
        it.
        """
        options, foreign_topics = self._options, self._foreign_move_topics
        changed_sections = (
            {f.path.split(".")[0] for f in difference.change.fields} if difference.change else set()
        )
        is_overridden = options.override_reassignments and changed_sections <= _PLACEMENT_FIELDS
        selection = self._build_selection(resource, desired, owned)
        is_own = not foreign_topics if selection.every_topic else foreign_topics.isdisjoint(selection.topics)
        if not (options.await_reassignments or is_overridden or is_own):
            return difference
        hint = _OVERRIDDEN_HINT if is_overridden and not options.await_reassignments else _AWAITED_HINT
        diagnostics = tuple(
            replace(d, severity=Severity.WARNING, hint=hint) if d.code == MOVE_IN_FLIGHT else d
            for d in difference.diagnostics
        )
        return difference.with_diagnostics(diagnostics)


def _may_affect_access(operations: Sequence[Operation], changes: Sequence[Change]) -> bool:
    """Return whether a plan changes rights, credentials or limits of clients, or deletes anything."""
    return any(group.has_operation(operations) for group in (ACLS, SCRAM_USERS, CLIENT_QUOTAS)) or any(
        change.action not in (Action.CREATE, Action.UPDATE, Action.NO_OP) for change in changes
    )


def _hold_back(resource: ResourceId, owned: OwnedRecord | None, difference: Difference) -> Difference:
    """Block the change to a resource that no broker shows yet. The resource stays owned."""
    problem = denied(
        "pending",
        "Not visible yet",
        f"{resource} exists according to the controller, but no broker shows it yet. The plan does not "
        "change it.",
        hint="Plan again once the brokers have caught up, or wait longer with --visibility-timeout.",
        resource=str(resource),
    )
    change = difference.change
    held_change = replace(change, blocked=problem.code) if change else None
    return Difference(held_change, owned, diagnostics=(problem,))


def _leave_hidden(
    resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None, topics: list[str]
) -> Difference:
    """Leave a resource unchanged, because the principal cannot describe one of its topics."""
    topic_names = f"topic{'' if len(topics) == 1 else 's'} {', '.join(topics)}"
    make_diagnostic, outcome = (
        (denied, "is left unchanged") if desired else (warning, "is left unchanged and stays owned")
    )
    diagnostic = make_diagnostic(
        "not-visible",
        "Topic not visible",
        f"{resource} {outcome}: without the Describe permission on {topic_names}, kdeclare cannot determine "
        f"whether {topic_names} exist{'s' if len(topics) == 1 else ''}.",
        hint=f"Grant kdeclare the Describe and DescribeConfigs permissions on {topic_names}.",
        place=desired.source if desired else None,
        resource=str(resource),
    )
    return Difference(None, owned, (), (diagnostic,))


def check_unknown_keys(
    cluster: Cluster, live: KafkaState, diagnostics: tuple[Diagnostic, ...], *, preflight: bool
) -> tuple[Diagnostic, ...]:
    """Remove the diagnostics about config keys that the cluster knows. Return the other diagnostics.

    If there is no topic to describe, an unknown topic key is only a warning, because the preflight validates
    the key.
    """
    unknown_keys: dict[ConfigScope, set[str]] = {}
    names: dict[ConfigScope, list[str]] = {}
    for item in diagnostics:
        if item.code == UNKNOWN_CONFIG and item.subject:
            unknown_keys.setdefault(_get_scope(item), set()).add(item.subject)
            names.setdefault(_get_scope(item), []).append(ResourceId.parse(item.resource or "").name)
    known_keys = {
        scope: _find_listed_keys(cluster, scope, names[scope], keys)
        if scope in LISTED_SCOPES
        else _find_known_keys(cluster, live, scope, keys)
        for scope, keys in unknown_keys.items()
    }
    result = []
    for item in diagnostics:
        if item.code != UNKNOWN_CONFIG or not item.subject:
            result.append(item)
        elif known_keys[_get_scope(item)] is None and preflight:
            result.append(replace(item, severity=Severity.WARNING))
        elif item.subject not in (known_keys[_get_scope(item)] or ()):
            result.append(item)
    return tuple(result)


def _get_scope(item: Diagnostic) -> ConfigScope:
    return find_config_scope(ResourceId.parse(item.resource or "").kind) or ConfigScope.TOPIC


def _find_known_keys(
    cluster: Cluster, live: KafkaState, scope: ConfigScope, keys: set[str]
) -> set[str] | None:
    """Return the ``keys`` that the cluster knows, or None if there is no resource to describe.

    All topics have the same keys. The keys of a broker plug-in exist only on brokers that use the plug-in.
    """
    names = sorted(live.topics)[:1]
    if scope is ConfigScope.BROKER:
        names = [str(broker.id) for broker in live.cluster.brokers if not broker.fenced]
    if not names:
        return None
    entries_by_resource: Mapping[ConfigResource, Mapping[str, object]] = cluster.configs(
        [ConfigQuery(ConfigResource(scope, name), frozenset(keys)) for name in names]
    )
    return keys & {key for entries in entries_by_resource.values() for key in entries}


def _find_listed_keys(
    cluster: Cluster, scope: ConfigScope, names: Collection[str], keys: set[str]
) -> set[str] | None:
    """Return the ``keys`` that the cluster knows for groups or for client metrics subscriptions.

    A DescribeConfigs request succeeds for any name, and returns the default of each key. Return None if the
    brokers refuse all requests.
    """
    queries = [ConfigQuery(ConfigResource(scope, name), frozenset(keys)) for name in dict.fromkeys(names)]
    answers = cluster.describe_configs_partially(queries).values()
    described = [answer for answer in answers if not isinstance(answer, Fault)]
    return keys & {key for entries in described for key in entries} if described else None


@runtime_checkable
class HasConfigs(Protocol):
    """The capability of kinds whose resources have ``configs``."""

    config_scope: ConfigScope


def find_config_scope(kind: str) -> ConfigScope | None:
    """Return the config scope of a kind, or None if the kind is unknown or has no configs."""
    return _find_scope_of_kind(KINDS.get(kind))


@cache  # isinstance() with a protocol is slow, and a plan would call it thousands of times
def _find_scope_of_kind(kind: object) -> ConfigScope | None:
    return kind.config_scope if isinstance(kind, HasConfigs) else None


def is_deletion_by_name(op: Operation) -> bool:
    """Return whether the operation deletes a topic by name, without a topic id."""
    return isinstance(op.args, DeleteTopicArgs) and op.args.topic_id is None


def report_missing_topic_id(op: Operation) -> Diagnostic:
    """Deny a deletion without a topic id, because it could delete a re-created topic with the same name."""
    return denied(
        "no-topic-id",
        "No topic ids",
        f"{op.resource} has no topic id; topic ids require Kafka 2.8 or later (KIP-516). If another client "
        "re-creates the topic before the deletion, a deletion by name deletes the new topic.",
        hint="Upgrade the brokers, or pass --delete-by-name to delete the topic by name.",
        resource=str(op.resource),
    )
