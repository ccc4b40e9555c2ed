"""Ensure that reads show all metadata that the controller had committed before the read.

With KRaft, each broker responds from its own copy of the metadata. The copy lags behind the controller by
milliseconds, or by seconds after thousands of topics were created. Two offsets show the lag: the high
watermark of the metadata log (DescribeQuorum, KIP-595), and the offset of the copy, which ApiVersions returns
as FinalizedFeaturesEpoch (KIP-584).

Some responses of the controller are ahead even of its committed metadata. For these responses, a third offset
matters: the end of the controller's own log.
"""

import logging
import threading
import time
from collections.abc import Collection
from typing import Any

from kafka.protocol.admin.cluster import DescribeQuorumRequest
from kafka.protocol.metadata import ApiVersionsRequest

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.live.faults import Fault
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.providers.kafka.client.faults import build_fault_from_code
from kdeclare.providers.kafka.client.wire import Wire

_VALID_FOR_S = 1.0
"""How long brokers count as up to date after a check, in seconds, unless this client writes."""
_ALL_BROKERS_WAIT_S = 0.5
"""How long to wait for all brokers, in seconds. After that, only brokers that are up to date are used."""
_MAX_WAIT_S = 30.0
"""The maximum number of seconds to wait until at least one broker is up to date.

This wait happens at the start and after a write. After the maximum time, outdated brokers are used as well.
"""
_PENDING_LIMIT_S = 0.6
"""How long to wait for the controller to append its next records, in seconds.

The controller holds records back for `controller.quorum.append.linger.ms` (25 ms by default), and appends a
record of its own every `metadata.max.idle.interval.ms` (500 ms by default). If it has appended nothing for
longer than both intervals, it held no records back.
"""
_POLL_S = 0.01
_MAX_POLL_S = 0.2

CATCH_UP_MESSAGE = "Waiting for brokers to catch up with the controller"

_log = logging.getLogger(__name__)


