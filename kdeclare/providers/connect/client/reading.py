"""Reading all workers of a group at one time, and changing what they share."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from kdeclare.core.faults import Fault
from kdeclare.providers.connect.client.port import UNREACHABLE, ConnectWorkers
from kdeclare.providers.connect.worker_state import WorkerSeen, WorkersSeen, WorkerStatus

_AT_ONCE = 16


def read_workers(workers: ConnectWorkers) -> WorkersSeen:
    """What every worker says and shows; whatever cannot be had of one is told as its trouble."""
    at = datetime.now(UTC)
    with ThreadPoolExecutor(min(_AT_ONCE, len(workers.urls)), thread_name_prefix="workers") as pool:
        seen = tuple(pool.map(lambda url: _read(workers, url), workers.urls))
    return WorkersSeen(at, _overrides(workers, seen), seen)


def _read(workers: ConnectWorkers, url: str) -> WorkerSeen:
    status: WorkerStatus | None = None
    trouble = ""
    try:
        status = workers.status(url)
    except Fault as fault:
        trouble = told(fault)
        if fault.error == UNREACHABLE:
            return WorkerSeen(url, trouble=trouble)
    try:
        return WorkerSeen(url, status, workers.handshake(url), trouble)
    except Fault as fault:
        return WorkerSeen(url, status, None, trouble or told(fault))


def _overrides(workers: ConnectWorkers, seen: tuple[WorkerSeen, ...]) -> Mapping[str, str] | None:
    """As the worker has them that has read furthest; where that one falls silent, the next."""
    able = [(item.status.seen, item.url) for item in seen if item.status is not None]
    for _, url in sorted(able, key=lambda item: -1 if item[0] is None else item[0], reverse=True):
        try:
            return workers.overrides(url)
        except Fault:
            continue
    return None


def told(fault: Fault) -> str:
    """A fault's reason as part of a sentence."""
    return " ".join((fault.message or fault.error).split()).rstrip(".")
