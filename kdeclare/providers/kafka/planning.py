"""What the Kafka provider does while a plan is made, beyond what its kinds say of one resource."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property

from kdeclare.core.compared import Compared
from kdeclare.core.diagnostics import Diagnostic, Severity, denied, info, warning
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired, Difference
from kdeclare.core.operations import Operation
from kdeclare.core.planning import PlanHooks, PlanInputs, Step
from kdeclare.core.registry import KINDS
from kdeclare.providers.kafka.client_quota.planning import QuotaPlanning
from kdeclare.providers.kafka.collector import CLUSTER
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import is_topic
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.observe import moves_not_seen
from kdeclare.providers.kafka.plan_options import find_kafka_options
from kdeclare.providers.kafka.reassignment.batching import at_pace
from kdeclare.providers.kafka.reassignment.disk_capacity import lack_of_room
from kdeclare.providers.kafka.reassignment.leftovers import leftovers_of
from kdeclare.providers.kafka.reassignment.placement import SharedLoad, rack_findings
from kdeclare.providers.kafka.reassignment.placement_constraints import barred, clashes
from kdeclare.providers.kafka.reassignment.placing import Placement
from kdeclare.providers.kafka.reassignment.replication_factor_guard import (
    awaited,
    lacks_guard,
    unguarded,
    with_guard,
)
from kdeclare.providers.kafka.reassignment.single_mover import leave_to_one_mover
from kdeclare.providers.kafka.selection import KafkaSelection
from kdeclare.providers.kafka.topic.deletions import (
    deletes_by_name,
    lacks_topic_id,
)
from kdeclare.providers.kafka.topic.diff import MOVE_IN_FLIGHT
from kdeclare.providers.kafka.topic.renames import find_renames, order_colliding_names
from kdeclare.providers.kafka.topic_effects import find_effects
from kdeclare.providers.kafka.unknown_keys import weighed

_WHERE_REPLICAS_ARE = {"replicas", "assignments", "replicationFactor"}
_AWAITED = "Apply waits for it before it goes on."
_OVERRIDDEN = "--override-reassignments: its partitions are sent elsewhere."


class KafkaPlanning(PlanHooks):
    """Placement, the guard of the replication factor, moves of others, the names of topics, and quotas."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Serve one plan. Raises KdeclareError where the state's pending cleanup is damaged."""
        self._inputs = inputs
        self._options = find_kafka_options(inputs.options)
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
        return weighed(cluster, self._live, diagnostics, preflight=self._inputs.preflights)

    def withhold(self, resource: ResourceId, desired: Desired | None, owned: Json) -> Difference | None:
        """Leave alone what the principal may not see: it may well be there."""
        if not self._live.hidden:
            return self._quotas.withhold(resource, desired, owned)
        unseen = sorted(self._select(resource, desired, owned).topics & self._live.hidden)
        if unseen:
            return _hidden(resource, desired, owned, unseen)
        return self._quotas.withhold(resource, desired, owned)

    def review_difference(
        self, resource: ResourceId, desired: Desired | None, owned: Json, difference: Difference
    ) -> Difference:
        """Let changes through that are to wait for a move; hold back what no broker shows yet."""
        if desired is not None and any(d.code == MOVE_IN_FLIGHT for d in difference.diagnostics):
            difference = self._let_through(resource, desired, owned, difference)
        if is_topic(resource) and resource.name in self._inputs.pending:
            return _held_back(resource, owned, difference)
        return self._quotas.review_difference(resource, desired, owned, difference)

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[Compared]) -> Step:
        """Guard the replication factor, delete by id, and order names that collide."""
        inputs, options, live = self._inputs, self._options, self._live
        problems = [] if live.sees_moves else [moves_not_seen()]
        operations = tuple(with_guard(op, live, client=options.client_guard) for op in operations)
        problems += clashes(inputs.desired, live.topics)
        problems += self._quotas.find_shadowed(compared)
        problems += [unguarded(op) for op in operations if lacks_guard(op, live)]
        if not options.delete_by_name:
            problems += [lacks_topic_id(op) for op in operations if deletes_by_name(op)]
        if not inputs.by_hand:  # brokers answer for what was asked for by name
            ordered, collisions = order_colliding_names(operations, live.topics)
            operations = tuple(ordered)
            problems += [*collisions, *find_renames(compared, collisions)]
        return Step(operations, tuple(problems))

    def settle(self, operations: tuple[Operation, ...], compared: Sequence[Compared]) -> Step:
        """Move each partition once, and wait for moves of others where people chose to."""
        operations, left_to_others = leave_to_one_mover(operations)
        if not self._options.override_moves or self._options.await_moves:
            operations = awaited(operations, _waiting_for_moves(compared), self._live)
        return Step(operations, tuple(left_to_others))

    def preflight(self, operations: tuple[Operation, ...]) -> tuple[Diagnostic, ...]:
        """Check that disks have room for the copies that moves make."""
        cluster = self._inputs.connections.get(KafkaConnection).cluster
        return tuple(lack_of_room(operations, cluster, self._options.pace))

    def finalize(self, operations: tuple[Operation, ...]) -> Step:
        """Go about moves in batches, under a throttle, with an election at the end."""
        cluster = self._inputs.connections.get(KafkaConnection).cluster
        operations, findings = at_pace(operations, cluster, self._live, self._options.pace, self._left)
        if self._load is not None and self._load.has_moved:
            racks = rack_findings(self._live.cluster.brokers)
            findings += [info("racks", "The racks are not alike", text) for text in racks]
        return Step(operations, tuple(findings))

    def locate_members(self, operations: Sequence[Operation]) -> Mapping[int, str]:
        """Return the racks of the brokers, where an operation says which replicas go where."""
        if not any(effect.replicas for op in operations for effect in find_effects(op).values()):
            return {}
        return {broker.id: broker.rack for broker in self._live.cluster.brokers if broker.rack is not None}

    def count_unmanaged(self, known: Set[str]) -> int:
        """Count topics, but for internal ones, and entities of quotas, if neither declared nor owned."""
        topics = (topic for topic in self._live.topics.values() if not topic.internal)
        unmanaged = sum(f"Topic/{topic.name}" not in known for topic in topics)
        return unmanaged + self._quotas.count_unmanaged()

    def _select(self, resource: ResourceId, desired: Desired | None, owned: Json) -> KafkaSelection:
        selections = KINDS[resource.kind].select(resource.name, desired.body if desired else None, owned)
        return CLUSTER.merge(selections) or KafkaSelection()

    def _let_through(
        self, resource: ResourceId, desired: Desired, owned: Json, difference: Difference
    ) -> Difference:
        """A move is no reason for a denial where people have said what to do about it.

        Nor is one that an earlier run has begun: that one is waited for.
        """
        options, foreign = self._options, self._moved_by_others
        about = {f.path.split(".")[0] for f in difference.change.fields} if difference.change else set()
        overridden = options.override_moves and about <= _WHERE_REPLICAS_ARE
        selected = self._select(resource, desired, owned)
        own = not foreign if selected.every_topic else foreign.isdisjoint(selected.topics)
        if not (options.await_moves or overridden or own):
            return difference
        hint = _OVERRIDDEN if overridden and not options.await_moves else _AWAITED
        diagnostics = tuple(
            replace(d, severity=Severity.WARNING, hint=hint) if d.code == MOVE_IN_FLIGHT else d
            for d in difference.diagnostics
        )
        return difference.with_diagnostics(diagnostics)


def _waiting_for_moves(compared: Sequence[Compared]) -> Collection[ResourceId]:
    """The resources that are let through although a move of one of their partitions is under way."""
    let_through = (d for i in compared for d in i.difference.diagnostics if d.code == MOVE_IN_FLIGHT)
    return {ResourceId.parse(d.resource) for d in let_through if d.resource and not d.blocks}


def _held_back(resource: ResourceId, owned: Json, difference: Difference) -> Difference:
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


def _hidden(resource: ResourceId, desired: Desired | None, owned: Json, topics: list[str]) -> Difference:
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
