"""Signatures of plans: made with real keys, verified here and by ssh-keygen, and refused after any change."""

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.jsontypes import as_object, parse_json
from kdeclare.core.plans.plan import ClusterRef, Plan, PlanBase, Summary
from kdeclare.engine.planning.planfile import parse_plan_file, render_plan_file
from kdeclare.engine.signatures.signature import (
    NAMESPACE,
    PASSPHRASE_VARIABLE,
    SignedContent,
    SignMessage,
    build_message,
    sign_plan_text,
)
from kdeclare.engine.signatures.signing_key import load_signing_key
from kdeclare.engine.signatures.sshsig import build_ed25519_blob, sign_ed25519
from kdeclare.engine.signatures.trusted_keys import TrustedKey, parse_trusted_keys
from kdeclare.engine.signatures.verification import verify_signature
from tests.unit.signatures.keys import make_openssh_key, make_pem_key

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
PLAN = Plan("shop", "live", ClusterRef("c1", "eu"), PlanBase(None, 0), Summary(), (), ())


def sign_text(sign: SignMessage, plan: Plan = PLAN) -> str:
    return sign_plan_text(render_plan_file(plan, NOW)[0], sign, NOW)[0]


def read_signer(text: str, *key_lists: tuple[TrustedKey, ...], now: datetime = NOW) -> str:
    """Return the name of the signer of a plan file. Raises KdeclareError."""
    names: list[str] = []

    def check(content: SignedContent, name: str) -> None:
        names.append(verify_signature(content, key_lists, name, now).name)

    parse_plan_file(text, "it.plan", check)
    return names[0]


def read_refusal(text: str, *key_lists: tuple[TrustedKey, ...], now: datetime = NOW) -> KdeclareError:
    with pytest.raises(KdeclareError) as caught:
        read_signer(text, *key_lists, now=now)
    return caught.value


@cache
def make_signer(seed: int = 1) -> tuple[SignMessage, tuple[TrustedKey, ...]]:
    """Return a function that signs, and the list of its public key only."""
    key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
    public_key = build_ed25519_blob(key.public_key().public_bytes_raw())
    return lambda message: sign_ed25519(key, NAMESPACE, message), (TrustedKey("alice", public_key),)


@pytest.mark.parametrize("key_type", ["ed25519", "rsa", "ecdsa"])
def test_plan_signed_with_openssh_key_is_accepted(tmp_path: Path, key_type: str) -> None:
    public_line = make_openssh_key(tmp_path / "key", key_type)
    sign = load_signing_key((tmp_path / "key").read_text(), tmp_path / "key", {"PATH": "/usr/bin:/bin"})
    text = sign_text(sign)
    assert read_signer(text, parse_trusted_keys(public_line)) == "alice"
    changed = text.replace('"created_at": "2026-01-31', '"created_at": "2026-01-30')
    assert changed != text
    assert read_refusal(changed, parse_trusted_keys(public_line)).diagnostics[0].code == "signature-invalid"


@pytest.mark.slow
@pytest.mark.parametrize("key_type", ["ed25519", "rsa"])
def test_openssh_key_with_passphrase_signs_with_the_right_passphrase(tmp_path: Path, key_type: str) -> None:
    public_line = make_openssh_key(tmp_path / "key", key_type, "correct horse")
    key, environ = (tmp_path / "key").read_text(), {"PATH": "/usr/bin:/bin"}
    sign = load_signing_key(key, tmp_path / "key", environ | {PASSPHRASE_VARIABLE: "correct horse"})
    assert read_signer(sign_text(sign), parse_trusted_keys(public_line)) == "alice"
    with pytest.raises(KdeclareError) as caught:
        load_signing_key(key, tmp_path / "key", environ | {PASSPHRASE_VARIABLE: "wrong horse"})(b"text")
    assert PASSPHRASE_VARIABLE in f"{caught.value.diagnostics[0].detail}{caught.value.diagnostics[0].hint}"
    assert "wrong horse" not in repr(caught.value.diagnostics)


@pytest.mark.parametrize("passphrase", [None, "correct horse"])
def test_plan_signed_with_pem_key_is_accepted(tmp_path: Path, passphrase: str | None) -> None:
    public_pem = make_pem_key(tmp_path / "key.pem", passphrase)
    environ = {} if passphrase is None else {PASSPHRASE_VARIABLE: passphrase}
    sign = load_signing_key((tmp_path / "key.pem").read_text(), None, environ)
    (key,) = parse_trusted_keys(f"# the release key\n{public_pem}")
    assert read_signer(sign_text(sign), (key,)) == key.fingerprint


