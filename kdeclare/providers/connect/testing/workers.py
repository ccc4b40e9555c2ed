"""`MemoryWorkers`: Connect workers with kdeclare's plug-in, simulated inside the test process."""

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from threading import RLock
from urllib.parse import urlsplit

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.connect.client.port import (
    INVALID,
    LOST,
    NO_OVERRIDE,
    NOT_READY,
    PLUGIN_MISSING,
    UNREACHABLE,
    Changes,
    Validation,
)
from kdeclare.providers.connect.worker_state import (
    AppliedUpdate,
    Certificate,
    Listener,
    PluginStatus,
    Refusal,
    hash_overrides,
)

_PREFIX = "listeners.https.ssl."
LOCATION = f"{_PREFIX}keystore.location"
PASSWORD = f"{_PREFIX}keystore.password"
WHITELIST = (
    f"{_PREFIX}key.password",
    LOCATION,
    PASSWORD,
    f"{_PREFIX}keystore.type",
    f"{_PREFIX}truststore.location",
    f"{_PREFIX}truststore.password",
    f"{_PREFIX}truststore.type",
)
STATIC = Certificate(
    "5747" * 16,
    "CN=static",
    "CN=ca",
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2036, 1, 1, tzinfo=UTC),
)
"""The certificate of workers without overrides."""
_AT = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Keystore:
    """A keystore file with a certificate. If ``password`` is None, any password is accepted."""

    certificate: Certificate
    password: str | None = None


@dataclass
class MemoryWorker:
    """One worker. Tests can change its fields.

    files: the keystores that only this worker has, by path.
    missing_paths: the paths of shared keystores that this worker does not have.
    lag: the number of status requests before the worker reads the next update. None means that it never reads
        the update.
    down: whether the worker is unreachable.
    bare: whether the worker has no plug-in.
    proxy_certificate: the certificate of a proxy in front of the worker; None without a proxy.
    """

    url: str
    files: dict[str, Keystore] = field(default_factory=dict)
    missing_paths: set[str] = field(default_factory=set)
    lag: int | None = 0
    down: bool = False
    bare: bool = False
    proxy_certificate: Certificate | None = None
    seen: int = -1
    applied: AppliedUpdate | None = None
    error: Refusal | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    certificate: Certificate = STATIC


