"""ACLs from the manifest to the request: diff, shared bindings, ownership, order, rollback, staleness."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError, Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.parts import PlanOptions
from kdeclare.core.plans.plan import Plan, Verdict, VerdictOutcome
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.changes import Action, Change, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.executor.entries import read_run
from kdeclare.engine.planning.request import PlanScope
from kdeclare.policy.plain_requests import PlainSubjects
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.acl.kind import AclKind
from kdeclare.providers.kafka.acl.operations import AclArgs
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.plan_options import KafkaPlanOptions
from kdeclare.providers.kafka.request_values import ConfigQuery
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome
from tests.engine.world import World, desired, topic

READ_ORDERS = "ALLOW User:a READ topic:orders from *"
WRITE_ORDERS = "ALLOW User:a WRITE topic:orders from *"
READ_ONLY: Mapping[str, Any] = {"bindings": [{"topic": "orders", "allow": ["READ"]}]}
READ_WRITE: Mapping[str, Any] = {"bindings": [{"topic": "orders", "allow": ["READ", "WRITE"]}]}
ALLOW_DELETES = PlanScope(allow_deletes=True)


def acl(name: str, labels: Mapping[str, str] | None = None, /, **spec: Any) -> DesiredResource:
    named: dict[str, Any] = {} if "principals" in spec else {"principal": f"User:{name}"}
    return desired("Acl", name, labels, **named | spec)


def grant(world: World, *texts: str) -> None:
    """Create bindings as another client."""
    assert set(world.cluster.elsewhere().create_acls(list(map(parse_binding, texts))).values()) == {None}


def revoke(world: World, *texts: str) -> None:
    """Delete bindings as another client."""
    assert set(world.cluster.elsewhere().delete_acls(list(map(parse_binding, texts))).values()) == {None}


def read(world: World) -> set[str]:
    """Read all bindings as another client, who is a super user."""
    other = world.cluster.elsewhere()
    other.is_super_user = True
    return set(map(str, other.acls()))


def list_changed(world: World) -> list[str]:
    """Return the created and deleted bindings in the order of the requests."""
    return [text for call in world.cluster.requests() for text in call.items]


def list_codes(plan: Plan) -> list[str]:
    return [d.code for d in plan.diagnostics if d.code != "acl-dangling"]


def get_only_change(plan: Plan) -> Change:
    (change,) = plan.changes
    return change


def list_steps(plan: Plan) -> list[tuple[str, str]]:
    """The operations in order, each with its bindings."""
    return [(op.verb, text) for op in plan.operations for text in get_arguments(op, AclArgs).bindings]


# Diff and operations.


def test_new_acl_is_created_with_its_bindings() -> None:
    """P-ACL-01."""
    world = World()
    declared = acl("checkout", produce=["orders", "payments.*"], observe={"topics": ["*"]})
    plan = world.plan(declared)
    change = get_only_change(plan)
    assert (change.action, change.reason, change.risk) == (Action.CREATE, Reason.DECLARED, Risk.SAFE)
    assert {f.path: f.value for f in change.fields} == {
        "bindings.topic:*": [
            "ALLOW User:checkout DESCRIBE from *",
            "ALLOW User:checkout DESCRIBE_CONFIGS from *",
        ],
        "bindings.topic:orders": ["ALLOW User:checkout WRITE from *"],
        "bindings.topic:payments.*": ["ALLOW User:checkout WRITE from *"],
    }
    assert plan_outcome(plan).exit_code is ExitCode.OK
    assert world.run(plan).complete
    assert read(world) == {
        "ALLOW User:checkout DESCRIBE topic:* from *",
        "ALLOW User:checkout DESCRIBE_CONFIGS topic:* from *",
        "ALLOW User:checkout WRITE topic:orders from *",
        "ALLOW User:checkout WRITE topic:payments.* from *",
    }
    assert [call.method for call in world.cluster.requests()] == ["create_acls"]
    second = world.plan(declared)
    assert not second.has_changes
    assert not second.ownership


def test_existing_binding_is_adopted_without_request() -> None:
    """P-ACL-02."""
    world = World(adopts=False)
    grant(world, READ_ORDERS)
    assert not world.plan(acl("a", **READ_ONLY)).has_changes
    assert world.apply(acl("a", **READ_ONLY)).complete
    assert world.cluster.requests() == []
    assert world.owned() == {"Acl/a": {"bindings": [READ_ORDERS]}}


def test_binding_that_left_its_manifest_is_subtracted() -> None:
    """P-ACL-03."""
    world = World()
    grant(world, "ALLOW User:b WRITE topic:orders from *")
    world.apply(acl("a", **READ_WRITE))
    plan = world.plan(acl("a", **READ_ONLY))
    change = get_only_change(plan)
    (field,) = change.fields
    assert (change.action, change.reason, change.risk) == (Action.UPDATE, Reason.CHANGED, Risk.DISRUPTIVE)
    assert (field.path, field.op, field.value) == (
        "bindings.topic:orders",
        FieldOp.SUBTRACT,
        ["ALLOW User:a WRITE from *"],
    )
    assert list_steps(plan) == [("acls.delete", WRITE_ORDERS)]
    assert world.run(plan).complete
    assert read(world) == {READ_ORDERS, "ALLOW User:b WRITE topic:orders from *"}
    assert world.owned()["Acl/a"] == {"bindings": [READ_ORDERS]}


def test_rights_granted_by_others_are_kept_and_shown() -> None:
    """P-ACL-04."""
    world = World()
    altering = "ALLOW User:a ALTER cluster:kafka-cluster from *"
    grant(world, READ_ORDERS, altering, "ALLOW User:z READ topic:x from *")
    plan = world.plan(acl("a", **READ_ONLY))
    assert not plan.has_changes
    assert plan.operations == ()
    assert plan.unmanaged_configs == {"Acl/a": (altering,)}
    assert plan.summary.unmanaged == 2


def test_many_unmanaged_bindings_are_counted_for_each_principal() -> None:
    world = World()
    grant(world, *(f"ALLOW User:{user} READ topic:t{n} from *" for user in "ab" for n in range(30)))
    plan = world.plan(acl("both", principals=["User:a", "User:b"], **READ_ONLY))
    assert plan.unmanaged_configs == {"Acl/both": ("30 bindings of User:a", "30 bindings of User:b")}


def test_unmanaged_bindings_remove_deletes_those_of_its_principals() -> None:
    """P-ACL-05."""
    world = World(adopts=False)
    world.cluster.principal = "User:admin"
    other = "ALLOW User:z READ topic:x from *"
    grant(world, READ_ORDERS, "ALLOW User:a ALTER cluster:kafka-cluster from *", other)
    declared = acl("a", unmanagedBindings="remove", **READ_ONLY)
    assert world.apply(declared).complete
    assert read(world) == {READ_ORDERS, other}
    assert not world.plan(declared).has_changes


def test_unmanaged_bindings_remove_keeps_what_other_manifests_declare() -> None:
    world = World()
    strict = acl("a", unmanagedBindings="remove", **READ_ONLY)
    other = acl("b", principal="User:a", produce=["orders"])
    assert world.apply(strict, other).complete
    assert read(world) == {READ_ORDERS, WRITE_ORDERS}
    assert not world.plan(strict, other).has_changes


def test_orphan_is_kept_until_deletes_are_allowed() -> None:
    """P-ACL-06."""
    world = World()
    world.apply(acl("a", **READ_ONLY))
    plan = world.plan()
    assert (get_only_change(plan).action, list_codes(plan)) == (Action.NO_OP, ["orphaned"])
    assert plan.summary.orphaned == 1
    released = world.plan(scope=PlanScope(forget=frozenset({ResourceId("Acl", "a")})))
    assert (get_only_change(released).action, released.operations) == (Action.FORGET, ())
    plan = world.plan(scope=ALLOW_DELETES)
    change = get_only_change(plan)
    assert (change.action, change.risk) == (Action.DELETE, Risk.DISRUPTIVE)
    assert list_steps(plan) == [("acls.delete", READ_ORDERS)]
    assert world.run(plan).complete
    assert (read(world), world.owned()) == (set(), {})


def test_protected_acl_is_not_deleted() -> None:
    world = World()
    world.apply(acl("a", lifecycle={"preventDestroy": True}, **READ_ONLY))
    plan = world.plan(scope=ALLOW_DELETES)
    assert (get_only_change(plan).blocked, plan.operations) == ("prevent-destroy", ())
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    world.run(plan)
    assert "Acl/a" in world.owned()


def test_deletions_count_resources_and_not_bindings() -> None:
    world = World()
    declared = [acl(f"u{n}", produce=[f"t{m}" for m in range(10)]) for n in range(5)]
    assert world.apply(*declared).complete
    assert len(world.plan(*declared[:2], scope=ALLOW_DELETES).operations) == 3
    plan = world.plan(*declared[:1], scope=ALLOW_DELETES)
    assert (plan.operations, list_codes(plan)) == ((), ["max-deletes"])


def test_deleted_binding_is_drift_and_comes_back() -> None:
    """P-ACL-09."""
    world = World()
    world.apply(acl("a", **READ_WRITE))
    revoke(world, READ_ORDERS)
    plan = world.plan(acl("a", **READ_WRITE))
    change = get_only_change(plan)
    assert (change.action, change.reason) == (Action.UPDATE, Reason.DRIFTED)
    assert [(f.path, f.op) for f in change.fields] == [("bindings.topic:orders", FieldOp.APPEND)]
    assert world.run(plan).complete
    assert read(world) == {READ_ORDERS, WRITE_ORDERS}


def test_nothing_is_missing_or_too_many_on_the_way() -> None:
    """P-ACL-10."""
    world = World()
    old_denial = {"topic": "old-secrets", "deny": ["READ"]}
    world.apply(acl("a", bindings=[{"topic": "orders", "allow": ["READ"]}, old_denial]))
    entries = [{"topic": "orders*", "allow": ["READ"]}, {"topic": "orders-secret", "deny": ["READ"]}]
    plan = world.plan(acl("a", bindings=entries))
    world.cluster.calls.clear()
    assert list_steps(plan) == [
        ("acls.create", "DENY User:a READ topic:orders-secret from *"),
        ("acls.create", "ALLOW User:a READ topic:orders* from *"),
        ("acls.delete", "ALLOW User:a READ topic:orders from *"),
        ("acls.delete", "DENY User:a READ topic:old-secrets from *"),
    ]
    assert all(op.needs for op in plan.operations[1:])
    assert world.run(plan).complete
    assert [call.items for call in world.cluster.requests()] == [(text,) for _, text in list_steps(plan)]


def test_resources_of_one_principal_change_in_order() -> None:
    world = World()
    old = acl("old", principal="User:a", **READ_WRITE)
    world.apply(old)
    moved = acl("new", principal="User:a", bindings=[{"topic": "orders*", "allow": ["READ"]}])
    other = acl("z", produce=["x"])
    plan = world.plan(acl("old", principal="User:a", produce=["orders"]), moved, other)
    deletion = next(op for op in plan.operations if op.verb == "acls.delete")
    assert list(deletion.follows) == ["acls.create:Acl/new#0001"]
    assert world.run(plan).complete


def test_failed_grant_keeps_right_that_it_would_replace() -> None:
    world = World()
    world.apply(acl("a", **READ_ONLY))
    world.cluster.faults.fail(Fault("INVALID_REQUEST", "no"), method="create_acls")
    result = world.apply(acl("a", bindings=[{"topic": "orders*", "allow": ["READ"]}]))
    assert not result.complete
    assert read(world) == {READ_ORDERS}
    assert world.owned()["Acl/a"] == {"bindings": [READ_ORDERS]}


def test_brokers_without_authorizer_are_reported_once() -> None:
    """P-ACL-08."""
    world = World()
    world.cluster.has_authorizer = False
    plan = world.plan(acl("a", produce=["t"]), acl("b", produce=["t"]), topic("t", partitions=1))
    (problem,) = (d for d in plan.diagnostics if d.code == "no-authorizer")
    assert (problem.severity, problem.resource) == (Severity.ERROR, "Acl/a")
    assert plan_outcome(plan).exit_code is ExitCode.ERROR


def test_hidden_acls_are_not_taken_for_missing() -> None:
    world = World()
    world.apply(acl("a", **READ_ONLY))
    world.cluster.principal, world.cluster.is_super_user = "User:ops", False
    plan = world.plan(acl("a", **READ_ONLY), acl("b", produce=["t"]))
    assert list_codes(plan) == ["not-visible", "not-visible"]
    assert plan.operations == ()
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    world.run(plan)
    assert world.owned()["Acl/a"] == {"bindings": [READ_ORDERS]}


def test_contradicting_manifests_are_an_error() -> None:
    plan = World().plan(
        acl("a", **READ_ONLY),
        acl("b", principal="User:a", bindings=[{"topic": "orders", "deny": ["READ"]}]),
    )
    assert list_codes(plan) == ["contradiction"]
    assert plan_outcome(plan).exit_code is ExitCode.ERROR


# The lock-out guard.

MONITOR = "ALLOW User:monitor DESCRIBE cluster:kafka-cluster from *"
"""An ACL of the cluster that does not explain the rights of the client, who is then a super user."""
OPS = {
    "ALLOW User:ops ALTER cluster:kafka-cluster from *",
    "ALLOW User:ops DESCRIBE cluster:kafka-cluster from *",
    MONITOR,
}
PERMITTED = PlanScope(options=PlanOptions(KafkaPlanOptions(allow_acl_lockout=True)))


def become_ops(world: World) -> None:
    """Connect as a principal that only has the rights that ACLs give it."""
    world.cluster.principal, world.cluster.is_super_user = "User:ops", False
    world.cluster.calls.clear()


def start_as_ops() -> World:
    """A project that owns the rights with which it connects."""
    world = World()
    grant(world, MONITOR)
    world.apply(acl("ops", bindings=[{"cluster": True, "allow": ["ALTER", "DESCRIBE"]}]))
    become_ops(world)
    return world


def describe_only() -> DesiredResource:
    return acl("ops", bindings=[{"cluster": True, "allow": ["DESCRIBE"]}])


def get_only_denial(plan: Plan) -> Verdict:
    (verdict,) = (v for v in plan.verdicts if v.policy == "acl-lockout")
    assert verdict.outcome is VerdictOutcome.DENY
    return verdict


def test_plan_that_takes_own_rights_is_denied() -> None:
    """P-ACL-11."""
    world = start_as_ops()
    plan = world.plan(describe_only())
    verdict = get_only_denial(plan)
    assert verdict.resource == "Acl/ops"
    assert "takes ALTER on the cluster away from User:ops" in verdict.message
    assert (plan.operations, get_only_change(plan).blocked) == ((), "policy-violation")
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    world.run(plan)
    assert world.cluster.requests() == []
    assert read(world) == OPS


def test_lockout_denies_only_its_resource() -> None:
    world = start_as_ops()
    unrelated = acl("z", bindings=[{"cluster": True, "allow": ["CREATE"]}])
    plan = world.plan(describe_only(), acl("a", **READ_ONLY), unrelated)
    assert get_only_denial(plan).resource == "Acl/ops"
    assert {str(op.resource) for op in plan.operations} == {"Acl/a", "Acl/z"}
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    assert world.run(plan).complete
    assert read(world) == OPS | {READ_ORDERS, "ALLOW User:z CREATE cluster:kafka-cluster from *"}


def test_flag_permits_lockout_and_the_run_records_it() -> None:
    world = start_as_ops()
    plan = world.plan(describe_only(), scope=PERMITTED)
    (verdict,) = plan.verdicts
    assert (verdict.policy, verdict.outcome, verdict.override) == (
        "acl-lockout",
        VerdictOutcome.WARN,
        "--allow-acl-lockout",
    )
    assert plan_outcome(plan).exit_code is ExitCode.OK
    result = world.run(plan)
    assert result.complete
    assert read(world) == OPS - {"ALLOW User:ops ALTER cluster:kafka-cluster from *"}
    assert result.run_id is not None
    start = read_run(world.store, result.run_id).start
    assert start is not None
    assert [(o.policy, o.resource, o.reason, o.principal) for o in start.overrides] == [
        ("acl-lockout", "Acl/ops", "--allow-acl-lockout", "User:ops")
    ]


def test_flag_without_lockout_is_not_recorded() -> None:
    world = start_as_ops()
    assert world.plan(acl("a", **READ_ONLY), scope=PERMITTED).verdicts == ()


def test_orphaned_own_rights_are_not_deleted() -> None:
    world = start_as_ops()
    plan = world.plan(scope=ALLOW_DELETES)
    assert plan.operations == ()
    assert get_only_denial(plan).resource == "Acl/ops"


def test_rollback_that_locks_out_is_denied() -> None:
    world = start_as_ops()
    plan = world.plan_rollback()
    assert get_only_denial(plan).resource == "Acl/ops"
    assert (plan.operations, plan.ownership, get_only_change(plan).blocked) == ((), (), "policy-violation")
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    world.run(plan)
    assert (read(world), world.cluster.requests(), list(world.owned())) == (OPS, [], ["Acl/ops"])


def test_flag_permits_rollback_that_locks_out() -> None:
    world = start_as_ops()
    plan = world.plan_rollback(allow_acl_lockout=True)
    assert [v.override for v in plan.verdicts] == ["--allow-acl-lockout"]
    world.run(plan)  # without Describe, the run cannot see whether its deletion has taken effect
    assert "ALLOW User:ops ALTER cluster:kafka-cluster from *" not in read(world)


def test_rollback_undoes_everything_else() -> None:
    world = World()
    grant(world, MONITOR)
    ops = acl("ops", bindings=[{"cluster": True, "allow": ["ALTER", "DESCRIBE"]}])
    world.apply(ops, acl("a", **READ_ONLY))
    become_ops(world)
    plan = world.plan_rollback()
    assert get_only_denial(plan).resource == "Acl/ops"
    assert {str(op.resource) for op in plan.operations} == {"Acl/a"}
    assert world.run(plan).complete
    assert (read(world), list(world.owned())) == (OPS, ["Acl/ops"])


def test_admin_grants_are_created_first_and_deleted_last() -> None:
    """Whichever principal kdeclare connects as, it keeps the right to change ACLs until the end."""
    world = World()
    world.cluster.principal = "User:ops"
    everything: Mapping[str, Any] = {"bindings": [{"cluster": True, "allow": ["ALTER", "DESCRIBE"]}]}
    assert world.apply(acl("a", **READ_WRITE), acl("ops", **everything), acl("z", **READ_WRITE)).complete
    first, *_ = list_changed(world)
    assert first == "ALLOW User:ops ALTER cluster:kafka-cluster from *"
    world.cluster.is_super_user = False
    scope = PlanScope(allow_deletes=True, options=PlanOptions(KafkaPlanOptions(allow_acl_lockout=True)))
    world.cluster.calls.clear()
    assert world.apply(scope=scope).complete
    *_, last = list_changed(world)
    assert last == "ALLOW User:ops ALTER cluster:kafka-cluster from *"


def test_own_rights_may_be_replaced() -> None:
    world = start_as_ops()
    assert world.apply(acl("ops", bindings=[{"cluster": True, "allow": ["ALL"]}])).complete
    assert read(world) == {"ALLOW User:ops ALL cluster:kafka-cluster from *", MONITOR}


def test_first_acl_of_the_cluster_is_unverified() -> None:
    """No ACL of the cluster shows whether the client is a super user."""
    world = World()
    declared = acl("a", bindings=[{"cluster": True, "allow": ["CREATE"]}])
    verdict = get_only_denial(world.plan(declared))
    assert verdict.message.startswith("Unverified: the change may take ALTER on the cluster away from ")
    assert world.apply(declared, scope=PERMITTED).complete


# Shared bindings.


def both(**spec: Any) -> tuple[DesiredResource, DesiredResource]:
    return acl("one", principal="User:a", **spec), desired("Acl", "two", principal="User:a", **spec)


def test_shared_binding_is_created_once_and_then_owned_by_both() -> None:
    world = World()
    plan = world.plan(*both(**READ_ONLY))
    assert list_steps(plan) == [("acls.create", READ_ORDERS)]
    assert world.run(plan).complete
    assert world.apply(*both(**READ_ONLY)).complete
    assert {name: record["bindings"] for name, record in world.owned().items()} == {
        "Acl/one": [READ_ORDERS],
        "Acl/two": [READ_ORDERS],
    }
    assert not world.plan(*both(**READ_ONLY)).ownership


def test_shared_binding_stays_until_last_manifest_leaves() -> None:
    world = World()
    one, two = both(**READ_ONLY)
    world.apply(one, two)
    world.apply(one, two)
    empty = acl("one", principal="User:a")
    plan = world.plan(empty, two)
    assert not plan.has_changes
    world.run(plan)
    assert read(world) == {READ_ORDERS}
    plan = world.plan(empty, acl("two", principal="User:a"))
    assert list_steps(plan) == [("acls.delete", READ_ORDERS)]
    assert world.run(plan).complete
    assert read(world) == set()


def test_deletion_of_an_orphan_keeps_shared_bindings() -> None:
    world = World()
    one, two = both(**READ_ONLY)
    world.apply(one, two)
    world.apply(one, two)
    plan = world.plan(two, scope=ALLOW_DELETES)
    assert plan.operations == ()
    world.run(plan)
    assert (read(world), list(world.owned())) == ({READ_ORDERS}, ["Acl/two"])


def test_two_orphans_delete_shared_binding_once() -> None:
    world = World()
    world.apply(*both(**READ_ONLY))
    world.apply(*both(**READ_ONLY))
    plan = world.plan(scope=ALLOW_DELETES)
    assert list_steps(plan) == [("acls.delete", READ_ORDERS)]
    assert world.run(plan).complete
    assert (read(world), world.owned()) == (set(), {})


def test_renamed_manifest_takes_over_without_request() -> None:
    world = World()
    one, two = both(**READ_ONLY)
    world.apply(one)
    world.cluster.calls.clear()
    plan = world.plan(two)
    assert plan.operations == ()
    world.run(plan)
    assert world.cluster.requests() == []
    assert list(world.owned()) == ["Acl/two"]
    assert read(world) == {READ_ORDERS}


def test_orphan_protects_its_bindings_from_other_manifests() -> None:
    world = World()
    one, two = both(**READ_ONLY)
    world.apply(one, two)
    world.apply(one, two)
    plan = world.plan(acl("one", principal="User:a"))
    assert plan.operations == ()


# Rollback, staleness, outcomes.


def test_rollback_restores_bindings_and_ownership() -> None:
    world = World()
    world.apply(acl("a", **READ_ONLY))
    before = read(world), world.owned()
    run = world.apply(acl("a", produce=["orders"]), acl("b", produce=["t"]))
    assert run.complete
    plan = world.plan_rollback()
    assert {str(c.id): c.action for c in plan.changes} == {"Acl/a": Action.UPDATE, "Acl/b": Action.DELETE}
    assert {c.risk for c in plan.changes} == {Risk.DISRUPTIVE}, "as in a plan that deletes the bindings"
    assert sorted(verb for verb, _ in list_steps(plan)) == ["acls.create", "acls.delete", "acls.delete"]
    assert world.run(plan).complete
    assert (read(world), world.owned()) == before


def test_rollback_of_adoption_deletes_nothing() -> None:
    world = World()
    grant(world, READ_ORDERS)
    world.apply(acl("a", **READ_WRITE))
    assert world.rollback().complete
    assert (read(world), world.owned()) == ({READ_ORDERS}, {})


def test_plan_is_stale_only_where_its_bindings_changed() -> None:
    world = World()
    plan = world.plan(acl("a", **READ_WRITE))
    grant(world, "ALLOW User:a READ topic:other from *")
    assert world.run(plan).complete
    plan = world.plan(acl("a", **READ_ONLY))
    revoke(world, WRITE_ORDERS)
    with pytest.raises(KdeclareError) as stale:
        world.run(plan)
    assert stale.value.exit_code is ExitCode.STALE
    assert [d.subject for d in stale.value.diagnostics] == [WRITE_ORDERS]


def test_lost_answer_is_settled_by_reading() -> None:
    world = World()
    world.cluster.faults.time_out(after_effect=True, method="create_acls")
    assert world.apply(acl("a", **READ_ONLY)).complete
    assert len(world.cluster.requests("create_acls")) == 1


def test_missing_permission_is_explained() -> None:
    world = World()
    grant(world, "ALLOW User:ops DESCRIBE cluster:kafka-cluster from *")
    world.cluster.principal, world.cluster.is_super_user = "User:ops", False
    result = world.apply(acl("a", **READ_ONLY))
    (failed,) = result.results.values()
    assert failed.error == "CLUSTER_AUTHORIZATION_FAILED"


@pytest.mark.slow
def test_many_bindings_are_changed_in_bounded_operations() -> None:
    """P-ACL-12."""
    world = World()
    declared = acl("big", consume={"topics": [f"t-{n}" for n in range(3000)]})
    plan = world.plan(declared)
    assert [len(get_arguments(op, AclArgs).bindings) for op in plan.operations] == [500] * 6
    assert world.run(plan).complete
    assert len(world.cluster.acls()) == 3000
    assert not world.plan(declared).has_changes
    plan = world.plan(acl("big"), scope=ALLOW_DELETES)
    assert {len(get_arguments(op, AclArgs).bindings) for op in plan.operations} == {100}
    assert world.run(plan).complete
    assert read(world) == set()


@pytest.mark.slow
def test_small_operations_share_batches_of_bounded_size() -> None:
    world = World()
    declared = [acl(f"a{n}", produce=[f"t{n}-{m}" for m in range(10)]) for n in range(400)]
    world.cluster.calls.clear()
    assert world.apply(*declared).complete
    sizes = [len(call.items) for call in world.cluster.requests()]
    assert sum(sizes) == 4000
    assert max(sizes) <= 500
    assert len(sizes) < 40
    world.cluster.calls.clear()
    assert world.apply(*(acl(f"a{n}") for n in range(400))).complete
    sizes = [len(call.items) for call in world.cluster.requests()]
    assert sum(sizes) == 4000
    assert max(sizes) <= 100
    assert len(sizes) < 100


@pytest.mark.slow
def test_interrupted_deletion_sends_no_further_requests() -> None:
    """Operations that wait for a worker do not begin, so that Ctrl-C ends a deletion of hours in seconds."""
    world = World()
    world.apply(acl("big", consume={"topics": [f"t-{n}" for n in range(3000)]}))
    world.cluster.faults.run_before(lambda _: world.stop.set(), method="delete_acls")
    result = world.run(world.plan(acl("big"), scope=ALLOW_DELETES))
    begun = [r for r in result.results.values() if r.status is Status.DONE]
    assert 1 <= len(begun) <= 4
    assert {r.status for r in result.results.values()} == {Status.DONE, Status.INTERRUPTED}
    assert len(read(world)) == 3000 - 100 * len(begun)
    world.stop.clear()
    assert world.apply(acl("big"), scope=ALLOW_DELETES).complete
    assert read(world) == set()


def test_many_bindings_of_one_topic_are_split() -> None:
    world = World()
    principals = [f"User:u{n}" for n in range(1100)]
    assert world.apply(acl("all", principals=principals, produce=["t"])).complete
    assert len(world.cluster.acls()) == 1100
    assert world.apply(acl("all", principals=principals)).complete
    assert read(world) == set()


def test_right_on_missing_topic_is_a_warning() -> None:
    world = World()
    world.apply(topic("orders", partitions=1), acl("a", **READ_ONLY))
    declared = acl("a", produce=["orders", "nowhere", "u*"], bindings=[{"topic": "x", "deny": ["READ"]}])
    (problem,) = (d for d in world.plan(declared, topic("orders", partitions=1)).diagnostics)
    assert (problem.code, problem.severity) == ("acl-dangling", Severity.WARNING)
    assert "do not exist: nowhere." in problem.detail
    plan = world.plan(acl("a", produce=["orders"]), scope=ALLOW_DELETES)
    assert any("this plan deletes: orders" in d.detail for d in plan.diagnostics)


def test_policies_see_bindings_before_and_after() -> None:
    kind = AclKind()
    subjects = PlainSubjects(kind, kind)
    declared = acl("a", **READ_WRITE)
    (subject,) = subjects.find_declared(declared).values()
    assert subject.values["bindings"] == {
        "topic:orders": ["ALLOW User:a READ from *", "ALLOW User:a WRITE from *"]
    }
    (op,) = World().plan(declared).operations
    (effect,) = subjects.find_policy_effects(op).values()
    assert (effect.created, effect.deleted) == (True, False)


def test_rollback_keeps_what_another_resource_owns() -> None:
    world = World()
    one, _ = both(**READ_WRITE)
    run = world.apply(one)
    world.apply(one, acl("two", principal="User:a", **READ_ONLY))
    plan = world.plan_rollback(run.run_id)
    assert [d.code for d in plan.diagnostics] == ["shared-binding"]
    assert list_steps(plan) == [("acls.delete", WRITE_ORDERS)]
    assert world.run(plan).complete
    assert read(world) == {READ_ORDERS}


def test_dangling_rights_on_deleted_and_missing_topics_are_told_apart() -> None:
    world = World()
    world.apply(topic("orders", partitions=1), acl("a", **READ_ONLY))
    plan = world.plan(acl("a", produce=["orders", "nowhere"]), scope=ALLOW_DELETES)
    details = sorted(d.detail.partition(". ")[0] for d in plan.diagnostics if d.code == "acl-dangling")
    assert details == [
        "Acl/a allows access to topics that do not exist: nowhere",
        "Acl/a allows access to topics that this plan deletes: orders",
    ]


# The first ACL of a resource.


def test_first_acl_is_disruptive_where_brokers_may_allow_everyone() -> None:
    """Brokers describe the key only if it is set, and never its value."""
    world = World(MemoryCluster(static={"allow.everyone.if.no.acl.found": "true"}))
    grant(world, "ALLOW User:z READ topic:t from *", "ALLOW User:z READ topic:p* from *")
    plan = world.plan(
        acl("a", produce=["orders", "t", "pay"], consume={"topics": ["p*"], "groups": ["g*"]}),
        acl("b", produce=["t"]),
    )
    (problem,) = (d for d in plan.diagnostics if d.code == "first-acl")
    assert (problem.severity, problem.resource) == (Severity.WARNING, "Acl/a")
    assert problem.detail.startswith("Acl/a creates the first ACL on groups g*, topic orders. ")
    risks = {change.id.name: change.risk for change in plan.changes}
    assert risks == {"a": Risk.DISRUPTIVE, "b": Risk.SAFE}
    risky = {field.path for field in plan.changes[0].fields if field.risk is Risk.DISRUPTIVE}
    assert risky == {"bindings.group:g*", "bindings.topic:orders"}


def test_first_acl_is_safe_where_brokers_deny_everyone() -> None:
    plan = World().plan(acl("a", produce=["orders"]))
    assert (list_codes(plan), plan.changes[0].risk) == ([], Risk.SAFE)


def test_first_acl_is_reported_where_brokers_hide_their_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def refuse(queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Fault]:
        return {query.resource: Fault("CLUSTER_AUTHORIZATION_FAILED", "") for query in queries}

    monkeypatch.setattr(world.cluster, "describe_configs_partially", refuse)
    plan = world.plan(acl("a", produce=["orders"]))
    (problem,) = (d for d in plan.diagnostics if d.code == "first-acl")
    assert "The brokers do not show the value of allow.everyone.if.no.acl.found." in problem.detail