class Freshness:
    """Tracks which brokers have caught up with the controller. Thread-safe."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._lock = threading.Lock()
        self._write_count = 0
        self._checked_write_count = -1
        self._checked_at = float("-inf")
        self._selected_brokers: list[int] = []
        self._can_check = True
        self._has_fresh_brokers = False
        self._max_wait_s = _MAX_WAIT_S

    def mark_written(self) -> None:
        """Record that this client may have changed the cluster.

        Brokers count as outdated until the next check.
        """
        self._write_count += 1

    def nodes(self, must: Collection[int] = ()) -> list[int]:
        """Return the ids of the brokers to read from. Raises Fault.

        must: the brokers that the result should contain. The method waits until these brokers are up to date,
            but only for a limited time.
        """
        if not self._can_check:
            return self._wire.brokers()
        with self._lock:
            written = self._write_count
            if not (self._is_recent(written) and set(must) <= set(self._selected_brokers)):
                self._check_brokers(
                    written,
                    set(must),
                    _ALL_BROKERS_WAIT_S if written == self._checked_write_count else self._max_wait_s,
                )
            return list(self._selected_brokers)

    def await_committed(self, wait_policy: WaitPolicy) -> None:
        """Wait until a broker has all metadata that is committed now, so that later reads do not wait.

        wait_policy: the time limit of this wait and of later waits, at most `_MAX_WAIT_S`.

        Raises Fault.
        """
        self._max_wait_s = min(_MAX_WAIT_S, wait_policy.limit_s)
        if not self._can_check:
            return
        with self._lock:
            write_count = self._write_count
            if not (self._has_fresh_brokers and self._is_recent(write_count)):
                self._check_brokers(write_count, set(), self._max_wait_s, wait_policy.progress)

    def await_pending_commits(self) -> None:
        """Wait until the metadata that the controller holds in memory is committed.

        Brokers then count as outdated until the next check. Raises Fault.

        Records that the controller has not appended yet have no offset. The controller appends records in
        order, so its log contains these records once the log has grown beyond its current end.
        """
        if self._can_check:
            started_at, delay_s = time.monotonic(), _POLL_S
            log_end = self._wire.send_one(_build_quorum_request(), _read_offsets).log_end
            while time.monotonic() - started_at < _PENDING_LIMIT_S:
                if self._wire.send_one(_build_quorum_request(), _read_offsets).high_watermark > log_end:
                    break
                time.sleep(delay_s)
                delay_s = min(_MAX_POLL_S / 2, delay_s * 1.5)
        self.mark_written()

    def is_caught_up(self) -> bool:
        """Return whether the brokers that are used for reads have all metadata that is committed now.

        Waits only briefly. Raises Fault.
        """
        if self._can_check:
            with self._lock:
                self._check_brokers(self._write_count, set(), _ALL_BROKERS_WAIT_S)
        return self._can_check and self._has_fresh_brokers

    def _is_recent(self, write_count: int) -> bool:
        return write_count == self._checked_write_count and time.monotonic() - self._checked_at < _VALID_FOR_S

    def _check_brokers(
        self, write_count: int, required: set[int], limit_s: float, progress: Progress = ignore_progress
    ) -> None:
        caught_up = self._await_caught_up(required, limit_s, progress)
        if not caught_up and write_count == self._checked_write_count:
            # On a busy cluster, all brokers can have fallen behind again. The brokers that the last check
            # selected have all metadata that was committed at that time.
            caught_up = [node for node in self._selected_brokers if node in self._wire.brokers()]
        self._selected_brokers = caught_up or self._wire.brokers()
        self._checked_write_count, self._checked_at = write_count, time.monotonic()

    def _await_caught_up(self, required: set[int], limit_s: float, progress: Progress) -> list[int]:
        started_at = time.monotonic()
        live_brokers = self._wire.brokers()
        try:
            committed = self._wire.send_one(_build_quorum_request(), _read_offsets).high_watermark
        except Fault as fault:
            if fault.error in ("UNSUPPORTED_VERSION", "CLUSTER_AUTHORIZATION_FAILED"):
                _log.info("cannot check whether brokers are up to date: %s", fault)
                self._can_check = False
                return []
            raise
        pending, caught_up = set(live_brokers), list[int]()
        while pending:
            requests = {node: [build_api_versions_request()] for node in pending}
            for node, (epoch,) in self._wire.send_each(requests, _read_epoch).items():
                if isinstance(epoch, Fault):
                    pending.discard(node)
                elif epoch >= committed - 1:
                    pending.discard(node)
                    caught_up.append(node)
            waited_s = time.monotonic() - started_at
            if (
                not pending
                or waited_s > limit_s
                or (caught_up and waited_s > _ALL_BROKERS_WAIT_S and not required & pending)
            ):
                break
            if waited_s > _ALL_BROKERS_WAIT_S:
                progress(CATCH_UP_MESSAGE, len(caught_up), len(live_brokers))
            time.sleep(min(_MAX_POLL_S, max(_POLL_S, waited_s / 5)))
        if pending:
            _log.info("brokers that lag behind the controller: %s", sorted(pending))
        self._has_fresh_brokers = bool(caught_up)
        return sorted(caught_up)


def build_api_versions_request() -> Any:
    """Build the request for the finalized features and the metadata offset of a broker."""
    return ApiVersionsRequest(version=3, client_software_name="kdeclare", client_software_version="1")


def _build_quorum_request() -> Any:
    topic_class = DescribeQuorumRequest.TopicData
    metadata_topic = topic_class(
        topic_name="__cluster_metadata", partitions=[topic_class.PartitionData(partition_index=0)]
    )
    return DescribeQuorumRequest(topics=[metadata_topic])


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """Offsets of the metadata log.

    high_watermark: the offset after the last committed record.
    log_end: the offset after the last record in the log of the active controller.
    """

    high_watermark: int
    log_end: int


def _read_offsets(response: Any) -> LogOffsets:
    partition = response.topics[0].partitions[0] if response.topics else response
    for code in (response.error_code, partition.error_code):
        if code:
            raise build_fault_from_code(code, "", changes=False)
    committed = int(partition.high_watermark)
    leader_ends = (
        int(voter.log_end_offset)
        for voter in partition.current_voters
        if voter.replica_id == partition.leader_id
    )
    return LogOffsets(committed, max(leader_ends, default=committed))


def _read_epoch(response: Any) -> int:
    if response.error_code:
        raise build_fault_from_code(response.error_code, "", changes=False)
    return int(response.finalized_features_epoch)
