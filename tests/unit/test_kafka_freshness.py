"""Reads use the brokers that have everything the controller has committed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client import freshness
from kdeclare.providers.kafka.client.freshness import Freshness, LogOffsets
from kdeclare.providers.kafka.client.wire import Wire

GONE = Fault("NETWORK_EXCEPTION", "refused", FaultKind.RETRIABLE)


class Brokers:
    """A fake wire: a controller, and brokers whose metadata follows a script."""

    def __init__(self, committed: int | Fault, epochs: Mapping[int, list[int | Fault]]) -> None:
        self.committed = committed
        self.epochs = epochs
        self.rounds = 0
        self.log_reads = 0
        self.uncommitted = 0
        self.commits_per_read = 0

    def brokers(self) -> list[int]:
        return list(self.epochs)

    def send_one(self, _request: Any, _read: Callable[[Any], Any]) -> LogOffsets:
        if isinstance(self.committed, Fault):
            raise self.committed
        self.log_reads += 1
        committed = self.committed + self.commits_per_read * self.log_reads
        return LogOffsets(committed + 1, committed + 1 + self.uncommitted)  # offsets after the last record

    def send_each(
        self, requests: Mapping[int, Sequence[Any]], _read: Callable[[Any], Any]
    ) -> dict[int, list[int | Fault]]:
        self.rounds += 1
        return {
            node: [self.epochs[node].pop(0) if len(self.epochs[node]) > 1 else self.epochs[node][0]]
            for node in requests
        }


def make_freshness(brokers: Brokers) -> Freshness:
    return Freshness(cast(Wire, brokers))


class Clock:
    """A fake of the module ``time`` whose clock only advances during a sleep."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(freshness, "time", made)
    return made


def test_nodes_waits_for_all_quick_brokers() -> None:
    brokers = Brokers(10, {1: [10], 2: [8, 9, 11], 3: [9, 10]})
    assert make_freshness(brokers).nodes() == [1, 2, 3]
    assert brokers.rounds == 3


def test_nodes_skips_slow_and_dead_brokers(clock: Clock) -> None:
    assert make_freshness(Brokers(10, {1: [10], 2: [3], 3: [GONE]})).nodes() == [1]
    assert 0.5 < clock.at < 1


def test_nodes_waits_for_required_broker(clock: Clock) -> None:
    assert make_freshness(Brokers(10, {1: [10], 2: [*[3] * 60, 10]})).nodes({2}) == [1, 2]
    assert clock.at > 1


def test_nodes_returns_trailing_brokers_after_time_limit(clock: Clock) -> None:
    assert make_freshness(Brokers(10, {1: [3], 2: [4]})).nodes() == [1, 2]
    assert 30 < clock.at < 31


def test_nodes_prefers_brokers_checked_most_recently(clock: Clock) -> None:
    brokers = Brokers(10, {1: [3], 2: [10]})
    made = make_freshness(brokers)
    assert made.nodes() == [2]
    clock.sleep(2)
    brokers.committed = 12
    assert made.nodes() == [2], "broker 1 lacks even what was committed at first"
    made.mark_written()
    assert made.nodes() == [1, 2], "no broker was checked for the write"


def test_nodes_checks_brokers_again_only_after_write() -> None:
    brokers = Brokers(10, {1: [10]})
    made = make_freshness(brokers)
    made.nodes()
    made.nodes()
    assert brokers.rounds == 1
    made.mark_written()
    brokers.committed = 12
    brokers.epochs = {1: [10, 11, 12]}
    assert made.nodes() == [1]
    assert brokers.rounds == 4


def test_await_pending_commits_waits_for_records_beyond_log_end(clock: Clock) -> None:
    brokers = Brokers(10, {1: [100]})
    brokers.uncommitted, brokers.commits_per_read = 3, 1
    made = make_freshness(brokers)
    made.nodes()
    rounds, reads_before = brokers.rounds, brokers.log_reads
    made.await_pending_commits()
    assert brokers.log_reads - reads_before == 1 + 4, (
        "the log end, then until the record after it is committed"
    )
    assert 0 < clock.at < 0.1
    made.nodes()
    assert brokers.rounds == rounds + 1, "brokers are checked again"


