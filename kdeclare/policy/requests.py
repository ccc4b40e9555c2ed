"""What a plan asks for, topic by topic; see `policy.interface.RequestMetadata`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kdeclare.kinds.verbs.base import Effect
from kdeclare.kinds.verbs.registry import VERBS
from kdeclare.model.ids import ResourceId
from kdeclare.model.operations import Operation
from kdeclare.policy.facts import Facts
from kdeclare.policy.interface import Action, TopicState
from kdeclare.policy.states import LiveState, ResultState

Effects = tuple[Effect, ...]
Labels = Mapping[str, Mapping[str, str]]
"""The labels of topics, by topic."""


def effects_of(operations: Sequence[Operation]) -> dict[tuple[ResourceId, str], Effects]:
    """What each resource makes of each topic, in the order of the operations."""
    found: dict[tuple[ResourceId, str], Effects] = {}
    for op in operations:
        for topic, effect in VERBS[op.verb].effects(op).items():
            key = (op.resource, topic)
            found[key] = (*found.get(key, ()), effect)
    return found


@dataclass(frozen=True)
class Outlook:
    """The whole of what is judged together.

    labels: of all topics that have some, judged or not. effects: all of the plan's, by topic.
    """

    facts: Facts
    labels: Labels
    effects: Mapping[str, Effects]

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """How many partitions the topics with these labels will have."""
        key = frozenset(labels.items())
        if key not in self._sums:
            chosen = [name for name, found in self.labels.items() if key <= found.items()]
            self._sums[key] = sum(map(self._partitions, chosen))
        return self._sums[key]

    @cached_property
    def _sums(self) -> dict[frozenset[tuple[str, str]], int]:
        return {}

    def _partitions(self, name: str) -> int:
        effects = self.effects.get(name, ())
        if any(effect.deleted for effect in effects):
            return 0
        stated = [effect.partitions for effect in effects if effect.partitions is not None]
        if stated:
            return stated[-1]
        if any(effect.created for effect in effects):
            return self.facts.defaults[0]
        topic = self.facts.all_topics.get(name)
        return len(topic.partitions) if topic else 0


@dataclass(frozen=True)
class TopicRequest:
    """What one resource of a plan makes of one topic.

    earlier: what is made of the topic before that, by other resources of the plan.
    """

    topic: str
    effects: Effects
    earlier: Effects
    outlook: Outlook

    @cached_property
    def action(self) -> Action:
        """By what becomes of the topic."""
        if any(effect.created for effect in self.effects):
            return Action.CREATE
        return Action.DELETE if any(effect.deleted for effect in self.effects) else Action.MODIFY

    @property
    def principal(self) -> str | None:
        """Whom the brokers take kdeclare for."""
        return self.outlook.facts.info.principal

    @cached_property
    def pre_request_state(self) -> TopicState | None:
        """None on CREATE."""
        if self.action is Action.CREATE:
            return None
        live = LiveState(self.topic, self.outlook.facts)
        return ResultState(live, self.earlier, self.outlook.facts) if self.earlier else live

    @cached_property
    def post_request_state(self) -> TopicState | None:
        """None on DELETE."""
        if self.action is Action.DELETE:
            return None
        return ResultState(self.pre_request_state, self.effects, self.outlook.facts)

    @property
    def labels(self) -> Mapping[str, str]:
        """Of the topic."""
        return self.outlook.labels.get(self.topic, {})

    @cached_property
    def changed(self) -> frozenset[str]:
        """All that the effects are about."""
        return frozenset().union(*(effect.fields for effect in self.effects))

    @property
    def racks(self) -> Mapping[int, str | None]:
        """Of all brokers."""
        return self.outlook.facts.racks

    @property
    def record_count(self) -> int:
        """0 on CREATE."""
        return 0 if self.action is Action.CREATE else self.outlook.facts.records(self.topic)

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """See `Outlook.partitions_of`."""
        return self.outlook.partitions_of(labels)
