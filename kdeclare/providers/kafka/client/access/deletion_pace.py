"""The size of ACL deletions and the pauses between them, so that other clients of the controller do not wait.

The controller handles one request at a time. For each filter of a deletion it scans all bindings of the
cluster (org.apache.kafka.controller.AclControlManager.deleteAcls), so the time per filter depends on their
number. A request of another client waits at most for one deletion, because a pause follows each deletion.
"""

import time
from collections.abc import Callable

TARGET_S = 0.01
"""The intended duration of one deletion. Other changes to the cluster usually take about as long."""
MAX_DELETIONS = 50
"""The maximum number of bindings that one request deletes."""
_MAX_PAUSE_S = 5.0


class DeletionPace:
    """Determines how many bindings the next request deletes, and when it can be sent. Not thread-safe.

    A request lasts about `TARGET_S`, or contains only one filter if a single filter takes longer. The pause
    after a request is as long as the request, so deletions use at most half of the controller's time.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Begin with a single binding, because the number of bindings of the cluster is unknown."""
        self._monotonic, self._sleep = monotonic, sleep
        self._size = 1
        self._sent_at = self._resume_at = 0.0

    @property
    def size(self) -> int:
        """The number of bindings for the next request."""
        return self._size

    def begin(self) -> None:
        """Wait until the pause after the previous request is over. Call this right before a request."""
        pause_s = self._resume_at - self._monotonic()
        if pause_s > 0:
            self._sleep(pause_s)
        self._sent_at = self._monotonic()

    def end(self, count: int) -> None:
        """Adapt the pace to the duration of a request. Call this right after the response.

        count: the number of bindings that the request deleted. A fast response at most doubles the size.
        """
        answered_at = self._monotonic()
        taken_s = answered_at - self._sent_at
        self._resume_at = answered_at + min(taken_s, _MAX_PAUSE_S)
        if count >= self._size or taken_s > TARGET_S:  # a short request for the rest does not reduce the size
            affordable = int(count * TARGET_S / taken_s) if taken_s > 0 else MAX_DELETIONS
            self._size = max(1, min(affordable, 2 * count, MAX_DELETIONS))
