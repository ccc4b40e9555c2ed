"""Workers that are told again what they were not ready for: a rebalance was under way, or the leader new."""

from collections.abc import Mapping

from kdeclare.core.retry import RetryPolicy
from kdeclare.providers.connect.client.port import Changes, ConnectWorkers, Validation
from kdeclare.providers.connect.worker_state import Certificate, WorkerStatus


class RetryingWorkers:
    """The port `ConnectWorkers`, with changes that are sent again.

    Who only looks asks once: either they look again anyway, or they want to know who is silent.
    """

    def __init__(self, workers: ConnectWorkers, policy: RetryPolicy) -> None:
        self.urls = workers.urls
        self._workers = workers
        self._policy = policy

    def overrides(self, url: str) -> Mapping[str, str]:
        """As the port says."""
        return self._workers.overrides(url)

    def status(self, url: str) -> WorkerStatus:
        """As the port says."""
        return self._workers.status(url)

    def handshake(self, url: str) -> Certificate | None:
        """As the port says."""
        return self._workers.handshake(url)

    def validate(self, url: str, changes: Changes) -> Validation:
        """As the port says."""
        return self._workers.validate(url, changes)

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        """As the port says."""
        return self._policy.whole("patch", lambda: self._workers.patch(url, changes))

    def delete(self, url: str, key: str) -> None:
        """As the port says."""
        self._policy.whole("delete", lambda: self._workers.delete(url, key))

    def close(self) -> None:
        """As the port says."""
        self._workers.close()
