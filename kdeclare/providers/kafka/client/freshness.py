"""Ensure that reads show all metadata that the controller had committed before the read.

With KRaft, each broker responds from its own copy of the metadata. The copy lags behind the controller by
milliseconds, or by seconds after thousands of topics were created. Two offsets show the lag: the high
watermark of the metadata log (DescribeQuorum, KIP-595), and the offset of the copy, which ApiVersions returns
as FinalizedFeaturesEpoch (KIP-584).
"""

import logging
import threading
import time
from collections.abc import Collection
from typing import Any

from kafka.protocol.admin import DescribeQuorumRequest
from kafka.protocol.metadata import ApiVersionsRequest

from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.live.faults import Fault
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.providers.kafka.client.faults import build_fault_from_code
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.ids import TopicPartition

_VALID_FOR_S = 1.0
"""How long brokers count as up to date after a check, in seconds.

The period ends early if this client writes or if a reassignment ends.
"""
_ALL_BROKERS_WAIT_S = 0.5
"""How long to wait for all brokers, in seconds. After that, only brokers that are up to date are used."""
_MAX_WAIT_S = 30.0
"""The maximum number of seconds to wait until at least one broker is up to date.

This wait happens at the start and after a write. After the maximum time, outdated brokers are used as well.
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
        self._listed_moves: frozenset[TopicPartition] | None = None
        self._moves_listed_at = float("-inf")
        self._earlier_moves: frozenset[TopicPartition] | None = None
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

    def record_moves(self, ongoing: Collection[TopicPartition]) -> None:
        """Record the in-flight reassignments that the controller listed.

        Brokers count as outdated if a reassignment has ended since the previous list, or if there is no
        previous list. A broker that does not know yet that a reassignment has ended shows the union of old
        and new replicas.
        """
        if self._listed_moves is None or not self._listed_moves <= frozenset(ongoing):
            self._write_count += 1
        self._listed_moves, self._moves_listed_at = frozenset(ongoing), time.monotonic()

    def get_earlier_moves(self) -> frozenset[TopicPartition] | None:
        """Return the partitions that reads from up-to-date brokers could still show as being reassigned.

        The result combines two lists of reassignments: the list from shortly before the brokers caught up,
        and the latest list. The latest list is needed for a reassignment that began and ended between two
        reads of a topic. Return None if the earlier list does not exist or the brokers must be checked again.
        """
        if self._earlier_moves is None or not self._is_recent(self._write_count):
            return None
        return self._earlier_moves | (self._listed_moves or frozenset())

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
        has_recent_list = time.monotonic() - self._moves_listed_at < _VALID_FOR_S
        self._earlier_moves = self._listed_moves if has_recent_list else None
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
            committed = self._wire.send_one(_build_quorum_request(), _read_high_watermark)
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
            time.sleep(min(_MAX_POLL_S, max(_POLL_S, waited_s / 10)))
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


def _read_high_watermark(response: Any) -> int:
    partition = response.topics[0].partitions[0] if response.topics else response
    for code in (response.error_code, partition.error_code):
        if code:
            raise build_fault_from_code(code, "", changes=False)
    return int(partition.high_watermark)


def _read_epoch(response: Any) -> int:
    if response.error_code:
        raise build_fault_from_code(response.error_code, "", changes=False)
    return int(response.finalized_features_epoch)
