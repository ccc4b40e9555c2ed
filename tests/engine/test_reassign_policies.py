"""Moves of `kdeclare reassign` that a policy denies, and the operations that depend on them."""

from dataclasses import replace

from kdeclare.core.plans.plan import Plan
from kdeclare.engine.planning.request import PlanRequest
from kdeclare.policy.evaluation import ProjectPolicyGate
from kdeclare.policy.interface import PolicyViolation, RequestMetadata
from kdeclare.providers.kafka.collector import KafkaSelection, observe
from kdeclare.providers.kafka.commands.reassign.plans import ExecutionRequest, build_execution_plan
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import ReplicaDirs
from kdeclare.report.outcome import plan_outcome
from kdeclare.report.plan.plan_text import plan_text
from tests.connections import connections_to
from tests.engine.test_policies import make_policy, make_world
from tests.engine.world import nothing, topic

FOO, BAR = TopicPartition("foo", 0), TopicPartition("bar", 0)


def deny_foo(request: RequestMetadata) -> None:
    if request.topic == "foo":
        raise PolicyViolation("Hands off foo.")


def plan_execution(wanted: ExecutionRequest) -> Plan:
    """Two topics on brokers 1 and 2; a policy allows only one of them to be moved."""
    world = make_world()
    world.apply(*(topic(name, assignments={0: [1, 2]}) for name in ("foo", "bar")))
    live = observe(world.cluster, KafkaSelection(frozenset({"foo", "bar"})))
    dirs = {(partition, broker): ReplicaDirs("/old", None) for partition in (FOO, BAR) for broker in (1, 2)}
    request = PlanRequest(
        "p", "e", "c", (), world.store.read(), judge=ProjectPolicyGate((make_policy(deny_foo),))
    )
    return build_execution_plan(
        request, wanted, replace(live, dirs=dirs), connections_to(world.cluster), world.secrets, nothing
    )


def test_change_with_denied_moves_and_other_operations_not_blocked() -> None:
    plan = plan_execution(ExecutionRequest({FOO: (1, 3), BAR: (1, 2)}, {(BAR, 1): "/new"}))
    (change,) = plan.changes
    assert change.blocked is None
    assert [op.verb for op in plan.operations] == ["replicas.relocate"]
    assert (plan.summary.update, plan.summary.blocked) == (1, 0)
    assert plan_outcome(plan).headline.endswith(": 1 to change, 1 topic denied.")
    (row,) = (line for line in plan_text(plan).splitlines() if "replicas.foo-0" in line)
    assert row.endswith("[1, 2] → [1, 3]  denied")


def test_change_without_remaining_operations_stays_blocked() -> None:
    plan = plan_execution(ExecutionRequest({FOO: (1, 3), BAR: (1, 2)}, {(FOO, 1): "/new"}))
    (change,) = plan.changes
    assert change.blocked == "policy-violation"
    assert plan.operations == ()
    assert (plan.summary.update, plan.summary.blocked) == (0, 1)
