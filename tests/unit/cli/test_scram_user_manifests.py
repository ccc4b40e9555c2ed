"""Invalid ScramUser manifests: errors offline with position, and never the password (P-SCR-02, P-SCR-04)."""

import re
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from kdeclare.providers.kafka.scram_user.kind import name_password_variables
from kdeclare.providers.kafka.scram_user.spec import (
    DeclaredCredential,
    ScramUserBody,
    bind_scram_user,
    dump_scram_user,
)
from tests.unit.cli.command_line import CommandLine

DOCUMENT = """apiVersion: kdeclare/v1
kind: ScramUser
metadata: {{name: {user}}}
spec:
  mechanisms:
    {credential}
"""
ROOT = Path(__file__).parents[3]
GOOD = "password: '${env.P}'"
BAD = {
    "few": (f"SCRAM-SHA-512: {{{GOOD}, iterations: 4095}}", "6:55", "brokers accept 4096 to 16384"),
    "many": (f"SCRAM-SHA-512: {{{GOOD}, iterations: 16385}}", "6:55", "brokers accept 4096 to 16384"),
    "text": (f"SCRAM-SHA-512: {{{GOOD}, iterations: many}}", "6:55", "whole number"),
    "sha1": (f"SCRAM-SHA-1: {{{GOOD}}}", "6:5", "Did you mean 'SCRAM-SHA-512'?"),
    "misspelt": (f"SCRAM-SHA512: {{{GOOD}}}", "6:5", "Did you mean 'SCRAM-SHA-512'?"),
    "empty": ("SCRAM-SHA-512: {password: ''}", "6:31", "is empty"),
    "missing": ("SCRAM-SHA-512: {iterations: 5000}", "6:20", "password"),
    "number": ("SCRAM-SHA-512: {password: 0123}", "6:31", "is octal in YAML 1.1"),
    "none": ("{}", "6:5", "declares no mechanism"),
}


def write(kdeclare: CommandLine, credential: str, user: str = "a") -> None:
    path = kdeclare.folder / "manifests" / f"{user}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(DOCUMENT.format(user=user, credential=credential))
    kdeclare.monkeypatch.setenv("P", "correct horse battery")


@pytest.mark.parametrize("wrong", BAD)
def test_validate_rejects_impossible_credential_with_position(kdeclare: CommandLine, wrong: str) -> None:
    """P-SCR-04."""
    credential, place, message = BAD[wrong]
    write(kdeclare, credential)
    result = kdeclare("validate")
    output = " ".join((result.out + result.err).split())
    assert result.code == ExitCode.ERROR
    assert f"manifests/a.yaml:{place}" in output
    assert message in output
    assert "0123" not in output
    assert kdeclare.cluster.calls == []


def test_password_is_in_no_output_or_file(kdeclare: CommandLine) -> None:
    """P-SCR-02."""
    write(kdeclare, f"SCRAM-SHA-512: {{{GOOD}}}")
    outputs = [
        kdeclare("validate"),
        kdeclare("plan", "--out", "it.plan"),
        kdeclare("show", "it.plan"),
        kdeclare("show", "it.plan", "--format", "json"),
        kdeclare("apply", "it.plan", "--yes"),
        kdeclare("history"),
    ]
    assert {result.code for result in outputs} == {ExitCode.OK}
    text = "".join(result.out + result.err for result in outputs)
    assert "(sensitive)" in text
    files = [path for path in kdeclare.folder.rglob("*") if path.is_file()]
    assert any(path.name == "state.json" for path in files)
    for content in (text, *(path.read_text() for path in files)):
        assert "correct horse" not in content
    assert kdeclare.cluster.can_log_in("a", Mechanism.SHA_512, "correct horse battery")


def test_literal_password_can_be_planned_but_not_saved(kdeclare: CommandLine) -> None:
    """P-SCR-02."""
    write(kdeclare, "SCRAM-SHA-512: {password: in-the-open}")
    plan = kdeclare("plan")
    assert "literal-secret" in plan.out + plan.err or "Secret in a manifest" in plan.out + plan.err
    saved = kdeclare("plan", "--out", "it.plan")
    assert saved.code == ExitCode.ERROR
    assert not (kdeclare.folder / "it.plan").exists()
    assert "in-the-open" not in plan.out + plan.err + saved.out + saved.err