def test_await_pending_commits_ends_if_controller_is_idle(clock: Clock) -> None:
    make_freshness(Brokers(10, {1: [10]})).await_pending_commits()
    assert 0.5 < clock.at < 0.8


@pytest.mark.parametrize("error", ["UNSUPPORTED_VERSION", "CLUSTER_AUTHORIZATION_FAILED"])
def test_await_pending_commits_does_not_wait_if_log_is_unavailable(clock: Clock, error: str) -> None:
    made = make_freshness(Brokers(Fault(error, ""), {1: [10]}))
    made.nodes()
    made.await_pending_commits()
    assert clock.at == 0


@pytest.mark.parametrize("error", ["UNSUPPORTED_VERSION", "CLUSTER_AUTHORIZATION_FAILED"])
def test_nodes_returns_all_brokers_if_epoch_is_unavailable(error: str) -> None:
    brokers = Brokers(Fault(error, ""), {1: [0], 2: [0]})
    made = make_freshness(brokers)
    assert made.nodes() == [1, 2]
    brokers.committed = GONE  # never checked again
    assert made.nodes() == [1, 2]


def test_nodes_passes_on_other_faults() -> None:
    with pytest.raises(Fault, match="NETWORK_EXCEPTION"):
        make_freshness(Brokers(GONE, {1: [0]})).nodes()


def test_is_caught_up_checks_brokers_each_time(clock: Clock) -> None:
    brokers = Brokers(10, {1: [*[3] * 10, 11], 2: [3]})
    found = make_freshness(brokers)
    found.mark_written()
    assert found.is_caught_up()  # broker 1 catches up during the wait
    brokers.committed = 20
    before = clock.at
    assert not found.is_caught_up()
    assert clock.at - before < 1, "the caller waits and shows its own progress"
    brokers.epochs = {**brokers.epochs, 1: [20]}
    assert found.is_caught_up()


def test_is_caught_up_is_false_without_permission() -> None:
    refused = Fault("CLUSTER_AUTHORIZATION_FAILED", "")
    assert not make_freshness(Brokers(refused, {1: [10]})).is_caught_up()


@pytest.mark.parametrize(("limit_s", "waits"), [(0.0, 0.0), (2.0, 2.0), (120.0, 30.0)])
def test_await_committed_waits_up_to_limit(clock: Clock, limit_s: float, waits: float) -> None:
    brokers = Brokers(10, {1: [3], 2: [4]})
    found = make_freshness(brokers)
    found.await_committed(WaitPolicy(limit_s))
    assert waits <= clock.at < waits + 1
    before = clock.at
    assert found.nodes() == [1, 2], "after the wait, an old response is better than none"
    assert clock.at == before
    found.mark_written()
    assert found.nodes() == [1, 2]
    assert clock.at - before < waits + 1, "later waits are not longer"


def test_await_committed_reports_progress(clock: Clock) -> None:
    told: list[tuple[str, int, int]] = []

    def tell(what: str, done: int, total: int, moves: object = None) -> None:
        told.append((what, done, total))

    make_freshness(Brokers(10, {1: [*[3] * 10, 10], 2: [10]})).await_committed(WaitPolicy(5, tell))
    assert told == []
    make_freshness(Brokers(10, {1: [*[3] * 60, 10], 2: [4]})).await_committed(WaitPolicy(5, tell))
    assert set(told) == {("Waiting for brokers to catch up with the controller", 0, 2)}


def test_await_committed_does_not_wait_if_epoch_is_unavailable(clock: Clock) -> None:
    make_freshness(Brokers(Fault("UNSUPPORTED_VERSION", ""), {1: [0]})).await_committed(WaitPolicy(5))
    assert clock.at == 0
