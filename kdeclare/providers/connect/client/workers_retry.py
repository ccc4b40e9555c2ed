"""Retry the changes of Connect workers after RETRIABLE faults, such as those during a rebalance."""

from collections.abc import Mapping

from kdeclare.core.operations.retry import RetryPolicy
from kdeclare.providers.connect.client.port import Changes, ConnectWorkers, Validation
from kdeclare.providers.connect.worker_state import Certificate, PluginStatus


class RetryingWorkers:
    """Wraps a `ConnectWorkers` object, and retries its changes after RETRIABLE faults.

    Read requests are not retried: callers repeat them, or report the worker that does not respond.
    """

    def __init__(self, workers: ConnectWorkers, policy: RetryPolicy) -> None:
        self.urls = workers.urls
        self._workers = workers
        self._policy = policy

    def overrides(self, url: str) -> Mapping[str, str]:
        """See `ConnectWorkers.overrides`."""
        return self._workers.overrides(url)

    def status(self, url: str) -> PluginStatus:
        """See `ConnectWorkers.status`."""
        return self._workers.status(url)

    def read_served_certificate(self, url: str) -> Certificate | None:
        """See `ConnectWorkers.read_served_certificate`."""
        return self._workers.read_served_certificate(url)

    def validate(self, url: str, changes: Changes) -> Validation:
        """See `ConnectWorkers.validate`."""
        return self._workers.validate(url, changes)

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        """See `ConnectWorkers.patch`."""
        return self._policy.whole("patch", lambda: self._workers.patch(url, changes))

    def delete(self, url: str, key: str) -> None:
        """See `ConnectWorkers.delete`."""
        self._policy.whole("delete", lambda: self._workers.delete(url, key))

    def close(self) -> None:
        """See `ConnectWorkers.close`."""
        self._workers.close()
