"""An unanswered request has no known outcome until brokers have stopped working on it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.run import ApplyResult, OperationResult, Status
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.executor.entries import fold_journal
from kdeclare.engine.executor.recovery import get_deadline, recover_runs, settle_operations
from kdeclare.engine.observation import observe
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.reassignment.operations.arguments import ThrottleArgs
from kdeclare.providers.kafka.testing import Crash, MemoryCluster
from kdeclare.report.outcome import run_outcome
from tests.connections import connections_to
from tests.engine.world import TestClock, World, topic
from tests.jsontypes import untyped

CONFIGS_S = 90.0
"""The default for requests that carry no timeout."""
TOPICS_S = 27.0
"""The deadline that the in-memory cluster states for requests with a timeout."""


UNCHECKED = PlanScope(preflight=False)
RATE = "leader.replication.throttled.rate"


class ScheduledClock(TestClock):
    """A clock that triggers something elsewhere after some seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.due: list[tuple[float, Callable[[], object]]] = []

    def call_after(self, seconds: float, act: Callable[[], object]) -> None:
        self.due.append((self.monotonic() + seconds, act))

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        for item in [item for item in self.due if item[0] <= self.monotonic()]:
            self.due.remove(item)
            item[1]()


@dataclass
class SilentWorld(World):
    """A topic `t`, and no response to requests about its configs."""

    clock: ScheduledClock = field(default_factory=ScheduledClock)

    def __post_init__(self) -> None:
        self.apply(topic("t", partitions=1, replicationFactor=1))

    def apply_effect(self) -> None:
        """Let brokers execute the request now."""
        self.set("t", retention_ms="5")

    def read_run_record(self) -> Any:
        run_id = self.store.runs()[-1]
        return fold_journal(run_id, self.store.entries(run_id))


def declared_topic() -> DesiredResource:
    return topic("t", partitions=1, replicationFactor=1, configs={"retention.ms": "5"})


def make_silent_world(*, crash: bool = False) -> SilentWorld:
    world = SilentWorld()
    if crash:
        world.cluster.faults.crash(after_effect=False, method="alter_configs")
    else:
        world.cluster.faults.time_out(after_effect=False, nth=None, method="alter_configs")
    return world


def test_failed_resend_does_not_settle_first_request() -> None:
    """The first request had no response; the failed connection of the second one reveals nothing about it."""
    world = SilentWorld()
    faults = world.cluster.faults
    faults.time_out(after_effect=False, nth=1, method="alter_configs")
    refused = Fault("NETWORK_EXCEPTION", "connection refused", FaultKind.RETRIABLE)
    faults.fail(refused, nth=2, method="alter_configs")
    faults.fail(refused, nth=3, method="alter_configs")
    plan = world.plan(declared_topic(), scope=UNCHECKED)
    world.clock.call_after(20, world.apply_effect)
    assert get_only_result(world.run(plan)).status is Status.DONE


def get_only_result(run: ApplyResult) -> OperationResult:
    (found,) = run.results.values()
    return found


def test_apply_reports_failure_only_after_request_deadline() -> None:
    world = make_silent_world()
    begun = world.clock.monotonic()
    found = get_only_result(world.apply(declared_topic(), scope=UNCHECKED))
    assert found.status is Status.FAILED
    assert found.error == "REQUEST_TIMED_OUT"
    assert world.clock.monotonic() - begun >= CONFIGS_S


def test_result_contains_what_the_system_last_answered() -> None:
    """For example an HTTP 500 with the reason in the response. The request was answered, in other words."""
    world = SilentWorld()
    for number in range(1, 4):
        fault = Fault("REGISTRY_LOST", f"database error {number}", FaultKind.UNKNOWN)
        world.cluster.faults.time_out(after_effect=False, nth=number, method="alter_configs", fault=fault)
    found = get_only_result(world.apply(declared_topic(), scope=UNCHECKED))
    assert (found.status, found.error) == (Status.FAILED, "REQUEST_TIMED_OUT")
    expected = "The request was sent 3 times and had no effect (REGISTRY_LOST: database error 3)."
    assert found.message == expected


def test_apply_uses_timeout_of_request() -> None:
    world = World(clock=ScheduledClock())
    world.cluster.faults.time_out(after_effect=False, nth=None, method="create_topics")
    plan = world.plan(declared_topic(), scope=UNCHECKED)
    begun = world.clock.monotonic()
    assert get_only_result(world.run(plan)).error == "REQUEST_TIMED_OUT"
    assert TOPICS_S <= world.clock.monotonic() - begun < CONFIGS_S


@pytest.mark.parametrize("late_s", [2, 30, 80])
def test_effect_before_deadline_is_done(late_s: float) -> None:
    world = make_silent_world()
    world.clock.call_after(late_s, world.apply_effect)
    assert get_only_result(world.apply(declared_topic(), scope=UNCHECKED)).status is Status.DONE
    assert not world.plan(declared_topic()).has_changes


def test_unobservable_cluster_is_polled_until_deadline() -> None:
    world = make_silent_world()
    gone = Fault("NOT_CONNECTED", "No broker answers.", FaultKind.UNKNOWN)
    plan = world.plan(declared_topic(), scope=UNCHECKED)
    world.cluster.faults.run_before(
        lambda _: world.cluster.faults.fail(gone, method="topics", nth=None), method="alter_configs"
    )

    def restore() -> None:
        world.cluster.faults.clear()
        world.apply_effect()

    world.clock.call_after(40, restore)
    assert get_only_result(world.run(plan)).status is Status.DONE


