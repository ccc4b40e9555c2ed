"""Reading the live state of all systems that a plan or a run is about."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kdeclare.core.collector import Selection
from kdeclare.core.ids import ResourceId
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.patience import Patience
from kdeclare.core.progress import Progress
from kdeclare.core.registry import load_collectors, type_of
from kdeclare.providers.connect.collector import ConnectClients
from kdeclare.providers.kafka.collector import CLUSTER, KafkaConnection
from kdeclare.providers.kafka.ids import is_topic
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.plan_options import find_kafka_options
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.selection import KafkaSelection
from kdeclare.providers.kafka.visibility import observe_expected as observe_expected_topics


@dataclass(frozen=True, slots=True)
class Sighting:
    """The live state, and what became of the expected topics that it lacks.

    absent: the controller says that there is none. pending: it exists, and no broker showed it in time.
    unsettled: the controller did not say, because the client may not ask it.
    """

    live: LiveState
    absent: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    unsettled: frozenset[str] = frozenset()


def connections_to(cluster: Cluster) -> Connections:
    """Return the connections of all providers: workers of Connect are opened by way of their cluster."""
    return Connections(KafkaConnection(cluster), ConnectClients(cluster.workers))


def observe(connections: Connections, selections: Iterable[Selection]) -> LiveState:
    """Read what is selected, and who the cluster is. Raises Fault when a system does not answer."""
    chosen = (KafkaSelection(), *selections)
    return LiveState(*_collect(connections, chosen))


def observe_owned(
    connections: Connections,
    selections: Iterable[Selection],
    owned: Iterable[str],
    options: PlanOptions,
    progress: Progress,
) -> Sighting:
    """Read what is selected, and all names, until brokers show what is selected and owned. Raises Fault.

    owned: resource ids.
    """
    chosen = tuple(selections)
    selected = CLUSTER.merge(chosen) or KafkaSelection()
    ids = map(ResourceId.parse, owned)
    expected = sorted(id_.name for id_ in ids if is_topic(id_) and id_.name in selected.topics)
    patience = Patience(find_kafka_options(options).visibility_timeout_s, progress)
    return observe_expected(connections, chosen, expected, patience, all_topics=True)


def observe_expected(
    connections: Connections,
    selections: Iterable[Selection],
    expected: Collection[str],
    patience: Patience,
    *,
    all_topics: bool = False,
    await_unsettled: bool = False,
) -> Sighting:
    """Read what is selected, until brokers show every expected topic that exists, or patience ends.

    await_unsettled: wait also where nobody can tell whether a topic exists. Raises Fault.
    """
    chosen = tuple(selections)
    seen = observe_expected_topics(
        connections.get(KafkaConnection).cluster,
        CLUSTER.merge(chosen) or KafkaSelection(),
        expected,
        patience,
        all_topics=all_topics,
        await_unsettled=await_unsettled,
    )
    others = (
        part for part in _collect(connections, [s for s in chosen if not isinstance(s, KafkaSelection)])
    )
    return Sighting(LiveState(seen.live, *others), seen.absent, seen.pending, seen.unsettled)


def select_all(operations: Iterable[Operation]) -> list[Selection]:
    """Return what the operations touch."""
    return [selection for op in operations for selection in type_of(op).select(op)]


def identify_system(live: LiveState) -> str:
    """Return the id of the system that plans and states are bound to."""
    return kafka_of(live).cluster.id


def find_principal(connections: Connections) -> str | None:
    """Return whom the system takes kdeclare for. Raises Fault."""
    return connections.get(KafkaConnection).cluster.describe().principal


def kafka_of(live: LiveState) -> KafkaState:
    """Return the part of the live state that is the Kafka cluster."""
    return live.get(KafkaState)


def _collect(connections: Connections, selections: Collection[Selection]) -> Iterable[object]:
    for collector in load_collectors():
        part = collector.collect(connections, selections)
        if part is not None:
            yield part