def test_ssh_keygen_verifies_signature_of_pem_key(tmp_path: Path) -> None:
    """Reviewers can verify without kdeclare."""
    sign, (key,) = make_signer()
    signature = as_object(as_object(parse_json(sign_text(sign)))["signature"])
    plan_id = render_plan_file(PLAN, NOW)[1]
    lines = ("-----BEGIN SSH SIGNATURE-----", str(signature["value"]), "-----END SSH SIGNATURE-----", "")
    (tmp_path / "it.sig").write_text("\n".join(lines))
    command = ["ssh-keygen", "-Y", "check-novalidate", "-n", "kdeclare-plan", "-s", str(tmp_path / "it.sig")]
    message = build_message(plan_id, "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z")
    assert (
        key.fingerprint
        in subprocess.run(command, input=message, capture_output=True, check=True).stdout.decode()
    )
    assert subprocess.run(command, input=message + b" ", capture_output=True, check=False).returncode != 0


def test_agent_signs_with_public_key_file(tmp_path: Path) -> None:
    public_line = make_openssh_key(tmp_path / "key")
    agent = subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(tmp_path / "agent")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert agent.stdout is not None
        agent.stdout.readline()  # it listens now
        environ = {"PATH": "/usr/bin:/bin", "SSH_AUTH_SOCK": str(tmp_path / "agent")}
        subprocess.run(["ssh-add", "-q", str(tmp_path / "key")], env=environ, check=True)
        (tmp_path / "key").unlink()
        sign = load_signing_key(public_line, tmp_path / "key.pub", environ)
        assert read_signer(sign_text(sign), parse_trusted_keys(public_line)) == "alice"
    finally:
        agent.kill()
        agent.wait()


SIGNED = sign_text(make_signer()[0]).encode()


@pytest.mark.slow
@given(st.integers(0, len(SIGNED) - 1), st.integers(1, 255))
@example(SIGNED.index(b"2026"), 1)
@example(SIGNED.index(b'"}', SIGNED.index(b'"signature"')) - 1, 1)
@settings(max_examples=600)
def test_any_changed_byte_is_refused_unless_the_content_stays_the_same(position: int, flips: int) -> None:
    """White space between the fields is not content."""
    changed = bytearray(SIGNED)
    changed[position] ^= flips
    try:
        text = changed.decode()
    except UnicodeDecodeError:
        return  # `load_plan` refuses it
    try:
        read_signer(text, make_signer()[1])
    except KdeclareError:
        return
    assert json.loads(text) == json.loads(SIGNED)


def test_unsigned_plan_is_denied() -> None:
    refusal = read_refusal(render_plan_file(PLAN, NOW)[0], make_signer()[1])
    assert (refusal.exit_code, refusal.diagnostics[0].code) == (ExitCode.DENIED, "signature-required")


def test_signature_of_another_plan_is_invalid() -> None:
    sign, keys = make_signer()
    lines = sign_text(sign).splitlines(keepends=True)
    other = Plan("shop", "live", ClusterRef("c2", "eu"), PlanBase(None, 0), Summary(), (), ())
    other_lines = sign_text(sign, other).splitlines(keepends=True)
    assert lines[4].startswith('"signature"')
    lines[4] = other_lines[4]
    refusal = read_refusal("".join(lines), keys)
    assert (refusal.exit_code, refusal.diagnostics[0].code) == (ExitCode.ERROR, "signature-invalid")


def test_signature_with_another_key_is_denied() -> None:
    refusal = read_refusal(sign_text(make_signer(2)[0]), make_signer()[1])
    assert (refusal.exit_code, refusal.diagnostics[0].code) == (ExitCode.DENIED, "untrusted-signature")


def test_key_must_be_in_all_lists() -> None:
    sign, keys = make_signer()
    other_keys = make_signer(2)[1]
    assert read_signer(sign_text(sign), keys, (*other_keys, *keys)) == "alice"
    assert read_refusal(sign_text(sign), keys, other_keys).exit_code is ExitCode.DENIED
    assert read_refusal(sign_text(sign), keys, ()).diagnostics[0].code == "no-trusted-keys"
    assert read_refusal(sign_text(sign)).diagnostics[0].code == "no-trusted-keys"


