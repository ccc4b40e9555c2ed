"""What goes on right now: unfinished runs, moves in the cluster, and who holds the lock."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from kdeclare.app.history import iterate_runs, plan_of, steps_of
from kdeclare.app.recovering import recover_if_possible
from kdeclare.app.workspace import Workspace
from kdeclare.core.clock import SystemClock
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.registry import type_of
from kdeclare.engine.executor.entries import fold
from kdeclare.engine.executor.recovery import find_pending_cleanup
from kdeclare.engine.executor.stored_runs import read_run_plan
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState, Move
from kdeclare.providers.kafka.observe import moves_not_seen, observe
from kdeclare.providers.kafka.operations.partitions import get_targets
from kdeclare.providers.kafka.port import CLUSTER_AUTHORIZATION_FAILED
from kdeclare.providers.kafka.reassignment.leftovers import read_leftovers
from kdeclare.providers.kafka.reassignment.movement import Movement, waiting
from kdeclare.providers.kafka.selection import KafkaSelection
from kdeclare.report.views import MoveInFlight, RunSummary, StatusView, UnfinishedRun

_RUNS_BACK = 20
"""How far back to look for the run that has begun a move."""

Looked = tuple[StatusView, tuple[Diagnostic, ...]]
"""What goes on, and what was settled or tidied up on the way."""


def looks(workspace: Workspace, *, tidies: bool) -> Iterator[Looked]:
    """Look again and again; settles what a crashed run left open. Raises KdeclareError.

    tidies: also take away what moves have left behind.
    """
    with workspace.connected() as connections:
        movement = Movement(connections.get(KafkaConnection).cluster, SystemClock())
        while True:
            yield _look(workspace, connections, movement, tidies)


def _look(workspace: Workspace, connections: Connections, movement: Movement, tidies: bool) -> Looked:
    store, cluster = workspace.store, connections.get(KafkaConnection).cluster
    # moves first: whatever they leave behind is seen to after the last of them has been seen
    unseen: tuple[Diagnostic, ...] = ()
    moves: Mapping[TopicPartition, Move] = {}
    try:
        moves = cluster.moves()
    except Fault as fault:
        if fault.error != CLUSTER_AUTHORIZATION_FAILED:
            raise
        unseen = (moves_not_seen(),)
    live = observe(cluster, KafkaSelection(frozenset(p.topic for p in moves)))
    notices = recover_if_possible(workspace, connections, "status", tidies=tidies)
    open_, last = _latest(workspace)
    progress = movement.look(live, list(live.moves))
    asked = _asked_for(workspace) if live.moves else {}
    state = store.read()
    # without a state, journals alone tell what runs have left behind
    cleanup = state.pending_cleanup if state else find_pending_cleanup(store, _RUNS_BACK)
    leftovers = read_leftovers(cleanup)
    view = StatusView(
        project=workspace.project.name,
        env=workspace.project.environment.name,
        cluster=workspace.cluster_name,
        unfinished=tuple(_unfinished(workspace, run) for run in open_),
        moves=tuple(_in_flight(partition, live, asked) for partition in sorted(live.moves)),
        lock=store.holder(),
        last=last,
        progress=progress if live.moves else None,
        throttles=len(leftovers.throttles),
    )
    return view, (*notices, *unseen)


def _latest(workspace: Workspace) -> tuple[list[RunSummary], RunSummary | None]:
    """The unfinished runs after the last finished one, and that one."""
    open_: list[RunSummary] = []
    for run in iterate_runs(workspace):
        if run.ended is not None:
            return open_, run
        if run.outcome == "unfinished":
            open_.append(run)
    return open_, None


def _asked_for(workspace: Workspace) -> Mapping[tuple[str, tuple[int, ...]], str]:
    """The latest run that sent a partition to these replicas; runs that are damaged do not count."""
    found: dict[tuple[str, tuple[int, ...]], str] = {}
    for run_id in workspace.store.runs()[: -_RUNS_BACK - 1 : -1]:
        with suppress(KdeclareError):
            for op in read_run_plan(workspace.store, run_id).operations:
                if type_of(op).goes_on:
                    for name, replicas in get_targets(op).items():
                        found.setdefault((name, replicas), run_id)
    return found


def _unfinished(workspace: Workspace, run: RunSummary) -> UnfinishedRun:
    entries = workspace.store.entries(run.run_id)
    open_ = set(fold(run.run_id, entries).unsettled)
    steps = steps_of(run.run_id, entries, plan_of(workspace, run.run_id))
    return UnfinishedRun(run, tuple(step for step in steps if step.id in open_))


def _in_flight(
    partition: TopicPartition, live: KafkaState, asked: Mapping[tuple[str, tuple[int, ...]], str]
) -> MoveInFlight:
    move, waits = live.moves[partition], waiting(live, partition)
    return MoveInFlight(
        partition.topic,
        partition.partition,
        move.replicas,
        move.adding,
        move.removing,
        asked.get((str(partition), move.target)),
        waits.brokers,
        waits.down,
    )
