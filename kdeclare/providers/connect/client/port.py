"""The interface for reading the workers of one Connect cluster and changing their overrides (KIP-1185)."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from datetime import UTC, datetime
from typing import Protocol

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.worker_state import Certificate, GroupSnapshot, PluginStatus, WorkerSnapshot

Changes = Mapping[str, str | None]
"""The body of a PATCH request (JSON merge patch): raw values by key. None removes the override."""

UNREACHABLE = "WORKER_UNREACHABLE"
"""The error code for a request that was not sent. The request can be sent to a different worker."""
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
"""All error codes of Faults about workers."""


@dataclass(frozen=True, slots=True)
class Validation:
    """The response of a worker to proposed overrides: whether the worker can apply them, and errors by key.

    The key is empty for an error about the combination of all overrides.
    """

    valid: bool
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class ConnectWorkers(Protocol):
    """The workers of one Connect cluster, each identified by its URL.

    Every method can raise Fault. The message of the Fault refers to the worker as "it". The kind of the Fault
    is UNKNOWN if a change got no response, and RETRIABLE if a rebalance prevented the change. Safe to use
    from several threads.
    """

    urls: tuple[str, ...]

    def overrides(self, url: str) -> Mapping[str, str]:
        """Return all raw overrides that one worker has read."""

    def status(self, url: str) -> PluginStatus:
        """Return the status that one worker reports."""

    def read_served_certificate(self, url: str) -> Certificate | None:
        """Return the leaf certificate of a new TLS connection; None if the worker does not use TLS.

        The certificate is not verified.
        """

    def validate(self, url: str, changes: Changes) -> Validation:
        """Have one worker check whether it can apply ``changes``, without making the changes."""

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        """Send ``changes`` to one worker, and return all overrides that are set afterwards."""

    def delete(self, url: str, key: str) -> None:
        """Remove one override by sending a request to one worker."""

    def close(self) -> None:
        """Close connections. A second call has no effect."""


_MAX_THREADS = 16


def read_workers(workers: ConnectWorkers) -> GroupSnapshot:
    """Read the state of every worker.

    If some of a worker's state cannot be read, the worker's ``trouble`` contains the reason.
    """
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
    """Return the overrides of the most up-to-date worker that responds; None if no worker responds."""
    candidates = [(item.status.seen, item.url) for item in snapshots if item.status is not None]
    for _, url in sorted(candidates, key=lambda item: -1 if item[0] is None else item[0], reverse=True):
        try:
            return workers.overrides(url)
        except Fault:
            continue
    return None


def format_fault(fault: Fault) -> str:
    """Return the message of a fault as a clause without line breaks and without a final period."""
    return " ".join((fault.message or fault.error).split()).rstrip(".")


@dataclass(frozen=True, slots=True)
class WorkerVerdict:
    """The verdict of one worker about proposed overrides.

    reason: the reason why the worker gave no verdict; empty if it gave a verdict.
    """

    url: str
    validation: Validation | None
    reason: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the worker can apply the overrides."""
        return self.validation is not None and self.validation.valid

    @property
    def words(self) -> str:
        """The errors that the worker reported, or the reason why the worker gave no verdict."""
        if self.validation is None:
            return self.reason
        lines = [
            f"{key}: {message}" if key else message
            for key, messages in self.validation.errors.items()
            for message in messages
        ]
        return "; ".join(line.strip().rstrip(".") for line in lines) or "invalid (the worker gave no reason)"


def collect_verdicts(workers: ConnectWorkers, changes: Changes) -> tuple[WorkerVerdict, ...]:
    """Have every worker check whether it can apply ``changes``, without making the changes.

    If a worker does not respond, its verdict contains the reason.
    """
    with ThreadPoolExecutor(min(_MAX_THREADS, len(workers.urls)), thread_name_prefix="workers") as pool:
        return tuple(pool.map(lambda url: _request_verdict(workers, url, changes), workers.urls))


def require_valid(workers: ConnectWorkers, changes: Changes) -> None:
    """Raise Fault if a worker cannot apply ``changes`` or does not respond. The message names the workers."""
    urls_by_message: dict[str, list[str]] = {}
    for verdict in collect_verdicts(workers, changes):
        if not verdict.is_good:
            urls_by_message.setdefault(verdict.words, []).append(verdict.url)
    if urls_by_message:
        raise Fault(
            INVALID, ". ".join(f"{', '.join(urls)}: {words}" for words, urls in urls_by_message.items())
        )


def apply_changes(workers: ConnectWorkers, changes: Changes) -> Mapping[str, str]:
    """Have every worker validate the changes, then send one PATCH. Return the resulting overrides.

    Raises Fault.
    """
    require_valid(workers, changes)
    return patch_through_any(workers, changes)


def patch_through_any(workers: ConnectWorkers, changes: Changes) -> Mapping[str, str]:
    """Send one PATCH to the first reachable worker. Raises Fault."""
    last_fault = Fault(UNREACHABLE, "No worker is configured to receive the request.")
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
