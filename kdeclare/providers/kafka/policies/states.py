"""Topics before and after a request, as policies are shown them; see `policy.interface.TopicState`.

Policies get copies: what one of them does to a mapping, the next one does not see.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kdeclare.core.policy_subjects import PolicyViolation
from kdeclare.providers.kafka.policies.facts import Facts
from kdeclare.providers.kafka.topic_effects import Effect


@dataclass(frozen=True)
class LiveState:
    """A topic as the cluster has it."""

    name: str
    facts: Facts

    @property
    def num_partitions(self) -> int:
        """How many partitions it has."""
        topic = self.facts.topic(self.name)
        if topic is None:
            raise self._gone()
        return len(topic.partitions)

    @property
    def replication_factor(self) -> int:
        """The smallest number of replicas."""
        return _smallest(self._replicas)

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """Where the replicas are, or are heading."""
        return dict(self._replicas)

    @property
    def configs(self) -> Mapping[str, str]:
        """The overrides."""
        return dict(self.facts.configs(self.name))

    @cached_property
    def _replicas(self) -> Mapping[int, Sequence[int]]:
        replicas = self.facts.replicas(self.name)
        if replicas is None:
            raise self._gone()
        return replicas

    def _gone(self) -> PolicyViolation:
        return PolicyViolation(f"Topic '{self.name}' is not there any more, so it cannot be judged.")


@dataclass(frozen=True)
class ResultState:
    """A topic as it will be: as it is (None: not there), and what is made of it, in this order."""

    before: "LiveState | ResultState | None"
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
        return _smallest(self._replicas)

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """As before, with what is moved and added; what Kafka will place is left out."""
        return dict(self._replicas)

    @property
    def configs(self) -> Mapping[str, str]:
        """The overrides of before, and what is made of them."""
        return dict(self._configs)

    @cached_property
    def _replicas(self) -> Mapping[int, Sequence[int]]:
        replicas = dict(self.before.replicas_assignments) if self.before else {}
        for effect in self.effects:
            replicas |= effect.replicas
        return replicas

    @cached_property
    def _configs(self) -> Mapping[str, str]:
        configs: dict[str, str | None] = dict(self.before.configs) if self.before else {}
        for effect in self.effects:
            configs |= effect.configs
        return {key: value for key, value in configs.items() if value is not None}


def _smallest(replicas: Mapping[int, Sequence[int]]) -> int:
    return min((len(brokers) for brokers in replicas.values()), default=0)
