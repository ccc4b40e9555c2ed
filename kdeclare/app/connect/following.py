"""What becomes of a change of the overrides of Connect workers: sent, and looked for at every worker."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from kdeclare.app.connect.looking import workers_view
from kdeclare.core.changes import FieldChange
from kdeclare.core.clock import Clock
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exits import ExitCode
from kdeclare.core.faults import Fault, FaultKind
from kdeclare.engine.executor.attempt import OUTCOME_UNCLEAR
from kdeclare.providers.connect.client.port import Changes, ConnectWorkers
from kdeclare.providers.connect.client.reading import read_workers, told
from kdeclare.providers.connect.client.rollout import through_any
from kdeclare.providers.connect.worker_state import WorkersSeen
from kdeclare.providers.connect.workers.standing import not_reached, silent
from kdeclare.report.connect_views import ChangedView

_PAUSE_S = 0.1
_WARN_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class Sent:
    """A change that has been sent.

    before: the workers as they were. after: all overrides as the answer tells them; None where none came,
    and lost says why.
    """

    before: WorkersSeen
    changes: Changes = field(repr=False)  # may hold secrets, as may the next
    after: Mapping[str, str] | None = field(repr=False)
    lost: Fault | None = None

    def made(self, seen: WorkersSeen) -> Mapping[str, str] | None:
        """The overrides that every worker is to run on; None where nothing shows that it was made.

        Without an answer it shows in an update that is newer than all there were before, with these keys as
        they were sent: the values alone can have been there already, and others may change other keys.
        """
        if self.after is not None:
            return self.after
        if seen.overrides is None or _newest(seen) <= _newest(self.before):
            return None
        as_sent = all(seen.overrides.get(key) == value for key, value in self.changes.items())
        return seen.overrides if as_sent else None


def send(workers: ConnectWorkers, before: WorkersSeen, changes: Changes) -> Sent:
    """Tell one of the workers. Raises Fault where the change was not made; what is not known is told."""
    try:
        return Sent(before, changes, through_any(workers, changes))
    except Fault as fault:
        if fault.kind is not FaultKind.UNKNOWN:
            raise
        return Sent(before, changes, None, fault)


def followed(
    workers: ConnectWorkers, sent: Sent, fields: tuple[FieldChange, ...], clock: Clock, wait_s: float
) -> ChangedView:
    """Who runs on a change after ``wait_s`` seconds, or as soon as all do.

    Raises KdeclareError where even then nobody can know whether it was made.
    """
    begun = clock.monotonic()
    while True:
        seen = read_workers(workers)
        wanted = sent.made(seen)
        late = not_reached(seen, wanted) if wanted is not None else ()
        passed = clock.monotonic() - begun
        if wanted is not None and (not late or passed >= wait_s):
            view = workers_view(replace(seen, overrides=wanted), _WARN_DAYS)
            return ChangedView(fields, view, passed, {standing.url: standing.why for standing in late})
        if passed >= wait_s:
            raise _unclear(sent, seen, passed)
        clock.sleep(_PAUSE_S)


def _newest(seen: WorkersSeen) -> int:
    """The offset of the last update that any worker has read; -1 where there was none."""
    offsets = (worker.status.seen for worker in seen.workers if worker.status)
    return max((offset for offset in offsets if offset is not None), default=-1)


def _unclear(sent: Sent, seen: WorkersSeen, passed_s: float) -> KdeclareError:
    return KdeclareError(
        error(
            OUTCOME_UNCLEAR,
            "It is not known whether the change was made",
            "\n".join(_what_is_known(sent, seen, passed_s)),
            hint="'kdeclare connect worker-config status' and 'get' show it; to do it again does no harm.",
        ),
        exit_code=ExitCode.PARTIAL,
    )


def _what_is_known(sent: Sent, seen: WorkersSeen, passed_s: float) -> Iterator[str]:
    if sent.lost is not None:
        yield f"{told(sent.lost)} ({sent.lost.error})."
    yield f"No worker shows it after {passed_s:.0f} s."
    for standing in silent(seen):
        yield f"{standing.url}: {standing.why}."
