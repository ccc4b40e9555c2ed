"""SCRAM users from the manifest to the request: diff, drift, ownership, adoption, own credential."""

from collections.abc import Mapping
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.changes import Action, Reason, Risk
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.engine.planning.plan_integrity import find_inconsistencies
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.request_values import ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.credential import Mechanism, choose_iterations
from kdeclare.report.outcome import plan_outcome
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.testing.world import Secrets
from tests.engine.world import World, desired, topic

SHA_256, SHA_512 = Mechanism.SHA_256, Mechanism.SHA_512
OLD, NEW = "correct horse battery", "staple"
REFERENCES = {OLD: "${env.OLD}", NEW: "${env.NEW}"}


def user(
    name: str = "a", *, sha256: str | None = None, sha512: str | None = None, **spec: Any
) -> DesiredResource:
    iterations = spec.pop("iterations", None)
    more = {} if iterations is None else {"iterations": iterations}
    mechanisms = {
        mechanism: {"password": Referenced(text, REFERENCES[text]), **more}
        for mechanism, text in ((SHA_256.value, sha256), (SHA_512.value, sha512))
        if text is not None
    }
    return desired("ScramUser", name, mechanisms=mechanisms, **spec)


def make_world(*, adopts: bool = True) -> World:
    secrets = Secrets({reference: text for text, reference in REFERENCES.items()})
    return World(adopts=adopts, secrets=secrets)


def read(world: World, name: str = "a") -> Mapping[Mechanism, int]:
    return world.cluster.scram_users([name]).get(name, {})


def can_log_in(world: World, password: str, mechanism: Mechanism = SHA_512, name: str = "a") -> bool:
    return world.cluster.can_log_in(name, mechanism, password)


def set_password(world: World, password: str, iterations: int = 4096, mechanism: Mechanism = SHA_512) -> None:
    """Set a password as another client."""
    item = ScramAlteration("a", mechanism, ScramUpsertion(iterations, password))
    assert world.cluster.elsewhere().alter_scram_users([item]) == {"a": None}


def list_codes(plan: Plan) -> list[str]:
    return [d.code for d in plan.diagnostics]


def test_mechanisms_of_one_user_are_set_in_separate_requests() -> None:
    """P-SCR-01."""
    world = make_world()
    plan = world.plan(user(sha256=OLD, sha512=OLD))
    assert [op.verb for op in plan.operations] == ["scram.upsert", "scram.upsert"]
    assert [(c.action, c.reason) for c in plan.changes] == [(Action.CREATE, Reason.DECLARED)]
    assert world.run(plan).complete
    requests = [call.items for call in world.cluster.requests("alter_scram_users")]
    assert requests == [("a",), ("a",)]
    assert can_log_in(world, OLD, SHA_256)
    assert can_log_in(world, OLD, SHA_512)
    assert not world.plan(user(sha256=OLD, sha512=OLD)).has_changes


def test_password_is_in_no_output() -> None:
    """P-SCR-02."""
    world = make_world()
    plan = world.plan(user(sha512=OLD))
    (op,) = plan.operations
    text = plan_text(plan)
    assert OLD not in text + repr(plan) + str(dump_arguments(op.args))
    assert "(sensitive)" in text
    assert world.run(plan).complete
    assert OLD not in str(world.owned()) + repr(world.cluster.calls)


def test_changed_password_is_an_update() -> None:
    """P-SCR-03."""
    world = make_world()
    world.apply(user(sha512=OLD))
    before = read(world)
    plan = world.plan(user(sha512=NEW))
    (change,) = plan.changes
    assert (change.action, change.reason, change.risk) == (Action.UPDATE, Reason.CHANGED, Risk.DISRUPTIVE)
    assert world.run(plan).complete
    assert can_log_in(world, NEW)
    assert read(world) != before


