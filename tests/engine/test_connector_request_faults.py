"""Faults at each request of a plan for connectors: results are correct, and nothing is lost or sent twice."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.retry import RetryPolicy
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import DeletionLimit, PlanScope
from kdeclare.providers.connect.client.connectors_port import TIMED_OUT
from kdeclare.providers.connect.client.connectors_retry import RetryingConnectCluster
from kdeclare.providers.connect.client.port import LOST, NOT_READY
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.providers.connect.testing.connectors import ConnectCall
from kdeclare.testing.faults import Crash
from kdeclare.testing.world import declare
from tests.engine.world import World

SCOPE = PlanScope(allow_deletes=True, max_deletes=DeletionLimit.parse("100%"))
REBALANCE = Fault(
    NOT_READY,
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
    FaultKind.RETRIABLE,
)
NO_ANSWERS = [Fault(TIMED_OUT, "Request timed out", FaultKind.UNKNOWN), Fault(LOST, "", FaultKind.UNKNOWN)]
EFFECTS = {"done", "unanswered", "crashed after"}
"""The outcomes of requests that took effect."""


def connector(name: str, state: str, **config: str) -> DesiredResource:
    spec: dict[str, Any] = {"class": "FileStreamSink", "config": {"topics": "t", **config}, "state": state}
    return declare("Connector", name, spec)


BEFORE = [
    connector("both", "PAUSED", file="old"),
    connector("configured", "RUNNING", file="old"),
    connector("gone", "RUNNING"),
    connector("paused", "RUNNING"),
]
AFTER = [
    connector("both", "RUNNING", file="new"),
    connector("configured", "RUNNING", file="new"),
    connector("created", "RUNNING"),
    connector("paused", "PAUSED"),
]
REQUESTS = {
    "POST /connectors",
    "PUT /connectors/both/config",
    "PUT /connectors/both/resume",
    "PUT /connectors/configured/config",
    "PUT /connectors/paused/pause",
    "DELETE /connectors/gone",
}
EXPECTED = {
    "both": ("new", "RUNNING"),
    "configured": ("new", "RUNNING"),
    "created": (None, "RUNNING"),
    "paused": (None, "PAUSED"),
}
each_request = pytest.mark.parametrize("nth", range(1, len(REQUESTS) + 1))
each_no_answer = pytest.mark.parametrize("fault", NO_ANSWERS, ids=lambda fault: fault.error)


@dataclass
class Bed:
    """A world in which the connectors of `BEFORE` exist, and a client that retries without delays."""

    memory: MemoryConnectCluster = field(default_factory=MemoryConnectCluster)

    def __post_init__(self) -> None:
        policy = RetryPolicy(attempts=3, sleep=lambda _: None)
        self.world = World(connect_clusters={"eu": RetryingConnectCluster(self.memory, policy)})
        assert self.world.apply(*BEFORE).complete
        self.memory.calls.clear()

    def apply(self) -> ApplyResult:
        return self.world.apply(*AFTER, scope=SCOPE)

    def list_effective(self) -> list[ConnectCall]:
        """Return the changes that took effect."""
        return [call for call in self.memory.calls if call.is_mutating and call.outcome in EFFECTS]

    def read(self) -> dict[str, tuple[str | None, str]]:
        """Return the file and the state of each connector."""
        other = self.memory.elsewhere()
        other.settle()
        return {name: (one.config.get("file"), one.state) for name, one in other.list_connectors().items()}

    def expect_converged(self) -> None:
        """Assert that all connectors are as declared, and that each change took effect exactly once."""
        assert self.read() == EXPECTED
        assert sorted(call.request for call in self.list_effective()) == sorted(REQUESTS)
        assert not self.world.plan(*AFTER, scope=SCOPE).has_changes
        assert set(self.world.owned()) == {f"Connector/{name}" for name in EXPECTED}


@pytest.fixture
def bed() -> Bed:
    return Bed()


def list_statuses(result: ApplyResult) -> dict[str, Status]:
    return {id_: one.status for id_, one in result.results.items()}


def test_plan_sends_each_request_once(bed: Bed) -> None:
    assert bed.apply().complete
    bed.expect_converged()


@each_request
def test_rebalance_delays_a_request(bed: Bed, nth: int) -> None:
    bed.memory.faults.fail(REBALANCE, nth=nth)
    result = bed.apply()
    assert result.complete, result.results
    assert len(bed.memory.requests()) == len(REQUESTS) + 1
    bed.expect_converged()


@pytest.mark.parametrize("nth", range(1, 4))
@pytest.mark.parametrize("method", ["list_connectors", "describe_connector"])
def test_rebalance_delays_a_read(bed: Bed, method: str, nth: int) -> None:
    for attempt in (nth, nth + 1):
        bed.memory.faults.fail(REBALANCE, nth=attempt, method=method)
    result = bed.apply()
    assert result.complete, result.results
    bed.expect_converged()


@each_request
def test_rebalance_that_does_not_end_fails_only_what_was_not_sent(bed: Bed, nth: int) -> None:
    for attempt in range(nth, nth + 3):
        bed.memory.faults.fail(REBALANCE, nth=attempt)
    result = bed.apply()
    failed = [one for one in result.results.values() if one.status is Status.FAILED]
    assert [one.error for one in failed] == [NOT_READY]
    rejected = bed.memory.requests()[nth - 1]
    assert rejected not in {call.request for call in bed.list_effective()}
    done = [one for one in result.results.values() if one.status is Status.DONE]
    assert len(done) == len(bed.list_effective())
    assert bed.apply().complete
    bed.expect_converged()


@each_request
@each_no_answer
def test_request_without_response_that_took_effect_is_done(bed: Bed, nth: int, fault: Fault) -> None:
    bed.memory.faults.time_out(after_effect=True, nth=nth, fault=fault)
    result = bed.apply()
    assert set(list_statuses(result).values()) == {Status.DONE}, result.results
    assert result.complete
    assert len(bed.memory.requests()) == len(REQUESTS)
    bed.expect_converged()


@each_request
@each_no_answer
def test_request_without_response_that_had_no_effect_is_sent_again(bed: Bed, nth: int, fault: Fault) -> None:
    bed.memory.faults.time_out(after_effect=False, nth=nth, fault=fault)
    result = bed.apply()
    assert result.complete, result.results
    assert [call.outcome for call in bed.memory.calls if call.is_mutating].count("lost") == 1
    assert len(bed.memory.requests()) == len(REQUESTS) + 1
    bed.expect_converged()


def test_creation_that_takes_effect_late_is_not_doubled(bed: Bed) -> None:
    """The workers create the connector only when kdeclare sends the request again."""
    config = {"connector.class": "FileStreamSink", "topics": "t", "tasks.max": "1"}
    bed.memory.faults.time_out(after_effect=False, method="create_connector", fault=NO_ANSWERS[0])
    bed.memory.faults.run_before(
        lambda other: other.create_connector("created", config), method="create_connector", nth=2
    )
    result = bed.apply()
    assert result.results["connector.create:Connector/created"].status is Status.DONE, result.results
    assert bed.memory.requests().count("POST /connectors") == 2
    assert bed.read() == EXPECTED
    assert bed.apply().complete
    assert set(bed.world.owned()) == {f"Connector/{name}" for name in EXPECTED}


@each_request
@pytest.mark.parametrize("after_effect", [False, True], ids=["before effect", "after effect"])
def test_next_apply_finishes_what_a_crash_interrupted(bed: Bed, nth: int, *, after_effect: bool) -> None:
    bed.memory.faults.crash(after_effect=after_effect, nth=nth)
    with pytest.raises(Crash):
        bed.apply()
    bed.memory.faults.clear()
    assert bed.apply().complete
    bed.expect_converged()


@each_request
def test_rollback_undoes_what_was_done_despite_a_lost_response(bed: Bed, nth: int) -> None:
    before = bed.read()
    bed.memory.faults.time_out(after_effect=True, nth=nth, fault=NO_ANSWERS[0])
    assert bed.apply().complete
    assert bed.world.rollback().complete
    assert bed.read() == before
    assert not bed.world.plan(*BEFORE, scope=SCOPE).has_changes
