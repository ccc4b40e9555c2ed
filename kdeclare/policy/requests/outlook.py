"""All that is judged together: what one request may have to be seen beside."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kdeclare.core.judging import Labels
from kdeclare.policy.interface import Action
from kdeclare.policy.requests.facts import Facts
from kdeclare.providers.kafka.topic_effects import Effect


@dataclass(frozen=True)
class Outlook:
    """The cluster, and what the plan makes of it as far as that has been judged and was not denied.

    labels: of all topics that have some, judged or not. applied: the same as they were when last applied.
    doing: the judged topics by what is done to them.
    """

    facts: Facts
    labels: Labels
    applied: Labels = field(default_factory=dict)
    doing: Mapping[Action, Sequence[str]] = field(default_factory=dict)
    _accepted: dict[str, tuple[Effect, ...]] = field(default_factory=dict)
    _sums: dict[frozenset[tuple[str, str]], int] = field(default_factory=dict)

    def accept(self, topic: str, effects: Sequence[Effect]) -> None:
        """What a request that was not denied makes of its topic; what is judged later is judged on it."""
        for wanted in self._sums:
            if self._is_of(topic, wanted):
                self._sums[wanted] += self._count(topic, effects) - self._count(topic, ())
        self._accepted[topic] = (*self.accepted(topic), *effects)

    def accepted(self, topic: str) -> tuple[Effect, ...]:
        """What is made of a topic by what has been accepted."""
        return self._accepted.get(topic, ())

    def partitions_of(self, labels: Mapping[str, str], topic: str, effects: Sequence[Effect] = ()) -> int:
        """How many partitions the topics with these labels have, with what a request makes of ``topic``."""
        wanted = frozenset(labels.items())
        if wanted not in self._sums:
            chosen = [name for name in self.labels if self._is_of(name, wanted)]
            self._sums[wanted] = sum(self._count(name, ()) for name in chosen)
        if not effects or not self._is_of(topic, wanted):
            return self._sums[wanted]
        return self._sums[wanted] + self._count(topic, effects) - self._count(topic, ())

    def records(self, topic: str, action: Action) -> int:
        """What a topic holds; read for all to which the same is done."""
        return self.facts.records(topic, self.doing.get(action, ()))

    def _is_of(self, topic: str, wanted: frozenset[tuple[str, str]]) -> bool:
        return wanted <= self.labels.get(topic, {}).items()

    def _count(self, name: str, more: Iterable[Effect]) -> int:
        effects = (*self.accepted(name), *more)
        if any(effect.deleted for effect in effects):
            return 0
        stated = [effect.partitions for effect in effects if effect.partitions is not None]
        if stated:
            return stated[-1]
        if any(effect.created for effect in effects):
            return self.facts.defaults[0]
        topic = self.facts.all_topics.get(name)
        return len(topic.partitions) if topic else 0
