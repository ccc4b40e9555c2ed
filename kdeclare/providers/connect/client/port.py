"""The port `ConnectWorkers`: all that is asked of the workers of one Connect cluster (KIP-1185)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kdeclare.providers.connect.worker_state import Certificate, WorkerStatus

Changes = Mapping[str, str | None]
"""What a PATCH says: raw values by key; None takes the override away (JSON merge patch)."""

UNREACHABLE = "WORKER_UNREACHABLE"
"""Nothing was sent: another worker can be asked."""
NOT_TRUSTED = "WORKER_NOT_TRUSTED"
LOST = "WORKER_LOST"
PLUGIN_MISSING = "PLUGIN_MISSING"
INVALID = "INVALID_WORKER_CONFIG"
NO_OVERRIDE = "NO_SUCH_OVERRIDE"
NOT_READY = "WORKER_NOT_READY"
NOT_AUTHORIZED = "WORKER_AUTHORIZATION_FAILED"
BAD_ANSWER = "WORKER_ANSWER_NOT_UNDERSTOOD"
ERRORS = frozenset(
    {
        UNREACHABLE,
        NOT_TRUSTED,
        LOST,
        PLUGIN_MISSING,
        INVALID,
        NO_OVERRIDE,
        NOT_READY,
        NOT_AUTHORIZED,
        BAD_ANSWER,
    }
)
"""The errors of Faults about workers; all others are Kafka's."""


@dataclass(frozen=True, slots=True)
class Validation:
    """What one worker says of proposed overrides: whether it could apply them, and what is wrong by key.

    An error about all of them together has the empty key.
    """

    valid: bool
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class ConnectWorkers(Protocol):
    """The workers of one Connect cluster, each by its URL.

    Every method raises Fault, whose message speaks of the worker as "it". A change whose answer did not
    come may have been made (UNKNOWN); during a rebalance it is not (RETRIABLE). Safe to use from several
    threads.
    """

    urls: tuple[str, ...]

    def overrides(self, url: str) -> Mapping[str, str]:
        """All overrides as one worker has read them, raw."""

    def status(self, url: str) -> WorkerStatus:
        """What one worker says of itself."""

    def handshake(self, url: str) -> Certificate | None:
        """The leaf that a new TLS connection is shown, trusted or not; None without TLS."""

    def validate(self, url: str, changes: Changes) -> Validation:
        """Whether one worker could apply the overrides once ``changes`` are merged in; changes nothing."""

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        """Merge ``changes`` in, through any worker; all overrides as they are then."""

    def delete(self, url: str, key: str) -> None:
        """Take one override away, through any worker."""

    def close(self) -> None:
        """Let go of connections. Safe to call twice."""
