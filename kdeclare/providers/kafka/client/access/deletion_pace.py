"""The size of ACL deletions and the pauses between them, so that other clients of the controller do not wait.

The controller handles one request at a time. For each filter of a deletion it scans all bindings of the
cluster (org.apache.kafka.controller.AclControlManager.deleteAcls), and all other changes wait meanwhile. The
rest of a response time is waiting, mostly for the controller's log (``controller.quorum.append.linger.ms``,
25 ms by default), and does not delay other clients of the controller.
"""

import time
from collections.abc import Callable

TARGET_S = 0.005
"""The intended scan time of one deletion. It is short compared with the response time of any change."""
MAX_DELETIONS = 50
"""The maximum number of bindings that one request deletes."""
_MAX_PAUSE_S = 5.0
_REFERENCE_INTERVAL, _RARE_INTERVAL = 8, 64
"""How often a request has only one filter, for comparison. If all have one filter: how often one has two."""


class _Average:
    """The mean of the first values, and later an exponential moving average."""

    def __init__(self, weight: float) -> None:
        self._weight = weight
        self.count = 0
        self.value = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.value += max(self._weight, 1 / self.count) * (value - self.value)


class DeletionPace:
    """Determines how many bindings the next request deletes, and when it can be sent. Not thread-safe.

    The comparison of requests with one and with several filters shows the scan time of a filter. A request
    has as many filters as the controller scans for in `TARGET_S`, or one. After a request that occupies the
    controller for more than half of its response time, a pause follows, so that deletions use at most half
    of the controller's time.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Begin with one filter, because the scan time is unknown."""
        self._monotonic, self._sleep = monotonic, sleep
        self._size = 1
        self._requests = 0
        self._single_s = _Average(0.2)
        self._filter_s = _Average(0.1)
        self._sent_at = self._resume_at = 0.0

    @property
    def size(self) -> int:
        """The number of bindings for the next request."""
        if self._size == 1:
            return 2 if self._requests % _RARE_INTERVAL == 1 else 1
        return 1 if self._requests % _REFERENCE_INTERVAL == 0 else self._size

    def begin(self) -> None:
        """Wait until the pause after the previous request is over. Call this right before a request."""
        pause_s = self._resume_at - self._monotonic()
        if pause_s > 0:
            self._sleep(pause_s)
        self._sent_at = self._monotonic()

    def end(self, count: int) -> None:
        """Adapt the pace to the response time of a request. Call this right after the response.

        count: the number of bindings that the request deleted. The size grows to at most twice this number.
        """
        answered_at = self._monotonic()
        taken_s = answered_at - self._sent_at
        self._requests += 1
        if count == 1:
            self._single_s.add(taken_s)
        elif self._single_s.count:
            sample_s = (taken_s - self._single_s.value) / (count - 1)
            self._filter_s.add(
                min(sample_s, 2 * TARGET_S)
            )  # so that one very slow response is soon forgotten
            filter_s = self._filter_s.value
            affordable = int(TARGET_S / filter_s) if filter_s > TARGET_S / MAX_DELETIONS else MAX_DELETIONS
            self._size = max(1, min(affordable, 2 * count, MAX_DELETIONS))
        self._resume_at = answered_at + min(self._compute_pause_s(count, taken_s), _MAX_PAUSE_S)

    def _compute_pause_s(self, count: int, taken_s: float) -> float:
        """Return the pause after which the scan has taken at most half of the time since the request."""
        filter_s = self._filter_s.value
        is_known = self._filter_s.count > 0 and filter_s < TARGET_S
        busy_s = count * filter_s if is_known else taken_s  # all of the time, in the worst case
        return max(0.0, 2 * busy_s - taken_s)
