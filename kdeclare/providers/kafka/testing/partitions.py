"""One partition and what the controller does to it: start, override, finish and cancel a move.

Pure functions after PartitionChangeBuilder, PartitionReassignmentReplicas and
PartitionReassignmentRevert of Apache Kafka (KIP-455, KIP-860).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition. ``replicas`` is what metadata shows: target, then what is being removed.

    ticks: how many ticks of copying it takes until a replica that is being added is in sync.
    copied: how many of them each broker has behind it that is being added; none is left out.
    """

    replicas: Ids
    isr: Ids
    leader: int | None
    adding: Ids = ()
    removing: Ids = ()
    ticks: int = 0
    copied: tuple[tuple[int, int], ...] = ()

    @property
    def moving(self) -> bool:
        """Whether ListPartitionReassignments names it."""
        return bool(self.adding or self.removing)

    @property
    def size(self) -> int:
        """The replication factor that the guard of KIP-860 compares with: that of an ongoing target."""
        kept = set(self.replicas) | set(self.adding)
        return len(kept - set(self.removing)) if self.moving else len(self.replicas)


def without(replicas: Ids, some: Collection[int]) -> Ids:
    """``replicas`` in their order, less ``some``."""
    return tuple(r for r in replicas if r not in some)


def elect(state: PartitionState, active: Collection[int]) -> PartitionState:
    """Keep a leader that is in sync and active, else take the first such replica."""

    def can_lead(broker: int) -> bool:
        return broker in state.isr and broker in active and broker in state.replicas

    if state.leader is not None and can_lead(state.leader):
        return state
    return replace(state, leader=next((r for r in state.replicas if can_lead(r)), None))


def reassigned(state: PartitionState, target: Ids, active: Collection[int]) -> PartitionState:
    """What a valid AlterPartitionReassignments with ``target`` makes of the partition.

    The stored adding (or removing) list is kept when the newly computed one is empty, as
    ReplicationControlManager.changePartitionReassignment does.
    """
    removing = tuple(sorted(set(state.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(state.replicas)))
    started = replace(
        state,
        replicas=target + removing,
        adding=adding or state.adding,
        removing=removing or state.removing,
        copied=tuple((broker, done) for broker, done in state.copied if broker in (adding or state.adding)),
    )
    return completed(started, active)


def completed(state: PartitionState, active: Collection[int]) -> PartitionState:
    """Finish the move if what is added is in sync (maybeCompleteReassignment), and elect a leader."""
    if state.moving:
        isr = without(state.isr, state.removing)
        replicas = without(state.replicas, state.removing)
        stuck = bool(state.removing) and not (isr and replicas)
        shrinks = len(state.adding) < len(state.removing)
        if not stuck and set(isr) >= set(state.adding) and (not shrinks or set(isr) >= set(replicas)):
            state = replace(state, replicas=replicas, isr=isr, adding=(), removing=(), ticks=0, copied=())
    return elect(state, active)


def caught_up(state: PartitionState, active: Collection[int]) -> PartitionState:
    """Every active replica joins the in-sync set, which may finish a move."""
    joined = state.isr + tuple(r for r in state.replicas if r not in state.isr and r in active)
    return completed(replace(state, isr=joined), active)


def copied_on(state: PartitionState, able: Collection[int]) -> PartitionState:
    """One tick of copying for the replicas that are being added on brokers that are ``able`` to."""
    done = dict(state.copied)
    for broker in state.adding:
        if broker in able and done.get(broker, 0) < state.ticks:
            done[broker] = done.get(broker, 0) + 1
    return replace(state, copied=tuple(sorted(done.items())))


def lagging(state: PartitionState, stalled: Collection[int]) -> Ids:
    """Replicas that are being added and cannot join the in-sync set yet."""
    done = dict(state.copied)
    return tuple(
        broker
        for broker in without(state.adding, state.isr)
        if broker in stalled or done.get(broker, 0) < state.ticks
    )


def copied_part(state: PartitionState, broker: int, size: int) -> int:
    """What a replica holds of ``size``: all of it, unless it is being added and not in sync yet."""
    if broker not in without(state.adding, state.isr):
        return size
    return size * dict(state.copied).get(broker, 0) // max(1, state.ticks)


def needs_unclean_election(state: PartitionState) -> bool:
    """Whether a cancel would leave no replica that is in sync."""
    return not without(state.isr, state.adding)


def cancelled(state: PartitionState, active: Collection[int]) -> PartitionState:
    """Drop what is being added, keep the rest as listed (PartitionReassignmentRevert)."""
    replicas = without(state.replicas, state.adding)
    isr = without(state.isr, state.adding) or replicas[:1]
    return elect(PartitionState(replicas=replicas, isr=isr, leader=state.leader), active)
