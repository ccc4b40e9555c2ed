"""The lock-out guard as users see it: exit codes, reports, options and history."""

import json

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.acl.binding import parse_binding
from tests.unit.cli.command_line import CommandLine

ALTER = "ALLOW User:ops ALTER cluster:kafka-cluster from *"
DESCRIBE = "ALLOW User:ops DESCRIBE cluster:kafka-cluster from *"
ANYONE = "ALLOW User:* ALTER cluster:kafka-cluster from *"
MONITOR = "ALLOW User:monitor DESCRIBE cluster:kafka-cluster from *"
HINT = (
    "Keep bindings that allow kdeclare ALTER and DESCRIBE on the cluster, apply as a different principal, or "
    "pass --allow-acl-lockout (the override is recorded)."
)


def declare(kdeclare: CommandLine, *operations: str) -> None:
    entry = {"cluster": True, "allow": list(operations)}
    kdeclare.write("manifests/ops.yaml", "Acl", "ops", principal="User:ops", bindings=[entry])


def read(kdeclare: CommandLine) -> set[str]:
    kdeclare.cluster.is_super_user = True
    return set(map(str, kdeclare.cluster.acls()))


@pytest.fixture
def ops(kdeclare: CommandLine) -> CommandLine:
    """A project that owns the rights with which it connects, and whose manifest no longer declares ALTER."""
    kdeclare.cluster.create_acls([parse_binding(MONITOR)])
    declare(kdeclare, "ALTER", "DESCRIBE")
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.cluster.principal, kdeclare.cluster.is_super_user = "User:ops", False
    declare(kdeclare, "DESCRIBE")
    return kdeclare


def test_apply_that_locks_out_is_denied(ops: CommandLine) -> None:
    """P-ACL-11."""
    ops.cluster.calls.clear()
    ran = ops("apply", "--yes")
    assert ran.code == ExitCode.DENIED, ran
    assert ops.cluster.requests() == []
    planned = ops("plan")
    assert planned.code == ExitCode.DENIED
    assert (
        "denied by guard acl-lockout: The change takes ALTER on the cluster away from User:ops" in planned.out
    )
    assert f"hint: {HINT}" in planned.out
    assert "--override-policy" not in planned.out
    document = json.loads(ops("plan", "--format", "json").out)
    (verdict,) = document["verdicts"]
    assert (verdict["policy"], verdict["resource"], verdict["outcome"]) == ("acl-lockout", "Acl/ops", "deny")
    assert document["operations"] == []


@pytest.mark.parametrize("output", ["markdown", "html", "sarif"])
def test_reports_name_the_guard(ops: CommandLine, output: str) -> None:
    ran = ops("plan", "--format", output)
    assert ran.code == ExitCode.DENIED, ran
    assert "acl-lockout" in ran.out
    assert "--allow-acl-lockout" in ran.out
    assert "--override-policy" not in ran.out


def test_history_shows_override(ops: CommandLine) -> None:
    assert ops("apply", "--yes", "--allow-acl-lockout").code == 0
    assert read(ops) == {DESCRIBE, MONITOR}
    assert "1 denial overridden" in ops("history").out
    (run_id, *_) = [run["run_id"] for run in json.loads(ops("history", "--format", "json").out)["runs"]]
    shown = ops("history", run_id).out
    assert "acl-lockout" in shown
    assert "--allow-acl-lockout" in shown
    assert "User:ops" in shown


def test_saved_plan_keeps_override(ops: CommandLine) -> None:
    assert ops("plan", "--allow-acl-lockout", "--out", "plan.json").code == 0
    assert ops("apply", "plan.json", "--yes").code == 0
    assert "1 denial overridden" in ops("history").out


@pytest.fixture
def plan_of_redundant_removal(ops: CommandLine) -> CommandLine:
    """A saved plan that removes a grant, which was redundant only when the plan was made."""
    ops.cluster.create_acls([parse_binding(ANYONE)])
    assert ops("plan", "--out", "plan.json").code == 0
    ops.cluster.delete_acls([parse_binding(ANYONE)])
    return ops


def test_apply_of_saved_plan_evaluates_guard_again(plan_of_redundant_removal: CommandLine) -> None:
    ops = plan_of_redundant_removal
    ops.topic("orders")
    ops.cluster.calls.clear()
    ran = ops("apply", "plan.json", "--yes")
    assert ran.code == ExitCode.DENIED, ran
    assert "denied by guard acl-lockout: The change takes ALTER on the cluster away from User:ops" in ran.out
    assert ops.cluster.requests() == []
    assert read(ops) == {ALTER, DESCRIBE, MONITOR}


def test_apply_of_saved_plan_with_denial_applies_the_rest(ops: CommandLine) -> None:
    ops.cluster.create_acls([parse_binding(ANYONE)])
    ops.topic("orders")
    assert ops("plan", "--out", "plan.json").code == 0
    ops.cluster.delete_acls([parse_binding(ANYONE)])
    assert ops("apply", "plan.json", "--yes").code == ExitCode.DENIED
    assert ops.topics == {"orders"}
    assert read(ops) == {ALTER, DESCRIBE, MONITOR}


def test_override_of_other_denial_does_not_permit_new_one(plan_of_redundant_removal: CommandLine) -> None:
    """The option was given for a plan in which it overrode nothing."""
    ops = plan_of_redundant_removal
    ops.cluster.create_acls([parse_binding(ANYONE)])
    assert ops("plan", "--allow-acl-lockout", "--out", "plan.json").code == 0
    ops.cluster.delete_acls([parse_binding(ANYONE)])
    assert ops("apply", "plan.json", "--yes").code == ExitCode.DENIED


def test_rollback_that_locks_out_is_denied_unless_permitted(ops: CommandLine) -> None:
    ran = ops("rollback", "--yes")
    assert ran.code == ExitCode.DENIED, ran
    assert "denied by guard acl-lockout" in ran.out
    assert read(ops) == {ALTER, DESCRIBE, MONITOR}
    ops.cluster.is_super_user = False
    ops("rollback", "--yes", "--allow-acl-lockout")
    assert ALTER not in read(ops)


def test_ad_hoc_removal_that_locks_out_is_denied_unless_permitted(ops: CommandLine) -> None:
    removal = ("acl", "remove", "--allow-principal", "User:ops", "--operation", "Alter", "--cluster", "--yes")
    assert ops(*removal).code == ExitCode.DENIED
    assert ops(*removal, "--allow-acl-lockout").code == 0
    assert read(ops) == {DESCRIBE, MONITOR}


def test_guard_cannot_be_overridden_like_a_policy(ops: CommandLine) -> None:
    ran = ops("plan", "--override-policy", "acl-lockout", "--reason", "because")
    assert ran.code == ExitCode.ERROR, ran
    assert "is a guard of kdeclare itself" in ran.err
    assert HINT in ran.err


def test_policy_cannot_have_the_name_of_a_guard(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/p.yaml", "Policy", "acl-lockout", rule="true", actions=["CREATE"])
    ran = kdeclare("validate")
    assert ran.code == ExitCode.ERROR, ran
    assert "is the name of a guard" in ran.out + ran.err
