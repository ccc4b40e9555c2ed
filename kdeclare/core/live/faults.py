"""Faults: errors that an external system reports."""

from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.scrubber import SCRUBBER


class FaultKind(StrEnum):
    """Whether a failed request had an effect, and whether kdeclare can retry the request."""

    REFUSED = "refused"  # the request had no effect; a retry gives the same error
    RETRIABLE = "retriable"  # the request had no effect; a retry may succeed
    UNKNOWN = "unknown"  # the request may have taken effect; read the live state before anything else


class Fault(Exception):
    """The failure of a request, or of one item of a request.

    error: the Kafka protocol error name (``INVALID_CONFIG``); ``REQUEST_TIMED_OUT`` and
        ``NETWORK_EXCEPTION`` if the client itself detected the failure.
    message: the error message of the system, if there is one.
    retry_after_s: the time, in seconds, for which the broker will reject further requests of this type; 0 if
        the broker did not report a time.
    """

    def __init__(
        self, error: str, message: str, kind: FaultKind = FaultKind.REFUSED, retry_after_s: float = 0.0
    ) -> None:
        self.error = error
        self.message = message = SCRUBBER.scrub(message)  # servers may repeat secrets from the request
        self.kind = kind
        self.retry_after_s = retry_after_s
        super().__init__(f"{error}: {message}" if message else error)

    def __reduce__(self) -> tuple[type["Fault"], tuple[str, str, FaultKind, float]]:
        return Fault, (self.error, self.message, self.kind, self.retry_after_s)


class UnsupportedFault(Fault):
    """Raised when reading a type of object that the system does not support, such as ACLs."""


class FaultCause(StrEnum):
    """The reason why a system refused an operation. kdeclare handles each reason differently."""

    OTHER = "other"
    NOT_AUTHORIZED = "not authorized"
    DENIED_BY_POLICY = "denied by policy"  # a policy that is configured in the system itself
    OVER_QUOTA = "over quota"
    EXISTS = "exists"  # the object already exists, even if no member of the system shows it yet
    DONE_ALREADY = "done already"  # an earlier copy of the request or another client created the object
    GONE_ALREADY = "gone already"  # the object to delete does not exist


DONE_CAUSES = frozenset({FaultCause.EXISTS, FaultCause.DONE_ALREADY})
"""A fault with one of these causes means that the object to create already exists."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explains why an operation failed.

    right: for NOT_AUTHORIZED, the missing permission and the object to which the permission applies.
    hint: what the user can do next.
    """

    cause: FaultCause = FaultCause.OTHER
    right: str = ""
    hint: str = ""


Result = Fault | None
"""The result of a request, or of one item of a request. None means success."""


@dataclass(frozen=True, slots=True)
class CreatedObject:
    """An object that a request created, as reported in the response.

    id: an id that no other object has, not even a later object with the same name; empty if the system does
        not assign such ids.
    """

    id: str


Outcome = Fault | CreatedObject | None
"""The outcome of one item of a request. None means success without further information."""
