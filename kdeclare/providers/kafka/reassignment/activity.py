"""The moves that a cluster is making, and the throttles that earlier runs have left."""

from collections.abc import Mapping

from kdeclare.core.clock import SystemClock
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.provider.provider import Activity, OngoingWork, RecentRuns
from kdeclare.providers.kafka.collector import KafkaSelection, moves_not_seen, observe
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState, Move
from kdeclare.providers.kafka.operations.partitions import get_targets
from kdeclare.providers.kafka.port import CLUSTER_AUTHORIZATION_FAILED
from kdeclare.providers.kafka.reassignment.completion import Movement, waiting
from kdeclare.providers.kafka.reassignment.leftovers import read_leftovers

_Runs = Mapping[tuple[str, tuple[int, ...]], str]


class MovesWatch:
    """See `ActivityWatch`."""

    def __init__(self, connections: Connections) -> None:
        """Nothing is asked before `look`."""
        self._cluster = connections.get(KafkaConnection).cluster
        self._movement = Movement(self._cluster, SystemClock())
        self._live: KafkaState | None = None

    def look(self) -> tuple[Diagnostic, ...]:
        """Read the moves, and the topics that they are of."""
        unseen: tuple[Diagnostic, ...] = ()
        moves: Mapping[TopicPartition, Move] = {}
        try:
            moves = self._cluster.moves()
        except Fault as fault:
            if fault.error != CLUSTER_AUTHORIZATION_FAILED:
                raise
            unseen = (moves_not_seen(),)
        self._live = observe(self._cluster, KafkaSelection(frozenset(p.topic for p in moves)))
        return unseen

    def describe(self, runs: RecentRuns) -> Activity:
        """Return the moves with the runs that asked for them, and how far they have got."""
        live = self._live
        if live is None:
            raise LookupError("nothing has been looked at")
        progress = self._movement.look(live, list(live.moves))
        asked = _find_runs(runs) if live.moves else {}
        throttles = len(read_leftovers(runs.cleanup).throttles)
        count = len(live.moves)
        headline = [f"{count:,} {'partition' if count == 1 else 'partitions'} moving"] if count else []
        if throttles and not count:
            headline.append("a throttle is left of moves that are over")
        return Activity(
            headline=tuple(headline),
            quiet="no moves",
            title="Moves in flight:",
            ongoing=tuple(_describe_move(partition, live, asked) for partition in sorted(live.moves)),
            progress=progress if live.moves else None,
            notes=(_describe_throttles(throttles),) if throttles and count else (),
            fields={"throttles": throttles},
        )


def _describe_throttles(count: int) -> str:
    places = "1 broker or topic" if count == 1 else f"{count:,} brokers and topics"
    return f"kdeclare's throttle on {places} stays until they are over."


def _find_runs(runs: RecentRuns) -> _Runs:
    """The latest run that sent a partition to these replicas."""
    found: dict[tuple[str, tuple[int, ...]], str] = {}
    for run_id, operations in runs.find():
        for op in operations:
            for name, replicas in get_targets(op).items():
                found.setdefault((name, replicas), run_id)
    return found


def _describe_move(partition: TopicPartition, live: KafkaState, asked: _Runs) -> OngoingWork:
    move, waits = live.moves[partition], waiting(live, partition)
    run_id = asked.get((str(partition), move.target))
    brokers = ", ".join(f"broker {b}{' (down)' if b in waits.down else ''}" for b in waits.brokers)
    return OngoingWork(
        str(partition),
        [replica for replica in move.replicas if replica not in move.adding],
        list(move.target),
        run_id,
        f"waits for {brokers}" if brokers else "",
        document={
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(move.replicas),
            "adding": list(move.adding),
            "removing": list(move.removing),
            "target": list(move.target),
            "run_id": run_id,
            "waits_for": list(waits.brokers),
            "down": list(waits.down),
        },
    )
