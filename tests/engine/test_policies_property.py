"""Whatever a plan contains and policies deny: denied changes are left out, and all others are made."""

from random import Random
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.planfile import parse_plan
from kdeclare.engine.planning.request import DeletionLimit, PlanScope
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import get_move_cleanup
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import run_outcome
from tests.engine.test_policies import RecordingPolicy, make_policy
from tests.engine.world import World, desired, topic

NAMES = "abcd"
BROKERS = (1, 2, 3, 4)
WRITES = {
    "alter_configs",
    "create_topics",
    "delete_topics",
    "create_partitions",
    "reassign",
    "elect_leaders",
}

Spec = dict[str, Any]


@given(st.integers(0, 2**32))
@example(4689)  # all four topics are orphans, which is more than the default of --max-deletes allows
@example(32)  # a reassignment of two topics: one is denied, and its topic's own operation moves the other
def test_denied_changes_are_skipped_and_the_rest_applied(seed: int) -> None:
    random = Random(seed)
    world = World(cluster=MemoryCluster(dict(zip(BROKERS, "abcd", strict=True))))
    first = {name: _draw_initial(random) for name in NAMES if random.random() < 0.75}
    world.apply(*(topic(name, **spec) for name, spec in first.items()))
    declared = _draw_declared(random, first)
    scope = PlanScope(allow_deletes=random.random() < 0.6, max_deletes=DeletionLimit(100, is_percentage=True))
    policies = (_draw_policy(random),)
    when_planned = random.random() < 0.5
    world.policies = policies if when_planned else ()
    plan = world.plan(*declared, scope=scope)
    world.policies = policies
    owned = dict(world.owned())
    run = _run_and_check_denied(world, plan)
    if when_planned and run.run_id:
        assert run.plan == plan
    for name in _list_denied(world):
        if any(str(change.id) == f"Topic/{name}" for change in plan.changes):
            assert world.owned().get(f"Topic/{name}") == owned.get(f"Topic/{name}")
    _check_consistency(world, run)
    _check_rest_is_done(world, plan, declared, scope)
    if run.run_id is not None:
        back = world.plan_rollback()
        world.policies = (_draw_policy(random),)
        _check_consistency(world, _run_and_check_denied(world, back))


def _draw_initial(random: Random) -> Spec:
    configs = {"retention.ms": 9, "cleanup.policy": random.choice([["delete"], ["compact"]])}
    replicas = random.sample(BROKERS, 2)
    return {"assignments": {0: replicas}, "configs": configs if random.random() < 0.5 else {}}


def _draw_declared(random: Random, first: dict[str, Spec]) -> list[DesiredResource]:
    """Generate topics that are unchanged, changed or removed, and perhaps a drain of the movable ones."""
    declared: list[DesiredResource] = []
    still: list[str] = []
    for name in NAMES:
        if name in first and random.random() < 0.25:
            continue
        if name in first and random.random() < 0.6:
            still.append(name)
            declared.append(topic(name, partitions=1, configs=first[name]["configs"]))
        else:
            spec = _draw_spec(random)
            declared.append(topic(name, **spec))
            if name in first and "assignments" not in spec:
                still.append(name)  # both may want to move its replicas
    if still and random.random() < 0.8:
        pace: Spec = {"throttle": "1MiB/s"} if random.random() < 0.5 else {}
        pace |= {"batchSize": random.choice([1, 2])} if random.random() < 0.5 else {}
        declared.append(desired("Reassignment", "off", topics=still, drain=[random.choice(BROKERS)], **pace))
    return declared


def _draw_spec(random: Random) -> Spec:
    partitions, factor = random.choice([1, 2, 3]), random.choice([2, 3])
    spec: Spec = {"partitions": partitions, "replicationFactor": factor}
    if random.random() < 0.5:
        spec = {"assignments": {n: random.sample(BROKERS, factor) for n in range(partitions)}}
    wishes: Spec = {
        "retention.ms": random.choice([1, 2, 3]),
        "cleanup.policy": random.choice([["compact"], {"append": ["compact"], "subtract": ["delete"]}]),
        "min.insync.replicas": random.choice([1, 2]),
    }
    return {**spec, "configs": {key: wish for key, wish in wishes.items() if random.random() < 0.4}}


def _draw_policy(random: Random) -> ConfiguredPolicy:
    return make_policy(RecordingPolicy(denied=frozenset(name for name in NAMES if random.random() < 0.4)))


def _list_denied(world: World) -> frozenset[str]:
    policy = world.policies[0].policy
    assert isinstance(policy, RecordingPolicy)
    return policy.denied


def _read_state(world: World) -> dict[str, Any]:
    return {
        name: (found.topic_id, [(p.replicas, p.leader) for p in found.partitions], world.overrides(name))
        for name, found in world.cluster.topics().items()
    }


def _run_and_check_denied(world: World, plan: Plan) -> ApplyResult:
    """Run a plan; no request about denied changes may reach the brokers."""
    before, known = _read_state(world), len(world.cluster.calls)
    run = world.run(plan)
    after = _read_state(world)
    for name in _list_denied(world):
        assert after.get(name) == before.get(name)
        for call in world.cluster.calls[known:]:
            about = {item.removeprefix("TOPIC/").rpartition("-")[0] or item for item in call.items}
            about |= {item.removeprefix("TOPIC/") for item in call.items}
            assert call.validate_only or call.method not in WRITES or name not in about, call
    assert run.complete
    return run


def _check_consistency(world: World, run: ApplyResult) -> None:
    """Check that stored and counted data are consistent, and that no throttle is left."""
    denies = any(verdict.is_denial for verdict in run.verdicts)
    code = run_outcome(run).exit_code
    assert (code is ExitCode.DENIED) == denies or (run.plan.undoes and code is ExitCode.PARTIAL)
    state = world.store.read()
    assert state is None or not get_move_cleanup(state).moves
    brokers = [ConfigResource(ConfigScope.BROKER, str(broker)) for broker in BROKERS]
    assert [world.cluster.overrides(broker) for broker in brokers] == [{}] * 4
    if run.run_id is None:
        return
    assert parse_plan(world.store.read_plan_text(run.run_id), "stored") == run.plan
    changes, summary = run.plan.changes, run.plan.summary
    counts = [sum(c.action is a and not c.blocked for c in changes) for a in (Action.CREATE, Action.UPDATE)]
    assert [summary.create, summary.update] == counts
    blocked = {change.id for change in changes if change.blocked}
    assert blocked.isdisjoint(op.resource for op in run.plan.operations)


def _check_rest_is_done(world: World, plan: Plan, declared: list[DesiredResource], scope: PlanScope) -> None:
    denied = _list_denied(world)
    later = {d.resource for d in plan.diagnostics if d.code == "moved-by-another"}
    world.policies = ()
    for change in world.plan(*declared, scope=scope).changes:
        if change.id.kind == "Topic" and change.action is not Action.NO_OP:
            assert change.id.name in denied, change
        for field in change.fields:
            if str(change.id) not in later and field.path.startswith("replicas."):
                assert field.path.removeprefix("replicas.").rpartition("-")[0] in denied, change
