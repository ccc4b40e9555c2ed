"""What an external system answers where something did not work."""

from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.scrubber import SCRUBBER


class FaultKind(StrEnum):
    """What a fault means for whoever asked."""

    REFUSED = "refused"  # nothing happened, and asking again gives the same answer
    RETRIABLE = "retriable"  # nothing happened, and asking again may work
    UNKNOWN = "unknown"  # it may have happened: observe before anything else


class Fault(Exception):
    """One item, or a whole request, that did not work.

    error: the Kafka protocol error name (``INVALID_CONFIG``); ``REQUEST_TIMED_OUT`` and
        ``NETWORK_EXCEPTION`` for what the client itself saw.
    message: the broker's own words where it gave any.
    retry_after_s: how long the broker takes no more of this; 0 where it said nothing.
    """

    def __init__(
        self, error: str, message: str, kind: FaultKind = FaultKind.REFUSED, retry_after_s: float = 0.0
    ) -> None:
        self.error = error
        self.message = message = SCRUBBER.scrub(message)  # brokers and workers repeat what they were sent
        self.kind = kind
        self.retry_after_s = retry_after_s
        super().__init__(f"{error}: {message}" if message else error)

    def __reduce__(self) -> tuple[type["Fault"], tuple[str, str, FaultKind, float]]:
        """What pickling makes it anew from."""
        return Fault, (self.error, self.message, self.kind, self.retry_after_s)


class FaultCause(StrEnum):
    """Why a system refused an operation, as far as that changes what is done about it."""

    OTHER = "other"
    NOT_AUTHORIZED = "not authorized"
    DENIED_BY_POLICY = "denied by policy"  # by one that the system itself is configured with
    OVER_QUOTA = "over quota"
    EXISTS = "exists"  # what it creates is there, even if no member of the system shows it yet
    DONE_ALREADY = "done already"  # by an earlier copy of the request, or by someone else
    GONE_ALREADY = "gone already"  # what it deletes is not there


DONE_CAUSES = frozenset({FaultCause.EXISTS, FaultCause.DONE_ALREADY})
"""What is asked for is there: by an earlier copy of the request, or by someone else."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a fault means for one operation.

    right: of NOT_AUTHORIZED, the right that the operation takes, and on what. hint: what people can do.
    """

    cause: FaultCause = FaultCause.OTHER
    right: str = ""
    hint: str = ""


Result = Fault | None
"""None is success."""


@dataclass(frozen=True, slots=True)
class CreatedObject:
    """What a request created, as the system acknowledged it.

    id: tells it from every other object, also from a later one of the same name; empty where the system has
        no such ids.
    """

    id: str


Outcome = Fault | CreatedObject | None
"""What became of one item; None is success with nothing to say about it."""
