"""Outages of served clusters, as kdeclare's client sees them."""

from collections.abc import Iterator

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import ActiveProducer, ConfigQuery, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.beds import topic_resource
from tests.ports import reserve_ports
from tests.served import Outage, ServedCluster

QUERY = ConfigQuery(topic_resource("orders"), overrides=True)
QUICK = {"request.timeout.ms": "1500"}


@pytest.fixture
def served() -> Iterator[ServedCluster]:
    """A cluster with one broker and one topic."""
    memory = MemoryCluster({1: "a"})
    memory.create_topics([NewTopic("orders", 1, 1, None, {"retention.ms": "5"})])
    cluster = ServedCluster(memory, reserve_ports(lambda first: [first]))
    yield cluster
    cluster.close()


@pytest.mark.parametrize(
    ("outage", "reason"),
    [(Outage.REFUSED, "connection refused"), (Outage.SILENT, "connected, but no response in time")],
)
def test_client_cannot_connect_during_outage(served: ServedCluster, outage: Outage, reason: str) -> None:
    with served.outage(outage), pytest.raises(KdeclareError) as problem:
        connect(served.bootstrap, {}, timeout_s=1.0)
    assert reason in problem.value.diagnostics[0].detail
    connect(served.bootstrap, {}).close()


@pytest.mark.parametrize(
    ("outage", "error"), [(Outage.STALLED, "REQUEST_TIMED_OUT"), (Outage.CUT, "NETWORK_EXCEPTION")]
)
def test_requests_for_configs_fail_during_outage(served: ServedCluster, outage: Outage, error: str) -> None:
    cluster = connect(served.bootstrap, QUICK)
    try:
        with served.outage(outage):
            assert cluster.topics().keys() == {"orders"}
            with pytest.raises(Fault) as problem:
                cluster.configs([QUERY])
        assert (problem.value.error, problem.value.kind) == (error, FaultKind.RETRIABLE)
        assert cluster.configs([QUERY])[QUERY.resource]["retention.ms"].value == "5"
    finally:
        cluster.close()


def test_producers_of_other_topics_are_listed_if_one_topic_is_refused(served: ServedCluster) -> None:
    served.memory.create_topics([NewTopic("hidden", 1, 1, None, {})])
    orders, hidden = TopicPartition("orders", 0), TopicPartition("hidden", 0)
    served.memory.set_producers(orders, ActiveProducer(7, 1000, in_transaction=True))
    fault = Fault("TOPIC_AUTHORIZATION_FAILED", "Not authorized.")
    served.memory.faults.fail(fault, method="producers", item="hidden", nth=None)
    for cluster in (served.memory, connect(served.bootstrap, QUICK)):
        found = cluster.list_producers(["orders", "hidden", "not-there"])
        refused = found[hidden]
        assert found == {orders: (ActiveProducer(7, 1000, in_transaction=True),), hidden: refused}
        assert isinstance(refused, Fault)
        assert (refused.error, refused.kind) == (fault.error, FaultKind.REFUSED)
        if cluster is not served.memory:
            cluster.close()


def test_fault_of_memory_cluster_becomes_error_code(served: ServedCluster) -> None:
    served.memory.faults.fail(Fault("NOT_CONTROLLER", "Ask another broker."), method="create_topics")
    served.memory.faults.fail(Fault("NETWORK_EXCEPTION", ""), method="configs")
    cluster = connect(served.bootstrap, {})
    try:
        result = cluster.create_topics([NewTopic("clicks", 1, 1, None, {})])["clicks"]
        assert isinstance(result, Fault)
        assert (result.error, result.message) == ("NOT_CONTROLLER", "Ask another broker.")
        with pytest.raises(Fault, match="NETWORK_EXCEPTION"):
            cluster.configs([QUERY])  # the broker closed the connection
    finally:
        cluster.close()
