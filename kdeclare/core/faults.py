"""What an external system answers where something did not work."""

from dataclasses import dataclass
from enum import StrEnum

from kdeclare.core.scrubber import SCRUBBER


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


Result = Fault | None
"""None is success."""


@dataclass(frozen=True, slots=True)
class Created:
    """What a request created, as the system acknowledged it.

    id: tells it from every other object, also from a later one of the same name; empty where the system has
        no such ids.
    """

    id: str


Outcome = Fault | Created | None
"""What became of one item; None is success with nothing to say about it."""