def test_signature_for_another_purpose_is_invalid() -> None:
    """A signature of a git commit or a file with the same key is not a signature of a plan."""
    key = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
    text = sign_text(lambda message: sign_ed25519(key, "git", message))
    assert read_refusal(text, make_signer()[1]).diagnostics[0].code == "signature-invalid"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ('valid-before="20260131Z"', "expired at 2026-01-31T00:00:00"),
        ('valid-before="202601311159Z"', "expired"),
        ('valid-after="20260201Z"', "is valid only after"),
        ('namespaces="git,file"', "is not trusted for the namespace"),
        ('namespaces="git,kdeclare-*",valid-before="20270101Z",valid-after="20260131115959Z"', None),
        ("", None),
    ],
)
def test_options_of_allowed_signers_limit_the_key(options: str, reason: str | None, tmp_path: Path) -> None:
    line = make_openssh_key(tmp_path / "key")
    sign = load_signing_key((tmp_path / "key").read_text(), None, {})
    keys = parse_trusted_keys(f"bob@example.com,carol {options} {line}")
    if reason is None:
        assert read_signer(sign_text(sign), keys) == "bob@example.com,carol"
    else:
        refusal = read_refusal(sign_text(sign), keys)
        assert refusal.exit_code is ExitCode.DENIED
        assert reason in refusal.diagnostics[0].detail


def test_key_that_expires_later_is_refused_later() -> None:
    sign, (key,) = make_signer()
    limited = (TrustedKey("alice", key.public_key, valid_before=NOW + timedelta(hours=1)),)
    assert read_signer(sign_text(sign), limited) == "alice"
    assert read_refusal(sign_text(sign), limited, now=NOW + timedelta(hours=2)).exit_code is ExitCode.DENIED


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("alice", "line 1: it is not an OpenSSH public key"),
        ("\n# key\nssh-ed25519 AAAA alice", "line 3: the text after 'ssh-ed25519' is not a key"),
        ("alice cert-authority {key}", "the option 'cert-authority' is not supported"),
        ('alice valid-before="tomorrow" {key}', "'tomorrow' is not a time"),
        ("ssh-rsa {body}", "the text after 'ssh-rsa' is not a key of this type"),
        ("ssh-ed25519-cert-v01@openssh.com {body}", "certificates are not supported"),
        (
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
            "a public key in PEM format is malformed",
        ),
    ],
)
def test_malformed_list_of_keys_is_an_error(text: str, reason: str, tmp_path: Path) -> None:
    line = make_openssh_key(tmp_path / "key")
    with pytest.raises(ValueError, match=reason.replace("(", r"\(")):
        parse_trusted_keys(text.format(key=line, body=line.split()[1]))


@pytest.mark.parametrize(
    "change",
    [
        lambda document: 5,
        lambda document: {**document, "extra": 1},
        lambda document: {**document, "format": "pgp"},
        lambda document: {**document, "key": "SHA256:" + "A" * 43},
        lambda document: {**document, "value": "!"},
        lambda document: {**document, "value": "AAAA"},
        lambda document: {**document, "value": document["value"][:-4]},
    ],
)
def test_malformed_signature_is_refused_without_verification(
    change: Callable[[dict[str, str]], object],
) -> None:
    document = json.loads(SIGNED)
    document["signature"] = change(document["signature"])
    with pytest.raises(KdeclareError) as caught:
        parse_plan_file(json.dumps(document), "it.plan")
    assert caught.value.diagnostics[0].code == "signature-invalid"


def test_missing_ssh_keygen_is_reported_with_advice(tmp_path: Path) -> None:
    make_openssh_key(tmp_path / "key", "ecdsa")
    sign = load_signing_key((tmp_path / "key").read_text(), tmp_path / "key", {"PATH": str(tmp_path)})
    with pytest.raises(KdeclareError) as caught:
        sign(b"text")
    assert caught.value.diagnostics[0].code == "no-ssh-keygen"
    assert "Ed25519" in caught.value.diagnostics[0].hint


@pytest.mark.parametrize("text", ["", "secret words", "-----BEGIN RSA PRIVATE KEY-----\nsecret\n"])
def test_text_that_is_not_a_key_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(KdeclareError) as caught:
        load_signing_key(text, Path("key"), {})
    assert caught.value.diagnostics[0].code == "bad-signing-key"
    assert "secret" not in repr(caught.value.diagnostics)
