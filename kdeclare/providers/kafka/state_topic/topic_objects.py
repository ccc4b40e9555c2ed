"""Implement `ConditionalObjects` in a compacted topic.

Each object is a record with the key ``<project>/<environment>/<key>``. The version of the object consists of
the id of the topic and the offset of the record. All writers of a project in an environment use the same
transactional id, so the transaction coordinator lets only the newest writer commit. A write is conditional
because of this order:

1. The producer is initialized. From now on, no earlier producer can commit.
2. The record is written in a transaction. Its offset shows the end of the log: the leader has written the
   record to all in-sync replicas, so this is not the outdated log of a broker that lost its leadership.
3. All committed records before this offset are read, and the version is compared.
4. The transaction is committed. If the coordinator accepts the commit, no other producer was initialized
   since step 1, so no other process has written since step 3. Otherwise, nothing was written.

If the response to the commit is lost, a new producer is initialized, which ends the transaction. The next
read then shows the outcome.
"""

import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.storage.conditional_objects import ObjectConflict, ObjectVersion, StoredObject
from kdeclare.core.storage.location import StateLocation
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.client.records.client_arguments import (
    MIN_TIMEOUT_S,
    RecordClientArguments,
    build_record_client_arguments,
)
from kdeclare.providers.kafka.client.records.transactional_producer import TransactionalProducer
from kdeclare.providers.kafka.connection import KafkaTarget
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.state_topic.problems import build_contention_error, build_fault_error
from kdeclare.providers.kafka.state_topic.state_log import (
    OPEN_TRANSACTION_S,
    TRANSACTION_TIMEOUT_S,
    StateLog,
)
from kdeclare.providers.kafka.state_topic.topic_settings import (
    MAX_OBJECT_BYTES,
    TopicRequirements,
    choose_replication_factor,
)

T = TypeVar("T")
_Check = Callable[[], None]