def test_mechanism_that_left_is_deleted() -> None:
    world = make_world()
    world.apply(user(sha256=OLD, sha512=OLD))
    plan = world.plan(user(sha512=OLD))
    assert [op.verb for op in plan.operations] == ["scram.delete"]
    assert world.run(plan).complete
    assert read(world).keys() == {SHA_512}
    assert set(world.owned()["ScramUser/a"]["mechanisms"]) == {"SCRAM-SHA-512"}


def test_mechanism_that_left_and_is_gone_already_is_released() -> None:
    """P-SCR-05."""
    world = make_world()
    world.apply(user(sha256=OLD, sha512=OLD))
    assert world.cluster.elsewhere().alter_scram_users([ScramAlteration("a", SHA_256)]) == {"a": None}
    plan = world.plan(user(sha512=OLD))
    assert not plan.operations
    assert world.run(plan).complete
    assert set(world.owned()["ScramUser/a"]["mechanisms"]) == {"SCRAM-SHA-512"}


def test_password_that_another_client_set_is_drift() -> None:
    world = make_world()
    world.apply(user(sha512=OLD))
    set_password(world, "stolen")
    plan = world.plan(user(sha512=OLD))
    (change,) = plan.changes
    assert change.reason is Reason.DRIFTED
    assert world.run(plan).complete
    assert can_log_in(world, OLD)
    assert not world.plan(user(sha512=OLD)).has_changes


def test_credential_that_another_client_deleted_is_set_again() -> None:
    world = make_world()
    world.apply(user(sha512=OLD))
    assert world.cluster.elsewhere().alter_scram_users([ScramAlteration("a", SHA_512)]) == {"a": None}
    plan = world.plan(user(sha512=OLD))
    assert [(c.action, c.reason) for c in plan.changes] == [(Action.CREATE, Reason.MISSING)]
    assert world.run(plan).complete
    assert can_log_in(world, OLD)


def test_rollback_of_created_user_deletes_the_user() -> None:
    world = make_world()
    world.apply(user(sha256=OLD, sha512=OLD))
    plan = world.plan_rollback()
    assert [(c.action, c.risk) for c in plan.changes] == [(Action.DELETE, Risk.DISRUPTIVE)]
    assert list(find_inconsistencies(plan)) == []
    assert world.run(plan).complete
    assert read(world) == {}


def test_existing_user_is_adopted_without_a_request() -> None:
    world = make_world(adopts=False)
    set_password(world, "unknown", 5003)
    plan = world.plan(user(sha512=OLD))
    assert not plan.operations
    assert list_codes(plan) == ["password-unverified"]
    assert world.run(plan).complete
    assert world.owned()["ScramUser/a"]["mechanisms"]["SCRAM-SHA-512"]["iterations"] == 5003
    assert can_log_in(world, "unknown")


def test_existing_user_with_other_iterations_needs_permission_to_adopt() -> None:
    world = make_world(adopts=False)
    set_password(world, "unknown", 5003)
    plan = world.plan(user(sha512=OLD, iterations=8192))
    assert (list_codes(plan), plan.operations) == (["adoption"], ())
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    allowed = world.plan(user(sha512=OLD, iterations=8192, lifecycle={"adopt": True}))
    assert world.run(allowed).complete
    assert can_log_in(world, OLD)
    assert read(world) == {SHA_512: 8192}


def test_undeclared_credentials_are_unmanaged() -> None:
    world = make_world()
    world.apply(user(sha512=OLD))
    set_password(world, "unknown", 5003, SHA_256)
    plan = world.plan(user(sha512=OLD))
    assert not plan.has_changes
    assert plan.unmanaged_configs == {"ScramUser/a": ("SCRAM-SHA-256",)}
    assert plan.summary.unmanaged == 0


def test_orphaned_user_is_kept_until_deletion_is_allowed() -> None:
    world = make_world()
    world.apply(user(sha512=OLD), topic("t", partitions=1))
    assert not world.plan(topic("t", partitions=1)).operations
    plan = world.plan(topic("t", partitions=1), scope=PlanScope(allow_deletes=True))
    assert [op.verb for op in plan.operations] == ["scram.delete"]
    assert [(change.action, change.risk) for change in plan.changes] == [(Action.DELETE, Risk.DISRUPTIVE)]
    assert world.run(plan).complete
    assert read(world) == {}
    assert "ScramUser/a" not in world.owned()


