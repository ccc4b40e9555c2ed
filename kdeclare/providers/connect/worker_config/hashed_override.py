"""A secret override whose value is known only as hashes, as in fleet snapshots."""

from collections.abc import Iterable

from kdeclare.core.secrets.secret_hashes import is_hash_of
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK


class HashedOverride(str):
    """A placeholder for the raw value of a secret. Its string form is a mask."""

    __slots__ = ("hashes",)

    hashes: frozenset[str]

    def __new__(cls, hashes: Iterable[str]) -> "HashedOverride":
        """Create the placeholder. hashes: the hashes of the raw value, each with a different salt."""
        override = super().__new__(cls, SENSITIVE_MASK)
        override.hashes = frozenset(hashes)
        return override

    def may_match(self, stored_hash: str) -> bool:
        """Whether ``stored_hash`` can be the hash of the value.

        If none of the known hashes has the same salt, the hashes cannot be compared, and the result is True.
        """
        method = _get_method(stored_hash)
        comparable = {known for known in self.hashes if _get_method(known) == method}
        return not comparable or stored_hash in comparable


def is_same_value(stored_hash: str, raw: str) -> bool:
    """Whether ``stored_hash`` is the hash of a raw override, which can be a `HashedOverride`."""
    return raw.may_match(stored_hash) if isinstance(raw, HashedOverride) else is_hash_of(stored_hash, raw)


def _get_method(stored_hash: str) -> str:
    """Return the part of a hash that contains the scheme, the id of the key, and the salt."""
    return stored_hash.rpartition("$")[0]
