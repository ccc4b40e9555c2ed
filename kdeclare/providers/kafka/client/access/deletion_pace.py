"""The size of ACL deletions and the pauses between them, so that other clients of the controller do not wait.

The controller handles one request at a time. For each filter of a deletion it scans all bindings of the
cluster (org.apache.kafka.controller.AclControlManager.deleteAcls), and all other changes wait meanwhile. The
rest of the response time is mostly the wait for the controller's log (``controller.quorum.append.linger.ms``,
25 ms by default), during which the controller is free. A deletion that matches nothing writes nothing to the
log, so its response time shows how long the scan takes.
"""

import math
import time
from collections.abc import Callable

from kdeclare.core.frozen_dataclass import dataclass

TARGET_S = 0.01
"""The intended time of a scan, including the way to the controller and back."""
MAX_DELETIONS = 50
"""The maximum number of bindings that one request deletes."""
MEASURED_FROM = 20
"""The scan time is measured only for a deletion of at least this many bindings. Others are few requests."""
_REQUESTS_PER_MEASUREMENT = 25
_MAX_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class _Measurement:
    filters: int
    taken_s: float


class DeletionPace:
    """Determines how many bindings the next request deletes, and when it can be sent. Not thread-safe.

    A request has as many filters as the controller scans for in `TARGET_S`, or one. A pause follows if the
    scan took more than half of the response time, so that deletions use at most half of the controller's
    time.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Begin with one filter, because the scan time is unknown."""
        self._monotonic, self._sleep = monotonic, sleep
        self._measurement: _Measurement | None = None
        self._requests = 0
        self._sent_at = self._resume_at = 0.0
        self.size = 1
        """The number of bindings for the next request."""

    @property
    def is_measurement_due(self) -> bool:
        """Whether the previous deletion should be sent again, which then matches nothing.

        This is so as long as the size grows, and regularly, because the number of bindings changes.
        """
        is_growing = self._measurement is None or self._measurement.filters < self.size
        return is_growing or self._requests >= _REQUESTS_PER_MEASUREMENT

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
        scan_s = taken_s  # in the worst case
        if self._measurement is not None:
            scan_s = min(taken_s, filters * self._measurement.taken_s / self._measurement.filters)
        self._pause(answered_at, 2 * scan_s - taken_s)

    def end_measurement(self, filters: int) -> None:
        """Adapt the size to the scan time. Call this right after the response to the repeated deletion."""
        answered_at = self._monotonic()
        taken_s = answered_at - self._sent_at
        self._measurement = _Measurement(filters, taken_s)
        self._requests = 0
        affordable = filters * TARGET_S / max(taken_s, TARGET_S / MAX_DELETIONS)
        rounded = math.ceil(affordable) if taken_s <= TARGET_S else math.floor(affordable)
        self.size = max(1, min(rounded, 2 * filters, MAX_DELETIONS))
        self._pause(answered_at, taken_s)

    def _pause(self, answered_at: float, pause_s: float) -> None:
        self._resume_at = answered_at + min(max(0.0, pause_s), _MAX_PAUSE_S)
