"""Policies about topics (KIP-201): their input, and what happens to denied changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.plans.plan import Plan, Verdict, VerdictOutcome
from kdeclare.core.plans.run import Status
from kdeclare.core.provider.plan_options import choose_options
from kdeclare.engine.executor.entries import fold_journal
from kdeclare.engine.planning.planfile import parse_plan, render_plan_file
from kdeclare.engine.planning.prune_denied import evaluate_and_prune
from kdeclare.engine.planning.request import PlanScope
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.evaluation import ProjectPolicyGate
from kdeclare.policy.interface import (
    Action,
    PolicyViolation,
    RequestMetadata,
    TopicActionsPolicy,
    TopicState,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome, run_outcome
from tests.cases import case
from tests.connections import connections_to
from tests.engine.world import World, desired, topic

State = tuple[int, int, Mapping[int, Sequence[int]], Mapping[str, str]] | None


def dump_state(state: TopicState | None) -> State:
    """All contents of a state."""
    if state is None:
        return None
    replicas = {n: tuple(r) for n, r in state.replicas_assignments.items()}
    return state.num_partitions, state.replication_factor, replicas, dict(state.configs)


@dataclass
class RecordingPolicy(TopicActionsPolicy):
    """Records its input, and denies some topics."""

    denied: frozenset[str] = frozenset()
    shown: list[tuple[Action, str, State, State]] = field(default_factory=list)
    changed: list[frozenset[str]] = field(default_factory=list)
    labels: list[Mapping[str, str]] = field(default_factory=list)
    principals: list[str | None] = field(default_factory=list)

    def validate(self, request: RequestMetadata) -> None:
        pre, post = request.pre_request_state, request.post_request_state
        self.shown.append((request.action, request.topic, dump_state(pre), dump_state(post)))
        self.changed.append(request.changed)
        self.labels.append(request.labels)
        self.principals.append(request.principal)
        if request.topic in self.denied:
            raise PolicyViolation(f"Not {request.topic}.")


class CallingPolicy(TopicActionsPolicy):
    """Calls a given function."""

    def __init__(self, ask: Callable[[RequestMetadata], object]) -> None:
        self._ask = ask

    def validate(self, request: RequestMetadata) -> None:
        self._ask(request)


def make_policy(
    policy: TopicActionsPolicy | Callable[[RequestMetadata], object], **more: Any
) -> ConfiguredPolicy:
    """An active policy named ``test``."""
    made = policy if isinstance(policy, TopicActionsPolicy) else CallingPolicy(policy)
    return ConfiguredPolicy("test", made, **more)


def make_world(*policies: ConfiguredPolicy) -> World:
    """A world with brokers 1 to 4 and these policies."""
    return World(cluster=MemoryCluster({1: "a", 2: "b", 3: "c", 4: None}), policies=policies)


def make_world_with_topics(policy: TopicActionsPolicy, *topics: Any) -> World:
    """A world in which these topics were applied before the policy was added."""
    world = make_world()
    world.apply(*topics)
    world.policies = (make_policy(policy),)
    return world


def list_outcomes(plan: Plan) -> dict[str, VerdictOutcome]:
    return {v.topic or v.resource: v.outcome for v in plan.verdicts}


def list_blocked(plan: Plan) -> dict[str, str | None]:
    return {str(change.id): change.blocked for change in plan.changes}


# The input of policies.


@case("POL-07")
def test_policy_receives_states_before_and_after() -> None:
    recorder = RecordingPolicy()
    world = make_world(make_policy(recorder))
    orders = topic("orders", assignments={0: [1, 2], 1: [2, 3]}, configs={"retention.ms": 1000})
    world.apply(orders)
    first: State = (2, 2, {0: (1, 2), 1: (2, 3)}, {"retention.ms": "1000"})
    assert recorder.shown[0] == (Action.CREATE, "orders", None, first)
    more = topic(
        "orders",
        assignments={0: [1, 2], 1: [2, 4], 2: [3, 1]},
        configs={"cleanup.policy": {"append": ["compact"]}},
    )
    recorder.shown.clear()
    world.plan(more)
    after: State = (3, 2, {0: (1, 2), 1: (2, 4), 2: (3, 1)}, {"cleanup.policy": "delete,compact"})
    assert recorder.shown == [(Action.MODIFY, "orders", first, after)]
    recorder.shown.clear()
    world.plan(scope=PlanScope(allow_deletes=True))
    assert recorder.shown == [(Action.DELETE, "orders", first, None)]


def test_creation_defaults_are_resolved_like_kafka() -> None:
    recorder = RecordingPolicy()
    world = World(
        cluster=MemoryCluster(static={"num.partitions": "7", "default.replication.factor": "2"}),
        policies=(make_policy(recorder),),
    )
    world.plan(topic("orders"))
    assert recorder.shown == [(Action.CREATE, "orders", None, (7, 2, {}, {}))]
    assert recorder.changed == [frozenset()]


@pytest.mark.parametrize(
    ("declared", "changed"),
    [
        (topic("t", partitions=3), {"partitions"}),
        (topic("t", configs={"retention.ms": 5}), {"configs.retention.ms"}),
        (topic("t", assignments={0: [2, 1], 1: [1, 2]}), {"assignments"}),
        (topic("t", replicationFactor=3), {"assignments", "replicationFactor"}),
    ],
)
def test_modify_covers_configs_partitions_replicas_and_factor(declared: Any, changed: set[str]) -> None:
    recorder = RecordingPolicy(denied=frozenset({"t"}))
    world = make_world_with_topics(recorder, topic("t", assignments={0: [1, 2], 1: [1, 2]}))
    run = world.apply(declared)
    assert [(action, name) for action, name, _, _ in recorder.shown] == [(Action.MODIFY, "t")]
    assert recorder.changed == [changed]
    assert run_outcome(run).exit_code is ExitCode.DENIED
    assert run.results == {}
    assert world.cluster.topics()["t"].partitions[0].replicas == (1, 2)


def test_move_in_flight_counts_as_done() -> None:
    recorder = RecordingPolicy()
    world = make_world_with_topics(recorder, topic("t", assignments={0: [1, 2]}))
    world.cluster.move_ticks, world.cluster.tick_on_poll = 5, False
    world.cluster.reassign({TopicPartition("t", 0): (3, 4)}, allow_replication_factor_change=False)
    waiting = PlanScope(options=choose_options(await_reassignments=True))
    world.plan(
        topic("t", assignments={0: [1, 2]}, configs={"retention.ms": 5}),
        scope=waiting,
    )
    assert recorder.shown[0][2] == (1, 2, {0: (3, 4)}, {})


def test_labels_are_declared_or_last_applied_on_delete() -> None:
    recorder = RecordingPolicy()
    world = make_world(make_policy(recorder))
    world.apply(desired("Topic", "t", {"team": "blue"}, partitions=1))
    world.plan(desired("Topic", "t", {"team": "red"}, partitions=2))
    world.plan(scope=PlanScope(allow_deletes=True))
    assert [labels.get("team") for labels in recorder.labels] == ["blue", "blue", "red", "blue"]


def test_principal_is_none_unless_brokers_report_it() -> None:
    recorder = RecordingPolicy()
    world = make_world(make_policy(recorder))
    world.plan(topic("t", partitions=1))
    world.cluster.principal = "User:alice"
    world.plan(topic("t", partitions=1))
    assert recorder.principals == [None, "User:alice"]


def test_two_resources_on_one_topic_are_evaluated_in_sequence() -> None:
    recorder = RecordingPolicy()
    world = make_world_with_topics(recorder, topic("t", assignments={0: [1, 2]}, configs={"retention.ms": 1}))
    moved = desired("Reassignment", "move", partitions=[{"topic": "t", "partition": 0, "replicas": [3, 4]}])
    plan = world.plan(topic("t", configs={"retention.ms": 2}), moved)
    by_resource = {v.resource: shown for v, shown in zip(plan.verdicts, recorder.shown, strict=True)}
    states = [shown[2:] for shown in by_resource.values()]
    assert states[0][1] == states[1][0]
    assert {v.resource: v.topic for v in plan.verdicts} == {"Topic/t": None, "Reassignment/move": "t"}
    after_all = states[1][1]
    assert after_all == (1, 2, {0: (3, 4)}, {"retention.ms": "2"})


# Only data that a policy asks for is fetched.


def record_calls(world: World, plan: Callable[[], object]) -> list[str]:
    before = len(world.cluster.calls)
    plan()
    return [call.method for call in world.cluster.calls[before:]]


@pytest.mark.parametrize(
    ("ask", "asked"),
    [
        (lambda r: (r.topic, r.action, r.labels, r.changed), []),
        (lambda r: r.pre_request_state.num_partitions, ["topics"]),
        (lambda r: r.post_request_state.num_partitions, ["topics"]),
        (lambda r: r.post_request_state.replicas_assignments, ["topics", "moves"]),
        (lambda r: r.post_request_state.replication_factor, ["topics", "moves"]),
        (lambda r: r.pre_request_state.configs, ["topics", "configs"]),
        (lambda r: r.racks, ["describe"]),
        (lambda r: r.principal, ["describe"]),
        (lambda r: r.record_count, ["topics", "record_counts"]),
        (lambda r: r.partitions_of({"team": "blue"}), ["topics"]),
    ],
    ids=["itself", "count", "count-after", "replicas", "factor", "configs", "racks", "who", "records", "sum"],
)
def test_policy_fetches_only_accessed_attributes(
    ask: Callable[[RequestMetadata], object], asked: list[str]
) -> None:
    """If nothing is known yet, as when a saved plan is applied: all topics in one request."""
    names = [f"t{n}" for n in range(20)]
    world = make_world()
    world.apply(*(desired("Topic", name, {"team": "blue"}, partitions=1) for name in names))
    plan = world.plan(*(desired("Topic", n, {"team": "blue"}, configs={"retention.ms": 9}) for n in names))
    state = world.store.read()
    assert state is not None
    connections = connections_to(world.cluster)
    again = record_calls(
        world,
        lambda: evaluate_and_prune(
            plan, connections, ProjectPolicyGate((make_policy(ask),)), state.resources, lambda _: None
        ),
    )
    assert again == asked


def test_policy_evaluation_reuses_planning_reads() -> None:
    ask = RecordingPolicy()
    world = make_world_with_topics(ask, *(topic(f"t{n}", partitions=1) for n in range(20)))
    changed = [topic(f"t{n}", configs={"retention.ms": 9}) for n in range(20)]
    without = World(cluster=world.cluster, store=world.store)
    assert record_calls(world, lambda: world.plan(*changed)) == record_calls(
        without, lambda: without.plan(*changed)
    )
    assert len(ask.shown) == 20


def test_broker_defaults_are_read_only_when_needed() -> None:
    counted = make_world(make_policy(lambda r: r.post_request_state and r.post_request_state.num_partitions))
    plain = make_world()
    for wanted, more in ((topic("t", partitions=1), []), (topic("t"), ["configs"])):
        found = record_calls(counted, partial(counted.plan, wanted))
        for call in record_calls(plain, partial(plain.plan, wanted)):
            found.remove(call)
        assert found == more


# What happens to denied changes.


@case("POL-09")
def test_violation_denies_only_its_topic() -> None:
    world = make_world_with_topics(
        RecordingPolicy(denied=frozenset({"a"})), topic("a", partitions=1), topic("b", partitions=1)
    )
    declared = [topic(name, partitions=1, configs={"retention.ms": 5}) for name in "ab"]
    plan = world.plan(*declared)
    assert plan.verdicts == (
        Verdict("test", "Topic/a", VerdictOutcome.DENY, "Not a."),
        Verdict("test", "Topic/b", VerdictOutcome.ALLOW),
    )
    assert list_blocked(plan) == {"Topic/a": "policy-violation", "Topic/b": None}
    assert (plan.summary.update, plan.summary.blocked) == (1, 1)
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    run = world.run(plan)
    assert run_outcome(run).exit_code is ExitCode.DENIED
    assert world.overrides("a") == {}
    assert world.overrides("b") == {"retention.ms": "5"}
    assert "retention.ms" not in world.owned()["Topic/a"]["configs"]


def test_denied_topics_are_excluded_from_drain() -> None:
    world = make_world_with_topics(
        RecordingPolicy(denied=frozenset({"b"})), *(topic(name, assignments={0: [1, 2]}) for name in "abc")
    )
    drain = desired("Reassignment", "off-1", topics=["a", "b", "c"], drain=[1], throttle="1MiB/s")
    stay = [topic(name, partitions=1) for name in "abc"]
    plan = world.plan(*stay, drain)
    assert list_outcomes(plan) == {"a": "allow", "b": "deny", "c": "allow"}
    assert plan.summary.reassign == 2
    assert plan.summary.blocked == 0
    assert not [op for op in plan.operations if "b-0" in str(op.args)]
    run = world.run(plan)
    assert run_outcome(run).exit_code is ExitCode.DENIED
    replicas = {name: world.cluster.topics()[name].partitions[0].replicas for name in "abc"}
    assert [1 in replicas[name] for name in "abc"] == [False, True, False]
    assert [world.overrides(name) for name in "abc"] == [{}, {}, {}]


def test_denied_moves_set_no_throttle() -> None:
    world = make_world_with_topics(
        RecordingPolicy(denied=frozenset("ab")), *(topic(n, assignments={0: [1, 2]}) for n in "ab")
    )
    drain = desired("Reassignment", "off-1", topics=["a", "b"], drain=[1], throttle="1MiB/s", batchSize=1)
    stay = [topic(name, partitions=1) for name in "ab"]
    plan = world.plan(*stay, drain)
    assert plan.operations == ()
    assert plan.summary.blocked == 1
    world.policies = ()
    free = world.plan(*stay, drain)
    assert len(free.operations) > 4
    world.policies = (make_policy(RecordingPolicy(denied=frozenset("ab"))),)
    assert world.run(free).plan.operations == ()


@pytest.mark.parametrize("denied", ["a", "b"])
def test_denied_batch_removes_only_its_own_throttle(denied: str) -> None:
    world = make_world_with_topics(RecordingPolicy(), *(topic(n, assignments={0: [1, 2]}) for n in "ab"))
    drain = desired("Reassignment", "off-1", topics=["a", "b"], drain=[1], throttle="1MiB/s", batchSize=1)
    plan = world.plan(*(topic(name, partitions=1) for name in "ab"), drain)
    world.policies = (make_policy(RecordingPolicy(denied=frozenset(denied))),)
    run = world.run(plan)
    assert run_outcome(run).exit_code is ExitCode.DENIED
    moved = {n: 1 not in world.cluster.topics()[n].partitions[0].replicas for n in "ab"}
    assert moved == {n: n != denied for n in "ab"}
    assert [world.overrides(name) for name in "ab"] == [{}, {}]
    brokers = [ConfigResource(ConfigScope.BROKER, str(broker)) for broker in (1, 2, 3, 4)]
    assert [world.cluster.overrides(broker) for broker in brokers] == [{}] * 4


def test_policy_warning_allows_change() -> None:
    recorder = RecordingPolicy(denied=frozenset({"t"}))
    world = make_world(make_policy(recorder, outcome=VerdictOutcome.WARN))
    run = world.apply(topic("t", partitions=1))
    assert run_outcome(run).exit_code is ExitCode.OK
    assert run.verdicts == (Verdict("test", "Topic/t", VerdictOutcome.WARN, "Not t."),)


def test_policy_is_called_only_for_its_actions() -> None:
    recorder = RecordingPolicy()
    world = make_world(make_policy(recorder, actions=frozenset({Action.DELETE})))
    world.apply(topic("t", partitions=1))
    assert recorder.shown == []
    world.apply(scope=PlanScope(allow_deletes=True))
    assert {action for action, *_ in recorder.shown} == {Action.DELETE}


def test_policy_is_not_called_for_broker_configs() -> None:
    recorder = RecordingPolicy()
    world = make_world(make_policy(recorder))
    run = world.apply(desired("BrokerConfig", "cluster-default", configs={"log.cleaner.threads": 2}))
    assert run.complete
    assert recorder.shown == []


# Policies that misbehave.


@pytest.mark.parametrize("failure", [ValueError("odd"), KeyError("k"), SystemExit(0), StopIteration()])
def test_crashing_policy_denies(failure: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    def crash(request: RequestMetadata) -> None:
        if request.topic == "a":
            raise failure

    world = make_world(make_policy(crash))
    with caplog.at_level("INFO", logger="kdeclare"):
        plan = world.plan(topic("a", partitions=1), topic("b", partitions=1))
    assert list_outcomes(plan) == {"Topic/a": "deny", "Topic/b": "allow"}
    message = plan.verdicts[0].message
    assert type(failure).__name__ in message
    assert "test_policies.py:" in message
    assert "Traceback" in caplog.text


def test_hanging_policy_denies_remaining_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    monkeypatch.setattr("kdeclare.policy.isolation.LIMIT_S", 0.2)
    release = Event()

    def hang(request: RequestMetadata) -> None:
        if request.topic == "b":
            release.wait(30)

    world = make_world(make_policy(hang), ConfiguredPolicy("other", RecordingPolicy()))
    plan = world.plan(*(topic(name, partitions=1) for name in "abc"))
    release.set()
    mine = {v.resource: v for v in plan.verdicts if v.policy == "test"}
    assert [mine[f"Topic/{n}"].outcome for n in "abc"] == ["allow", "deny", "deny"]
    assert "timed out after 0.2 s" in mine["Topic/b"].message
    assert "not called again" in mine["Topic/c"].message
    assert [v.outcome for v in plan.verdicts if v.policy == "other"] == ["allow"] * 3


def test_cluster_failure_is_raised_despite_policy_catching_it() -> None:
    def ignore_failure(request: RequestMetadata) -> None:
        try:
            assert request.record_count >= 0
        except Exception:  # noqa: BLE001  as somebody will write it
            return

    world = make_world()
    world.apply(topic("t", partitions=1))
    world.policies = (make_policy(ignore_failure),)
    world.cluster.faults.fail(Fault("NETWORK_EXCEPTION", "gone", FaultKind.UNKNOWN), method="record_counts")
    with pytest.raises(Fault, match="gone"):
        world.plan(topic("t", partitions=2))


# Again at apply.


def test_policies_are_evaluated_again_for_saved_plan() -> None:
    world = make_world_with_topics(RecordingPolicy(), *(topic(name, partitions=1) for name in "ab"))
    plan = world.plan(*(topic(name, partitions=2) for name in "ab"))
    assert list_outcomes(plan) == {"Topic/a": "allow", "Topic/b": "allow"}
    text, identity = render_plan_file(plan)

    def deny_topics_with_records(request: RequestMetadata) -> None:
        if request.record_count:
            raise PolicyViolation(f"{request.topic} holds {request.record_count} records.")

    world.policies = (make_policy(deny_topics_with_records),)
    world.cluster.produce("a", 3)
    run = world.run(parse_plan(text, "it.plan"), identity=identity)
    assert run_outcome(run).exit_code is ExitCode.DENIED
    assert [v.message for v in run.verdicts if v.is_denial] == ["a holds 3 records."]
    assert [len(world.cluster.topics()[n].partitions) for n in "ab"] == [1, 2]
    assert {str(c.id): c.blocked for c in run.plan.changes} == {
        "Topic/a": "policy-violation",
        "Topic/b": None,
    }
    assert (run.plan.summary.update, run.plan.summary.blocked) == (1, 1)
    assert world.owned()["Topic/a"]["partitions"] == 1
    assert world.owned()["Topic/b"]["partitions"] == 2
    record = fold_journal(run.run_id or "", world.store.entries(run.run_id or ""))
    assert record.start is not None
    assert record.start.plan_id == identity
    assert set(record.results) == {op.id for op in run.plan.operations}
    undone = world.rollback()
    assert undone.plan.undoes == run.run_id


def test_deleted_topic_is_not_evaluated() -> None:
    world = make_world_with_topics(RecordingPolicy(), *(topic(name, partitions=1) for name in "ab"))
    plan = world.plan(*(topic(name, partitions=1, configs={"retention.ms": 1}) for name in "ab"))
    world.cluster.delete_topics({"a": None})
    world.policies = (make_policy(lambda r: r.post_request_state and r.post_request_state.num_partitions),)
    run = world.run(plan, skip_stale=True)
    assert [v.outcome for v in run.verdicts] == ["allow", "allow"]
    assert run_outcome(run).exit_code is ExitCode.PARTIAL
    assert world.overrides("b") == {"retention.ms": "1"}


# Overriding.


def test_override_is_reported_and_recorded_with_reason() -> None:
    world = make_world(make_policy(RecordingPolicy(denied=frozenset({"t"}))))
    world.cluster.principal = "User:alice"
    scope = PlanScope(overrides={"test": "agreed on Monday"})
    plan = world.plan(topic("t", partitions=1), scope=scope)
    assert plan.verdicts == (
        Verdict("test", "Topic/t", VerdictOutcome.WARN, "Not t.", override="agreed on Monday"),
    )
    text, identity = render_plan_file(plan)
    run = world.run(parse_plan(text, "it.plan"), identity=identity)
    assert run_outcome(run).exit_code is ExitCode.OK
    assert "t" in world.cluster.topics()
    record = fold_journal(run.run_id or "", world.store.entries(run.run_id or ""))
    assert record.start is not None
    assert [line.model_dump() for line in record.start.overrides] == [
        {
            "policy": "test",
            "resource": "Topic/t",
            "topic": None,
            "reason": "agreed on Monday",
            "principal": "User:alice",
        }
    ]


def test_override_covers_only_planned_violations() -> None:
    world = make_world(make_policy(RecordingPolicy(denied=frozenset({"a"}))))
    scope = PlanScope(overrides={"test": "agreed"})
    plan = world.plan(topic("a", partitions=1), topic("b", partitions=1), scope=scope)
    world.policies = (make_policy(RecordingPolicy(denied=frozenset({"a", "b"}))),)
    run = world.run(plan)
    assert set(world.cluster.topics()) == {"a"}
    assert {v.resource: v.outcome for v in run.verdicts} == {"Topic/a": "warn", "Topic/b": "deny"}


def test_override_covers_only_named_policy() -> None:
    other = ConfiguredPolicy("other", RecordingPolicy(denied=frozenset({"t"})))
    world = make_world(make_policy(RecordingPolicy(denied=frozenset({"t"}))), other)
    scope = PlanScope(overrides={"test": "agreed"})
    plan = world.plan(topic("t", partitions=1), scope=scope)
    assert {v.policy: v.outcome for v in plan.verdicts} == {"test": "warn", "other": "deny"}
    assert plan.operations == ()
    # No override is recorded for a change that is left out anyway.
    run = world.apply(topic("t", partitions=1), topic("u", partitions=1), scope=scope)
    record = fold_journal(run.run_id or "", world.store.entries(run.run_id or ""))
    assert set(world.cluster.topics()) == {"u"}
    assert record.start is not None
    assert record.start.overrides == []


# The brokers' own policies.


@pytest.fixture
def refusing_world() -> World:
    world = make_world()
    world.apply(topic("a", partitions=1))
    fault = Fault("POLICY_VIOLATION", "Not on Fridays.")
    world.cluster.faults.fail(fault, nth=None, method="create_topics", item="b")
    return world


def test_broker_policy_refusal_in_preflight_is_a_verdict(refusing_world: World) -> None:
    plan = refusing_world.plan(topic("a", partitions=2), topic("b", partitions=1))
    assert plan.verdicts == (Verdict("broker", "Topic/b", VerdictOutcome.DENY, "Not on Fridays."),)
    assert list_blocked(plan) == {"Topic/a": None, "Topic/b": "policy-violation"}
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    assert run_outcome(refusing_world.run(plan)).exit_code is ExitCode.DENIED


def test_broker_policy_refusal_during_run_is_a_verdict(refusing_world: World) -> None:
    moved = desired("Reassignment", "move", partitions=[{"topic": "a", "partition": 0, "replicas": [3]}])
    scope = PlanScope(preflight=False)
    run = refusing_world.apply(topic("a", partitions=2), topic("b", partitions=1), moved, scope=scope)
    assert run.verdicts == (Verdict("broker", "Topic/b", VerdictOutcome.DENY, "Not on Fridays."),)
    assert run.results["topic.create:Topic/b"].status is Status.DENIED
    assert run_outcome(run).exit_code is ExitCode.DENIED
    assert len(refusing_world.cluster.topics()["a"].partitions) == 2
    assert "Topic/b" not in refusing_world.owned()


def test_broker_policy_refusal_without_reason_has_message() -> None:
    world = make_world()
    world.cluster.faults.fail(Fault("POLICY_VIOLATION", ""), nth=None, method="create_topics", item="b")
    plan = world.plan(topic("b", partitions=1))
    run = world.apply(topic("b", partitions=1), scope=PlanScope(preflight=False))
    for verdicts in (plan.verdicts, run.verdicts):
        message = "A policy of the brokers denied the request without giving a reason."
        assert [v.message for v in verdicts] == [message]
    (result,) = run.results.values()
    assert result.message == run.verdicts[0].message


def test_run_with_failure_and_denial_is_partial(refusing_world: World) -> None:
    refusing_world.cluster.faults.fail(
        Fault("INVALID_PARTITIONS", "odd"), method="create_partitions", item="a"
    )
    scope = PlanScope(preflight=False)
    declared = [topic("a", partitions=2), topic("b", partitions=1), topic("c", partitions=1)]
    run = refusing_world.apply(*declared, scope=scope)
    assert run_outcome(run).exit_code is ExitCode.PARTIAL


# Rollbacks.


def test_rollback_is_subject_to_policies() -> None:
    world = make_world()
    world.apply(topic("t", partitions=1, configs={"retention.ms": 1}))
    world.apply(topic("t", partitions=1, configs={"retention.ms": 2}))
    plan = world.plan_rollback()
    world.policies = (make_policy(RecordingPolicy(denied=frozenset({"t"}))),)
    run = world.run(plan)
    assert run_outcome(run).exit_code is ExitCode.DENIED
    assert world.overrides("t") == {"retention.ms": "2"}
    assert world.owned()["Topic/t"]["configs"]["retention.ms"] == {"value": "2"}


def test_run_that_stops_on_denials_refuses_plan_that_policy_now_denies() -> None:
    world = World()
    plan = world.plan(topic("a", partitions=1), topic("b", partitions=1))
    world.policies = (ConfiguredPolicy("late", RecordingPolicy(denied=frozenset({"a"}))),)
    with pytest.raises(KdeclareError) as refusal:
        world.run(plan, stop_on_denial=True)
    assert refusal.value.exit_code is ExitCode.DENIED
    assert [d.code for d in refusal.value.diagnostics] == ["denied-changes"]
    assert (world.cluster.topics(), world.owned(), world.store.runs()) == ({}, {}, ())
    world.run(plan)
    assert set(world.cluster.topics()) == {"b"}
