"""`ServedCluster`, which serves an in-memory cluster to real clients, and the outages of its brokers."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from typing import Any

from kdeclare.providers.kafka.testing import MemoryCluster
from tests.fake_broker import Answer, FakeBroker
from tests.served.access import AccessApis
from tests.served.configs import ConfigApis
from tests.served.groups import GroupApis
from tests.served.metadata import MetadataApis
from tests.served.records import RecordApis
from tests.served.results import ConnectionLost
from tests.served.topics import TopicApis

_VERSIONS = {
    1: 18,
    2: 8,
    3: 13,
    8: 9,
    9: 9,
    10: 6,
    15: 6,
    16: 5,
    18: 3,
    19: 7,
    20: 6,
    29: 3,
    30: 3,
    31: 3,
    32: 4,
}
_VERSIONS |= {34: 2, 35: 4, 37: 3, 42: 2, 43: 2, 44: 1, 45: 1, 46: 0, 47: 0, 48: 1, 49: 1, 50: 0, 51: 0}
_VERSIONS |= {55: 2, 60: 2, 61: 0, 69: 1, 74: 1}
"""The highest version of each API, which is at most the version of Kafka 4.3."""
_API_VERSIONS, _DESCRIBE_CONFIGS = 18, 32
_CUT_AFTER_BYTES = 40
"""More than the header of a response, and less than any description of configs."""


class Outage(Enum):
    """What is wrong with the brokers of a cluster.

    REFUSED: nothing listens on their ports.
    SILENT: they accept connections and requests, but never respond.
    STALLED: they never respond to requests for configs.
    CUT: they close the connection in the middle of each response with configs.
    """

    REFUSED = auto()
    SILENT = auto()
    STALLED = auto()
    CUT = auto()


class ServedCluster:
    """The brokers of an in-memory cluster, each on a port of 127.0.0.1.

    Every request of kdeclare's client becomes a call of ``memory``, so that its faults and its log work as
    usual: a fault becomes an error code, and NETWORK_EXCEPTION closes the connection. Brokers never lag
    (``metadata_lag`` has no effect on what they say about their progress), they do not authenticate clients,
    and instead of the password of a SCRAM user, the cluster remembers the salted hash that clients send.
    """

    def __init__(self, memory: MemoryCluster, first_port: int = 0) -> None:
        """Start the brokers. first_port: the port of the first broker; 0 means any free ports.

        Only ports that were reserved (`tests.ports`) certainly stay free during an outage.
        """
        self.memory = memory
        self._outage: Outage | None = None
        self._ports: dict[int, int] = {}
        self._brokers: dict[int, FakeBroker] = {}
        self._started: list[FakeBroker] = []
        for index, broker in enumerate(memory.elsewhere().describe().brokers):
            self._start(broker.id, first_port and first_port + index)

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    def list_requests(self, api_key: int) -> list[Any]:
        """Return all requests for one API, also those before an outage."""
        return [request for broker in self._started for request in broker.list_requests(api_key)]

    @contextlib.contextmanager
    def outage(self, outage: Outage) -> Iterator[None]:
        """Disturb all brokers for the duration of a with block."""
        self._outage = outage
        if outage is Outage.REFUSED:
            self.close()
        try:
            yield
        finally:
            self._outage = None
            if outage is Outage.REFUSED:
                for broker, port in list(self._ports.items()):
                    self._start(broker, port)

    def close(self) -> None:
        """Stop all brokers and close their connections."""
        for broker in self._brokers.values():
            broker.die()

    def _start(self, broker: int, port: int) -> None:
        metadata = MetadataApis(self.memory, broker, self._ports)
        apis = (
            metadata,
            TopicApis(self.memory, broker),
            ConfigApis(self.memory),
            AccessApis(self.memory),
            GroupApis(self.memory, broker, self._ports),
            RecordApis(self.memory),
        )
        answers: dict[int, Answer] = {}
        for part in apis:
            answers |= {key: self._guard(key, answer) for key, answer in part.answers.items()}
        answers[_API_VERSIONS] = self._guard(
            _API_VERSIONS,
            lambda request: metadata.complete_versions(self._brokers[broker].api_versions(request)),
        )
        served = FakeBroker(answers, self._list_versions(), port)
        self._brokers[broker], self._ports[broker] = served, served.port
        self._started.append(served)

    def _list_versions(self) -> Mapping[int, int]:
        limits = {} if self.memory.rf_guard else {45: 0}
        return {**_VERSIONS, **limits, **({} if self.memory.topic_ids else {20: 5})}

    def _guard(self, key: int, answer: Callable[[Any], Any]) -> Answer:
        def respond(request: Any) -> Any:
            is_affected = key == _DESCRIBE_CONFIGS
            if self._outage is Outage.SILENT or (is_affected and self._outage is Outage.STALLED):
                return ...
            try:
                response = answer(request)
            except ConnectionLost:
                return None
            is_cut = is_affected and self._outage is Outage.CUT
            return (response, _CUT_AFTER_BYTES) if is_cut else response

        return respond


@contextlib.contextmanager
def served_cluster(memory: MemoryCluster) -> Iterator[ServedCluster]:
    """Serve a cluster for the duration of a with block."""
    served = ServedCluster(memory)
    try:
        yield served
    finally:
        served.close()
