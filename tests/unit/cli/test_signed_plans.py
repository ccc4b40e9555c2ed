"""``plan --sign`` and ``apply --require-signature``: who may sign is stated in the project file."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.core.provider.installed_providers import use_providers
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.test_applying_fleets import NAMES, FleetRunner, join_errors
from tests.unit.signatures.keys import make_openssh_key, make_pem_key

SERVERS = {"bootstrapServers": "memory:9092"}


@pytest.fixture
def signed(kdeclare: CommandLine) -> CommandLine:
    """A project with a topic, whose production environment requires a signature by ``key``."""
    line = make_openssh_key(kdeclare.folder / "key")
    write_project(kdeclare, line)
    kdeclare.topic("orders")
    return kdeclare


def write_project(
    kdeclare: CommandLine, *keys: str, file: str = "kdeclare.yaml", required: bool = True
) -> Path:
    environments = {"live": {**SERVERS, "signatures": {"required": required}}, "test": SERVERS}
    return kdeclare.write(
        file,
        "Project",
        "shop",
        environments=environments,
        defaultEnvironment="live",
        signatures={"keys": list(keys)},
    )


def test_signed_plan_is_shown_and_applied(signed: CommandLine) -> None:
    planned = signed("plan", "--out", "it.plan", "--sign", "key")
    assert planned.code == 0
    assert "signed and saved to it.plan" in planned.err
    shown = signed("show", "it.plan")
    assert "Signed by alice at 20" in shown.out
    assert "(verified)" in shown.out
    assert "Signed by alice at 20" in signed("show", "it.plan", "--format", "markdown").out
    assert signed("apply", "it.plan", "--yes").code == 0
    assert signed.topics == {"orders"}


def test_plan_id_does_not_depend_on_the_signature(signed: CommandLine) -> None:
    signed("plan", "--out", "it.plan", "--sign", "key")
    signed("plan", "--out", "unsigned.plan")
    document, unsigned = (
        json.loads((signed.folder / name).read_text()) for name in ("it.plan", "unsigned.plan")
    )
    assert document["plan_id"] == unsigned["plan_id"]
    assert document["signature"]["format"] == "sshsig"


def test_required_signature_denies_unsigned_plans_and_manifests(signed: CommandLine) -> None:
    signed("plan", "--out", "it.plan")
    for arguments in (("apply", "it.plan", "--yes"), ("apply", "--yes")):
        denied = signed(*arguments)
        assert denied.code == 3
        assert "signature-required" in denied.err or "signed" in denied.err
        assert "kdeclare plan --out FILE --sign KEY" in denied.err
    assert signed.topics == set()
    assert signed("apply", "--yes", "--env", "test").code == 0
    assert signed.topics == {"orders"}


def test_require_signature_applies_to_environments_that_do_not_require_it(signed: CommandLine) -> None:
    signed("plan", "--out", "it.plan", "--env", "test")
    denied = signed("apply", "it.plan", "--env", "test", "--yes", "--require-signature")
    assert denied.code == 3
    assert signed("apply", "--env", "test", "--yes", "--require-signature").code == 64
    signed("plan", "--out", "it.plan", "--env", "test", "--sign", "key")
    assert signed("apply", "it.plan", "--env", "test", "--yes", "--require-signature").code == 0


def test_plan_signed_with_unknown_key_is_denied(signed: CommandLine) -> None:
    make_openssh_key(signed.folder / "other")
    signed("plan", "--out", "it.plan", "--sign", "other")
    denied = signed("apply", "it.plan", "--yes")
    assert denied.code == 3
    assert "not a trusted key" in join_errors(denied)
    shown = signed("show", "it.plan")
    assert "(not verified)" in shown.out
    assert "not a trusted key" in shown.out


def test_changed_time_is_refused_and_shown_as_invalid(signed: CommandLine) -> None:
    signed("plan", "--out", "it.plan", "--sign", "key")
    document = json.loads((signed.folder / "it.plan").read_text())
    (signed.folder / "it.plan").write_text(json.dumps(document | {"created_at": "2020-01-01T00:00:00Z"}))
    refused = signed("apply", "it.plan", "--yes")
    assert refused.code == 1
    assert "Signature does not match the plan" in refused.err
    assert "INVALID SIGNATURE" in signed("show", "it.plan").out
    assert signed.topics == set()


def test_changed_plan_is_refused_before_its_signature(signed: CommandLine) -> None:
    signed("plan", "--out", "it.plan", "--sign", "key")
    text = (signed.folder / "it.plan").read_text()
    (signed.folder / "it.plan").write_text(text.replace("orders", "others"))
    refused = signed("apply", "it.plan", "--yes")
    assert refused.code == 1
    assert "does not match its plan_id" in join_errors(refused)


def test_key_from_environment_variable_signs(signed: CommandLine) -> None:
    key = (signed.folder / "key").read_text()
    signed.monkeypatch.setenv("KDECLARE_SIGNING_KEY", key)
    planned = signed("plan", "--out", "it.plan", "--sign", "${env.KDECLARE_SIGNING_KEY}")
    assert planned.code == 0
    body = key.splitlines()[2]
    written = [p.read_text() for p in signed.folder.rglob("*") if p.is_file() and p.name != "key"]
    assert not any(body in text for text in (planned.out, planned.err, *written))
    assert signed("apply", "it.plan", "--yes").code == 0


def test_manifests_cannot_refer_to_the_signing_key(signed: CommandLine) -> None:
    signed.monkeypatch.setenv("KDECLARE_SIGNING_KEY", "the key")
    signed.topic("leak", configs={"retention.ms": "${env.KDECLARE_SIGNING_KEY}"})
    refused = signed("validate")
    assert refused.code == 1
    assert "is the key that signs plans" in refused.out + refused.err
    assert "the key'" not in refused.out


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("missing", "The key file cannot be read: missing"),
        ("${env.NOT_SET}", "The environment variable NOT_SET is not set"),
        ("kdeclare.yaml", "neither a private key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0", "text of a key"),
    ],
)
def test_unusable_key_is_an_error_before_anything_is_planned(
    signed: CommandLine, key: str, words: str
) -> None:
    refused = signed("plan", "--out", "it.plan", f"--sign={key}")
    assert refused.code == 1
    assert words in join_errors(refused)
    assert "c2VjcmV0" not in refused.err + refused.out
    assert not (signed.folder / "it.plan").exists()


def test_sign_requires_out(signed: CommandLine) -> None:
    assert signed("plan", "--sign", "key").code == 64
    assert signed("rollback", "--sign", "key").code == 64


def test_key_must_also_be_trusted_by_the_base_branch(signed: CommandLine) -> None:
    """A pull request cannot add its own key, and cannot remove the requirement."""
    other = make_openssh_key(signed.folder / "other")
    key = (signed.folder / "key.pub").read_text().strip()
    base = write_project(signed, key, file="base.yaml")
    write_project(signed, key, other, required=False)
    signed.monkeypatch.setenv("KDECLARE_TRUSTED_PROJECT", str(base))
    signed("plan", "--out", "it.plan", "--sign", "other")
    assert signed("apply", "it.plan", "--yes").code == 3
    assert signed("apply", "--yes").code == 3
    signed("plan", "--out", "it.plan", "--sign", "key")
    assert signed("apply", "it.plan", "--yes").code == 0


def test_unreadable_base_trusts_no_key(signed: CommandLine) -> None:
    write_project(signed, (signed.folder / "key.pub").read_text().strip(), required=False)
    signed.monkeypatch.setenv("KDECLARE_TRUSTED_PROJECT", "missing.yaml")
    signed("plan", "--out", "it.plan", "--sign", "key")
    denied = signed("apply", "it.plan", "--yes")
    assert denied.code == 3
    assert "base branch" in join_errors(denied)


def test_keys_can_be_in_files(signed: CommandLine) -> None:
    pem = make_pem_key(signed.folder / "release.pem")
    line = (signed.folder / "key.pub").read_text()
    (signed.folder / "signers").write_text(f'# team\nbob@example.com valid-before="20200101" {line}\n{pem}')
    environment = {**SERVERS, "signatures": {"required": True, "files": ["signers"]}}
    signed.write("kdeclare.yaml", "Project", "shop", environments={"live": environment})
    signed("plan", "--out", "it.plan", "--sign", "key")
    denied = signed("apply", "it.plan", "--yes")
    assert denied.code == 3
    assert "the key of bob@example.com" in join_errors(denied)
    assert "expired at" in join_errors(denied)
    signed("plan", "--out", "it.plan", "--sign", "release.pem")
    assert signed("apply", "it.plan", "--yes").code == 0
    (signed.folder / "signers").unlink()
    refused = signed("apply", "it.plan", "--yes")
    assert refused.code == 1
    assert "File with trusted keys cannot be read" in refused.err


def test_malformed_key_in_project_file_is_an_error_with_position(signed: CommandLine) -> None:
    write_project(signed, "ssh-ed25519 nonsense")
    refused = signed("validate")
    assert refused.code == 1
    assert "kdeclare.yaml:" in refused.out + refused.err
    assert "is not a key of this type" in " ".join((refused.out + refused.err).split())


def test_saved_rollback_can_be_signed(signed: CommandLine) -> None:
    signed("plan", "--out", "it.plan", "--sign", "key")
    assert signed("apply", "it.plan", "--yes").code == 0
    assert signed("rollback", "--out", "undo.plan", "--sign", "key").code == 0
    assert signed("apply", "undo.plan", "--yes").code == 0
    assert signed.topics == set()


@pytest.fixture
def own_providers() -> Iterator[None]:
    """Forget the providers that tasks of a fleet command have chosen for this process."""
    yield
    use_providers(None)


def test_fleet_apply_requires_signature_of_every_plan(kdeclare: CommandLine, own_providers: None) -> None:
    fleet = FleetRunner(kdeclare)
    key = make_openssh_key(kdeclare.folder / "key")
    environments = {name: {"bootstrapServers": f"{name}:9092"} for name in NAMES}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments, signatures={"keys": [key]})
    kdeclare("fleet", "plan", "fleet.yaml", "--out", "plans", "--sign", "key")
    text = (kdeclare.folder / "plans" / "us-1.plan.json").read_text()
    fleet.plan("us-1")
    fleet.plan()
    denied = fleet.apply("--require-signature")
    assert denied.code == 3
    assert "has no signature" in join_errors(denied)
    assert fleet.applied_clusters == []
    kdeclare("fleet", "plan", "fleet.yaml", "--out", "plans", "--sign", "key")
    assert '"signature"' in text
    assert fleet.apply("--require-signature").code == 0
    assert fleet.applied_clusters == [*NAMES]


def test_fleet_apply_obeys_the_projects_requirement(kdeclare: CommandLine) -> None:
    fleet = FleetRunner(kdeclare)
    key = make_openssh_key(kdeclare.folder / "key")
    environments = {name: {"bootstrapServers": f"{name}:9092"} for name in NAMES}
    environments["us-1"]["signatures"] = {"required": True}  # type: ignore[assignment]
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments, signatures={"keys": [key]})
    fleet.plan()
    assert fleet.apply().code == 3
    assert fleet.applied_clusters == []


@pytest.mark.slow
def test_pinned_cluster_id_refuses_every_other_cluster(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    live_id = kdeclare.cluster.describe().id
    for cluster_id, code in ((live_id, 0), ("another-id", 1)):
        environment = {**SERVERS, "clusterId": cluster_id}
        kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"live": environment})
        for arguments in (
            ("plan",),
            ("apply", "--yes"),
            ("topic", "list"),
            ("status",),
            ("import", "--out", f"copy-{code}"),
            ("config", "describe", "--topic", "orders"),
            ("rollback", "--yes"),
        ):
            ran = kdeclare(*arguments)
            assert ran.code == code, (arguments, ran)
            assert ("is for cluster another-id" in join_errors(ran)) is bool(code), (arguments, ran)
        compared = f"{cluster_id} was not compared with the id of the cluster"
        assert compared in kdeclare("doctor").out  # no real broker answers here
