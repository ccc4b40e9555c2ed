"""Strategies: which racks a partition may use, and which of its replicas break the rule."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kdeclare.providers.kafka.reassignment.placement.board import Replicas, Seat
from kdeclare.providers.kafka.reassignment.placement.ground import Ground, Rack
from kdeclare.providers.kafka.reassignment.placing import PlacementError, Strategy, Wish

Home = tuple[Rack] | None
"""The rack that a partition must be in, if there is one."""


def spreads(wish: Wish) -> bool:
    """Whether what is chosen is to be spread over racks."""
    return wish.strategy in (None, Strategy.BALANCED_LEADERS, Strategy.CROSS_RACK)


def enforced(wish: Wish) -> bool:
    """Whether what is there is to be spread over racks, too."""
    return wish.strategy is Strategy.CROSS_RACK or (wish.even and spreads(wish))


class Homes:
    """The rack that a partition must be in, where the strategy names one.

    load: replicas by broker, of everything; new partitions are given racks on top of it.
    """

    def __init__(self, ground: Ground, wish: Wish, load: Mapping[int, int]) -> None:
        self._ground = ground
        self._wish = wish
        self._load = Counter({rack: sum(load.get(b, 0) for b in ids) for rack, ids in ground.by_rack.items()})

    def home(self, topic: str, partition: int, replicas: Replicas, factor: int) -> Home:
        """The rack, or None where any broker will do. Raises PlacementError."""
        if self._wish.strategy is Strategy.STATIC_IN_RACK:
            return (self._listed(topic, partition, replicas, factor),)
        if self._wish.strategy is Strategy.IN_RACK:
            return (self._chosen(topic, partition, replicas, factor),)
        return None

    def _listed(self, topic: str, partition: int, replicas: Replicas, factor: int) -> Rack:
        racks = self._wish.racks
        if partition >= len(racks):
            listed = "1 rack is listed" if len(racks) == 1 else f"{len(racks)} racks are listed"
            raise PlacementError(f"Partition {partition} of {topic} has no rack: {listed}")
        rack = racks[partition]
        if rack not in self._ground.racks.values():
            raise PlacementError(
                f"Partition {partition} of {topic} is to be in rack {rack}, and no broker is in it"
            )
        size = len(self._room(rack, replicas))
        if size < factor:
            raise PlacementError(
                f"Partition {partition} of {topic} is to have {_replicas(factor)} in rack {rack}, "
                f"which has room for {size}"
            )
        return rack

    def _chosen(self, topic: str, partition: int, replicas: Replicas, factor: int) -> Rack:
        """The leader's, else of those large enough the one with most of the replicas, then the emptiest."""
        racks = self._ground.racks
        known = [racks[r] for r in replicas if r in racks]
        sizes = {rack: len(self._room(rack, replicas)) for rack in [*self._ground.by_rack, *known]}
        large = [rack for rack, size in sizes.items() if size >= factor]
        if not large:
            named = ", ".join(f"{_named(rack)} has {sizes[rack]}" for rack in sorted(sizes, key=str))
            raise PlacementError(
                f"Partition {partition} of {topic} is to have {_replicas(factor)} in one rack, and none has "
                f"that many brokers: {named or 'there is no broker'}"
            )
        if replicas and replicas[0] in racks and racks[replicas[0]] in large:
            return racks[replicas[0]]
        rack = min(large, key=lambda rack: (-known.count(rack), self._load[rack] / sizes[rack], str(rack)))
        self._load[rack] += factor - known.count(rack)
        return rack

    def _room(self, rack: Rack, replicas: Replicas) -> frozenset[int]:
        """The brokers of a rack that can hold a replica of the partition."""
        ground = self._ground
        staying = (r for r in replicas if ground.may_stay(r) and ground.racks[r] == rack)
        return ground.by_rack.get(rack, frozenset()).union(staying)


def _named(rack: Rack) -> str:
    return "no rack" if rack is None else f"rack {rack}"


def _replicas(factor: int) -> str:
    return "1 replica" if factor == 1 else f"{factor} replicas"


def spread_seat(ground: Ground, topic: int, replicas: Replicas, load: Mapping[int, int]) -> Seat | None:
    """A seat that spreads a partition over racks by the fewest moves; None if it is spread already.

    What goes comes from the fullest rack: a replica on a fenced broker first, then one on the broker with
    the most replicas (``load``), never the leader, which has company there.
    """
    stay, gone = [*replicas], 0
    used = Counter(ground.racks.get(r) for r in replicas)
    free = {rack: len(group.difference(replicas)) for rack, group in ground.by_rack.items()}
    while (pair := _uneven(used, free)) is not None:
        full, empty = pair
        here = [r for r in stay[1:] if ground.racks.get(r) == full]
        stay.remove(max(here, key=lambda r: (r not in ground.usable, load.get(r, 0), stay.index(r))))
        used.subtract([full])
        used.update([empty])
        free[empty] -= 1
        gone += 1
    return Seat(topic, tuple(stay), ground.usable, gone) if gone else None


def _uneven(used: Counter[Rack], free: Mapping[Rack, int]) -> tuple[Rack, Rack] | None:
    """The fullest rack, and the emptiest with a free broker if that has two replicas fewer."""
    most = max(used.values())
    if most < 2:
        return None
    takers = [rack for rack, brokers in free.items() if brokers and used[rack] <= most - 2]
    if not takers:
        return None
    full = min((rack for rack in used if used[rack] == most), key=str)
    return full, min(takers, key=lambda rack: (used[rack], str(rack)))


def static(ground: Ground, wish: Wish, topic: str, current: Sequence[Replicas], total: int) -> None:
    """Check that assignments that are written out have all that is wished for. Raises PlacementError."""
    for partition in range(total):
        replicas = current[partition] if partition < len(current) else ()
        held = ground.without.intersection(replicas)
        if not replicas or held or len(replicas) != (wish.replication_factor or len(replicas)):
            raise PlacementError(
                f"The replicas of {topic} are where its assignments say, and those of partition {partition} "
                "would have to be chosen"
            )
