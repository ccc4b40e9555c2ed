"""The format of OpenSSH signatures (PROTOCOL.sshsig), and Ed25519 signatures in this format.

Signatures of other types of keys are made and verified by ``ssh-keygen``.
"""

import base64
import hashlib
from typing import TYPE_CHECKING

from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ED25519 = "ssh-ed25519"

_MAGIC = b"SSHSIG"
_VERSION = 1
_HASHES = ("sha256", "sha512")
_HASH = "sha512"


@dataclass(frozen=True, slots=True)
class SshSignature:
    """A signature with its public key.

    ``public_key`` and ``signature`` have the encoding of the SSH protocol.
    """

    public_key: bytes
    namespace: str
    reserved: bytes
    hash_algorithm: str
    signature: bytes

    @property
    def key_type(self) -> str:
        """The type of the public key, such as ``ssh-ed25519``."""
        return find_key_type(self.public_key)


def read_string(data: bytes, offset: int) -> tuple[bytes, int]:
    """Decode the SSH string at ``offset``. Return its content, and the offset after it. Raises ValueError."""
    end = offset + 4 + int.from_bytes(data[offset : offset + 4])
    if offset + 4 > len(data) or end > len(data):
        raise ValueError("it is cut off")
    return data[offset + 4 : end], end


def write_string(value: bytes) -> bytes:
    """Encode a string for the SSH protocol: its length in four bytes, then its content."""
    return len(value).to_bytes(4) + value


def find_key_type(public_key: bytes) -> str:
    """Return the type of an encoded public key. Raises ValueError."""
    return read_string(public_key, 0)[0].decode("ascii", "replace")


def compute_fingerprint(public_key: bytes) -> str:
    """Return the fingerprint of an encoded public key, as ``ssh-keygen -l`` shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(public_key).digest()).decode().rstrip("=")


def parse_sshsig(data: bytes) -> SshSignature:
    """Return the parts of a signature. Raises ValueError, with the reason, if it is malformed."""
    start = len(_MAGIC) + 4
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : start] != _VERSION.to_bytes(4):
        raise ValueError("it is not an OpenSSH signature of version 1")
    public_key, offset = read_string(data, start)
    namespace, offset = read_string(data, offset)
    reserved, offset = read_string(data, offset)
    hash_algorithm, offset = read_string(data, offset)
    signature, offset = read_string(data, offset)
    if offset != len(data):
        raise ValueError("it has extra bytes at the end")
    if hash_algorithm.decode("ascii", "replace") not in _HASHES:
        raise ValueError(f"its hash algorithm is not one of {', '.join(_HASHES)}")
    read_string(public_key, 0)
    read_string(signature, 0)
    return SshSignature(
        public_key, namespace.decode("utf-8", "replace"), reserved, hash_algorithm.decode(), signature
    )


def build_ed25519_blob(raw_key: bytes) -> bytes:
    """Encode an Ed25519 public key for the SSH protocol (RFC 8709)."""
    return write_string(ED25519.encode()) + write_string(raw_key)


def sign_ed25519(key: "Ed25519PrivateKey", namespace: str, message: bytes) -> bytes:
    """Return the signature of a message, with its public key, in OpenSSH format."""
    public_key = build_ed25519_blob(key.public_key().public_bytes_raw())
    signed = key.sign(_build_signed_data(namespace.encode(), b"", _HASH, message))
    return b"".join(
        (
            _MAGIC,
            _VERSION.to_bytes(4),
            write_string(public_key),
            write_string(namespace.encode()),
            write_string(b""),
            write_string(_HASH.encode()),
            write_string(write_string(ED25519.encode()) + write_string(signed)),
        )
    )


def verify_ed25519(signature: SshSignature, message: bytes) -> bool:
    """Return whether an Ed25519 key signed this message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key_type, offset = read_string(signature.public_key, 0)
        raw_key, key_end = read_string(signature.public_key, offset)
        algorithm, offset = read_string(signature.signature, 0)
        signed, end = read_string(signature.signature, offset)
        if (key_type, algorithm) != (ED25519.encode(), ED25519.encode()):
            return False
        if (key_end, end) != (len(signature.public_key), len(signature.signature)):
            return False
        data = _build_signed_data(
            signature.namespace.encode(), signature.reserved, signature.hash_algorithm, message
        )
        Ed25519PublicKey.from_public_bytes(raw_key).verify(signed, data)
    except (ValueError, InvalidSignature):
        return False
    return True


def _build_signed_data(namespace: bytes, reserved: bytes, hash_algorithm: str, message: bytes) -> bytes:
    """Return the data that the key signs. It contains the namespace, and only the hash of the message."""
    digest = hashlib.new(hash_algorithm, message).digest()
    parts = (namespace, reserved, hash_algorithm.encode(), digest)
    return _MAGIC + b"".join(map(write_string, parts))