class MemoryWorkers:
    """Implements `ConnectWorkers` with a log of updates. Each worker reads the log at its own pace.

    Safe to use from several threads.
    files: the keystores that all workers have, by path.
    placeholders: the values of placeholders. Placeholders that are not listed stay unresolved.
    log: the records of the topic that stores the overrides. An empty record represents a tombstone.
    calls: the methods that were called, with the URLs of the workers.
    lose_answers: the number of changes that take effect without a response.
    lose_requests: the number of changes that never arrive.
    rebalances: the number of changes that are rejected because of a rebalance.
    eager: whether the leader reads its writes before it responds, even if it lags.
    """

    def __init__(
        self, urls: tuple[str, ...] = ("https://w1:8083", "https://w2:8083", "https://w3:8083")
    ) -> None:
        self.urls = urls
        self.workers = {url: MemoryWorker(url) for url in urls}
        self.files: dict[str, Keystore] = {}
        self.placeholders: dict[str, str] = {}
        self.log: list[dict[str, str]] = []
        self.calls: list[tuple[str, str]] = []
        self.lose_answers = 0
        self.lose_requests = 0
        self.rebalances = 0
        self.eager = True
        self._lock = RLock()

    def overrides(self, url: str) -> Mapping[str, str]:
        """See `ConnectWorkers.overrides`."""
        with self._lock:
            return dict(self._get_record(self._get_worker("overrides", url).seen))

    def status(self, url: str) -> PluginStatus:
        """See `ConnectWorkers.status`."""
        with self._lock:
            worker = self._get_worker("status", url)
            self._read_next_update(worker)
            port = urlsplit(url).port or 443
            return PluginStatus(
                worker_id=urlsplit(url).netloc,
                leader=worker is self._get_leader(),
                plugin_version="memory",
                mode="distributed",
                seen=worker.seen if worker.seen >= 0 else None,
                applied=worker.applied,
                error=worker.error,
                overrides=tuple(sorted(worker.overrides)),
                whitelist=WHITELIST,
                listeners=(Listener("https", port, worker.certificate),),
            )

    def read_served_certificate(self, url: str) -> Certificate | None:
        """See `ConnectWorkers.read_served_certificate`."""
        with self._lock:
            self.calls.append(("handshake", url))
            worker = self.workers[url]
            if worker.down:
                raise _build_unreachable_fault()
            return worker.proxy_certificate or worker.certificate

    def validate(self, url: str, changes: Changes) -> Validation:
        """See `ConnectWorkers.validate`."""
        with self._lock:
            worker = self._get_worker("validate", url)
            return self._validate_overrides(worker, self._merge_changes(changes), changes)

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        """See `ConnectWorkers.patch`. The first worker that is up is the leader and validates the change."""
        with self._lock:
            self._get_worker("patch", url)
            if self.rebalances:
                self.rebalances -= 1
                raise Fault(NOT_READY, "A rebalance is in progress", FaultKind.RETRIABLE)
            if self.lose_requests:
                self.lose_requests -= 1
                raise Fault(LOST, "it did not respond", FaultKind.UNKNOWN)
            merged = self._merge_changes(changes)
            validation = self._validate_overrides(self._get_leader(), merged, changes)
            if not validation.valid:
                raise Fault(
                    INVALID, "; ".join(m for messages in validation.errors.values() for m in messages)
                )
            self._append_record(merged)
            return merged

    def delete(self, url: str, key: str) -> None:
        """See `ConnectWorkers.delete`."""
        with self._lock:
            self._get_worker("delete", url)
            if key not in self._get_record(len(self.log) - 1):
                raise Fault(NO_OVERRIDE, f"There is no override of {key}")
            self._append_record(self._merge_changes({key: None}))

    def close(self) -> None:
        """See `ConnectWorkers.close`."""

    def current(self) -> Mapping[str, str]:
        """Return the overrides in the last record of the topic."""
        with self._lock:
            return self._get_record(len(self.log) - 1)

    def _get_worker(self, call: str, url: str) -> MemoryWorker:
        self.calls.append((call, url))
        worker = self.workers[url]
        if worker.down:
            raise _build_unreachable_fault()
        if worker.bare:
            raise Fault(PLUGIN_MISSING, "it has no plug-in")
        return worker

    def _get_leader(self) -> MemoryWorker:
        return next(worker for worker in self.workers.values() if not worker.down)

    def _get_record(self, offset: int) -> dict[str, str]:
        return self.log[offset] if offset >= 0 else {}

    def _merge_changes(self, changes: Changes) -> dict[str, str]:
        merged = {**self._get_record(len(self.log) - 1), **changes}
        return {key: value for key, value in merged.items() if value is not None}

    def _append_record(self, overrides: dict[str, str]) -> None:
        self.log.append(overrides)
        leader = self._get_leader()
        for worker in self.workers.values():
            is_reading = worker.lag == 0 or (self.eager and worker is leader)
            if is_reading and not (worker.down or worker.bare):
                self._apply_update(worker)
        if self.lose_answers:
            self.lose_answers -= 1
            raise Fault(LOST, "it did not respond", FaultKind.UNKNOWN)

    def _read_next_update(self, worker: MemoryWorker) -> None:
        if worker.seen == len(self.log) - 1 or worker.lag is None:
            return
        if worker.lag:
            worker.lag -= 1
        else:
            self._apply_update(worker)

    def _apply_update(self, worker: MemoryWorker) -> None:
        """Apply the last update to a worker. A worker that refuses a value stays unchanged."""
        worker.seen = len(self.log) - 1
        overrides = self._get_record(worker.seen)
        validation = self._validate_overrides(worker, overrides, {})
        if not validation.valid:
            reason = "; ".join(message for messages in validation.errors.values() for message in messages)
            worker.error = Refusal(worker.seen, _AT, reason)
            return
        worker.error = None
        worker.applied = AppliedUpdate(worker.seen, _AT, hash_overrides(overrides))
        worker.overrides = overrides
        path = overrides.get(LOCATION)
        worker.certificate = self._collect_files(worker)[path].certificate if path else STATIC

    def _validate_overrides(
        self, worker: MemoryWorker, overrides: Mapping[str, str], changes: Changes
    ) -> Validation:
        unknown_keys = sorted(changes.keys() - set(WHITELIST))
        if unknown_keys:
            return Validation(False, dict.fromkeys(unknown_keys, ("It cannot be changed dynamically",)))
        path = overrides.get(LOCATION)
        if path is None:
            return Validation(True)
        keystore = self._collect_files(worker).get(path)
        if keystore is None:
            return Validation(False, {LOCATION: (f"There is no file {path}",)})
        password = overrides.get(PASSWORD)
        if (
            keystore.password is not None
            and self.placeholders.get(password or "", password) != keystore.password
        ):
            return Validation(False, {PASSWORD: ("The password is wrong",)})
        return Validation(True)

    def _collect_files(self, worker: MemoryWorker) -> Mapping[str, Keystore]:
        all_files = {**self.files, **worker.files}
        return {path: keystore for path, keystore in all_files.items() if path not in worker.missing_paths}


def _build_unreachable_fault() -> Fault:
    return Fault(UNREACHABLE, "it is unreachable (connection refused)")