def test_protected_user_is_not_deleted() -> None:
    world = make_world()
    world.apply(user(sha512=OLD, lifecycle={"preventDestroy": True}), topic("t", partitions=1))
    plan = world.plan(topic("t", partitions=1), scope=PlanScope(allow_deletes=True))
    assert not plan.operations
    assert "prevent-destroy" in list_codes(plan)


def test_hidden_credentials_leave_the_user_unchanged() -> None:
    world = make_world()
    world.cluster.faults.fail(Fault("CLUSTER_AUTHORIZATION_FAILED", ""), method="scram_users", nth=None)
    plan = world.plan(user(sha512=OLD))
    assert (list_codes(plan), plan.operations) == (["not-visible"], ())


def test_own_credential_changes_last() -> None:
    world = make_world()
    world.cluster.principal, world.cluster.sasl_mechanism = "User:a", "SCRAM-SHA-512"
    world.apply(user(sha256=OLD, sha512=OLD))
    plan = world.plan(user(sha256=NEW, sha512=NEW), topic("t", partitions=1))
    assert "own-credential" in list_codes(plan)
    own = next(op for op in plan.operations if op.id.endswith("SHA-512"))
    assert set(own.follows) == {op.id for op in plan.operations} - {own.id}
    assert world.run(plan).complete


@pytest.mark.parametrize("before", [None, 4097, 5000])
def test_marker_is_stable_in_range_and_different_from_before(before: int | None) -> None:
    for n in range(500):
        chosen = choose_iterations(f"digest-{n}", before)
        assert 4097 <= chosen <= 8191
        assert chosen != before
        assert chosen == choose_iterations(f"digest-{n}", before)


def test_login_detects_password_with_unchanged_iterations() -> None:
    world = make_world()
    world.apply(user(sha512=OLD, verify="login"))
    assert not world.plan(user(sha512=OLD, verify="login")).has_changes
    set_password(world, "stolen", read(world)[SHA_512])
    assert not world.plan(user(sha512=OLD)).has_changes
    plan = world.plan(user(sha512=OLD, verify="login"))
    assert [change.reason for change in plan.changes] == [Reason.DRIFTED]
    (op,) = plan.operations
    assert op.irreversible
    assert world.run(plan).complete
    assert can_log_in(world, OLD)


def test_login_verifies_existing_password_before_adoption() -> None:
    world = make_world(adopts=False)
    set_password(world, OLD, 5003)
    plan = world.plan(user(sha512=OLD, verify="login"))
    assert (list_codes(plan), plan.operations) == ([], ())
    plan = world.plan(user(sha512=NEW, verify="login"))
    assert (list_codes(plan), plan.operations) == (["adoption"], ())


def test_failed_login_check_is_a_warning() -> None:
    world = make_world()
    world.apply(user(sha512=OLD, verify="login"))
    world.cluster.faults.fail(Fault("LOGIN_NOT_POSSIBLE", "no SASL"), method="can_log_in", nth=None)
    plan = world.plan(user(sha512=OLD, verify="login"))
    assert (list_codes(plan), plan.has_changes) == (["password-unverified"], False)


def test_rights_are_revoked_before_credentials() -> None:
    world = make_world()
    rights = desired("Acl", "a", principal="User:a", produce=["t"])
    other_rights = desired("Acl", "b", principal="User:b", produce=["t"])
    kept = topic("t", partitions=1)
    world.apply(user(sha512=OLD), rights, other_rights, kept)
    plan = world.plan(kept, scope=PlanScope(allow_deletes=True))
    (revocation,) = (op for op in plan.operations if op.resource == rights.id)
    (deletion,) = (op for op in plan.operations if op.verb == "scram.delete")
    assert set(deletion.follows) == {revocation.id}
    assert world.run(plan).complete
    assert read(world) == {}
