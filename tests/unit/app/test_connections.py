"""Connections of a command are opened once, when needed, and closed once."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from kdeclare.app.connections import Opener, PendingConnections, explain_fault
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.parts import Connections, SystemSettings


@dataclass
class Depot:
    """A connection that records `close` and can be kept."""

    closed: threading.Event = field(default_factory=threading.Event)

    def close(self) -> None:
        assert not self.closed.is_set(), "closed twice"
        self.closed.set()


class KeepableDepot(Depot):
    def check(self) -> None:
        """Always responds."""


@dataclass
class Shop:
    """A connection that holds nothing."""


class CountingOpener:
    """Open connections and count them."""

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make
        self.times = 0

    def __call__(self) -> object:
        self.times += 1
        return self.make()


def raise_unreachable() -> object:
    raise KdeclareError(error("unreachable", "It cannot be reached"))


def test_connection_opens_once_on_first_use() -> None:
    opens = CountingOpener(Depot)
    connecting = PendingConnections([Opener(Depot, opens)])
    connections = connecting.get()
    assert opens.times == 0
    depot = connections.get(Depot)
    assert connections.get(Depot) is depot
    assert connections.with_part(Shop()).get(Depot) is depot
    connecting.close()
    assert opens.times == 1
    assert depot.closed.wait(60)


def test_unused_connection_is_never_opened() -> None:
    opens = CountingOpener(Depot)
    connecting = PendingConnections([Opener(Depot, opens)])
    connecting.get()
    connecting.close()
    assert opens.times == 0


def test_always_needed_connection_opens_in_background_and_closes() -> None:
    depot, may_go_on = Depot(), threading.Event()

    def open_slowly() -> object:
        assert may_go_on.wait(60)
        return depot

    connecting = PendingConnections([Opener(Depot, open_slowly, is_always_needed=True)])
    connecting.close()  # does not wait
    assert not depot.closed.is_set()
    may_go_on.set()
    assert depot.closed.wait(60)


def test_get_fails_early_when_always_needed_connection_fails() -> None:
    connecting = PendingConnections(
        [Opener(Depot, raise_unreachable, is_always_needed=True), Opener(Shop, Shop)]
    )
    for _ in range(2):
        with pytest.raises(KdeclareError, match="It cannot be reached"):
            connecting.get()
    connecting.close()


def test_connection_without_required_settings_reports_reason_only_on_use() -> None:
    depot = Opener(Depot, raise_unreachable, is_always_needed=True, settings=SystemSettings.MISSING)
    connecting = PendingConnections([depot])
    connections = connecting.get().with_part(Shop())
    assert connections.is_unconfigured(Depot)
    assert not connections.offers(Depot)
    assert not PendingConnections([replace(depot, is_always_needed=False)]).get().is_empty
    assert connections.find(Depot) is None
    with pytest.raises(KdeclareError, match="It cannot be reached"):
        connections.get(Depot)
    assert not connections.with_part(Depot()).is_unconfigured(Depot)
    connecting.close()


def test_unreachable_connection_does_not_affect_others() -> None:
    connections = PendingConnections([Opener(Depot, raise_unreachable), Opener(Shop, Shop)]).get()
    assert isinstance(connections.get(Shop), Shop)
    with pytest.raises(KdeclareError, match="It cannot be reached"):
        connections.get(Depot)


def test_given_connection_is_neither_opened_nor_closed() -> None:
    opens, given = CountingOpener(Depot), Depot()
    connecting = PendingConnections([Opener(Depot, opens, is_always_needed=True)], Connections(given))
    assert connecting.get().get(Depot) is given
    connecting.close()
    assert opens.times == 0
    assert not given.closed.is_set()


@pytest.mark.parametrize("made", [Depot(), KeepableDepot()])
def test_only_keepable_connection_stays_open_for_cache(made: Depot) -> None:
    connecting = PendingConnections([Opener(Depot, lambda: made, is_kept=True)])
    connecting.get().find(Depot)
    connecting.close()
    assert made.closed.wait(0.2) is not isinstance(made, KeepableDepot)


def test_get_raises_lookup_error_for_unknown_connection() -> None:
    connections = PendingConnections([Opener(Shop, Shop)]).get()
    assert connections.find(Depot) is None
    with pytest.raises(LookupError):
        connections.get(Depot)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault("TOPIC_AUTHORIZATION_FAILED", "no"), "not-authorized"),
        (Fault("WORKER_AUTHORIZATION_FAILED", "no"), "workers-unreachable"),
        (Fault("NETWORK_EXCEPTION", "closed", FaultKind.RETRIABLE), "cluster-lost"),
        (Fault("INVALID_CONFIG", "no"), "refused-by-cluster"),
        (Fault("ERROR_4711", "no"), "refused-by-cluster"),
        (Fault("DEPOT_IS_ON_FIRE", "no", FaultKind.UNKNOWN), "system-lost"),
        (Fault("DEPOT_IS_FULL", "no"), "refused-by-system"),
    ],
)
def test_explain_fault_uses_provider_of_fault(fault: Fault, code: str) -> None:
    found = explain_fault(fault, "lab:9092")
    assert found.code == code
    assert fault.error in found.detail
