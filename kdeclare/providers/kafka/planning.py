"""What the Kafka provider does while a plan is made, beyond what its kinds say of one resource."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache, cached_property
from typing import Protocol, runtime_checkable

from kdeclare.core.diagnostics import Diagnostic, Severity, denied, info, warning
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.planning import PlanHooks, PlanInputs, Step
from kdeclare.core.provider.registry import KINDS, type_of
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Compared, Desired, Difference
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.providers.kafka.client_quota.planning import QuotaPlanning
from kdeclare.providers.kafka.collector import CLUSTER, KafkaSelection, moves_not_seen
from kdeclare.providers.kafka.config.wishes import UNKNOWN_CONFIG
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.arguments import DeleteTopicArgs
from kdeclare.providers.kafka.plan_options import find_kafka_options
from kdeclare.providers.kafka.port import Cluster, ConfigQuery
from kdeclare.providers.kafka.reassignment.batching import at_pace
from kdeclare.providers.kafka.reassignment.completion import moves_replicas
from kdeclare.providers.kafka.reassignment.leftovers import leftovers_of
from kdeclare.providers.kafka.reassignment.move_checks import (
    awaited,
    lack_of_room,
    lacks_guard,
    leave_to_one_mover,
    unguarded,
    with_client_guard,
)
from kdeclare.providers.kafka.reassignment.pace import find_pace
from kdeclare.providers.kafka.reassignment.placement import SharedLoad, rack_findings
from kdeclare.providers.kafka.reassignment.placement_request import Placement, barred, clashes
from kdeclare.providers.kafka.topic.diff import MOVE_IN_FLIGHT
from kdeclare.providers.kafka.topic.operations import find_renames, order_colliding_names

_WHERE_REPLICAS_ARE = {"replicas", "assignments", "replicationFactor"}
_AWAITED = "Apply waits for it before it goes on."
_OVERRIDDEN = "--override-reassignments: its partitions are sent elsewhere."


class KafkaPlanning(PlanHooks):
    """Placement, the guard of the replication factor, moves of others, the names of topics, and quotas."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Serve one plan. Raises KdeclareError where the state's pending cleanup is damaged."""
        self._inputs = inputs
        self._options = find_kafka_options(inputs.options)
        self._pace = find_pace(inputs.options)
        self._live = inputs.live.get(KafkaState)
        self._left = leftovers_of(inputs.state)
        self._load: SharedLoad | None = None
        self._quotas = QuotaPlanning(inputs)

    @cached_property
    def _moved_by_others(self) -> Set[str]:
        """The topics of which something is being moved that kdeclare itself has not begun to move."""
        own = frozenset(self._left.moves)
        return {partition.topic for partition in self._live.moves if str(partition) not in own}

    def prepare(self) -> Placement:
        """Place all replicas of the plan with one view of the brokers' load."""
        self._load = SharedLoad(self._live, barred(self._inputs.desired, self._live))
        return Placement(self._load)

    def review_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        """Ask the cluster about config keys that the catalogue does not know."""
        cluster = self._inputs.connections.get(KafkaConnection).cluster
        return check_unknown_keys(cluster, self._live, diagnostics, preflight=self._inputs.preflights)

    def withhold(
        self, resource: ResourceId, desired: Desired | None, owned: OwnedRecord | None
    ) -> Difference | None:
        """Leave alone what the principal may not see: it may well be there."""
        if not self._live.hidden:
            return self._quotas.withhold(resource, desired, owned)
        unseen = sorted(self._select(resource, desired, owned).topics & self._live.hidden)
        if unseen:
            return _hidden(resource, desired, owned, unseen)
        return self._quotas.withhold(resource, desired, owned)

    def review_difference(
        self, resource: ResourceId, desired: Desired | None, owned: OwnedRecord | None, difference: Difference
    ) -> Difference:
        """Let changes through that are to wait for a move; hold back what no broker shows yet."""
        if desired is not None and any(d.code == MOVE_IN_FLIGHT for d in difference.diagnostics):
            difference = self._let_through(resource, desired, owned, difference)
        if resource in self._inputs.pending:
            return _held_back(resource, owned, difference)
        return self._quotas.review_difference(resource, desired, owned, difference)

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[Compared]) -> Step:
        """Guard the replication factor, delete by id, and order names that collide."""
        inputs, options, live = self._inputs, self._options, self._live
        problems = [] if live.sees_moves else [moves_not_seen()]
        if options.rf_guard == "client" and not live.cluster.rf_guard:
            operations = tuple(map(with_client_guard, operations))
        problems += clashes(inputs.desired, live.topics)
        problems += self._quotas.find_shadowed(compared)
        problems += [unguarded(op) for op in operations if lacks_guard(op, live)]
        if not options.delete_by_name:
            problems += [lacks_topic_id(op) for op in operations if deletes_by_name(op)]
        if not inputs.by_hand:  # brokers answer for what was asked for by name
            operations, collisions = order_colliding_names(operations, live.topics)
            problems += [*collisions, *find_renames(compared, collisions)]
        return Step(operations, tuple(problems))

    def settle(self, operations: tuple[Operation, ...], compared: Sequence[Compared]) -> Step:
        """Move each partition once, and wait for moves of others where people chose to."""
        left_to_others: Sequence[Diagnostic] = ()
        if any(map(moves_replicas, operations)):
            operations, left_to_others = leave_to_one_mover(operations)
        stopped = _waiting_for_moves(compared)
        if stopped and (not self._options.override_reassignments or self._options.await_reassignments):
            operations = awaited(operations, stopped, self._live)
        return Step(operations, tuple(left_to_others))

    def preflight(self, operations: tuple[Operation, ...]) -> tuple[Diagnostic, ...]:
        """Check that disks have room for the copies that moves make."""
        cluster = self._inputs.connections.get(KafkaConnection).cluster
        return tuple(lack_of_room(operations, cluster, self._pace))

    def finalize(self, operations: tuple[Operation, ...]) -> Step:
        """Go about moves in batches, under a throttle, with an election at the end."""
        findings: list[Diagnostic] = []
        if any(map(moves_replicas, operations)):
            cluster = self._inputs.connections.get(KafkaConnection).cluster
            operations, findings = at_pace(operations, cluster, self._live, self._pace, self._left)
        if self._load is not None and self._load.has_moved:
            racks = rack_findings(self._live.cluster.brokers)
            findings += [info("racks", "The racks are not alike", text) for text in racks]
        return Step(operations, tuple(findings))

    def locate_members(self, operations: Sequence[Operation]) -> Mapping[int, str]:
        """Return the racks of the brokers, where an operation says which replicas go where."""
        if not any(type_of(op).list_placements(op) for op in operations):
            return {}
        return {broker.id: broker.rack for broker in self._live.cluster.brokers if broker.rack is not None}

    def count_unmanaged(self, known: Set[str]) -> int:
        """Count topics, but for internal ones, and entities of quotas, if neither declared nor owned."""
        topics = (topic for topic in self._live.topics.values() if not topic.internal)
        unmanaged = sum(f"Topic/{topic.name}" not in known for topic in topics)
        return unmanaged + self._quotas.count_unmanaged()

    def _select(
        self, resource: ResourceId, desired: Desired | None, owned: OwnedRecord | None
    ) -> KafkaSelection:
        selections = KINDS[resource.kind].select(resource.name, desired.body if desired else None, owned)
        return CLUSTER.merge(selections) or KafkaSelection()

    def _let_through(
        self, resource: ResourceId, desired: Desired, owned: OwnedRecord | None, difference: Difference
    ) -> Difference:
        """A move is no reason for a denial where people have said what to do about it.

        Nor is one that an earlier run has begun: that one is waited for.
        """
        options, foreign = self._options, self._moved_by_others
        about = {f.path.split(".")[0] for f in difference.change.fields} if difference.change else set()
        overridden = options.override_reassignments and about <= _WHERE_REPLICAS_ARE
        selected = self._select(resource, desired, owned)
        own = not foreign if selected.every_topic else foreign.isdisjoint(selected.topics)
        if not (options.await_reassignments or overridden or own):
            return difference
        hint = _OVERRIDDEN if overridden and not options.await_reassignments else _AWAITED
        diagnostics = tuple(
            replace(d, severity=Severity.WARNING, hint=hint) if d.code == MOVE_IN_FLIGHT else d
            for d in difference.diagnostics
        )
        return difference.with_diagnostics(diagnostics)


