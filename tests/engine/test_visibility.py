"""Topics that exist but that brokers show late are pending: never absent, never another client's."""

import math

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.run import ApplyResult
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome, run_outcome
from kdeclare.report.run.run_text import render_run_text
from tests.engine.world import World, topic

NAMES = [f"t{n}" for n in range(10)]
DECLARED = [topic(name, partitions=1, replicationFactor=1) for name in NAMES]
AT_ONCE = PlanScope(visibility_timeout_s=0)


def make_world(lag: float, *, names: int = 10) -> World:
    """Topics that were created while brokers are ``lag`` reads behind."""
    world = World(MemoryCluster(metadata_lag=lag))
    assert world.apply(*DECLARED[:names]).complete
    assert not world.cluster.topics() or lag < 2
    return world


def list_real_topics(world: World) -> list[str]:
    """Return the topics that really exist."""
    return sorted(world.cluster.dump()["topics"])


def get_exit_code(run: ApplyResult) -> ExitCode:
    return run_outcome(run).exit_code


@pytest.mark.parametrize("lag", [1, 2, 3, 5, 8, 13])
def test_rollback_deletes_topics_that_brokers_show_late(lag: int) -> None:
    world = make_world(lag)
    run = world.rollback()
    assert list_real_topics(world) == []
    assert len(run.results) == 10
    assert get_exit_code(run) is ExitCode.OK
    assert not world.owned()


def test_rollback_names_topics_that_brokers_never_show() -> None:
    world = make_world(math.inf)
    plan = world.plan_rollback()
    assert [(d.code, d.resource) for d in plan.diagnostics] == [("pending", f"Topic/{n}") for n in NAMES]
    assert not plan.operations
    assert 120 <= world.clock.monotonic() < 260
    run = world.run(plan)
    assert get_exit_code(run) is ExitCode.PARTIAL
    assert "to roll back the remaining changes" in render_run_text(run)
    assert list_real_topics(world) == NAMES
    assert world.owned().keys() == {f"Topic/{n}" for n in NAMES}
    world.cluster.catch_up()
    first = world.store.runs()[0]
    assert get_exit_code(world.rollback(first)) is ExitCode.OK
    assert list_real_topics(world) == []
    assert not world.owned()


def test_rollback_deletes_visible_topics_and_names_the_rest() -> None:
    world = World()
    world.cluster.metadata_lag = math.inf
    assert world.apply(*DECLARED).complete
    for name in NAMES[:6]:
        world.cluster._invisible_topics.pop(world.cluster._state.topics[name].topic_id)
    run = world.rollback(patience_s=1)
    assert list_real_topics(world) == NAMES[6:]
    assert get_exit_code(run) is ExitCode.PARTIAL
    assert world.owned().keys() == {f"Topic/{n}" for n in NAMES[6:]}
    assert "6 of 6 operations done, 4 not restored" in run_outcome(run).headline


def test_rollback_does_not_wait_for_topics_deleted_by_others() -> None:
    world = make_world(math.inf)
    world.cluster.elsewhere().delete_topics(dict.fromkeys(NAMES))
    begun = world.clock.monotonic()
    run = world.rollback()
    assert world.clock.monotonic() - begun < 1
    assert get_exit_code(run) is ExitCode.OK
    assert not world.owned()


def test_rollback_waits_when_controller_check_is_refused() -> None:
    world = make_world(math.inf, names=1)
    refused = Fault("TOPIC_AUTHORIZATION_FAILED", "no")
    world.cluster.faults.fail(refused, method="create_topics", nth=None)
    assert [d.code for d in world.plan_rollback(patience_s=1).diagnostics] == ["pending"]


def test_plan_waits_for_owned_topics() -> None:
    world = make_world(3)
    assert not world.plan(*DECLARED).has_changes


def test_plan_neither_creates_nor_releases_pending_topics() -> None:
    world = make_world(math.inf)
    plan = world.plan(*DECLARED[1:], scope=AT_ONCE)
    assert not plan.operations
    assert not plan.ownership
    assert {d.code for d in plan.diagnostics} == {"pending"}
    assert plan.summary.blocked == 10
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    world.cluster.catch_up()
    assert not world.plan(*DECLARED).has_changes


def test_topic_deleted_by_others_is_missing_and_created_again() -> None:
    world = make_world(math.inf, names=2)
    world.cluster.elsewhere().delete_topics({"t0": None})
    world.cluster.metadata_lag = 0
    world.cluster._invisible_topics.pop(world.cluster._state.topics["t1"].topic_id)
    begun = world.clock.monotonic()
    plan = world.plan(*DECLARED[:2])
    assert [(c.id.name, c.reason) for c in plan.changes] == [("t0", "missing")]
    assert world.run(plan).complete
    assert world.clock.monotonic() - begun < 1
    assert list_real_topics(world) == NAMES[:2]


def test_deletion_by_id_is_not_stale_while_topic_is_invisible() -> None:
    world = make_world(0)
    plan = world.plan_rollback(allow_data_loss=True)
    for state in world.cluster._state.topics.values():
        world.cluster._invisible_topics[state.topic_id] = math.inf
    assert get_exit_code(world.run(plan, visibility_timeout_s=0)) is ExitCode.OK
    assert list_real_topics(world) == []


def test_topic_with_unknown_record_count_is_not_deleted() -> None:
    world = make_world(0, names=1)
    plan = world.plan_rollback()
    world.cluster._invisible_topics[world.cluster._state.topics["t0"].topic_id] = math.inf
    run = world.run(plan, visibility_timeout_s=0)
    assert [r.error for r in run.results.values()] == ["NOT_VISIBLE"]
    assert get_exit_code(run) is ExitCode.PARTIAL
    assert list_real_topics(world) == ["t0"]
    assert world.owned()
