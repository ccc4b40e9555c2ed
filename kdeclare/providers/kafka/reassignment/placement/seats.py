"""How many replicas each partition is to have, which of them stay, and where the others may go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdeclare.providers.kafka.reassignment.placement.board import Replicas, Seat
from kdeclare.providers.kafka.reassignment.placement.errors import FewerPartitions, NotEnoughBrokers
from kdeclare.providers.kafka.reassignment.placement.ground import Ground
from kdeclare.providers.kafka.reassignment.placement.rules import Home, Homes, enforced, spreads, static
from kdeclare.providers.kafka.reassignment.placing import PlacementError, Strategy, Wish


@dataclass(slots=True)
class Part:
    """One partition on its way.

    topic: its number. before: what it had; nothing if it is new. seat: what it keeps and may choose.
    pool: all brokers that may ever hold it; none if it is fixed, to stay as it is. after: what it has so
    far, preferred leader first.
    """

    topic: int
    before: Replicas
    seat: Seat
    pool: frozenset[int]
    fixed: bool = False
    after: Replicas = ()


def parts_of(
    ground: Ground, wish: Wish, current: Mapping[str, Sequence[Replicas]], load: Mapping[int, int]
) -> list[Part]:
    """All partitions that are to be, by topic and number. Raises PlacementError.

    load: replicas by broker, of everything.
    """
    if wish.replication_factor is not None and wish.replication_factor < 1:
        raise PlacementError(f"A replication factor must be at least 1, not {wish.replication_factor}")
    homes = Homes(ground, wish, load)
    parts: list[Part] = []
    for topic, (name, replicas) in enumerate(sorted(current.items())):
        total = len(replicas) if wish.partitions is None else wish.partitions
        if total < len(replicas):
            raise FewerPartitions(name, total, len(replicas))
        if wish.strategy is Strategy.STATIC:
            static(ground, wish, name, replicas, total)
        fixed = (wish.fixed or {}).get(name, frozenset())
        for number in range(total):
            before = tuple(replicas[number]) if number < len(replicas) else ()
            if before and (number in fixed or wish.strategy is Strategy.STATIC):
                parts.append(
                    Part(topic, before, Seat(topic, before, frozenset(), 0), frozenset(), fixed=True)
                )
                continue
            factor = _factor(wish, name, before or (replicas[0] if replicas else ()))
            home = homes.home(name, number, before, factor)
            parts.append(_part(ground, wish, home, (name, topic, number), before, factor))
    return parts


def _factor(wish: Wish, name: str, like: Sequence[int]) -> int:
    """How many replicas a partition is to have; a new one without a wish as many as partition 0."""
    factor = wish.replication_factor or len(like)
    if factor < 1:
        raise PlacementError(f"{name} is new, and its replication factor is not given")
    return factor


def _part(
    ground: Ground, wish: Wish, home: Home, of: tuple[str, int, int], before: Replicas, factor: int
) -> Part:
    """What a partition keeps, and what it chooses from."""
    name, topic, number = of
    pool = ground.usable if home is None else ground.by_rack.get(home[0], frozenset())
    keep = tuple(r for r in before if ground.may_stay(r) and (home is None or ground.racks[r] == home[0]))
    wanted = factor - len(keep)
    if len(before) == factor and _content(ground, wish, before, keep):
        seat = Seat(topic, before, pool, 0)
    elif wanted < 0:
        seat = Seat(topic, keep[:1], frozenset(keep[1:]), factor - 1, spreads(wish))
    elif wanted > len(pool.difference(keep)):
        raise NotEnoughBrokers(name, number, factor, tuple(sorted(pool)))
    else:
        seat = Seat(topic, keep, pool, wanted, spreads(wish))
    return Part(topic, before, seat, pool)


def _content(ground: Ground, wish: Wish, before: Replicas, keep: Replicas) -> bool:
    """Whether a partition of the right size may stay as it is.

    A replica on an unregistered broker is let be where nothing asks for anything.
    """
    if len(keep) == len(before):
        return True
    asked = enforced(wish) or wish.even or wish.strategy in (Strategy.IN_RACK, Strategy.STATIC_IN_RACK)
    return not asked and ground.without.isdisjoint(before)