def test_interrupt_while_waiting_records_unknown_outcome_until_settled() -> None:
    world = make_silent_world()
    world.clock.call_after(20, world.stop.set)
    run = world.apply(declared_topic(), scope=UNCHECKED)
    found = get_only_result(run)
    assert found.status is Status.UNKNOWN
    assert "the system may still execute it until 2026-01-01T00:01" in found.message
    assert run_outcome(run).exit_code is ExitCode.INTERRUPTED
    assert not world.read_run_record().is_over
    world.stop.clear()
    world.cluster.faults.clear()
    world.clock.call_after(30, world.apply_effect)
    world.recover()
    assert world.read_run_record().is_over
    assert world.read_run_record().results[found.id].status is Status.DONE
    assert world.owned()["Topic/t"]["configs"] == {"retention.ms": {"value": "5"}}


def test_killed_run_stays_open_until_request_deadline() -> None:
    world = make_silent_world(crash=True)
    with pytest.raises(Crash):
        world.apply(declared_topic(), scope=UNCHECKED)
    world.store.restart()
    with world.store.lock("test"):
        (found,) = recover_runs(world.store, connections_to(world.cluster), world.clock, wait=False)
    (result,) = found.settled.values()
    assert result.status is Status.UNKNOWN
    assert found.open_until is not None
    assert found.open_until - world.clock.now() > timedelta(seconds=80)
    assert not world.read_run_record().is_over
    world.apply_effect()
    with world.store.lock("test"):
        (found,) = recover_runs(world.store, connections_to(world.cluster), world.clock, wait=False)
    assert [r.status for r in found.settled.values()] == [Status.DONE]
    assert world.read_run_record().is_over
    assert not world.plan(declared_topic()).has_changes


def test_recovery_reports_no_effect_only_after_deadline() -> None:
    world = make_silent_world(crash=True)
    begun = world.clock.monotonic()
    with pytest.raises(Crash):
        world.apply(declared_topic(), scope=UNCHECKED)
    world.store.restart()
    reports: list[tuple[str, int, int]] = []
    with world.store.lock("test"):
        (found,) = recover_runs(
            world.store, connections_to(world.cluster), world.clock, lambda *how: reports.append(how)
        )
    assert [r.status for r in found.settled.values()] == [Status.INTERRUPTED]
    assert world.clock.monotonic() - begun >= CONFIGS_S
    assert reports[0] == ("Waiting to see whether requests of an interrupted run take effect", 0, 1)


def test_progress_reports_wait_for_unanswered_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    world = make_silent_world()
    reports: list[str] = []
    world.progress = lambda what, *_, **__: reports.append(what)
    asleep = world.clock.sleep

    def sleep(seconds: float) -> None:
        time.sleep(0.005)
        asleep(seconds)

    monkeypatch.setattr(world.clock, "sleep", sleep)
    plan = world.plan(declared_topic(), scope=UNCHECKED)
    world.run(plan, poll_s=0.001)
    assert "Waiting to see whether unanswered requests take effect" in reports


def test_journal_records_request_deadline() -> None:
    world = make_silent_world()
    world.apply(declared_topic(), scope=UNCHECKED)
    run_id = world.store.runs()[-1]
    begun = [entry for entry in untyped(world.store.entries(run_id)) if entry["event"] == "begin"]
    assert len(begun) == 3  # it was sent three times
    record = world.read_run_record()
    (deadline,) = record.deadlines.values()
    assert deadline == begun[-1]["deadline"] > begun[0]["deadline"]


def test_killed_run_of_earlier_version_has_default_deadline() -> None:
    world = make_silent_world(crash=True)
    with pytest.raises(Crash):
        world.apply(declared_topic(), scope=UNCHECKED)
    world.store.restart()
    run_id = world.store.runs()[-1]
    entries = [{k: v for k, v in e.items() if k != "deadline"} for e in untyped(world.store.entries(run_id))]
    record = fold_journal(run_id, entries)
    (operation,) = record.begun
    assert record.deadlines == {}
    sent = datetime.fromisoformat(record.sent_at[operation])
    assert get_deadline(record, operation) == sent + timedelta(seconds=CONFIGS_S)


@pytest.mark.parametrize(
    ("entries", "status"), [({}, Status.INTERRUPTED), ({"BROKER/1": {RATE: "500"}}, Status.UNKNOWN)]
)
def test_throttle_without_entries_has_no_unknown_outcome(
    entries: dict[str, dict[str, str]], status: Status
) -> None:
    """An operation that relies on existing values has no effect that could come late."""
    cluster, clock = MemoryCluster(), TestClock()
    cluster.set_overrides(ConfigResource(ConfigScope.BROKER, "2"), {RATE: "500"})
    relies_on = {"BROKER/2": {RATE: "500"}}
    args = ThrottleArgs(entries, (), relies_on=relies_on)
    bare = Operation("throttle.set:x", "throttle.set", ResourceId("Moves", "topics"), args, {})
    live = observe(connections_to(cluster), get_operation_type(bare).select(bare))
    op = replace(bare, expect=get_operation_type(bare).compute_view(bare, live))
    found = settle_operations(connections_to(cluster), clock, [op], {op.id: clock.now()}, wait=False)
    assert found[op.id].status is status
