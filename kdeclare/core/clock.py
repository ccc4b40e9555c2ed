"""Time, from outside: tests do without waiting."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What a run needs to know of time."""

    def now(self) -> datetime:
        """The time of day, in UTC."""

    def monotonic(self) -> float:
        """Seconds that only go up."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The computer's clock."""

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
    """Return UTC, ISO 8601, to the second: ``2026-01-31T12:00:00Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_now(clock: Clock) -> str:
    """Now as ISO 8601 in UTC, to the millisecond."""
    return format_time_in(clock, 0)


def format_time_in(clock: Clock, seconds: float) -> str:
    """A time that many seconds from now, in the same form."""
    moment = clock.now() + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
