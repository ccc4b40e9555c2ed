"""Load the private key that signs plans. Messages never contain the key or its passphrase."""

import base64
import binascii
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NoReturn

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.engine.signatures.signature import NAMESPACE, PASSPHRASE_VARIABLE, SignMessage
from kdeclare.engine.signatures.ssh_keygen import sign_with_ssh_keygen
from kdeclare.engine.signatures.sshsig import ED25519, find_key_type, read_string, sign_ed25519

_OPENSSH = re.compile(r"-----BEGIN OPENSSH PRIVATE KEY-----(.*?)-----END OPENSSH PRIVATE KEY-----", re.DOTALL)
_PEM = re.compile(r"-----BEGIN (ENCRYPTED )?PRIVATE KEY-----.*-----END", re.DOTALL)
_PUBLIC = re.compile(r"(ssh|sk-ssh|ecdsa|sk-ecdsa)-\S+ \S+")
_OPENSSH_MAGIC = b"openssh-key-v1\0"


def load_signing_key(text: str, file: Path | None, environ: Mapping[str, str]) -> SignMessage:
    """Return a function that signs messages. Raises KdeclareError if the key cannot be used.

    text: a private key in PEM (PKCS#8) or OpenSSH format, or a public key whose private key is in an agent.
    file: the file with this text, which ssh-keygen needs for all keys but Ed25519; None if there is no file.
    environ: the environment variables, with the passphrase of a protected key in `PASSPHRASE_VARIABLE`.
    """
    pem, openssh = _PEM.search(text), _OPENSSH.search(text)
    if pem is not None:
        return _load_pem(text, environ.get(PASSPHRASE_VARIABLE), is_protected=bool(pem[1]))
    if openssh is not None:
        key_type, is_protected = _read_openssh_header(openssh[1])
        if key_type == ED25519 and not is_protected:
            return _load_openssh(text)
    elif not _PUBLIC.match(text):
        _refuse_key(
            "It is neither a private key in PEM (PKCS#8) or OpenSSH format, nor an OpenSSH public key.",
            "Make an Ed25519 key with 'ssh-keygen -t ed25519 -f FILE', and pass --sign FILE.",
        )
    if file is None:
        _refuse_key(
            "Only ssh-keygen can sign with this key, and it needs a key file instead of the text of the key.",
            "Pass the path of the key file.",
        )
    return partial(_sign_with_file, file, environ)


def _sign_with_file(file: Path, environ: Mapping[str, str], message: bytes) -> bytes:
    return sign_with_ssh_keygen(file, NAMESPACE, message, environ)


def _read_openssh_header(text: str) -> tuple[str, bool]:
    """Return the type of an OpenSSH private key (PROTOCOL.key), and whether a passphrase protects it."""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
        if not data.startswith(_OPENSSH_MAGIC):
            raise ValueError
        cipher, offset = read_string(data, len(_OPENSSH_MAGIC))
        _, offset = read_string(data, offset)
        _, offset = read_string(data, offset)
        return find_key_type(read_string(data, offset + 4)[0]), cipher != b"none"
    except (binascii.Error, ValueError):
        _refuse_key("Its content is malformed.", "Check that the key is complete.")


def _load_pem(text: str, passphrase: str | None, *, is_protected: bool) -> SignMessage:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if is_protected and not passphrase:
        _refuse_key("It is protected by a passphrase.", f"Put the passphrase into {PASSPHRASE_VARIABLE}.")
    try:
        key = load_pem_private_key(
            text.encode(), passphrase.encode() if is_protected and passphrase else None
        )
    except (ValueError, UnsupportedAlgorithm):
        if is_protected:
            _refuse_key(
                f"The passphrase in {PASSPHRASE_VARIABLE} is wrong, or the key is malformed.",
                f"Correct {PASSPHRASE_VARIABLE}.",
            )
        _refuse_key("Its content is malformed.", "Check that the key is complete.")
    if not isinstance(key, Ed25519PrivateKey):
        _refuse_key("A key in PEM must be an Ed25519 key.", "Use an Ed25519 key, or an OpenSSH key.")
    return partial(sign_ed25519, key, NAMESPACE)


def _load_openssh(text: str) -> SignMessage:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    try:
        key = load_ssh_private_key(text.encode(), None)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        _refuse_key("Its content is malformed.", "Check that the key is complete.")
    return partial(sign_ed25519, key, NAMESPACE)


def _refuse_key(detail: str, hint: str) -> NoReturn:
    raise KdeclareError(
        error("bad-signing-key", "The signing key cannot be used", detail, hint=hint)
    ) from None
