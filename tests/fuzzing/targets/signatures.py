"""Signatures: lists of trusted keys, and signatures in the format of OpenSSH."""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kdeclare.engine.signatures.signature import NAMESPACE
from kdeclare.engine.signatures.sshsig import build_ed25519_blob, parse_sshsig, sign_ed25519, verify_ed25519
from kdeclare.engine.signatures.trusted_keys import parse_trusted_keys
from tests.fuzzing.mutations import mutate_bytes
from tests.fuzzing.target import Target

_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def read_trusted_keys(data: bytes) -> None:
    """Parse a list of keys, and ask whether each may sign plans now."""
    for key in parse_trusted_keys(data.decode("utf-8", "replace")):
        key.explain_refusal(NAMESPACE, _NOW)
        assert key.fingerprint


def read_sshsig(data: bytes) -> None:
    """Parse and verify a signature."""
    signature = parse_sshsig(data)
    assert signature.key_type is not None
    if verify_ed25519(signature, b"message"):
        assert data == make_signatures()[0]


def make_keys() -> Sequence[bytes]:
    """Return lists of keys in all formats."""
    public = _KEY.public_key()
    line = b"ssh-ed25519 " + base64.b64encode(build_ed25519_blob(public.public_bytes_raw()))
    limits = b'namespaces="kdeclare*,git",valid-after="20250101",valid-before="20270101120000Z" '
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return [line + b" alice\n", b"alice " + line, b'"alice b" ' + limits + line + b"\n# comment\n", pem]


def make_signatures() -> Sequence[bytes]:
    """Return a valid signature, and one for another purpose."""
    return [sign_ed25519(_KEY, NAMESPACE, b"message"), sign_ed25519(_KEY, "git", b"other")]


TARGETS = (
    Target("trusted-keys", read_trusted_keys, make_keys, mutate_bytes, (ValueError,)),
    Target("sshsig", read_sshsig, make_signatures, mutate_bytes, (ValueError,)),
)
