"""Place replicas during a plan, so that all resources of the plan together load the brokers evenly."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Broker, KafkaState
from kdeclare.providers.kafka.reassignment.placement_request import PlacementRequest, Replicas


class LoadAwarePlacer:
    """Places replicas, taking into account the replicas in the cluster and earlier placements by this placer.

    excluded_by_topic: for each topic, the brokers that must not get new replicas, because a different
        declared resource would move the replicas away again.
    has_moved: whether any placement differs from the current replicas.
    """

    def __init__(
        self, live: KafkaState, excluded_by_topic: Mapping[str, frozenset[int]] | None = None
    ) -> None:
        """Create the placer.

        Replicas are counted only when they are needed, because most plans move no replica.
        """
        self._uncounted_live: KafkaState | None = live
        self._excluded_by_topic = excluded_by_topic or {}
        self.has_moved = False
        self._replicas: Counter[int] = Counter()
        self._leaders: Counter[int] = Counter()
        self._placements: dict[str, tuple[Replicas, ...]] = {}

    def __call__(
        self, brokers: Sequence[Broker], current: Mapping[str, Sequence[Replicas]], request: PlacementRequest
    ) -> Mapping[str, tuple[Replicas, ...]]:
        """See `place_replicas`."""
        self._count_once()
        topics_by_excluded: dict[frozenset[int], dict[str, Sequence[Replicas]]] = {}
        for name, replicas in current.items():
            topics_by_excluded.setdefault(self._excluded_by_topic.get(name, frozenset()), {})[name] = replicas
        placements: dict[str, tuple[Replicas, ...]] = {}
        for excluded in sorted(topics_by_excluded, key=sorted):
            placements |= self._place_topics(brokers, topics_by_excluded[excluded], request, excluded)
        return placements

    def _count_once(self) -> None:
        """Count the replicas and leaders of every broker, unless they were already counted."""
        if self._uncounted_live is None:
            return
        live, self._uncounted_live = self._uncounted_live, None
        for name, topic in live.topics.items():
            if live.moves:
                numbers = range(len(topic.partitions))
                assigned = tuple(live.replicas(TopicPartition(name, n)) or () for n in numbers)
            else:
                assigned = tuple(partition.replicas for partition in topic.partitions)
            self._record_placement(name, assigned)

    def _place_topics(
        self,
        brokers: Sequence[Broker],
        current: Mapping[str, Sequence[Replicas]],
        request: PlacementRequest,
        excluded: frozenset[int],
    ) -> Mapping[str, tuple[Replicas, ...]]:
        # Few plans place replicas.
        from kdeclare.providers.kafka.reassignment.placement import Load, place_replicas

        if (
            request.rebalance or request.strategy
        ):  # a rule must not rely on replicas that a different resource will move away
            request = replace(request, excluded_brokers=request.excluded_brokers | excluded)
        usable = [replace(b, fenced=b.fenced or b.id in excluded) for b in brokers]
        other_load = Load(
            +(self._replicas - self._count_replicas(current)), +(self._leaders - self._count_leaders(current))
        )
        placements = place_replicas(usable, current, request, other_load)
        self.has_moved |= any(placements[name] != tuple(map(tuple, current[name])) for name in current)
        for name, replicas in placements.items():
            self._record_placement(name, replicas)
        return placements

    def _record_placement(self, name: str, replicas: tuple[Replicas, ...]) -> None:
        previous = self._placements.get(name, ())
        for sign, replica_lists in ((-1, previous), (1, replicas)):
            for partition_replicas in replica_lists:
                for broker in partition_replicas:
                    self._replicas[broker] += sign
                for broker in partition_replicas[:1]:
                    self._leaders[broker] += sign
        self._placements[name] = replicas

    def _count_replicas(self, current: Mapping[str, Sequence[Replicas]]) -> Counter[int]:
        return Counter(r for name in current for replicas in self._placements.get(name, ()) for r in replicas)

    def _count_leaders(self, current: Mapping[str, Sequence[Replicas]]) -> Counter[int]:
        return Counter(
            r for name in current for replicas in self._placements.get(name, ()) for r in replicas[:1]
        )
