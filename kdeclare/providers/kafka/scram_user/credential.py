"""SCRAM mechanisms, and iteration counts that show whether another client has set a password.

Kafka never returns passwords or salts. The number of iterations is the only visible property of a credential.
Unless the manifest declares this number, kdeclare chooses a new number whenever it sets a password. If
another client sets the password, the number almost certainly differs from the one that kdeclare chose.
"""

import hashlib
from collections.abc import Mapping
from enum import StrEnum

from kdeclare.core.jsontypes import JsonObject
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK

MIN_ITERATIONS = 4096
"""The minimum number of iterations (org.apache.kafka.common.security.scram.internals.ScramMechanism)."""
MAX_ITERATIONS = 16_384
"""The maximum number of iterations that the controller accepts (ScramControlManager.MAX_ITERATIONS)."""

_CHOICES = MIN_ITERATIONS - 1
"""How many numbers there are from 4,097 to 8,191, the range from which kdeclare chooses the iterations.

The default of other tools is not in this range.
"""


class Mechanism(StrEnum):
    """The SCRAM mechanisms of Kafka."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


Credentials = Mapping[Mechanism, int]
"""The number of iterations of each credential of a user, by mechanism."""


def choose_iterations(digest: str, before: int | None) -> int:
    """Return the number of iterations for a new credential. It differs from the previous number.

    digest: the salted hash of the password. The same hash and previous number always result in the same
        number, so a repeated plan does not change. The salt is only in the state, so the number reveals
        nothing about the password to anyone without the state.
    """
    number = int.from_bytes(hashlib.sha256(f"{digest}/{before}".encode()).digest()[:8], "big")
    chosen = MIN_ITERATIONS + 1 + number % _CHOICES
    if chosen == before:
        chosen = MIN_ITERATIONS + 1 + (number + 1) % _CHOICES
    return chosen


def describe_credential(iterations: int | None) -> JsonObject | None:
    """Return a credential in the format of plans, without its password; None if there is no credential."""
    return None if iterations is None else {"password": SENSITIVE_MASK, "iterations": iterations}
