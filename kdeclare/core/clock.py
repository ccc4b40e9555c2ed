"""A replaceable clock, so that tests do not have to wait in real time."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Protocol


def generate_pauses(longest_s: float) -> Iterator[float]:
    """Yield the pauses between repeated reads, in seconds: 0.1, and then twice as long each time.

    longest_s: the maximum length of a pause.
    """
    pause_s = 0.1
    while True:
        yield pause_s
        pause_s = min(pause_s * 2, longest_s)


class Clock(Protocol):
    """The interface of a clock that returns the current time and a monotonic time, and that can wait."""

    def now(self) -> datetime:
        """Return the current time in UTC."""

    def monotonic(self) -> float:
        """Return the time, in seconds, of a clock that never goes backwards."""

    def sleep(self, seconds: float) -> None:
        """Wait for the given number of seconds."""


class SystemClock:
    """The system clock."""

    def now(self) -> datetime:
        """See `Clock`."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """See `Clock`."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        time.sleep(seconds)


def format_second(moment: datetime) -> str:
    """Return a time in UTC as ISO 8601, to the second: ``2026-01-31T12:00:00Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def parse_time(text: str) -> datetime:
    """Parse a time in ISO 8601 and convert it to UTC. Raises ValueError; see `check_time`."""
    return check_time(datetime.fromisoformat(text)).astimezone(UTC)


def check_time(moment: datetime) -> datetime:
    """Return the given time. Raises ValueError if it has no UTC offset or is outside the years 1970 to 8999.

    Any other time would cause an error later, when it is converted to UTC, compared, or added to a duration.
    """
    if moment.tzinfo is None or not _EARLIEST <= moment < _LATEST:
        raise ValueError(f"{moment} is not a time from 1970 to 8999 with a UTC offset")
    return moment


def format_now(clock: Clock) -> str:
    """Return the current time in UTC as ISO 8601, to the millisecond."""
    return format_time_in(clock, 0)


def format_time_in(clock: Clock, seconds: float) -> str:
    """Return the UTC time ``seconds`` from now as ISO 8601, to the millisecond."""
    moment = clock.now() + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
