"""Encrypt the objects of a shared state before they reach the storage (AES-256-GCM).

An encrypted object is a line with the id of the encryption key, a random nonce, and the encrypted content.
The name of the object is authenticated, too, so that kdeclare detects swapped objects.
"""

import base64
import hashlib
import secrets
from collections.abc import Iterable, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.storage.conditional_objects import ConditionalObjects, ObjectVersion, StoredObject

_HEADER = b"kdeclare-encrypted "
_KEY_BYTES = 32
_NONCE_BYTES = 12
_TAG_BYTES = 16
_ID_LENGTH = 16
_OVERHEAD = len(_HEADER) + _ID_LENGTH + 1 + _NONCE_BYTES + _TAG_BYTES


@dataclass(frozen=True, slots=True)
class EncryptionKey:
    """A key of 256 bits. id: identifies the key without revealing it."""

    id: str
    cipher: AESGCM


def parse_encryption_key(text: str, reference: str) -> EncryptionKey:
    """Decode a key: 32 bytes in Base64. reference: where the key comes from, for messages.

    Raises KdeclareError for any other text.
    """
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise KdeclareError(
            error(
                "state-key",
                "Encryption key of the state cannot be used",
                f"The value of '{reference}' is not a Base64-encoded key of 32 bytes.",
                hint="Create a key with `openssl rand -base64 32`. Only kdeclare should be able to read it.",
            )
        )
    return EncryptionKey(hashlib.sha256(b"kdeclare state key" + key).hexdigest()[:_ID_LENGTH], AESGCM(key))


class EncryptedObjects:
    """`ConditionalObjects` with encrypted content. The storage cannot read it, or change it undetected.

    The storage still sees the keys of the objects: the names of projects and environments, ids of runs, and
    hashes of the parts of large documents.
    """

    def __init__(self, objects: ConditionalObjects, keys: Sequence[EncryptionKey]) -> None:
        """Encrypt with the first key, and decrypt with any key. `close` also closes ``objects``."""
        self._objects = objects
        self._key = keys[0]
        self._keys = {key.id.encode(): key for key in keys}

    @property
    def max_object_bytes(self) -> int:
        """See `ConditionalObjects.max_object_bytes`."""
        return self._objects.max_object_bytes - _OVERHEAD

    def get(self, key: str) -> StoredObject | None:
        """See `ConditionalObjects.get`. Raises KdeclareError if the object cannot be decrypted."""
        stored = self._objects.get(key)
        return None if stored is None else StoredObject(self._decrypt(key, stored.data), stored.version)

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """See `ConditionalObjects.list_keys`."""
        return self._objects.list_keys(prefix)

    def create(self, key: str, data: bytes) -> ObjectVersion:
        """See `ConditionalObjects.create`."""
        return self._objects.create(key, self._encrypt(key, data))

    def replace(self, key: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        """See `ConditionalObjects.replace`."""
        return self._objects.replace(key, self._encrypt(key, data), version)

    def delete(self, keys: Iterable[str]) -> None:
        """See `ConditionalObjects.delete`."""
        self._objects.delete(keys)

    def get_location(self, key: str) -> str:
        """See `ConditionalObjects.get_location`."""
        return self._objects.get_location(key)

    def close(self) -> None:
        """See `ConditionalObjects.close`."""
        self._objects.close()

    def _encrypt(self, key: str, data: bytes) -> bytes:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        header = _HEADER + self._key.id.encode() + b"\n"
        return header + nonce + self._key.cipher.encrypt(nonce, data, key.encode())

    def _decrypt(self, key: str, data: bytes) -> bytes:
        if not data.startswith(_HEADER):
            raise self._build_error(key, "it is not encrypted", "Copy it with `kdeclare state migrate`.")
        key_id, _, rest = data[len(_HEADER) :].partition(b"\n")
        found = self._keys.get(key_id)
        if found is None:
            raise self._build_error(
                key,
                f"it is encrypted with another key ({key_id[:_ID_LENGTH].decode(errors='replace')})",
                "Add the earlier key to the `encrypt` option of the state's location, after the new key.",
            )
        try:
            return found.cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], key.encode())
        except (InvalidTag, ValueError):
            raise self._build_error(
                key, "it was changed, or moved from another location", "Restore the object from a backup."
            ) from None

    def _build_error(self, key: str, reason: str, hint: str) -> KdeclareError:
        location = self._objects.get_location(key)
        return KdeclareError(
            error("state-encryption", "The state cannot be decrypted", f"{location}: {reason}.", hint=hint)
        )
