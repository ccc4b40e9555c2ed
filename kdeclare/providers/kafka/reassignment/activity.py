"""Observe the moves in flight in a cluster, and the throttles that earlier runs left in place."""

from collections.abc import Mapping

from kdeclare.core.clock import SystemClock
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.provider.provider import Activity, OngoingWork, RecentRuns
from kdeclare.providers.kafka.collector import KafkaSelection, observe, warn_moves_not_visible
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.error_names import UNAVAILABLE
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState, Move
from kdeclare.providers.kafka.operations.partitions import get_targets
from kdeclare.providers.kafka.reassignment.completion import MoveMeter, build_pending_part
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import bind_move_cleanup

_RunIdsByTarget = Mapping[tuple[str, tuple[int, ...]], str]


class MovesWatch:
    """See `ActivityWatch`."""

    def __init__(self, connections: Connections) -> None:
        """Prepare to observe the moves in flight. No request is sent yet."""
        self._cluster = connections.get(KafkaConnection).cluster
        self._meter = MoveMeter(self._cluster, SystemClock())
        self._live: KafkaState | None = None

    def look(self) -> tuple[Diagnostic, ...]:
        """Read the moves in flight, and the topics whose partitions are moving."""
        diagnostics: tuple[Diagnostic, ...] = ()
        moves: Mapping[TopicPartition, Move] = {}
        try:
            moves = self._cluster.moves()
        except Fault as fault:
            if fault.error not in UNAVAILABLE:
                raise
            diagnostics = (warn_moves_not_visible(fault),)
        self._live = observe(self._cluster, KafkaSelection(frozenset(p.topic for p in moves)))
        return diagnostics

    def describe(self, runs: RecentRuns) -> Activity:
        """Return the moves in flight, their progress and the runs that started them."""
        live = self._live
        if live is None:
            raise LookupError("look() has not been called")
        progress = self._meter.look(live, list(live.moves))
        run_ids = _find_run_ids(runs) if live.moves else {}
        throttle_count = len(bind_move_cleanup(runs.cleanup).throttles)
        move_count = len(live.moves)
        headline = (
            [f"{move_count:,} {'partition' if move_count == 1 else 'partitions'} moving"]
            if move_count
            else []
        )
        if throttle_count and not move_count:
            headline.append("a throttle of finished moves is still set")
        return Activity(
            headline=tuple(headline),
            quiet="no moves",
            title="Moves in flight:",
            ongoing=tuple(_build_ongoing_work(partition, live, run_ids) for partition in sorted(live.moves)),
            progress=progress if live.moves else None,
            notes=(_format_throttle_note(throttle_count),) if throttle_count and move_count else (),
            fields={"throttles": throttle_count},
        )


def _format_throttle_note(count: int) -> str:
    targets = "1 broker or topic" if count == 1 else f"{count:,} brokers and topics"
    return f"The throttle that kdeclare set on {targets} stays until the moves have finished."


def _find_run_ids(runs: RecentRuns) -> _RunIdsByTarget:
    """Return the id of the latest run that started a move, for each partition and target."""
    run_ids: dict[tuple[str, tuple[int, ...]], str] = {}
    for run_id, operations in runs.find():
        for op in operations:
            for name, replicas in get_targets(op).items():
                run_ids.setdefault((name, replicas), run_id)
    return run_ids


def _build_ongoing_work(partition: TopicPartition, live: KafkaState, run_ids: _RunIdsByTarget) -> OngoingWork:
    move, pending_part = live.moves[partition], build_pending_part(live, partition)
    run_id = run_ids.get((str(partition), move.target))
    brokers = ", ".join(
        f"broker {b}{' (down)' if b in pending_part.down else ''}" for b in pending_part.brokers
    )
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
            "waits_for": list(pending_part.brokers),
            "down": list(pending_part.down),
        },
    )
