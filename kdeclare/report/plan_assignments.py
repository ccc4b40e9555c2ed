"""Which brokers hold what before and after a plan, of the partitions that it places."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kdeclare.core.operations import Operation
from kdeclare.core.registry import type_of

NAMED = 100
"""So many topics have a row of their own; the others share one."""


@dataclass(frozen=True, slots=True)
class Held:
    """What one broker holds of a topic: replicas, and those of them that come first and are to lead."""

    before: int = 0
    after: int = 0
    leads_before: int = 0
    leads_after: int = 0


@dataclass(frozen=True, slots=True)
class Assignments:
    """The partitions that a plan places, and who holds them.

    brokers: by rack and id. topics: those with the most replicas to copy first; None stands for all that
    have no row of their own, ``others`` of them. held: by the places of topic and broker.
    partitions: how many are placed. copied: replicas on brokers that had none.
    narrowed: partitions that are on fewer racks than before. unplaced: new topics that the brokers place.
    """

    brokers: tuple[int, ...]
    racks: Mapping[int, str]
    topics: tuple[str | None, ...]
    held: Mapping[tuple[int, int], Held]
    partitions: int
    copied: int
    narrowed: int
    others: int
    unplaced: int


@dataclass(slots=True)
class _Tally:
    before: Counter[int] = field(default_factory=Counter)
    after: Counter[int] = field(default_factory=Counter)
    leads_before: Counter[int] = field(default_factory=Counter)
    leads_after: Counter[int] = field(default_factory=Counter)
    copied: int = 0

    def add(self, before: Sequence[int], after: Sequence[int]) -> None:
        """One partition."""
        self.before.update(before)
        self.after.update(after)
        self.leads_before.update(before[:1])
        self.leads_after.update(after[:1])
        self.copied += len(set(after) - set(before))

    def join(self, other: "_Tally") -> None:
        """Another topic."""
        self.before += other.before
        self.after += other.after
        self.leads_before += other.leads_before
        self.leads_after += other.leads_after
        self.copied += other.copied

    def held(self, broker: int) -> Held:
        """What it comes to on one broker."""
        leads = self.leads_before[broker], self.leads_after[broker]
        return Held(self.before[broker], self.after[broker], *leads)


def assignments_of(operations: Iterable[Operation], racks: Mapping[int, str]) -> Assignments | None:
    """What operations make of replicas; None where they name none. racks: of brokers, as far as known."""
    placed, unplaced = _placed(operations)
    if not placed:
        return None
    tallies: dict[str, _Tally] = {}
    narrowed = 0
    for (topic, _), (before, after) in placed.items():
        tallies.setdefault(topic, _Tally()).add(before, after)
        narrowed += _is_narrowed(before, after, racks)
    order = sorted(tallies, key=lambda topic: (-tallies[topic].copied, topic))
    named = order if len(order) <= NAMED + 1 else order[:NAMED]
    rest = _Tally()
    for topic in order[len(named) :]:
        rest.join(tallies[topic])
    rows: dict[str | None, _Tally] = {topic: tallies[topic] for topic in named}
    if len(order) > len(named):
        rows[None] = rest
    known = {*racks, *(b for before, after in placed.values() for b in (*before, *after))}
    brokers = sorted(known, key=lambda b: (b not in racks, racks.get(b, ""), b))
    held = {(t, b): row.held(id_) for t, row in enumerate(rows.values()) for b, id_ in enumerate(brokers)}
    return Assignments(
        brokers=tuple(brokers),
        racks=racks,
        topics=tuple(rows),
        held={place: found for place, found in held.items() if found != Held()},
        partitions=len(placed),
        copied=sum(tally.copied for tally in tallies.values()),
        narrowed=narrowed,
        others=len(order) - len(named),
        unplaced=unplaced,
    )


_Placed = dict[tuple[str, int], tuple[Sequence[int], Sequence[int]]]


def _placed(operations: Iterable[Operation]) -> tuple[_Placed, int]:
    """Replicas before and after by topic and partition, and how many new topics say nothing of theirs."""
    found: _Placed = {}
    unplaced = 0
    for op in operations:
        placements = type_of(op).list_placements(op)
        if placements is None:
            continue
        unplaced += not placements
        for item in placements:
            place = item.name, item.number
            first, _ = found.get(place, (item.before, item.after))  # of two moves, the first knows what was
            found[place] = first, item.after
    return found, unplaced


def _is_narrowed(before: Sequence[int], after: Sequence[int], racks: Mapping[int, str]) -> bool:
    """Whether the loss of one rack takes more of it than before; a broker without a rack tells nothing."""
    if not before or not {*before, *after} <= racks.keys():
        return False
    return len({racks[b] for b in after}) < len({racks[b] for b in before})
