"""Hashes of secrets, which plans and states store to detect changed values (docs/decisions/0021).

A hash of the form ``pbkdf2$<salt>$<hex>`` is intentionally slow to compute. A hash of the form ``hmac$<key
id>$<salt>$<hex>`` uses a key that no file contains. To compare a value with a stored hash, the value is
hashed with the salt and key of the stored hash. Values can therefore also be compared with hashes from
earlier versions of kdeclare.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK

KEY_VARIABLE = "KDECLARE_SECRET_KEY"
"""The environment variable with the key for new hashes. The key protects secrets against guessing."""
OLD_KEY_VARIABLE = "KDECLARE_OLD_SECRET_KEY"
"""The environment variable with the previous key.

kdeclare uses this key to compare old hashes until it replaces them.
"""
KEY_MISSING = "secret-key-missing"
"""The error code if there are hashes made with a key, but no key is set."""

OTHER_KEY = "secret-key-changed"
"""The error code if a hash was made with a key that is not set."""

_ITERATIONS = 100_000  # about 25 ms
_SALT_LENGTH = 32
"""The number of hexadecimal digits of a salt. Salts of version 0.1 have 16 digits."""
_SHORTEST_KEY = 16
_MARK_LENGTH = 8


class _KeyRing:
    """The keys of this process, by id. A hash that was made with a key contains the id of the key."""

    def __init__(self) -> None:
        self._keys: dict[str, bytes] = {}

    def add(self, key: str) -> str:
        """Store a key and return its id."""
        raw = _encode_text(key)
        key_id = hmac.digest(raw, b"kdeclare key id", "sha256").hex()[:8]
        self._keys[key_id] = raw
        SCRUBBER.register(key)
        return key_id

    @property
    def is_empty(self) -> bool:
        """Whether no key is set."""
        return not self._keys

    def find(self, key_id: str) -> bytes | None:
        """Return the key with this id; None if the key is not set."""
        return self._keys.get(key_id)


_KEYS = _KeyRing()


@dataclass(frozen=True, slots=True)
class SecretHasher:
    """Creates hashes of secrets.

    scope: an input of every salt. This is the lineage of the state that the secrets belong to, or a
        substitute before the state exists.
    key_id: the id of the key to use; None to use PBKDF2 without a key.
    """

    scope: str
    key_id: str | None = None

    def make_hash(self, resource: str, key: str, value: str) -> str:
        """Return the hash of a config's value.

        Two configs with the same value have different hashes.
        """
        salt_input = f"kdeclare/2/{self.scope}/{resource}/{key}"
        salt = hashlib.sha256(salt_input.encode()).hexdigest()[:_SALT_LENGTH]
        return _hash_with(f"pbkdf2${salt}" if self.key_id is None else f"hmac${self.key_id}${salt}", value)

    def is_current(self, stored_hash: str) -> bool:
        """Whether a hash has the format of new hashes. Its salt can still belong to a different scope."""
        scheme, *key_id, salt, _ = stored_hash.split("$")
        return (scheme, key_id) == self._scheme and len(salt) == _SALT_LENGTH

    @property
    def _scheme(self) -> tuple[str, list[str]]:
        return ("pbkdf2", []) if self.key_id is None else ("hmac", [self.key_id])


def read_keys(environ: Mapping[str, str]) -> str | None:
    """Read the keys from environment variables.

    Return the id of the key for new hashes; None if no key is set.

    Raises KdeclareError if a key is too short.
    """
    given_keys = {name: environ.get(name, "").strip() for name in (KEY_VARIABLE, OLD_KEY_VARIABLE)}
    ids = {name: _KEYS.add(_validate_key(name, key)) for name, key in given_keys.items() if key}
    return ids.get(KEY_VARIABLE)


def require_key(hashes: Iterable[str]) -> None:
    """Raise KdeclareError if any of the hashes was made with a key, and no key is set."""
    incomparable = [known for known in hashes if not can_compare(known)] if _KEYS.is_empty else []
    if not incomparable:
        return
    subject = (
        f"{len(incomparable):,} hashes of secrets were"
        if len(incomparable) > 1
        else "The hash of a secret was"
    )
    raise KdeclareError(
        error(
            KEY_MISSING,
            "Key for secret hashes is missing",
            f"{subject} computed with a key, but {KEY_VARIABLE} is not set.",
            hint=f"Set {KEY_VARIABLE} to that key. If you have lost the key, set {KEY_VARIABLE} to a new "
            "key; kdeclare then sets all secrets again. To replace a key that you still have, set "
            f"{KEY_VARIABLE} to the new key and {OLD_KEY_VARIABLE} to the old key.",
        )
    )


def _validate_key(name: str, key: str) -> str:
    if len(key) < _SHORTEST_KEY:
        raise KdeclareError(
            error(
                "weak-key",
                "Key for secret hashes is too short",
                f"{name} has {len(key)} characters; at least {_SHORTEST_KEY} are required.",
                hint="Generate a random key with: openssl rand -hex 32",
            )
        )
    return key


def can_compare(stored_hash: str) -> bool:
    """Whether a value can be compared with a hash: the hash needs no key, or the key is set."""
    scheme, *fields = stored_hash.split("$")
    return scheme != "hmac" or _KEYS.find(fields[0]) is not None


def hash_like(stored_hash: str, value: str) -> str | None:
    """Return the hash of ``value`` with the salt and key of ``stored_hash``; None if the key is not set."""
    return _hash_with(stored_hash.rpartition("$")[0], value) if can_compare(stored_hash) else None


def is_hash_of(stored_hash: str, value: str) -> bool:
    """Whether ``stored_hash`` is the hash of ``value``. If the key of the hash is not set, return False."""
    computed = hash_like(stored_hash, value)
    return computed is not None and hmac.compare_digest(computed, stored_hash)


def mark_value(place: str, key: str, value: str, known_hashes: Sequence[str]) -> str:
    """Return a string that represents a secret in views. Different secrets have different strings.

    place, key: the resource and the key of the setting.
    known_hashes: the hashes of possible values of the secret. If the secret matches one of these hashes, the
        result equals the result of `mark_hash` for this hash.

    Raises KdeclareError if one of the known hashes was made with a key, and no key is set.
    """
    require_key(known_hashes)
    matching_hash = next((one for one in known_hashes if is_hash_of(one, value)), None)
    comparable_hash = next((hash_like(one, value) for one in known_hashes if can_compare(one)), None)
    return mark_hash(matching_hash or comparable_hash or SecretHasher(place).make_hash(place, key, value))


def mark_hash(secret_hash: str) -> str:
    """Return the string that represents a secret in views, given the hash of the secret.

    The string contains the end of the hash, which is long enough to detect a change of the secret and too
    short to test guesses.
    """
    return f"{SENSITIVE_MASK} #{secret_hash[-_MARK_LENGTH:]}"


def is_mark(value: JsonValue) -> bool:
    """Whether a value in a view represents a secret."""
    return isinstance(value, str) and value.startswith(SENSITIVE_MASK)


@lru_cache(maxsize=65_536)
def _hash_with(prefix: str, value: str) -> str:
    """Return the hash of a value. prefix: the scheme, the key id (for HMAC) and the salt.

    Results are cached, because commands that watch workers hash the same values often.
    """
    scheme, *key_id, salt = prefix.split("$")
    if scheme == "hmac":
        key = _KEYS.find(key_id[0])
        assert key is not None, "see can_compare"
        return f"{prefix}${hmac.digest(key, _encode_text(f'{salt}/{value}'), 'sha256').hex()}"
    return f"{prefix}${hashlib.pbkdf2_hmac('sha256', _encode_text(value), salt.encode(), _ITERATIONS).hex()}"


def _encode_text(text: str) -> bytes:
    """Encode a string as UTF-8. Invalid bytes of an environment variable are preserved."""
    return text.encode("utf-8", "surrogateescape")