_PERMANENT = re.compile(
    r".*AUTHORIZATION_FAILED|.*AUTHENTICATION_FAILED|UNSUPPORTED_.*|MESSAGE_TOO_LARGE|RECORD_LIST_TOO_LARGE|"
    r"POLICY_VIOLATION|INVALID_(CONFIG|RECORD|TIMESTAMP|REPLICATION_FACTOR|TOPIC_EXCEPTION)|UNSTABLE_.*"
)
"""Matches the names of errors that would occur again if the request were repeated."""
_FENCED = frozenset({"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})

_STATE_SUFFIX = b"/state.json"
"""The suffix of the record key of every state."""

_FIRST_DELAY_S = 0.02
_MAX_DELAY_S = 1.0


class TopicObjects:
    """See `ConditionalObjects`. Thread-safe. Requests run one after another.

    Reads never initialize a producer, so they never interrupt a write of another process.
    """

    def __init__(
        self,
        cluster: Cluster,
        arguments: RecordClientArguments,
        requirements: TopicRequirements,
        location: StateLocation,
        timeout_s: float,
    ) -> None:
        """Create the object without sending a request. timeout_s: how long to repeat requests that fail."""
        self._cluster = cluster
        self._arguments = arguments
        self._requirements = requirements
        self._topic = requirements.topic
        self._folder = f"{location.project}/{location.environment}/"
        self._transactional_id = f"kdeclare-state-{self._topic}/{location.project}/{location.environment}"
        self._timeout_s = timeout_s
        self._log = StateLog(cluster, arguments, requirements, self._folder.encode())
        self._producer: TransactionalProducer | None = None
        self._mutex = threading.Lock()

    @property
    def max_object_bytes(self) -> int:
        """See `ConditionalObjects.max_object_bytes`."""
        return MAX_OBJECT_BYTES

    def check(self) -> None:
        """Raise KdeclareError if the topic exists and could lose records."""
        with self._mutex:
            self._repeat(self._log.find_topic, self._timeout_s)

    def get(self, key: str) -> StoredObject | None:
        """See `ConditionalObjects.get`."""
        with self._mutex:
            self._repeat(self._log.read_to_end, self._timeout_s)
            record = self._log.get(self._encode_key(key))
            return None if record is None else StoredObject(record.value, self._build_version(record.offset))

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """See `ConditionalObjects.list_keys`."""
        with self._mutex:
            self._repeat(self._log.read_to_end, self._timeout_s)
            keys = (key.decode().removeprefix(self._folder) for key in self._log.iterate_keys())
            return tuple(sorted(key for key in keys if key.startswith(prefix)))

    def list_projects(self) -> tuple[tuple[str, str], ...]:
        """See `ListsProjects.list_projects`."""
        with self._mutex:
            log = StateLog(self._cluster, self._arguments, self._requirements, b"", _STATE_SUFFIX)
            try:
                self._repeat(log.read_to_end, self._timeout_s)
                paths = [key.removesuffix(_STATE_SUFFIX).decode().split("/") for key in log.iterate_keys()]
            finally:
                log.close()
        return tuple(sorted((path[0], path[1]) for path in paths if len(path) == 2))

    def create(self, key: str, data: bytes) -> ObjectVersion:
        """See `ConditionalObjects.create`."""
        return self._write(key, data, None)

    def replace(self, key: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        """See `ConditionalObjects.replace`."""
        return self._write(key, data, version)

    def _write(self, key: str, data: bytes, version: ObjectVersion | None) -> ObjectVersion:
        if len(data) > MAX_OBJECT_BYTES:
            raise ValueError(f"'{key}' has {len(data)} bytes")
        record_key = self._encode_key(key)

        def check_version() -> None:
            record = self._log.get(record_key)
            if (None if record is None else self._build_version(record.offset)) != version:
                raise ObjectConflict(key)

        with self._mutex:
            return self._build_version(self._commit({record_key: data}, check_version)[record_key])

    def delete(self, keys: Iterable[str]) -> None:
        """See `ConditionalObjects.delete`."""
        record_keys = [self._encode_key(key) for key in keys]
        with self._mutex:
            self._repeat(self._log.read_to_end, self._timeout_s)
            tombstones = {key: None for key in record_keys if self._log.get(key) is not None}
            if tombstones:
                self._commit(tombstones, lambda: None)

    def get_location(self, key: str) -> str:
        """See `ConditionalObjects.get_location`."""
        return f"kafka://{self._topic}, record {self._folder}{key}"

    def close(self) -> None:
        """See `ConditionalObjects.close`."""
        with self._mutex:
            self._drop_producer()
            self._log.close()
            self._cluster.close()

    def _commit(self, records: Mapping[bytes, bytes | None], check: _Check) -> Mapping[bytes, int]:
        """Write records in a transaction if ``check`` accepts the earlier records. Return the new offsets."""
        write = _Write(records, check)
        try:
            return self._repeat(lambda: self._try_commit(write), self._timeout_s + OPEN_TRANSACTION_S)
        except BaseException:  # also an interrupt: an open transaction would make readers wait
            self._abort(write)
            raise

    def _try_commit(self, write: "_Write") -> Mapping[bytes, int]:
        log = self._log
        try:
            log.ensure_topic()
            producer = self._producer = self._producer or TransactionalProducer(
                self._arguments, self._transactional_id, TRANSACTION_TIMEOUT_S
            )
            if write.offsets:  # the response to an earlier commit was lost; it succeeded or was aborted
                log.read_to_end()
                if write.is_done(log):
                    return write.offsets
                write.offsets = {}
            self._check_early(write)
            write.is_open = True
            offsets = producer.send(self._topic, write.records)
            if not log.read_to(min(offsets.values()), TRANSACTION_TIMEOUT_S):
                raise Fault("REQUEST_TIMED_OUT", "earlier records could not be read", FaultKind.RETRIABLE)
            write.check()
            write.offsets = offsets
            producer.commit()
        except Fault:
            write.is_open = False
            self._drop_producer()
            raise
        write.is_open = False
        return offsets

    def _check_early(self, write: "_Write") -> None:
        """Detect most conflicts, and raise ObjectConflict, before anything is written."""
        if not self._log.is_recent:
            self._log.read_to_end()
        try:
            write.check()
        except ObjectConflict:
            self._log.read_to_end()
            write.check()

    def _abort(self, write: "_Write") -> None:
        if write.is_open and self._producer is not None:
            try:
                self._producer.abort()
            except Fault:  # the coordinator aborts the transaction when it times out
                self._drop_producer()

    def _repeat(self, attempt: Callable[[], T], limit_s: float) -> T:
        return _repeat(attempt, limit_s, self._topic, self._transactional_id)

    def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()

    def _encode_key(self, key: str) -> bytes:
        return f"{self._folder}{key}".encode()

    def _build_version(self, offset: int) -> ObjectVersion:
        return ObjectVersion(f"{self._log.topic_id}/{offset}")


@dataclass(slots=True)
class _Write:
    """A write that can take several attempts.

    offsets: the offsets of the records in the last transaction for which a commit was requested.
    is_open: whether a transaction may be open that this process can still abort.
    """

    records: Mapping[bytes, bytes | None]
    check: _Check
    offsets: Mapping[bytes, int] = field(default_factory=dict)
    is_open: bool = False

    def is_done(self, log: StateLog) -> bool:
        """Whether the write was committed: its records are then the latest records of their keys."""
        for key, value in self.records.items():
            record = log.get(key)
            if (None if record is None else record.offset) != (None if value is None else self.offsets[key]):
                return False
        return True


def _repeat(attempt: Callable[[], T], limit_s: float, topic: str, transactional_id: str = "") -> T:
    """Call a function until it raises no Fault, and return its result.

    Raises KdeclareError if a Fault is permanent, or if the function still fails after ``limit_s`` seconds.

    The pauses are random, so that two processes that interrupt each other do not retry in lockstep.
    """
    started_at = time.monotonic()
    delay_s = _FIRST_DELAY_S
    while True:
        try:
            return attempt()
        except Fault as fault:
            if _PERMANENT.fullmatch(fault.error):
                raise build_fault_error(fault, topic, transactional_id) from fault
            if time.monotonic() - started_at > limit_s:
                if fault.error in _FENCED:
                    raise build_contention_error(topic, limit_s) from fault
                raise build_fault_error(fault, topic, transactional_id) from fault
        time.sleep(delay_s * random.random())
        delay_s = min(_MAX_DELAY_S, 2 * delay_s)


def open_topic_objects(
    target: KafkaTarget,
    location: StateLocation,
    replication_factor: int | None,
    timeout_s: float,
    options: tuple[str, ...],
) -> TopicObjects:
    """Connect to the cluster of a topic, and check the topic if it exists. Raises KdeclareError.

    replication_factor: the option in the URL. options: the options of ``kdeclare topic alter`` that select
        the cluster.
    """
    timeout_s = max(MIN_TIMEOUT_S, timeout_s)
    config = dict(target.config)
    arguments = build_record_client_arguments(target.servers, config, timeout_s)
    cluster = connect(target.servers, config, timeout_s=timeout_s, request_timeout_s=timeout_s)
    try:
        factor = _repeat(
            lambda: choose_replication_factor(cluster, replication_factor), timeout_s, location.host
        )
        requirements = TopicRequirements(location.host, factor, options)
        objects = TopicObjects(cluster, arguments, requirements, location, timeout_s)
        objects.check()
    except BaseException:
        cluster.close()
        raise
    return objects
