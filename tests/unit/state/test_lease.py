"""The lease of a shared state: who gets it, how long it lasts, and what its holder notices."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.run import MoveProgress
from kdeclare.core.plans.state import LockInfo
from kdeclare.core.progress import ignore_progress
from kdeclare.engine.state.shared import lease as lease_module
from kdeclare.engine.state.shared.lease import (
    LEASE_KEY,
    Lease,
    LeaseRecord,
    LeaseStatus,
    LeaseTiming,
    decode_lease,
    read_suspend_clock,
)
from kdeclare.engine.state.shared.memory_objects import MemoryObjects, Moment, Request

DURATION_S = 60.0


@dataclass
class Clocks:
    """The simulated clocks of one machine. A clock of another machine can show another time of day."""

    elapsed_s: float = 0.0
    offset_s: float = 0.0
    during_sleep: list[Callable[[], None]] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.elapsed_s += seconds
        for act in self.during_sleep:
            act()

    def timing(self) -> LeaseTiming:
        return LeaseTiming(
            DURATION_S,
            lambda: self.elapsed_s,
            lambda: datetime(2026, 11, 28, tzinfo=UTC) + timedelta(seconds=self.elapsed_s + self.offset_s),
            self.sleep,
            starts_renewals=False,
        )


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects()


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def read_status(lease: Lease) -> LeaseStatus | None:
    record = lease.read_record()
    return None if record is None else record.status


def catch_code(act: Callable[[], object]) -> str:
    with pytest.raises(KdeclareError) as caught:
        act()
    assert caught.value.exit_code is ExitCode.LOCKED
    return caught.value.diagnostics[0].code


def enter(lease: Lease, stack: ExitStack | None = None) -> bool:
    """Acquire the lease. Without a stack, it is never released, as if the process died."""
    if stack is None:
        return lease._acquire("kdeclare apply", ignore_progress)
    return stack.enter_context(lease.hold("kdeclare apply"))


def test_lease_is_free_held_and_released(objects: MemoryObjects, clocks: Clocks) -> None:
    lease = Lease(objects, clocks.timing())
    assert read_status(lease) is None
    lease.check()
    with lease.hold("kdeclare apply") as is_takeover:
        assert not is_takeover
        lease.check()
        assert read_status(lease) is LeaseStatus.HELD
    assert read_status(lease) is LeaseStatus.RELEASED
    assert lease.token == ""


def test_living_holder_is_not_waited_for(objects: MemoryObjects, clocks: Clocks) -> None:
    with Lease(objects, clocks.timing()).hold("kdeclare apply"):
        clocks.elapsed_s += DURATION_S - 1
        assert catch_code(lambda: enter(Lease(objects, clocks.timing()))) == "locked"
    assert clocks.elapsed_s == DURATION_S - 1


def test_lease_of_dead_holder_is_taken_over_after_its_duration(
    objects: MemoryObjects, clocks: Clocks
) -> None:
    dead = Lease(objects, clocks.timing())
    enter(dead)
    clocks.elapsed_s += DURATION_S
    reports: list[tuple[str, int, int]] = []

    def report(what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
        reports.append((what, done, total))

    with Lease(objects, clocks.timing()).hold("kdeclare plan", report) as is_takeover:
        assert is_takeover
        assert clocks.elapsed_s >= 2 * DURATION_S
        assert catch_code(dead.check) == "lease-ended"
        assert catch_code(dead.renew) == "lock-lost"
        assert catch_code(dead.check) == "lock-lost"
    assert reports[0] == (lease_module.WAITING, 0, 60)


@pytest.mark.parametrize("offset_s", [-86400.0, 86400.0])
def test_wrong_time_of_day_never_leads_to_takeover(objects: MemoryObjects, offset_s: float) -> None:
    """The clocks of two machines differ by a day. The holder renews its lease while it is watched."""
    clocks = Clocks()
    elsewhere = Clocks(offset_s=offset_s)
    holder = Lease(objects, clocks.timing())
    with holder.hold("kdeclare apply"):
        elsewhere.during_sleep.append(lambda: clocks.sleep(1))
        clocks.during_sleep.append(lambda: holder.renew() if clocks.elapsed_s % 15 == 0 else None)
        assert catch_code(lambda: enter(Lease(objects, elsewhere.timing()))) == "locked"
        assert elsewhere.elapsed_s < DURATION_S
        holder.check()


def test_lease_that_is_released_while_watched_is_acquired(objects: MemoryObjects, clocks: Clocks) -> None:
    stack = ExitStack()
    enter(Lease(objects, clocks.timing()), stack)
    clocks.elapsed_s += DURATION_S
    clocks.during_sleep.append(stack.close)
    with Lease(objects, clocks.timing()).hold("kdeclare plan"):
        assert clocks.elapsed_s < DURATION_S + 5


def test_holder_sends_nothing_after_the_last_successful_renewal_ended(
    objects: MemoryObjects, clocks: Clocks
) -> None:
    lease = Lease(objects, clocks.timing())
    enter(lease)
    clocks.elapsed_s += 30
    lease.renew()
    clocks.elapsed_s += DURATION_S - 1
    lease.check()
    clocks.elapsed_s += 1
    assert catch_code(lease.check) == "lease-ended"


def test_slow_renewal_counts_from_before_its_request(objects: MemoryObjects, clocks: Clocks) -> None:
    lease = Lease(objects, clocks.timing())
    enter(lease)

    def delay(request: Request, key: str, moment: Moment) -> None:
        if request == "replace" and moment == "after":
            clocks.elapsed_s += 40

    objects.on_request = delay
    lease.renew()
    lease.check()
    clocks.elapsed_s += 20
    assert catch_code(lease.check) == "lease-ended"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_failed_renewal_is_repeated(objects: MemoryObjects, clocks: Clocks, moment: Moment) -> None:
    """The storage does not respond for a while. Its last write may have taken effect, or not."""
    lease = Lease(objects, clocks.timing())
    enter(lease)

    def fail(request: Request, key: str, failing_moment: Moment) -> None:
        if request == "replace" and failing_moment == moment:
            raise KdeclareError(error("state-storage", "No response", "The storage does not respond."))

    objects.on_request = fail
    with pytest.raises(KdeclareError):
        lease.renew()
    objects.on_request = lambda *_: None
    clocks.elapsed_s += 30
    lease.renew()
    clocks.elapsed_s += 50
    lease.check()


def test_release_after_renewal_without_response_releases(objects: MemoryObjects, clocks: Clocks) -> None:
    lease = Lease(objects, clocks.timing())
    with lease.hold("kdeclare apply"):

        def fail(request: Request, key: str, moment: Moment) -> None:
            if (request, moment) == ("replace", "after"):
                raise KdeclareError(error("state-storage", "No response", "The storage does not respond."))

        objects.on_request = fail
        clocks.elapsed_s += 1
        with pytest.raises(KdeclareError):
            lease.renew()
        objects.on_request = lambda *_: None
        clocks.elapsed_s += 1
    assert read_status(lease) is LeaseStatus.RELEASED


def test_broken_lease_is_lost_at_the_next_renewal(objects: MemoryObjects, clocks: Clocks) -> None:
    lease, other = Lease(objects, clocks.timing()), Lease(objects, clocks.timing())
    enter(lease)
    record = other.read_record()
    assert record is not None
    other.break_holder(record.holder)
    lease.check()  # the holder does not know it yet
    started_s = clocks.elapsed_s
    with other.hold("kdeclare apply") as is_takeover:
        assert is_takeover
        assert clocks.elapsed_s - started_s >= DURATION_S  # therefore, the next holder waits
    assert catch_code(lease.renew) == "lock-lost"


def test_two_processes_that_see_a_free_lease_do_not_both_get_it(
    objects: MemoryObjects, clocks: Clocks
) -> None:
    first, second = Lease(objects, clocks.timing()), Lease(objects, clocks.timing())
    with first.hold("kdeclare apply"):
        pass

    def overtake(request: Request, key: str, moment: Moment) -> None:
        if (request, moment) == ("replace", "before"):
            objects.on_request = lambda *_: None
            enter(second)

    objects.on_request = overtake
    assert catch_code(lambda: enter(first)) == "locked"
    second.check()


def test_acquisition_whose_response_was_lost_is_recognized(objects: MemoryObjects, clocks: Clocks) -> None:
    """A client of a storage repeats a request after a lost response, and gets a conflict with itself."""
    lease = Lease(objects, clocks.timing())
    create = objects.create

    def create_twice(key: str, data: bytes) -> object:
        create(key, data)
        return create(key, data)

    objects.create = create_twice  # type: ignore[method-assign, assignment]
    with lease.hold("kdeclare apply"):
        lease.check()


def test_damaged_lease_is_reported(objects: MemoryObjects, clocks: Clocks) -> None:
    objects.create(LEASE_KEY, b'{"version": 1, "status": "held"}')
    with pytest.raises(KdeclareError) as caught:
        enter(Lease(objects, clocks.timing()))
    assert caught.value.diagnostics[0].code == "state-corrupt"
    assert "memory:lease.json" in caught.value.diagnostics[0].detail


@pytest.mark.parametrize("duration", ["0", "-1", "1e999", "9" * 400, "true", '"60"'])
def test_lease_with_impossible_duration_is_damaged(duration: str) -> None:
    holder = LockInfo("anna@host", 1, "kdeclare apply", "2026-11-01T00:00:00Z")
    text = LeaseRecord(LeaseStatus.HELD, "token", 1, holder, 60.5, "2026-11-01T00:00:00Z").encode()
    assert decode_lease(text, "memory:lease.json").duration_s == 60.5
    with pytest.raises(KdeclareError, match="it is not a lease"):
        decode_lease(text.replace(b"60.5", duration.encode()), "memory:lease.json")


def test_thread_renews_the_lease(objects: MemoryObjects) -> None:
    lease = Lease(objects, LeaseTiming(2.0))
    with lease.hold("kdeclare apply"):
        token = lease.token
        while (record := lease.read_record()) is None or record.count < 6:
            time.sleep(0.05)
        lease.check()
        assert lease.token == token
    assert read_status(lease) is LeaseStatus.RELEASED


def test_release_without_response_keeps_the_result_of_the_command(
    objects: MemoryObjects, clocks: Clocks
) -> None:
    def fail(request: Request, key: str, moment: Moment) -> None:
        raise KdeclareError(error("state-storage", "No response", "The storage does not respond."))

    lease = Lease(objects, clocks.timing())
    with lease.hold("kdeclare apply"):
        objects.on_request = fail
    objects.on_request = lambda *_: None
    assert read_status(lease) is LeaseStatus.HELD


def test_clock_counts_time() -> None:
    earlier = read_suspend_clock()
    assert read_suspend_clock() >= earlier


def test_system_without_suspend_clock_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(KdeclareError) as caught:
        read_suspend_clock()
    assert caught.value.diagnostics[0].code == "lease-clock"
