"""The lease of a shared state: who may write, and until when.

A lock that its holder can lose without noticing protects nothing. A lease expires: its holder renews the
lease, and stops sending requests when the last renewal that certainly succeeded has expired. Another process
takes over only after it has watched the lease for its whole duration without seeing a renewal. The clocks of
different machines are never compared to decide this.
"""

import json
import math
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import StrEnum

from kdeclare.core.clock import format_second, parse_time
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import (
    JsonValue,
    as_int,
    as_number,
    as_object,
    as_text,
    parse_json,
    to_float,
)
from kdeclare.core.plans.state import LockInfo
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.storage.conditional_objects import (
    ConditionalObjects,
    ObjectConflict,
    ObjectVersion,
    write_certainly,
)
from kdeclare.engine.state.lock import build_own_lock_info
from kdeclare.engine.state.problems import (
    build_corruption_error,
    build_holder_changed_error,
    build_lease_clock_error,
    build_lease_ended_error,
    build_lease_held_error,
    build_lock_lost_error,
)

LEASE_KEY = "lease.json"

WAITING = "Waiting to see whether the previous holder of the lease is still running"

_POLL_S = 1.0


class LeaseStatus(StrEnum):
    """Whether the lease has a holder. BROKEN: a user broke the lease; the holder might not know this yet."""

    HELD = "held"
    RELEASED = "released"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The lease as it is stored.

    token: identifies one acquisition. count: increases with each renewal, so that every record differs.
    duration_s: how long the holder may send requests after this record was written, in seconds.
    written: when the holder wrote the record, by the holder's clock; only for messages, and for the decision
        not to wait for a holder that looks alive.
    """

    status: LeaseStatus
    token: str
    count: int
    holder: LockInfo
    duration_s: float
    written: str

    def encode(self) -> bytes:
        """Return the JSON text of the record."""
        document: dict[str, JsonValue] = {
            "version": 1,
            "status": self.status.value,
            "token": self.token,
            "count": self.count,
            "duration_s": self.duration_s,
            "written": self.written,
            "who": self.holder.who,
            "pid": self.holder.pid,
            "what": self.holder.what,
            "since": self.holder.since,
        }
        return json.dumps(document, indent=2).encode() + b"\n"


def decode_lease(data: bytes, location: str) -> LeaseRecord:
    """Decode a stored lease. Raises KdeclareError if the object is damaged."""
    try:
        document = as_object(parse_json(data))
        duration_s = to_float(as_number(document.get("duration_s")))
        if not 0 < duration_s < math.inf:
            raise ValueError("'duration_s' is not a positive number")
        holder = LockInfo(
            as_text(document.get("who")),
            as_int(document.get("pid")),
            as_text(document.get("what")),
            as_text(document.get("since")),
        )
        return LeaseRecord(
            LeaseStatus(as_text(document.get("status"))),
            as_text(document.get("token")),
            as_int(document.get("count")),
            holder,
            duration_s,
            as_text(document.get("written")),
        )
    except (ValueError, TypeError, RecursionError) as cause:
        raise build_corruption_error(
            location,
            f"it is not a lease ({cause})",
            "Make sure that no run is in progress, then delete the object.",
        ) from cause


def read_suspend_clock() -> float:
    """Return the time, in seconds, of a clock that keeps running during suspend and is never adjusted.

    Raises KdeclareError on a system without such a clock, because a lease could end unnoticed there.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC)  # on macOS, this clock counts the time of sleep
    raise build_lease_clock_error(sys.platform)


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The duration of a lease without renewal, and the functions that read the clocks and sleep.

    Times are in seconds.

    read_time: returns the time of day, which is shown, and used to tell whether another holder looks alive,
        but never to decide about a takeover.
    sleep: waits while a lease is watched. starts_renewals: whether a thread renews the lease; tests with a
        simulated clock renew it themselves.
    """

    duration_s: float = 60.0
    read_clock: Callable[[], float] = read_suspend_clock
    read_time: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = time.sleep
    starts_renewals: bool = True

    @property
    def renewal_interval_s(self) -> float:
        """The time between two renewals. Two renewals in a row can fail before the lease ends."""
        return self.duration_s / 4


class Lease:
    """The lease of one shared state, as this process sees it. Thread-safe."""

    def __init__(self, objects: ConditionalObjects, timing: LeaseTiming = LeaseTiming()) -> None:  # noqa: B008
        """Create the object without any access to the storage."""
        self._objects = objects
        self._timing = timing
        self._mutex = threading.Lock()
        self._held: _HeldLease | None = None
        self._unreleased_token: str | None = None

    @property
    def token(self) -> str:
        """The token of the current acquisition; empty while this process does not hold the lease."""
        held = self._held
        return held.record.token if held else ""

    @contextmanager
    def hold(self, command: str, progress: Progress = ignore_progress) -> Iterator[bool]:
        """Hold the lease during the ``with`` block. Yields whether it was taken over from another holder.

        Raises KdeclareError (exit code LOCKED) if another process holds the lease and seems to be alive. If
        the holder seems to be dead, wait for the duration of the lease, and take over if it is not renewed.
        """
        is_takeover = self._acquire(command, progress)
        stop = threading.Event()
        renewals = threading.Thread(target=self._renew_until, args=(stop,), name="lease", daemon=True)
        if self._timing.starts_renewals:
            renewals.start()
        try:
            yield is_takeover
        finally:
            stop.set()
            if renewals.is_alive():
                renewals.join()
            self._release()

    def check(self) -> None:
        """Raise KdeclareError if this process held the lease and must not rely on it anymore.

        This method uses only the clock, so that clients can call it before every request.
        """
        held = self._held
        if held is None:
            return
        if held.lost is not None:
            raise held.lost
        if self._timing.read_clock() >= held.ends_at:
            raise build_lease_ended_error(self._timing.duration_s)

    def read_record(self) -> LeaseRecord | None:
        """Return the stored lease; None if the state was never locked."""
        return self._read()[0]

    def break_holder(self, holder: LockInfo) -> None:
        """Take the lease away from ``holder``. The next holder waits until the lease would have ended.

        Raises KdeclareError if the lease is free or has another holder.
        """
        record, version = self._read()
        if record is None or record.status is not LeaseStatus.HELD or record.holder != holder:
            current = record.holder if record and record.status is LeaseStatus.HELD else None
            raise build_holder_changed_error(holder, current)
        broken = replace(
            record, status=LeaseStatus.BROKEN, count=record.count + 1, written=self._format_now()
        )
        try:
            write_certainly(self._objects, LEASE_KEY, broken.encode(), version)
        except ObjectConflict:
            raise build_holder_changed_error(holder, self._find_holder()) from None

    def renew(self) -> None:
        """Renew the lease once.

        Raises KdeclareError if another process took or broke the lease, or if the storage does not respond.
        """
        with self._mutex:
            held = self._held
            if held is None or held.lost is not None:
                return
            renewed = replace(held.record, count=held.record.count + 1, written=self._format_now())
            # the time before the request, because the storage can have written the record at any later time
            ends_at = self._timing.read_clock() + self._timing.duration_s
            try:
                version = self._overwrite(held, renewed)
            except ObjectConflict:
                lost = build_lock_lost_error()
                self._held = replace(held, lost=lost)
                raise lost from None
            self._held = _HeldLease(renewed, version, ends_at)

    def _acquire(self, command: str, progress: Progress) -> bool:
        record, version = self._read()
        is_takeover = (
            record is not None
            and record.status is not LeaseStatus.RELEASED
            and record.token != self._unreleased_token
        )
        if record is not None and is_takeover:
            if record.status is LeaseStatus.HELD and self._looks_alive(record):
                raise _build_held_error(record)
            record, version = self._watch(record, version, progress)
        own = LeaseRecord(
            LeaseStatus.HELD,
            secrets.token_hex(8),
            1,
            build_own_lock_info(command),
            self._timing.duration_s,
            self._format_now(),
        )
        ends_at = self._timing.read_clock() + self._timing.duration_s
        try:
            own_version = write_certainly(self._objects, LEASE_KEY, own.encode(), version)
        except ObjectConflict:
            raise _build_held_error(self.read_record() or own) from None
        self._held = _HeldLease(own, own_version, ends_at)
        return is_takeover

    def _watch(
        self, record: LeaseRecord, version: ObjectVersion | None, progress: Progress
    ) -> tuple[LeaseRecord, ObjectVersion | None]:
        """Wait for the duration of a lease. Raises KdeclareError if its holder renews it in this time."""
        started_at = self._timing.read_clock()
        while (waited_s := self._timing.read_clock() - started_at) < record.duration_s:
            progress(WAITING, int(waited_s), int(record.duration_s))
            self._timing.sleep(min(_POLL_S, record.duration_s / 10))
            current, current_version = self._read()
            if current is None or current_version != version:
                if current is not None and current.status is LeaseStatus.RELEASED:
                    return current, current_version
                raise _build_held_error(current or record)
        return record, version

    def _release(self) -> None:
        with self._mutex:
            held, self._held = self._held, None
        if held is None or held.lost is not None:
            return
        released = replace(
            held.record, status=LeaseStatus.RELEASED, count=held.record.count + 1, written=self._format_now()
        )
        self._unreleased_token = held.record.token
        # If the storage refuses, the lease expires. The command's own result is more important.
        with suppress(ObjectConflict, KdeclareError):
            self._overwrite(held, released)

    def _overwrite(self, held: "_HeldLease", new: LeaseRecord) -> ObjectVersion:
        """Replace the lease record of this process. Raises ObjectConflict if another process replaced it.

        If the response to an earlier renewal by this process was lost, the stored record can be the one that
        this renewal wrote. This is not a conflict, and the record is replaced.
        """
        try:
            return write_certainly(self._objects, LEASE_KEY, new.encode(), held.version)
        except ObjectConflict:
            stored, version = self._read()
            if stored is None or (stored.token, stored.status) != (held.record.token, LeaseStatus.HELD):
                raise
            return write_certainly(self._objects, LEASE_KEY, new.encode(), version)

    def _renew_until(self, stop: threading.Event) -> None:
        while not stop.wait(self._timing.renewal_interval_s):
            # `check` reports a lost lease. A storage that does not respond can respond the next time.
            with suppress(KdeclareError):
                self.renew()

    def _format_now(self) -> str:
        return format_second(self._timing.read_time())

    def _looks_alive(self, record: LeaseRecord) -> bool:
        """Whether the holder wrote the lease recently, assuming that the holder's clock is correct.

        A wrong clock can only lead to a refusal, or to waiting, but never to a takeover.
        """
        try:
            age = self._timing.read_time() - parse_time(record.written)
        except ValueError:
            return False
        return 0 <= age.total_seconds() < record.duration_s

    def _find_holder(self) -> LockInfo | None:
        record = self.read_record()
        return record.holder if record is not None and record.status is LeaseStatus.HELD else None

    def _read(self) -> tuple[LeaseRecord | None, ObjectVersion | None]:
        stored = self._objects.get(LEASE_KEY)
        if stored is None:
            return None, None
        return decode_lease(stored.data, self._objects.get_location(LEASE_KEY)), stored.version


@dataclass(frozen=True, slots=True)
class _HeldLease:
    """A lease that this process holds.

    ends_at: when the lease ends, in seconds of the clock that the lease uses.
    lost: why this process lost the lease; None if it did not.
    """

    record: LeaseRecord
    version: ObjectVersion
    ends_at: float
    lost: KdeclareError | None = field(default=None)


def _build_held_error(record: LeaseRecord) -> KdeclareError:
    return build_lease_held_error(record.holder, record.written, record.duration_s)
