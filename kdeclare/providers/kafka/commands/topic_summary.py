"""What ad hoc commands say of a topic once they have changed it."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.parts import LiveState
from kdeclare.engine.planning.planfile_schema import CLOSED
from kdeclare.providers.kafka.ids import is_topic
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.topic.diff import true_replicas
from kdeclare.report.values import listed, plural


@with_config(CLOSED)
class SeenDocument(TypedDict):
    """A topic as metadata has it afterwards."""

    partitions: int
    factors: Annotated[list[int], Field(description="Replicas a partition: each size once.")]
    replicas: Annotated[int, Field(description="Over all partitions.")]
    in_sync: Annotated[int, Field(description="Those of them that the leaders call in sync.")]
    leaderless: int


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic as metadata has it afterwards.

    factors: replicas a partition, each size once, sorted. in_sync, replicas: counted over the partitions;
    in sync is what each leader says of its own partition. leaderless: partitions without a leader.
    """

    partitions: int
    factors: tuple[int, ...]
    replicas: int
    in_sync: int
    leaderless: int

    def describe(self) -> str:
        """Return it in words."""
        factors = "/".join(map(str, self.factors))
        replicas = "replica" if factors == "1" else "replicas"
        behind = self.replicas - self.in_sync
        sync = (
            "all in sync" if not behind else f"{behind:,} of {plural(self.replicas, 'replica')} not in sync"
        )
        return listed(
            [
                f"{plural(self.partitions, 'partition')} × {factors} {replicas}",
                f"{sync}, as their leaders say",
                f"{self.leaderless:,} without a leader" if self.leaderless else "",
            ]
        )

    def to_json(self) -> Json:
        """Return it as a document."""
        document: SeenDocument = {
            "partitions": self.partitions,
            "factors": list(self.factors),
            "replicas": self.replicas,
            "in_sync": self.in_sync,
            "leaderless": self.leaderless,
        }
        return document


def summarize_topic(resource: ResourceId, live: LiveState) -> TopicSummary | None:
    """Return what there is to say of a resource; None for what is no topic, or is not there."""
    if not is_topic(resource):
        return None
    cluster = live.get(KafkaState)
    topic = cluster.topics.get(resource.name)
    if topic is None:
        return None
    replicas = true_replicas(cluster, topic)
    return TopicSummary(
        partitions=len(topic.partitions),
        factors=tuple(sorted({len(r) for r in replicas})),
        replicas=sum(len(r) for r in replicas),
        in_sync=sum(len(set(p.isr) & set(r)) for p, r in zip(topic.partitions, replicas, strict=True)),
        leaderless=sum(p.leader is None for p in topic.partitions),
    )
