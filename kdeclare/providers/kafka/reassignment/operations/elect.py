"""Electing preferred leaders (KIP-460): a move or a new order changes who should lead, not who does."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Result
from kdeclare.core.operations.binding import get_arguments
from kdeclare.core.operations.operation import Inverse, Operation, Undo
from kdeclare.core.operations.operation_type import View, with_args
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.resources.changes import FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.kafka_operation_type import KafkaOperationType
from kdeclare.providers.kafka.operations.partitions import joined_result, topics_of
from kdeclare.providers.kafka.reassignment.completion import MOVES
from kdeclare.providers.kafka.reassignment.leftovers import read_elections, with_elections
from kdeclare.providers.kafka.reassignment.operations.arguments import ElectArgs
from kdeclare.providers.kafka.reassignment.pace import Pace


class ElectLeaders(KafkaOperationType):
    """Has the preferred leaders elected, once none of its partitions is being moved."""

    name = "leaders.elect"
    cleanup_label = "had preferred leaders elected"
    done_label = ("election of preferred leaders", "elections of preferred leaders")
    arguments = ElectArgs
    has_timeout = True
    awaits = MOVES
    is_auxiliary = True
    is_cleanup = True

    def select(self, op: Operation) -> Selections:
        """The topics of its partitions."""
        return (KafkaSelection(topics_of(_leaders(op))),)

    def view(self, op: Operation, live: LiveState) -> View:
        """Who leads."""
        state = live.get(KafkaState)
        view: dict[str, JsonValue] = {}
        for name in _leaders(op):
            topic, number = TopicPartition.parse(name)
            there = state.topics.get(topic)
            known = there is not None and number < len(there.partitions)
            view[f"leader of {name}"] = there.partitions[number].leader if there and known else None
        return view

    def expected_state(self, op: Operation) -> View:
        """The preferred ones lead."""
        return {f"leader of {name}": leader for name, leader in _leaders(op).items()}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """None: who leads is no wish."""
        return ()

    def without_topics(self, op: Operation, topics: Set[str]) -> Operation | None:
        """The partitions of other topics."""
        rest = {p: b for p, b in _leaders(op).items() if TopicPartition.parse(p).topic not in topics}
        bare = replace(op, expect={f"leader of {p}": op.expect[f"leader of {p}"] for p in rest if op.expect})
        return with_args(bare, replace(get_arguments(op, ElectArgs), partitions=rest)) if rest else None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """One a partition."""
        return {f"leader of {name}": f"leader/{name}" for name in _leaders(op)}

    def item(self, op: Operation) -> str:
        """Its partitions are its own."""
        return op.id

    def produces(self, op: Operation) -> frozenset[str]:
        """Its leaders."""
        return frozenset(self.claims(op).values())

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """ElectLeaders for those that do not lead and are preferred still: a move may have failed."""
        cluster = connections.get(KafkaConnection).cluster
        topics = cluster.topics(sorted({t for op in ops for t in topics_of(_leaders(op))}))
        wanted = [
            TopicPartition(topic.name, number)
            for topic in topics.values()
            for number, partition in enumerate(topic.partitions)
            if partition.replicas and partition.leader != partition.replicas[0]
        ]
        asked = {p: leader for op in ops for p, leader in _leaders(op).items()}
        due = [p for p in wanted if asked.get(str(p)) == topics[p.topic].partitions[p.partition].replicas[0]]
        results: dict[TopicPartition, Result] = {TopicPartition.parse(p): None for p in asked}
        if due:
            results |= cluster.elect_leaders(due)
        return {op.id: joined_result(_leaders(op), results) for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Nothing: undoing the move has an election of its own."""
        return Undo()

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """What has to wait for moves, or for the preferred leader, is left for later."""
        mine = _leaders(op)
        left = read_elections(before)
        if status in (Status.STARTED, Status.UNKNOWN, Status.FAILED, Status.DENIED):
            return with_elections(before, {**left, **mine})
        if status is Status.DONE:
            return with_elections(before, {p: b for p, b in left.items() if p not in mine})
        return before


def _leaders(op: Operation) -> Mapping[str, int]:
    return get_arguments(op, ElectArgs).partitions


def election(name: str, resource: ResourceId, preferred: Mapping[str, int], pace: Pace | None) -> Operation:
    """The operation that has leaders elected; undoing it is electing, too. ``name`` tells it from others."""
    own = ElectArgs(dict(preferred), pace)
    inverse = Inverse(ElectLeaders.name, own)
    return Operation(f"{ElectLeaders.name}:{name}", ElectLeaders.name, resource, own, {}, inverse=inverse)
