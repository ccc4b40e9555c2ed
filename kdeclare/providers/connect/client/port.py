"""The interface to the workers of one Connect cluster (KIP-1185): read all, and change shared overrides."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from datetime import UTC, datetime
from typing import Protocol

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.worker_state import Certificate, GroupSnapshot, PluginStatus, WorkerSnapshot

Changes = Mapping[str, str | None]
"""The body of a PATCH: raw values by key; None removes the override (JSON merge patch)."""

UNREACHABLE = "WORKER_UNREACHABLE"
"""Nothing was sent, so another worker can be tried."""
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
"""The error codes of Faults about workers. All other error codes come from Kafka."""


@dataclass(frozen=True, slots=True)
class Validation:
    """One worker's validation of proposed overrides: whether it could apply them, and errors by key.

    An error about the combination of all overrides has the empty key.
    """

    valid: bool
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class ConnectWorkers(Protocol):
    """The workers of one Connect cluster, each identified by its URL.

    Every method raises Fault, whose message refers to the worker as "it". A change without a response may
    have been made (UNKNOWN); during a rebalance it has not (RETRIABLE). Safe to use from several threads.
    """

    urls: tuple[str, ...]

    def overrides(self, url: str) -> Mapping[str, str]:
        """Return all raw overrides as one worker has read them."""

    def status(self, url: str) -> PluginStatus:
        """Return the status that one worker reports."""

    def read_served_certificate(self, url: str) -> Certificate | None:
        """Return the leaf certificate that a new TLS connection serves, trusted or not; None without TLS."""

    def validate(self, url: str, changes: Changes) -> Validation:
        """Validate with one worker the overrides after merging ``changes``. Changes nothing."""

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        """Merge ``changes`` through any worker, and return all resulting overrides."""

    def delete(self, url: str, key: str) -> None:
        """Remove one override through any worker."""

    def close(self) -> None:
        """Close connections. Safe to call twice."""


_MAX_THREADS = 16


def read_workers(workers: ConnectWorkers) -> GroupSnapshot:
    """Read the state of every worker; a worker's missing information is explained in its ``trouble``."""
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
    """Return the overrides of the most up-to-date worker that responds; None if none responds."""
    candidates = [(item.status.seen, item.url) for item in snapshots if item.status is not None]
    for _, url in sorted(candidates, key=lambda item: -1 if item[0] is None else item[0], reverse=True):
        try:
            return workers.overrides(url)
        except Fault:
            continue
    return None


def format_fault(fault: Fault) -> str:
    """Return the reason of a fault as part of a sentence."""
    return " ".join((fault.message or fault.error).split()).rstrip(".")


@dataclass(frozen=True, slots=True)
class WorkerVerdict:
    """One worker's verdict about proposed overrides. reason: why there is no verdict, if there is none."""

    url: str
    validation: Validation | None
    reason: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the worker could apply the overrides."""
        return self.validation is not None and self.validation.valid

    @property
    def words(self) -> str:
        """The worker's objections, or the reason why there is no verdict."""
        if self.validation is None:
            return self.reason
        lines = [
            f"{key}: {message}" if key else message
            for key, messages in self.validation.errors.items()
            for message in messages
        ]
        return "; ".join(line.strip().rstrip(".") for line in lines) or "invalid, without a reason"


def collect_verdicts(workers: ConnectWorkers, changes: Changes) -> tuple[WorkerVerdict, ...]:
    """Return every worker's verdict about ``changes``. Changes nothing; worker errors are not raised."""
    with ThreadPoolExecutor(min(_MAX_THREADS, len(workers.urls)), thread_name_prefix="workers") as pool:
        return tuple(pool.map(lambda url: _request_verdict(workers, url, changes), workers.urls))


def require_valid(workers: ConnectWorkers, changes: Changes) -> None:
    """Raise Fault, naming each worker that could not apply ``changes`` or does not respond."""
    urls_by_message: dict[str, list[str]] = {}
    for verdict in collect_verdicts(workers, changes):
        if not verdict.is_good:
            urls_by_message.setdefault(verdict.words, []).append(verdict.url)
    if urls_by_message:
        raise Fault(
            INVALID, ". ".join(f"{', '.join(urls)}: {words}" for words, urls in urls_by_message.items())
        )


def apply_changes(workers: ConnectWorkers, changes: Changes) -> Mapping[str, str]:
    """Validate with every worker, then send one PATCH; return the resulting overrides. Raises Fault."""
    require_valid(workers, changes)
    return patch_through_any(workers, changes)


def patch_through_any(workers: ConnectWorkers, changes: Changes) -> Mapping[str, str]:
    """Send one PATCH through the first reachable worker. Raises Fault."""
    last_fault = Fault(UNREACHABLE, "There is no worker to send the request to.")
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
        return WorkerVerdict(url, None, f"cannot be checked: {format_fault(fault)}")