def _waiting_for_moves(compared: Sequence[Compared]) -> Collection[ResourceId]:
    """The resources that are let through although a move of one of their partitions is under way."""
    let_through = (d for i in compared for d in i.difference.diagnostics if d.code == MOVE_IN_FLIGHT)
    return {ResourceId.parse(d.resource) for d in let_through if d.resource and not d.blocks}


def _held_back(resource: ResourceId, owned: OwnedRecord | None, difference: Difference) -> Difference:
    """Neither created again nor let go of."""
    problem = denied(
        "pending",
        "Not visible yet",
        f"{resource} exists, says the controller, and no broker shows it yet. Nothing is planned about it.",
        hint="Plan again once the brokers have caught up, or wait longer with --visibility-timeout.",
        resource=str(resource),
    )
    change = difference.change
    held = replace(change, blocked=problem.code) if change else None
    return Difference(held, owned, diagnostics=(problem,))


def _hidden(
    resource: ResourceId, desired: Desired | None, owned: OwnedRecord | None, topics: list[str]
) -> Difference:
    """Leave a resource as it is: what the principal may not see may well be there."""
    named = ", ".join(topics)
    say, left = (denied, "is left as it is") if desired else (warning, "is left as it is and stays owned")
    found = say(
        "not-visible",
        "Topic cannot be seen",
        f"{resource} {left}: without the right Describe on {named}, it cannot be told whether it exists.",
        hint=f"Ask for Describe and DescribeConfigs on topic {topics[0]}.",
        place=desired.source if desired else None,
        resource=str(resource),
    )
    return Difference(None, owned, (), (found,))