@pytest.mark.parametrize("more", [{}, {"verify_login": True, "prevent_destroy": True, "adopt": True}])
def test_body_round_trips_as_plain_data_without_password(more: dict[str, Any]) -> None:
    credentials = {
        Mechanism.SHA_256: DeclaredCredential(Secret("", "${env.P}", "hash-1")),
        Mechanism.SHA_512: DeclaredCredential(Secret("", None, "hash-2"), 8192),
    }
    body = ScramUserBody(credentials, **more)
    assert bind_scram_user(dump_scram_user(body)) == body


def test_import_writes_references_to_fill_in(kdeclare: CommandLine) -> None:
    write(kdeclare, f"SCRAM-SHA-512: {{{GOOD}}}\n    SCRAM-SHA-256: {{{GOOD}}}")
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    result = kdeclare("import", "--include-declared", "--out", "imported")
    assert result.code == ExitCode.OK, result.err
    (path,) = (kdeclare.folder / "imported").rglob("*.yaml")
    text = path.read_text()
    assert text.count("password: ${env.A_PASSWORD}") == 2
    assert "SCRAM-SHA-256" in text
    assert "Set these environment variables before you plan: A_PASSWORD." in result.err


def test_plan_of_imported_users_shows_no_changes_once_their_variables_are_set(kdeclare: CommandLine) -> None:
    for user in ("alice", "bob"):
        write(kdeclare, f"SCRAM-SHA-512: {{{GOOD}}}", user)
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    assert kdeclare("import", "--include-declared", "--out", "imported").code == ExitCode.OK
    ran = kdeclare("plan", "imported", "--state", "other", "--detailed-exitcode")
    assert ran.code == ExitCode.ERROR
    assert "ALICE_PASSWORD" in ran.err
    assert "BOB_PASSWORD" in ran.err
    kdeclare.monkeypatch.setenv("ALICE_PASSWORD", "secret of alice")
    kdeclare.monkeypatch.setenv("BOB_PASSWORD", "secret of bob")
    ran = kdeclare("plan", "imported", "--state", "other", "--detailed-exitcode")
    assert ran.code == ExitCode.OK
    assert "No changes." in ran.out
    assert "Password not verified" in ran.out


def test_users_have_different_password_variables() -> None:
    users = ["a.b", "a-b", "A_B", "a_b_2", "7up", "é", "_", "x"]
    variables = name_password_variables(users)
    assert set(variables) == set(users)
    assert len(set(variables.values())) == len(users)
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*_PASSWORD", name) for name in variables.values())
    assert variables["x"] == "X_PASSWORD"
    assert variables["7up"] == "USER_7UP_PASSWORD"
    assert variables == name_password_variables(reversed(users))


POLICY = """apiVersion: kdeclare/v1
kind: Policy
metadata: {name: strong-credentials}
spec:
  selector: {kind: ScramUser}
  actions: [CREATE, MODIFY]
  rule: >-
    after.mechanisms.all(name, name == 'SCRAM-SHA-512' && after.mechanisms[name].iterations >= 8192)
  message: Users have SCRAM-SHA-512 only, with at least 8,192 iterations.
"""


@pytest.mark.parametrize(
    ("credential", "code"),
    [
        (f"SCRAM-SHA-512: {{{GOOD}, iterations: 8192}}", ExitCode.OK),
        (f"SCRAM-SHA-512: {{{GOOD}}}", ExitCode.DENIED),
        (f"SCRAM-SHA-256: {{{GOOD}, iterations: 8192}}", ExitCode.DENIED),
    ],
)
def test_policy_limits_mechanisms_and_iterations(
    kdeclare: CommandLine, credential: str, code: ExitCode
) -> None:
    """The policy is the one in docs/scram-users.md."""
    assert POLICY in (ROOT / "docs" / "scram-users.md").read_text()
    write(kdeclare, credential)
    (kdeclare.folder / "manifests" / "policy.yaml").write_text(POLICY)
    assert kdeclare("plan").code == code
