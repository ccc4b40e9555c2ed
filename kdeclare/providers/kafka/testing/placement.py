"""Where Kafka puts replicas that nobody assigned: StripedReplicaPlacer.

Racks in turn, one replica each; the first rack moves on by one from partition to partition; brokers
that are not fenced first, and never a fenced one as the leader. Kafka's own random numbers are not
reproduced, its invariants are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol


class Placeable(Protocol):
    """What placement must know of a broker."""

    @property
    def id(self) -> int: ...
    @property
    def rack(self) -> str | None: ...
    @property
    def fenced(self) -> bool: ...


class Impossible(ValueError):
    """There is no such placement; the text is Kafka's reason."""


@dataclass
class _Ring:
    """Brokers to be handed out in turn; every new round starts one further."""

    brokers: list[int] = field(default_factory=list)
    round: int = 0
    offset: int = 0
    index: int = 0

    def next(self, round_: int) -> int | None:
        if not self.brokers:
            return None
        if self.round != round_:
            self.round, self.index = round_, 0
            self.offset = (self.offset + 1) % len(self.brokers)
        if self.index >= len(self.brokers):
            return None
        self.index += 1
        return self.brokers[(self.index - 1 + self.offset) % len(self.brokers)]


@dataclass
class _Rack:
    active: _Ring = field(default_factory=_Ring)
    fenced: _Ring = field(default_factory=_Ring)

    def next(self, round_: int) -> int | None:
        found = self.active.next(round_)
        return self.fenced.next(round_) if found is None else found


class _Racks:
    def __init__(self, brokers: Iterable[Placeable], random: Random) -> None:
        self._random = random
        self._racks: dict[str | None, _Rack] = {}
        self._total = self._active = 0
        for broker in sorted(brokers, key=lambda b: b.id):
            rack = self._racks.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.active).brokers.append(broker.id)
            self._total += 1
            self._active += not broker.fenced
        self._names = list(self._racks)
        self._round = self._offset = 0
        self._shuffle()

    def _shuffle(self) -> None:
        self._random.shuffle(self._names)
        for rack in self._racks.values():
            for ring in (rack.active, rack.fenced):
                self._random.shuffle(ring.brokers)
                ring.round = ring.index = 0
                ring.offset = 0

    def check(self, factor: int) -> None:
        if factor <= 0:
            raise Impossible(f"Invalid replication factor {factor}: the replication factor must be positive.")
        if not self._active:
            raise Impossible("All brokers are currently fenced.")
        if factor > self._total:
            raise Impossible(
                f"The target replication factor of {factor} cannot be reached because only "
                f"{self._total} broker(s) are registered or some brokers have all their log directories "
                "cordoned."
            )

    def place(self, factor: int) -> tuple[int, ...]:
        if self._round == self._active:
            self._shuffle()
            self._round = 0
        if self._offset == len(self._names):
            self._offset = 0
        first = self._offset
        while (leader := self._racks[self._names[first]].active.next(self._round)) is None:
            first = (first + 1) % len(self._names)
        placed = [leader]
        skip: int | None = first
        at = self._offset
        while len(placed) < factor:
            if at == skip:
                skip = None  # its turn was the leader
            else:
                found = self._racks[self._names[at]].next(self._round)
                if found is not None:
                    placed.append(found)
            at = (at + 1) % len(self._names)
        self._round += 1
        self._offset += 1
        return tuple(placed)


def place(
    brokers: Sequence[Placeable], partitions: int, factor: int, random: Random
) -> tuple[tuple[int, ...], ...]:
    """Replicas for ``partitions`` partitions. Raises Impossible."""
    racks = _Racks(brokers, random)
    racks.check(factor)
    return tuple(racks.place(factor) for _ in range(partitions))
