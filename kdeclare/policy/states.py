"""Topics before and after a request, as policies are shown them; see `policy.interface.TopicState`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kdeclare.kinds.verbs.base import Effect
from kdeclare.policy.facts import Facts
from kdeclare.policy.interface import PolicyViolation, TopicState


@dataclass(frozen=True)
class LiveState:
    """A topic as the cluster has it."""

    name: str
    facts: Facts

    @property
    def num_partitions(self) -> int:
        """How many partitions it has."""
        self._must_be_there()
        topic = self.facts.topic(self.name)
        return len(topic.partitions) if topic else 0

    @property
    def replication_factor(self) -> int:
        """The smallest number of replicas."""
        return _smallest(self.replicas_assignments)

    @cached_property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """Where the replicas are, or are heading."""
        self._must_be_there()
        return self.facts.replicas(self.name)

    @property
    def configs(self) -> Mapping[str, str]:
        """The overrides."""
        return self.facts.configs(self.name)

    def _must_be_there(self) -> None:
        if self.facts.topic(self.name) is None:
            raise PolicyViolation(f"Topic '{self.name}' is not there any more, so it cannot be judged.")


@dataclass(frozen=True)
class ResultState:
    """A topic as it will be: as it is (None: not there), and what is made of it, in this order."""

    before: TopicState | None
    effects: tuple[Effect, ...]
    facts: Facts

    @property
    def num_partitions(self) -> int:
        """As requested, else as before, else Kafka's default."""
        for effect in reversed(self.effects):
            if effect.partitions is not None:
                return effect.partitions
        return self.before.num_partitions if self.before else self.facts.defaults[0]

    @cached_property
    def replication_factor(self) -> int:
        """As requested, else the smallest number of replicas, else Kafka's default."""
        created = self.effects[0]
        if self.before is None and len(self.effects) == 1:
            return self.facts.defaults[1] if created.factor is None else created.factor
        return _smallest(self.replicas_assignments)

    @cached_property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """As before, with what is moved and added; what Kafka will place is left out."""
        replicas = dict(self.before.replicas_assignments) if self.before else {}
        for effect in self.effects:
            replicas |= effect.replicas
        return replicas

    @cached_property
    def configs(self) -> Mapping[str, str]:
        """The overrides of before, and what is made of them."""
        configs: dict[str, str | None] = dict(self.before.configs) if self.before else {}
        for effect in self.effects:
            configs |= effect.configs
        return {key: value for key, value in configs.items() if value is not None}


def _smallest(replicas: Mapping[int, Sequence[int]]) -> int:
    return min((len(brokers) for brokers in replicas.values()), default=0)