def check_unknown_keys(
    cluster: Cluster, live: KafkaState, diagnostics: tuple[Diagnostic, ...], *, preflight: bool
) -> tuple[Diagnostic, ...]:
    """The diagnostics without the unknown keys that this cluster knows.

    Without a single topic to ask about, a topic's key is left to the preflight, as a warning.
    """
    doubtful: dict[ConfigScope, set[str]] = {}
    for item in diagnostics:
        if item.code == UNKNOWN_CONFIG and item.subject:
            doubtful.setdefault(_scope_of(item), set()).add(item.subject)
    known = {scope: _find_known_keys(cluster, live, scope, keys) for scope, keys in doubtful.items()}
    result = []
    for item in diagnostics:
        if item.code != UNKNOWN_CONFIG or not item.subject:
            result.append(item)
        elif known[_scope_of(item)] is None and preflight:
            result.append(replace(item, severity=Severity.WARNING))
        elif item.subject not in (known[_scope_of(item)] or ()):
            result.append(item)
    return tuple(result)


def _scope_of(item: Diagnostic) -> ConfigScope:
    return find_config_scope(ResourceId.parse(item.resource or "").kind) or ConfigScope.TOPIC


def _find_known_keys(
    cluster: Cluster, live: KafkaState, scope: ConfigScope, keys: set[str]
) -> set[str] | None:
    """Those of ``keys`` that the cluster describes; None where there is nothing to ask about.

    One topic knows all topic keys; a broker knows a plug-in's only where it is in use.
    """
    names = sorted(live.topics)[:1]
    if scope is ConfigScope.BROKER:
        names = [str(broker.id) for broker in live.cluster.brokers if not broker.fenced]
    if not names:
        return None
    described: Mapping[ConfigResource, Mapping[str, object]] = cluster.configs(
        [ConfigQuery(ConfigResource(scope, name), frozenset(keys)) for name in names]
    )
    return keys & {key for entries in described.values() for key in entries}


@runtime_checkable
class HasConfigs(Protocol):
    """A kind whose resources have ``configs``."""

    config_scope: ConfigScope


def find_config_scope(kind: str) -> ConfigScope | None:
    """Return the scope of a kind's configs; None where it has none, or is not known."""
    return _config_scope(KINDS.get(kind))


@cache  # checks of protocols are slow, and a plan makes thousands of them
def _config_scope(kind: object) -> ConfigScope | None:
    return kind.config_scope if isinstance(kind, HasConfigs) else None


def deletes_by_name(op: Operation) -> bool:
    """Whether it deletes whatever topic has the name by then, because no id is known."""
    return isinstance(op.args, DeleteTopicArgs) and op.args.topic_id is None


def lacks_topic_id(op: Operation) -> Diagnostic:
    """The cluster has no topic ids, so nothing tells the topic from a later one of the same name."""
    return denied(
        "no-topic-id",
        "The cluster has no topic ids",
        f"{op.resource}: brokers know topic ids from Kafka 2.8 on (KIP-516). Without one, a topic that was "
        "created again under the same name in the meantime would be deleted in its place.",
        hint="Upgrade the brokers, or pass --delete-by-name to delete it by name.",
        resource=str(op.resource),
    )
