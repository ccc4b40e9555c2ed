"""Completion of `kdeclare connector`: connectors and Connect clusters."""

from collections.abc import Callable, Hashable
from typing import TypeVar

from kdeclare.cli.interactive.completer import complete_line
from kdeclare.cli.interactive.grammar import build_grammar
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.providers.connect.client.connectors_port import ConnectCluster
from kdeclare.providers.connect.client.port import UNREACHABLE
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.testing import MemoryConnectCluster, MemoryWorkers

T = TypeVar("T")
SINK = {"connector.class": "FileStreamSink", "topics": "orders", "file": "out.txt"}


class KnownNames:
    """Names from two Connect clusters, ``eu`` with the connectors a and b, and ``us`` with c."""

    def __init__(self) -> None:
        self.eu, self.us = MemoryConnectCluster(), MemoryConnectCluster()
        for cluster, names in ((self.eu, "ab"), (self.us, "c")):
            for name in names:
                cluster.create_connector(name, SINK)

        def open_eu() -> ConnectCluster:
            return self.eu

        def open_us() -> ConnectCluster:
            return self.us

        clients = ConnectClients(lambda _: MemoryWorkers(), {"eu": open_eu, "us": open_us})
        self.connections = Connections(clients)

    def live(self, kind: str) -> tuple[str, ...]:
        return ()

    def ask(self, key: Hashable, question: Callable[[Connections], T], nothing: T) -> T:
        return question(self.connections)

    def declared(self) -> tuple[str, ...]:
        return ()

    def runs(self) -> tuple[str, ...]:
        return ()

    def environments(self) -> tuple[str, ...]:
        return ()


def complete(line: str, names: KnownNames | None = None) -> list[str]:
    candidates = complete_line(line, build_grammar(), names or KnownNames())[1]
    return [candidate.text for candidate in candidates]


def test_completion_offers_connectors_and_connect_clusters() -> None:
    assert complete("connector describe ") == ["a", "b", "c"]
    assert complete("connector pause a ") == ["b", "c"]
    assert complete("connector stop --connect us ") == ["c"]
    assert complete("connector list --connect ") == ["eu", "us"]


def test_completion_skips_unreadable_connect_clusters() -> None:
    names = KnownNames()
    names.eu.faults.fail(Fault(UNREACHABLE, "refused"), nth=None, method="list_connectors")
    assert complete("connector restart ", names) == ["c"]
