"""Sensitive values: what may be remembered of them, and how they are told apart."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from kdeclare.model.jsontypes import Json

SHOWN = "(sensitive)"
"""What stands for a sensitive value wherever people or files would see it."""

_ITERATIONS = 100_000


@dataclass(frozen=True, slots=True)
class Secret:
    """A sensitive value in memory; of one that was decoded from JSON, ``value`` is empty.

    reference: the scalar as written, None for a literal.
    doubtful: whether only the cluster can tell if it is sensitive at all.
    """

    value: str = field(repr=False)
    reference: str | None
    digest: str
    doubtful: bool = False

    def as_json(self) -> Json:
        """What plan and state keep: the reference and the salted hash."""
        return {"secret": self.digest, "reference": self.reference}


class SecretSource(Protocol):
    """Gives the value of a secret again, at apply."""

    def reveal(self, secret: Mapping[str, Json]) -> str:
        """The value. Raises KdeclareError when it cannot be had or its hash is not the planned one."""


def digest(resource: str, key: str, value: str) -> str:
    """Salted and slow hash of a value, with its salt.

    The salt is made from the place where the value stands, so equal plans are equal and equal passwords
    in two places are not seen to be equal.
    """
    return _hashed(hashlib.sha256(f"kdeclare/{resource}/{key}".encode()).hexdigest()[:16], value)


def matches(known: str, value: str) -> bool:
    """Whether ``value`` is the one that the hash ``known`` was made of."""
    _, salt, _ = known.split("$")
    return hmac.compare_digest(_hashed(salt, value), known)


@lru_cache(maxsize=65_536)
def _hashed(salt: str, value: str) -> str:
    # slow on purpose (some 25 ms), and asked for again whenever workers are watched: so it is kept
    digested = hashlib.pbkdf2_hmac("sha256", value.encode(), salt.encode(), _ITERATIONS)
    return f"pbkdf2${salt}${digested.hex()}"


def is_secret(value: Json) -> bool:
    """Whether a value of an operation's args or of an owned record stands for a secret."""
    return isinstance(value, Mapping) and "secret" in value
