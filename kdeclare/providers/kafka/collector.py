"""Reading the live state of a Kafka cluster for everything that asks for some of it, in one batch."""

from kdeclare.core.collector import Collector, Expected, Selection, Sighting
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import is_topic
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.observe import observe
from kdeclare.providers.kafka.selection import KafkaSelection
from kdeclare.providers.kafka.visibility import observe_expected


def collect_cluster(connections: Connections, selection: KafkaSelection) -> KafkaState:
    """Read what is selected of the cluster. Raises Fault when it does not answer."""
    return observe(connections.get(KafkaConnection).cluster, selection)


def collect_expected(connections: Connections, selection: KafkaSelection, expected: Expected) -> Sighting:
    """Read what is selected, until brokers show every expected topic that exists. Raises Fault."""
    owned = {id_.name for id_ in expected.owned if is_topic(id_) and id_.name in selection.topics}
    return observe_expected(
        connections.get(KafkaConnection).cluster,
        selection,
        sorted(owned | expected.names),
        expected.patience,
        all_topics=expected.reads_all_names,
        await_unsettled=expected.await_unsettled,
    )


def find_principal(connections: Connections) -> str | None:
    """Return the principal that kdeclare is authenticated as. Raises Fault."""
    return connections.get(KafkaConnection).cluster.describe().principal


CLUSTER = Collector(
    KafkaSelection,
    collect_cluster,
    always=KafkaSelection(),
    read_expected=collect_expected,
    find_id=lambda live: state.cluster.id if (state := live.find(KafkaState)) else None,
)


def select_topics(selections: tuple[Selection, ...]) -> frozenset[str]:
    """Return the topics that are selected by name."""
    merged = CLUSTER.merge(selections)
    return merged.topics if merged is not None else frozenset()
