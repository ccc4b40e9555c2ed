"""`RetryingConnectCluster`, which retries requests that fail because of a rebalance or a missing leader."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.retry import RetryPolicy, log_retry
from kdeclare.providers.connect.client.connectors_port import (
    ClusterInfo,
    ConfigValidation,
    ConnectCluster,
    ConnectorConfig,
    ConnectorOffsets,
    LiveConnector,
    PluginClass,
    TargetState,
)
from kdeclare.providers.connect.client.port import NOT_READY

T = TypeVar("T")

REBALANCE_RETRIES = RetryPolicy(attempts=12, base_delay_s=0.2, on_retry=log_retry)
"""A retry policy that repeats a request for about 30 seconds.

Every change starts a rebalance, during which workers reject other changes. If the leader fails, workers
notice this within ``session.timeout.ms``, by default 10 seconds, and reject all changes until then.
"""


class RetryingConnectCluster:
    """Adds retries to a `ConnectCluster`.

    Workers that expect a rebalance reject reads as well as changes, so both are retried while workers are not
    ready. After any other fault of a read, the caller repeats the read, or reports that no worker responds.
    """

    def __init__(self, cluster: ConnectCluster, policy: RetryPolicy = REBALANCE_RETRIES) -> None:
        self._cluster = cluster
        self._policy = policy

    def identify(self) -> ClusterInfo:
        """See `ConnectCluster.identify`."""
        return self._cluster.identify()

    def list_connectors(self) -> Mapping[str, LiveConnector]:
        """See `ConnectCluster.list_connectors`."""
        return self._read("list_connectors", self._cluster.list_connectors)

    def describe_connector(self, name: str) -> LiveConnector | None:
        """See `ConnectCluster.describe_connector`."""
        return self._read("describe_connector", lambda: self._cluster.describe_connector(name))

    def list_plugins(self) -> tuple[PluginClass, ...]:
        """See `ConnectCluster.list_plugins`."""
        return self._cluster.list_plugins()

    def validate_config(self, name: str, config: ConnectorConfig) -> ConfigValidation:
        """See `ConnectCluster.validate_config`."""
        return self._cluster.validate_config(name, config)

    def create_connector(
        self, name: str, config: ConnectorConfig, initial_state: TargetState | None = None
    ) -> None:
        """See `ConnectCluster.create_connector`."""
        self._policy.whole(
            "create_connector", lambda: self._cluster.create_connector(name, config, initial_state)
        )

    def replace_config(self, name: str, config: ConnectorConfig) -> bool:
        """See `ConnectCluster.replace_config`."""
        return self._policy.whole("replace_config", lambda: self._cluster.replace_config(name, config))

    def set_state(self, name: str, state: TargetState) -> None:
        """See `ConnectCluster.set_state`."""
        self._policy.whole("set_state", lambda: self._cluster.set_state(name, state))

    def restart_connector(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """See `ConnectCluster.restart_connector`."""
        self._policy.whole(
            "restart_connector",
            lambda: self._cluster.restart_connector(
                name, include_tasks=include_tasks, only_failed=only_failed
            ),
        )

    def delete_connector(self, name: str) -> None:
        """See `ConnectCluster.delete_connector`."""
        self._policy.whole("delete_connector", lambda: self._cluster.delete_connector(name))

    def read_offsets(self, name: str) -> ConnectorOffsets:
        """See `ConnectCluster.read_offsets`."""
        return self._read("read_offsets", lambda: self._cluster.read_offsets(name))

    def alter_offsets(self, name: str, offsets: ConnectorOffsets) -> None:
        """See `ConnectCluster.alter_offsets`."""
        self._policy.whole("alter_offsets", lambda: self._cluster.alter_offsets(name, offsets))

    def delete_offsets(self, name: str) -> None:
        """See `ConnectCluster.delete_offsets`."""
        self._policy.whole("delete_offsets", lambda: self._cluster.delete_offsets(name))

    def close(self) -> None:
        """See `ConnectCluster.close`."""
        self._cluster.close()

    def _read(self, call: str, send: Callable[[], T]) -> T:
        def send_once() -> T | Fault:
            try:
                return send()
            except Fault as fault:
                if fault.error == NOT_READY:
                    raise
                return fault

        response = self._policy.whole(call, send_once)
        if isinstance(response, Fault):
            raise response
        return response
