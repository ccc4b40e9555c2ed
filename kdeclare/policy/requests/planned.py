"""What a plan asks for, topic by topic; see `policy.interface.RequestMetadata`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kdeclare.core.ids import ResourceId
from kdeclare.core.operations import Operation
from kdeclare.policy.interface import Action, TopicState
from kdeclare.policy.requests.facts import Facts
from kdeclare.policy.requests.outlook import Outlook
from kdeclare.policy.requests.states import LiveState, ResultState
from kdeclare.providers.kafka.topic_effects import Effect, find_effects

Effects = tuple[Effect, ...]

_Requested = tuple[ResourceId, str]
"""A resource, and a topic that it makes something of."""


def effects_of(operations: Sequence[Operation]) -> dict[_Requested, Effects]:
    """What each resource makes of each topic, in the order in which it is judged.

    Deletions come first, as they make room; then topic by topic, and for one topic in the order of the
    operations, which is that of the resources wherever one needs the other.
    """
    found: dict[_Requested, Effects] = {}
    for op in operations:
        for topic, effect in find_effects(op).items():
            key = (op.resource, topic)
            found[key] = (*found.get(key, ()), effect)
    return dict(sorted(found.items(), key=lambda item: (not _deletes(item[1]), item[0][1])))


def action_of(effects: Iterable[Effect]) -> Action:
    """What is done to a topic, by what becomes of it."""
    if any(effect.created for effect in effects):
        return Action.CREATE
    return Action.DELETE if _deletes(effects) else Action.MODIFY


def _deletes(effects: Iterable[Effect]) -> bool:
    return any(effect.deleted for effect in effects)


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
        return action_of(self.effects)

    @property
    def principal(self) -> str | None:
        """Whom the brokers take kdeclare for."""
        return self.outlook.facts.principal

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
        return dict(self.outlook.labels.get(self.topic, {}))

    @property
    def labels_before(self) -> Mapping[str, str]:
        """As they were when it was last applied."""
        return dict(self.outlook.applied.get(self.topic, {}))

    @cached_property
    def changed(self) -> frozenset[str]:
        """All that the effects are about."""
        return frozenset().union(*(effect.fields for effect in self.effects))

    @property
    def racks(self) -> Mapping[int, str | None]:
        """Of all brokers."""
        return dict(self.facts.racks)

    @property
    def facts(self) -> Facts:
        """What can be read of the cluster."""
        return self.outlook.facts

    @property
    def record_count(self) -> int:
        """0 on CREATE."""
        return 0 if self.action is Action.CREATE else self.outlook.records(self.topic, self.action)

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """With this request, and those before it that were not denied."""
        return self.outlook.partitions_of(labels, self.topic, self.effects)
