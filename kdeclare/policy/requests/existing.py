"""Requests for what is there already, to judge a cluster as it is."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kdeclare.policy.interface import Action
from kdeclare.policy.requests.outlook import Outlook
from kdeclare.policy.requests.states import LiveState


@dataclass(frozen=True, slots=True)
class ExistingRequest:
    """A topic as it is, as if it were created so (CREATE) or changed without any effect (MODIFY).

    among: all topics of which the same is asked.
    """

    topic: str
    action: Action
    outlook: Outlook
    among: Collection[str]

    @property
    def principal(self) -> str | None:
        """Whom the brokers take kdeclare for."""
        return self.outlook.facts.principal

    @property
    def pre_request_state(self) -> LiveState | None:
        """None on CREATE."""
        return None if self.action is Action.CREATE else self.post_request_state

    @property
    def post_request_state(self) -> LiveState:
        """As it is."""
        return LiveState(self.topic, self.outlook.facts)

    @property
    def labels(self) -> Mapping[str, str]:
        """Of the topic."""
        return dict(self.outlook.labels.get(self.topic, {}))

    @property
    def labels_before(self) -> Mapping[str, str]:
        """The same, as nothing is changed about it; none on CREATE."""
        return {} if self.action is Action.CREATE else self.labels

    @property
    def changed(self) -> frozenset[str]:
        """On CREATE all that it has, the replicas as if Kafka had placed them."""
        if self.action is not Action.CREATE:
            return frozenset()
        keys = self.post_request_state.configs
        return frozenset({"partitions", "replicationFactor", *(f"configs.{key}" for key in keys)})

    @property
    def racks(self) -> Mapping[int, str | None]:
        """Of all brokers."""
        return dict(self.outlook.facts.racks)

    @property
    def record_count(self) -> int:
        """0 on CREATE."""
        if self.action is Action.CREATE:
            return 0
        return self.outlook.facts.records(self.topic, self.among)

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """How many partitions the topics with these labels have."""
        return self.outlook.partitions_of(labels, self.topic)
