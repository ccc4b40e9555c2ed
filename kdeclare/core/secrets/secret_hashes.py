"""Hashes of secrets: what plans and states keep to see that a value has changed (decision 21).

``pbkdf2$<salt>$<hex>`` is slow on purpose; ``hmac$<key id>$<salt>$<hex>`` takes a key that no file holds.
A hash is compared with its own salt and key, so that those made by earlier versions stay comparable.
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
"""Environment variable: the key that hashes are made with. Whoever has the state alone can test no guess."""
OLD_KEY_VARIABLE = "KDECLARE_OLD_SECRET_KEY"
"""Environment variable: the key before, with which hashes are compared until they are made anew."""
KEY_MISSING = "secret-key-missing"
"""Code of the error that says that no key is given, although hashes were made with one."""

OTHER_KEY = "secret-key-changed"
"""Code of the error that says that a hash was made with another key than the one that is given."""

_ITERATIONS = 100_000  # some 25 ms
_SALT_LENGTH = 32
"""Hexadecimal digits. The salts of 0.1 have 16: they followed from the resource and the key alone."""
_SHORTEST_KEY = 16
_MARK_LENGTH = 8


class _KeyRing:
    """Keys of this process by id. Which one a hash needs, the hash says itself."""

    def __init__(self) -> None:
        self._keys: dict[str, bytes] = {}

    def add(self, key: str) -> str:
        """Keep a key; its id."""
        raw = _encode_text(key)
        key_id = hmac.digest(raw, b"kdeclare key id", "sha256").hex()[:8]
        self._keys[key_id] = raw
        SCRUBBER.register(key)
        return key_id

    @property
    def is_empty(self) -> bool:
        """Whether no key was given."""
        return not self._keys

    def find(self, key_id: str) -> bytes | None:
        """The key, if it was given."""
        return self._keys.get(key_id)


_KEYS = _KeyRing()


@dataclass(frozen=True, slots=True)
class SecretHasher:
    """Makes new hashes.

    scope: where the secrets belong: a state's lineage, or what is known before there is one.
    key_id: of the key to make them with; None for PBKDF2.
    """

    scope: str
    key_id: str | None = None

    def make_hash(self, resource: str, key: str, value: str) -> str:
        """The hash of the value of one config. Equal values elsewhere have other hashes."""
        salt_input = f"kdeclare/2/{self.scope}/{resource}/{key}"
        salt = hashlib.sha256(salt_input.encode()).hexdigest()[:_SALT_LENGTH]
        return _hash_with(f"pbkdf2${salt}" if self.key_id is None else f"hmac${self.key_id}${salt}", value)

    def is_current(self, stored_hash: str) -> bool:
        """Whether a hash is of the kind that is made now; the salt may be of an earlier scope."""
        scheme, *key_id, salt, _ = stored_hash.split("$")
        return (scheme, key_id) == self._scheme and len(salt) == _SALT_LENGTH

    @property
    def _scheme(self) -> tuple[str, list[str]]:
        return ("pbkdf2", []) if self.key_id is None else ("hmac", [self.key_id])


def read_keys(environ: Mapping[str, str]) -> str | None:
    """Take the keys from the environment; the id of the one for new hashes, if there is one.

    Raises KdeclareError for a key that could be guessed.
    """
    given_keys = {name: environ.get(name, "").strip() for name in (KEY_VARIABLE, OLD_KEY_VARIABLE)}
    ids = {name: _KEYS.add(_validate_key(name, key)) for name, key in given_keys.items() if key}
    return ids.get(KEY_VARIABLE)


def require_key(hashes: Iterable[str]) -> None:
    """Raise KdeclareError where hashes were made with a key, and none at all is given."""
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
            "The key for hashes of secrets is missing",
            f"{subject} made with a key, and {KEY_VARIABLE} is not set.",
            hint=f"Set {KEY_VARIABLE}. If the key is lost, set a new one: then all secrets are set again. "
            f"To replace the key, set the new one, and the old one as {OLD_KEY_VARIABLE}.",
        )
    )


def _validate_key(name: str, key: str) -> str:
    if len(key) < _SHORTEST_KEY:
        raise KdeclareError(
            error(
                "weak-key",
                "The key for hashes of secrets is too short",
                f"{name} has {len(key)} characters; it needs {_SHORTEST_KEY} at least.",
                hint="Use a random one: openssl rand -hex 32",
            )
        )
    return key


def can_compare(stored_hash: str) -> bool:
    """Whether the key that a hash was made with is there, if it needs one."""
    scheme, *fields = stored_hash.split("$")
    return scheme != "hmac" or _KEYS.find(fields[0]) is not None


def hash_like(stored_hash: str, value: str) -> str | None:
    """The hash of ``value`` made as ``stored_hash`` was made; None where its key is not there."""
    return _hash_with(stored_hash.rpartition("$")[0], value) if can_compare(stored_hash) else None


def is_hash_of(stored_hash: str, value: str) -> bool:
    """Whether ``value`` is the one that the hash ``stored_hash`` was made of.

    No, where its key is not there.
    """
    computed = hash_like(stored_hash, value)
    return computed is not None and hmac.compare_digest(computed, stored_hash)


def mark_value(place: str, key: str, value: str, known_hashes: Sequence[str]) -> str:
    """Return what stands for a secret in views: a mark that tells it from other values.

    place, key: what it is a value of. known_hashes: hashes of what it may be, whose marks are to be the same.
    Raises KdeclareError where they were made with a key, and none is given.
    """
    require_key(known_hashes)
    matching_hash = next((one for one in known_hashes if is_hash_of(one, value)), None)
    comparable_hash = next((hash_like(one, value) for one in known_hashes if can_compare(one)), None)
    return mark_hash(matching_hash or comparable_hash or SecretHasher(place).make_hash(place, key, value))


def mark_hash(secret_hash: str) -> str:
    """Return the mark of the secret that a hash was made of.

    It is the end of the slow hash: enough to see a change by, too little to test guesses with.
    """
    return f"{SENSITIVE_MASK} #{secret_hash[-_MARK_LENGTH:]}"


def is_mark(value: JsonValue) -> bool:
    """Whether a value of a view stands for a secret."""
    return isinstance(value, str) and value.startswith(SENSITIVE_MASK)


@lru_cache(maxsize=65_536)
def _hash_with(prefix: str, value: str) -> str:
    """how: a hash without its last part. Kept, as it is asked for again whenever workers are watched."""
    scheme, *key_id, salt = prefix.split("$")
    if scheme == "hmac":
        key = _KEYS.find(key_id[0])
        assert key is not None, "see can_compare"
        return f"{prefix}${hmac.digest(key, _encode_text(f'{salt}/{value}'), 'sha256').hex()}"
    return f"{prefix}${hashlib.pbkdf2_hmac('sha256', _encode_text(value), salt.encode(), _ITERATIONS).hex()}"


def _encode_text(text: str) -> bytes:
    """The bytes of a text that may come from a variable which holds no UTF-8."""
    return text.encode("utf-8", "surrogateescape")
