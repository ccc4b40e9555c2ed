"""Placing call after call, each on top of the ones before."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Broker, KafkaState
from kdeclare.providers.kafka.reassignment.placement.board import Replicas
from kdeclare.providers.kafka.reassignment.placement.ground import Load
from kdeclare.providers.kafka.reassignment.placement.place import place
from kdeclare.providers.kafka.reassignment.placing import Wish


class SharedLoad:
    """Places topics on top of what the cluster has and of what was placed before them.

    barred: by topic, brokers that may get nothing new of it, as something else that is declared would move
    it away again. has_moved: whether anything was put elsewhere than it was.
    """

    def __init__(self, live: KafkaState, barred: Mapping[str, frozenset[int]] | None = None) -> None:
        """Counts the true replicas that every broker has now."""
        self._barred = barred or {}
        self.has_moved = False
        self._replicas: Counter[int] = Counter()
        self._leaders: Counter[int] = Counter()
        self._placed: dict[str, tuple[Replicas, ...]] = {}
        for name, topic in live.topics.items():
            numbers = range(len(topic.partitions))
            self._keep(name, tuple(live.replicas(TopicPartition(name, n)) or () for n in numbers))

    def __call__(
        self, brokers: Sequence[Broker], current: Mapping[str, Sequence[Replicas]], wish: Wish
    ) -> Mapping[str, tuple[Replicas, ...]]:
        """See `place`."""
        alike: dict[frozenset[int], dict[str, Sequence[Replicas]]] = {}
        for name, replicas in current.items():
            alike.setdefault(self._barred.get(name, frozenset()), {})[name] = replicas
        placed: dict[str, tuple[Replicas, ...]] = {}
        for barred in sorted(alike, key=sorted):
            placed |= self._place(brokers, alike[barred], wish, barred)
        return placed

    def _place(
        self,
        brokers: Sequence[Broker],
        current: Mapping[str, Sequence[Replicas]],
        wish: Wish,
        barred: frozenset[int],
    ) -> Mapping[str, tuple[Replicas, ...]]:
        if wish.even or wish.strategy:  # whoever arranges must not count on what will be moved away
            wish = replace(wish, without=wish.without | barred)
        usable = [replace(b, fenced=b.fenced or b.id in barred) for b in brokers]
        others = Load(+(self._replicas - self._of(current)), +(self._leaders - self._led(current)))
        placed = place(usable, current, wish, others)
        self.has_moved |= any(placed[name] != tuple(map(tuple, current[name])) for name in current)
        for name, replicas in placed.items():
            self._keep(name, replicas)
        return placed

    def _keep(self, name: str, replicas: tuple[Replicas, ...]) -> None:
        old = self._placed.get(name, ())
        for sign, assignment in ((-1, old), (1, replicas)):
            for partition in assignment:
                for broker in partition:
                    self._replicas[broker] += sign
                for broker in partition[:1]:
                    self._leaders[broker] += sign
        self._placed[name] = replicas

    def _of(self, current: Mapping[str, Sequence[Replicas]]) -> Counter[int]:
        return Counter(r for name in current for replicas in self._placed.get(name, ()) for r in replicas)

    def _led(self, current: Mapping[str, Sequence[Replicas]]) -> Counter[int]:
        return Counter(r for name in current for replicas in self._placed.get(name, ()) for r in replicas[:1])
