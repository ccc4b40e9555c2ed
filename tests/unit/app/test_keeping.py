"""Connections that are kept from command to command."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kdeclare.app.connections import ConnectionCache
from kdeclare.app.workspace import WorkspaceOptions
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.provider.connection import Target
from kdeclare.manifests.variables import GivenVariables
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.live import ClusterInfo
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.polling import wait_for


class BreakableCluster(MemoryCluster):
    """A client whose cluster can be unreachable or unresponsive."""

    def __init__(self) -> None:
        super().__init__({1: "rack"})
        self.asking: Callable[[], None] = lambda: None
        self.ended = threading.Event()

    def describe(self) -> ClusterInfo:
        self.asking()
        return super().describe()

    def close(self) -> None:
        self.ended.set()


class Network:
    """Opens clusters by address. down: whether all clusters are unreachable."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, BreakableCluster]] = []
        self.timeouts: list[float] = []
        self.down = False

    def open(self, servers: str, timeout_s: float) -> KafkaConnection:
        self.timeouts.append(timeout_s)
        if self.down:
            raise KdeclareError(error("unreachable", "Cluster unreachable"))
        cluster = BreakableCluster()
        self.opened.append((servers, cluster))
        return KafkaConnection(cluster)

    def at(self, servers: str, config: str = "") -> Target:
        return NetworkTarget(servers, config, self.open)


@dataclass(frozen=True)
class NetworkTarget:
    """An address that records how it is opened."""

    servers: str
    config: str
    connect: Callable[[str, float], KafkaConnection] = field(compare=False)

    def open(self, timeout_s: float) -> KafkaConnection:
        return self.connect(self.servers, timeout_s)


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def cache() -> Iterator[ConnectionCache]:
    made = ConnectionCache()
    yield made
    made.close()


def raise_closed() -> None:
    raise Fault("NETWORK_EXCEPTION", "closed", FaultKind.RETRIABLE)


def test_cache_returns_same_connection_for_same_target(network: Network, cache: ConnectionCache) -> None:
    first = cache.open(network.at("a:1", "1"), 5.0)
    assert cache.open(network.at("a:1", "1"), 5.0) is first
    assert cache.open(network.at("a:1", "2"), 5.0) is not first
    assert cache.open(network.at("b:1", "1"), 5.0) is not first
    assert len(network.opened) == 3


def test_cache_reopens_broken_connection(network: Network, cache: ConnectionCache) -> None:
    first = cache.open(network.at("a:1"), 5.0)
    network.opened[0][1].asking = raise_closed
    network.down = True
    for _ in range(2):
        with pytest.raises(KdeclareError, match="Cluster unreachable"):
            cache.open(network.at("a:1"), 5.0)
    assert network.opened[0][1].ended.wait(60)
    network.down = False
    assert cache.open(network.at("a:1"), 5.0) is not first


def test_cache_leaves_time_to_reopen_after_unresponsive_check(
    network: Network, cache: ConnectionCache
) -> None:
    cache.open(network.at("a:1"), 5.0)
    silence = threading.Event()
    answers: list[bool] = []
    network.opened[0][1].asking = lambda: answers.append(silence.wait(60))
    network.down = True
    with pytest.raises(KdeclareError, match="Cluster unreachable"):
        cache.open(network.at("a:1"), 0.4)
    assert not answers, "it does not wait for the answer"
    assert 0 <= network.timeouts[-1] <= 0.25  # the remaining part of the timeout
    silence.set()


def test_cache_reopens_after_any_exception(network: Network, cache: ConnectionCache) -> None:
    first = cache.open(network.at("a:1"), 5.0)

    def raise_bug() -> None:
        raise ZeroDivisionError

    network.opened[0][1].asking = raise_bug
    assert cache.open(network.at("a:1"), 5.0) is not first


def test_cache_closes_oldest_beyond_its_limit(network: Network, cache: ConnectionCache) -> None:
    for number in range(5):
        cache.open(network.at(f"a:{number}"), 5.0)
    first, *others = [cluster for _, cluster in network.opened]
    assert first.ended.wait(60)
    assert not any(cluster.ended.is_set() for cluster in others)


def test_cache_closes_all_connections_at_end(network: Network) -> None:
    kept = ConnectionCache()
    kept.open(network.at("a:1"), 5.0)
    kept.open(network.at("b:1"), 5.0)
    kept.close()
    assert all(cluster.ended.wait(60) for _, cluster in network.opened)


def test_cache_keeps_one_of_two_simultaneous_opens(network: Network) -> None:
    both = threading.Barrier(2)

    def open_slowly(servers: str, timeout_s: float) -> KafkaConnection:
        both.wait(60)
        return network.open(servers, timeout_s)

    kept = ConnectionCache()
    slow = NetworkTarget("a:1", "", open_slowly)
    threads = [threading.Thread(target=kept.open, args=(slow, 5.0)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (_, one), (_, other) = network.opened
    wait_for(lambda: one.ended.is_set() or other.ended.is_set(), every=0.01)
    assert one.ended.is_set() != other.ended.is_set()
    again = kept.open(slow, 5.0)
    assert isinstance(again, KafkaConnection)
    assert again.cluster is (other if one.ended.is_set() else one)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (WorkspaceOptions(), WorkspaceOptions(Path("p"), "lab", "a:1", Path("c"), "s", 5)),
        (
            WorkspaceOptions(bootstrap_server="b:1"),
            WorkspaceOptions(Path("p"), "lab", "b:1", Path("c"), "s", 5),
        ),
        (WorkspaceOptions(timeout_s=1), WorkspaceOptions(Path("p"), "lab", "a:1", Path("c"), "s", 1)),
        (WorkspaceOptions(env="live"), WorkspaceOptions(Path("p"), "live", state="s", timeout_s=5)),
        (
            WorkspaceOptions(env="live", bootstrap_server="b:1"),
            WorkspaceOptions(Path("p"), "live", "b:1", None, "s", 5),
        ),
        (WorkspaceOptions(Path("q")), WorkspaceOptions(Path("q"), timeout_s=5)),
    ],
)
def test_options_with_another_project_drop_default_servers(
    given: WorkspaceOptions, expected: WorkspaceOptions
) -> None:
    assert given.over(WorkspaceOptions(Path("p"), "lab", "a:1", Path("c"), "s", 5)) == expected


def test_variables_of_a_line_are_added_to_those_of_the_shell() -> None:
    shell = WorkspaceOptions(Path("p"), variables=GivenVariables((Path("a.yaml"),), (("x", "1"), ("y", "1"))))
    line = GivenVariables((Path("b.yaml"),), (("x", "2"),))
    both = GivenVariables((Path("a.yaml"), Path("b.yaml")), (("x", "1"), ("y", "1"), ("x", "2")))
    assert WorkspaceOptions(variables=line).over(shell).variables == both
    assert WorkspaceOptions(env="live").over(shell).variables == shell.variables
    assert WorkspaceOptions(Path("q"), variables=line).over(shell).variables == line
    assert WorkspaceOptions(Path("q")).over(shell).variables is None
