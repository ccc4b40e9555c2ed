"""Keeping reads from being older than what the controller had committed when they began.

With KRaft a broker answers reads from its own copy of the metadata, which follows the controller by
milliseconds, and by seconds after thousands of topics were created. Two numbers tell how far it is:
the high watermark of the metadata log (DescribeQuorum, KIP-595), and the offset that a broker's copy
has reached, which ApiVersions gives as FinalizedFeaturesEpoch (KIP-584).
"""

import logging
import threading
import time
from collections.abc import Collection
from typing import Any

from kafka.protocol.admin import DescribeQuorumRequest
from kafka.protocol.metadata import ApiVersionsRequest

from kdeclare.core.live.collector import Patience
from kdeclare.core.live.faults import Fault
from kdeclare.core.progress import Progress, quietly
from kdeclare.providers.kafka.client.faults import fault_for_code
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.ids import TopicPartition

_GOOD_FOR_S = 1.0
"""How long brokers count as up to date, unless something was written here, or a move ended, meanwhile."""
_PATIENCE_S = 0.5
"""How long to wait for all brokers; after that, those that are up to date have to do."""
_LIMIT_S = 30.0
"""How long to wait for any broker, at first and after a write, where nobody said otherwise; then an old
answer is better than none."""
_POLL_S = 0.01
_POLL_LIMIT_S = 0.2

WAITING = "Waiting for brokers to catch up with the controller"

_log = logging.getLogger(__name__)


class Freshness:
    """Which brokers know all that is committed. Safe to use from several threads."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._lock = threading.Lock()
        self._written = 0
        self._seen = -1
        self._moving: frozenset[TopicPartition] | None = None
        self._listed_at = float("-inf")
        self._moving_before: frozenset[TopicPartition] | None = None
        self._at = float("-inf")
        self._nodes: list[int] = []
        self._known = True
        self._ready = False
        self._limit_s = _LIMIT_S

    def wrote(self) -> None:
        """Something may have been changed: what was up to date no longer is."""
        self._written += 1

    def listed_moves(self, ongoing: Collection[TopicPartition]) -> None:
        """The controller named the moves under way: of one that is over, brokers have to know the end.

        Until a broker does, it shows the old and the new replicas together. What was up to date no longer is
        where an earlier list had a move that this one leaves out, or where there was no earlier list.
        """
        if self._moving is None or not self._moving <= frozenset(ongoing):
            self._written += 1
        self._moving, self._listed_at = frozenset(ongoing), time.monotonic()

    def moves_before(self) -> frozenset[TopicPartition] | None:
        """Return the moves that were listed shortly before brokers were found to be up to date.

        None where there is no such list, or brokers have to be asked again anyway.
        """
        return self._moving_before if self._is_recent(self._written) else None

    def nodes(self, must: Collection[int] = ()) -> list[int]:
        """Brokers to read from, all of ``must`` among them if they are up. Raises Fault."""
        if not self._known:
            return self._wire.brokers()
        with self._lock:
            written = self._written
            if not (self._is_recent(written) and set(must) <= set(self._nodes)):
                self._check(written, set(must), _PATIENCE_S if written == self._seen else self._limit_s)
            return list(self._nodes)

    def await_committed(self, patience: Patience) -> None:
        """Wait for any broker that knows all that is committed now; reads that follow need not wait.

        patience: how long, and at most `_LIMIT_S`; later waits of this client are not longer. Raises Fault.
        """
        self._limit_s = min(_LIMIT_S, patience.limit_s)
        if not self._known:
            return
        with self._lock:
            written = self._written
            if not (self._ready and self._is_recent(written)):
                self._check(written, set(), self._limit_s, patience.progress)

    def is_caught_up(self) -> bool:
        """Whether the brokers that are read from know all that is committed now. Raises Fault.

        It waits a moment and no longer, and so do the reads that follow: who wants to wait asks again.
        """
        if self._known:
            with self._lock:
                self._check(self._written, set(), _PATIENCE_S)
        return self._known and self._ready

    def _is_recent(self, written: int) -> bool:
        return written == self._seen and time.monotonic() - self._at < _GOOD_FOR_S

    def _check(self, written: int, must: set[int], limit_s: float, progress: Progress = quietly) -> None:
        listed_lately = time.monotonic() - self._listed_at < _GOOD_FOR_S
        self._moving_before = self._moving if listed_lately else None
        self._nodes = self._caught_up(must, limit_s, progress)
        self._seen, self._at = written, time.monotonic()

    def _caught_up(self, must: set[int], limit_s: float, progress: Progress) -> list[int]:
        begun = time.monotonic()
        live = self._wire.brokers()
        try:
            committed = self._wire.ask_one(_quorum(), _high_watermark)
        except Fault as fault:
            if fault.error in ("UNSUPPORTED_VERSION", "CLUSTER_AUTHORIZATION_FAILED"):
                _log.info("brokers cannot be checked for how recent their answers are: %s", fault)
                self._known = False
                return live
            raise
        pending, ready = set(live), list[int]()
        while pending:
            requests = {node: [api_versions()] for node in pending}
            for node, (epoch,) in self._wire.ask_each(requests, _epoch).items():
                if isinstance(epoch, Fault):
                    pending.discard(node)
                elif epoch >= committed - 1:
                    pending.discard(node)
                    ready.append(node)
            waited = time.monotonic() - begun
            if not pending or waited > limit_s or (ready and waited > _PATIENCE_S and not must & pending):
                break
            if waited > _PATIENCE_S:
                progress(WAITING, len(ready), len(live))
            time.sleep(min(_POLL_LIMIT_S, max(_POLL_S, waited / 10)))
        if pending:
            _log.info("brokers that are behind the controller: %s", sorted(pending))
        self._ready = bool(ready)
        return sorted(ready) or live


def api_versions() -> Any:
    """The request that tells the finalized features of a cluster, and how far a broker's copy of them is."""
    return ApiVersionsRequest(version=3, client_software_name="kdeclare", client_software_version="1")


def _quorum() -> Any:
    kind = DescribeQuorumRequest.TopicData
    log = kind(topic_name="__cluster_metadata", partitions=[kind.PartitionData(partition_index=0)])
    return DescribeQuorumRequest(topics=[log])


def _high_watermark(response: Any) -> int:
    partition = response.topics[0].partitions[0] if response.topics else response
    for code in (response.error_code, partition.error_code):
        if code:
            raise fault_for_code(code, "", changes=False)
    return int(partition.high_watermark)


def _epoch(response: Any) -> int:
    if response.error_code:
        raise fault_for_code(response.error_code, "", changes=False)
    return int(response.finalized_features_epoch)
