"""The workers of one Connect cluster (KIP-1185): their port, reading all, changing what they share."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from datetime import UTC, datetime
from typing import Protocol

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.worker_state import Certificate, GroupSnapshot, PluginStatus, WorkerSnapshot

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

    def status(self, url: str) -> PluginStatus:
        """What one worker says of itself."""

    def read_served_certificate(self, url: str) -> Certificate | None:
        """The leaf that a new TLS connection is shown, trusted or not; None without TLS."""

    def validate(self, url: str, changes: Changes) -> Validation:
        """Whether one worker could apply the overrides once ``changes`` are merged in; changes nothing."""

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        """Merge ``changes`` in, through any worker; all overrides as they are then."""

    def delete(self, url: str, key: str) -> None:
        """Take one override away, through any worker."""

    def close(self) -> None:
        """Let go of connections. Safe to call twice."""


_MAX_THREADS = 16


def read_workers(workers: ConnectWorkers) -> GroupSnapshot:
    """What every worker says and shows; whatever cannot be had of one is told as its trouble."""
    taken_at = datetime.now(UTC)
    with ThreadPoolExecutor(min(_MAX_THREADS, len(workers.urls)), thread_name_prefix="workers") as pool:
        snapshots = tuple(pool.map(lambda url: _read_worker(workers, url), workers.urls))
    return GroupSnapshot(taken_at, _read_overrides(workers, snapshots), snapshots)


def _read_worker(workers: ConnectWorkers, url: str) -> WorkerSnapshot:
    status: PluginStatus | None = None
    trouble = ""
    try:
        status = workers.status(url)
    except Fault as fault:
        trouble = format_fault(fault)
        if fault.error == UNREACHABLE:
            return WorkerSnapshot(url, trouble=trouble)
    try:
        return WorkerSnapshot(url, status, workers.read_served_certificate(url), trouble)
    except Fault as fault:
        return WorkerSnapshot(url, status, None, trouble or format_fault(fault))


def _read_overrides(
    workers: ConnectWorkers, snapshots: tuple[WorkerSnapshot, ...]
) -> Mapping[str, str] | None:
    """As the worker has them that has read furthest; where that one falls silent, the next."""
    candidates = [(item.status.seen, item.url) for item in snapshots if item.status is not None]
    for _, url in sorted(candidates, key=lambda item: -1 if item[0] is None else item[0], reverse=True):
        try:
            return workers.overrides(url)
        except Fault:
            continue
    return None


def format_fault(fault: Fault) -> str:
    """A fault's reason as part of a sentence."""
    return " ".join((fault.message or fault.error).split()).rstrip(".")


@dataclass(frozen=True, slots=True)
class WorkerVerdict:
    """What one worker says of proposed overrides. reason: why it says nothing; empty if it does."""

    url: str
    validation: Validation | None
    reason: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it could apply them."""
        return self.validation is not None and self.validation.valid

    @property
    def words(self) -> str:
        """What it has against them."""
        if self.validation is None:
            return self.reason
        lines = [
            f"{key}: {message}" if key else message
            for key, messages in self.validation.errors.items()
            for message in messages
        ]
        return "; ".join(line.strip().rstrip(".") for line in lines) or "not valid, without a reason"


def collect_verdicts(workers: ConnectWorkers, changes: Changes) -> tuple[WorkerVerdict, ...]:
    """What every worker says of ``changes``; nothing is changed. Raises nothing that a worker can cause."""
    with ThreadPoolExecutor(min(_MAX_THREADS, len(workers.urls)), thread_name_prefix="workers") as pool:
        return tuple(pool.map(lambda url: _request_verdict(workers, url, changes), workers.urls))


def require_valid(workers: ConnectWorkers, changes: Changes) -> None:
    """Raises Fault, naming each worker that could not apply ``changes``, or cannot be asked."""
    urls_by_message: dict[str, list[str]] = {}
    for verdict in collect_verdicts(workers, changes):
        if not verdict.is_good:
            urls_by_message.setdefault(verdict.words, []).append(verdict.url)
    if urls_by_message:
        raise Fault(
            INVALID, ". ".join(f"{', '.join(urls)}: {words}" for words, urls in urls_by_message.items())
        )


def apply_changes(workers: ConnectWorkers, changes: Changes) -> Mapping[str, str]:
    """Check with every worker, then send one PATCH; the overrides as they are then. Raises Fault."""
    require_valid(workers, changes)
    return patch_through_any(workers, changes)


def patch_through_any(workers: ConnectWorkers, changes: Changes) -> Mapping[str, str]:
    """One PATCH through the first worker that can be reached. Raises Fault."""
    last_fault = Fault(UNREACHABLE, "There is no worker to ask.")
    for url in workers.urls:
        try:
            return workers.patch(url, changes)
        except Fault as fault:
            last_fault = Fault(fault.error, f"{url}: {format_fault(fault)}.", fault.kind)
            if fault.error != UNREACHABLE:
                raise last_fault from None
    raise last_fault


def _request_verdict(workers: ConnectWorkers, url: str, changes: Changes) -> WorkerVerdict:
    try:
        return WorkerVerdict(url, workers.validate(url, changes))
    except Fault as fault:
        return WorkerVerdict(url, None, f"cannot be asked: {format_fault(fault)}")
