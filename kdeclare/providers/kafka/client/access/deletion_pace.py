"""The size of ACL deletions, and the pauses between them.

The controller handles one request at a time. For each filter of a deletion, the controller scans all bindings
of the cluster (org.apache.kafka.controller.AclControlManager.deleteAcls), and all other changes wait during
the scan. This module limits these waits. Most of the response time that is not spent on the scan is spent
waiting for the controller's log (``controller.quorum.append.linger.ms``, 25 ms by default), and the
controller is free during that time. A deletion that matches nothing writes nothing to the log, so its
response time shows how long the scan takes.
"""

import math
import time
from collections import deque
from collections.abc import Callable

TARGET_S = 0.01
"""The target duration of a scan in seconds, including the round trip to the controller."""
MAX_DELETIONS = 50
"""The maximum number of bindings that one request deletes."""
MEASURED_FROM = 20
"""kdeclare measures the scan time only if it has at least this many bindings to delete."""
_REQUESTS_PER_MEASUREMENT = 25
_FIRST_MEASUREMENTS, _KEPT_MEASUREMENTS = 3, 5
_MAX_PAUSE_S = 5.0


class DeletionPace:
    """Determines how many bindings the next request deletes, and when it can be sent. Not thread-safe.

    A request has as many filters as the controller can scan for in `TARGET_S`, but at least one. If the scan
    took more than half of the response time, a pause follows, so that deletions use at most half of the
    controller's time.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Begin with one filter, because the scan time is unknown."""
        self._monotonic, self._sleep = monotonic, sleep
        # The seconds per filter. The smallest value is used, because requests of other clients delay
        # responses.
        self._filter_s: deque[float] = deque(maxlen=_KEPT_MEASUREMENTS)
        self._measured_size = 0
        self._requests = 0
        self._sent_at = self._resume_at = 0.0
        self.size = 1
        """The number of bindings for the next request."""

    @property
    def is_measurement_due(self) -> bool:
        """Whether the previous deletion should be sent again, to measure the scan time.

        The repeated deletion matches nothing. A measurement is due while the number of bindings per request
        still grows, at regular intervals (because the number of bindings in the cluster changes), and after a
        measurement that is more than twice as long as the shortest of the recent measurements.
        """
        if len(self._filter_s) < _FIRST_MEASUREMENTS or self._measured_size < self.size:
            return True
        is_doubtful = self._filter_s[-1] > 2 * min(self._filter_s)
        return is_doubtful or self._requests >= _REQUESTS_PER_MEASUREMENT

    def begin(self) -> None:
        """Wait until the pause after the previous request is over. Call this right before each request."""
        pause_s = self._resume_at - self._monotonic()
        if pause_s > 0:
            self._sleep(pause_s)
        self._sent_at = self._monotonic()

    def end(self, filters: int) -> None:
        """Determine the pause after a deletion. Call this right after the response."""
        answered_at = self._monotonic()
        taken_s = answered_at - self._sent_at
        self._requests += 1
        # If the scan time is not known, the whole response time could be scan time.
        scan_s = min(taken_s, filters * min(self._filter_s)) if self._filter_s else taken_s
        self._pause(answered_at, 2 * scan_s - taken_s)

    def end_measurement(self, filters: int) -> None:
        """Adapt the number of bindings per request to the scan time.

        Call this right after the response to the repeated deletion.
        """
        answered_at = self._monotonic()
        taken_s = answered_at - self._sent_at
        self._filter_s.append(taken_s / filters)
        self._measured_size, self._requests = filters, 0
        affordable = TARGET_S / max(min(self._filter_s), TARGET_S / MAX_DELETIONS)
        # Round up while the size grows: part of a short response time is network time.
        rounded = math.ceil(affordable) if affordable >= filters else math.floor(affordable)
        self.size = max(1, min(rounded, 2 * filters, MAX_DELETIONS))
        self._pause(answered_at, min(taken_s, filters * min(self._filter_s)))

    def _pause(self, answered_at: float, pause_s: float) -> None:
        self._resume_at = answered_at + min(max(0.0, pause_s), _MAX_PAUSE_S)
