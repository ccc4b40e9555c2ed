"""Reading the live state of a Kafka cluster for everything that asks for some of it, in one batch."""

from dataclasses import dataclass

from kdeclare.core.collector import Collector, Selection
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.observe import observe
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.selection import KafkaSelection


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """The connection to the Kafka cluster."""

    cluster: Cluster


def collect_cluster(connections: Connections, selection: KafkaSelection) -> KafkaState:
    """Read what is selected of the cluster. Raises Fault when it does not answer."""
    return observe(connections.get(KafkaConnection).cluster, selection)


CLUSTER = Collector(KafkaSelection, collect_cluster)


def select_topics(selections: tuple[Selection, ...]) -> frozenset[str]:
    """Return the topics that are selected by name."""
    merged = CLUSTER.merge(selections)
    return merged.topics if merged is not None else frozenset()
