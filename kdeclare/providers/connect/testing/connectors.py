"""`MemoryConnectCluster`: the connectors of a Connect cluster that runs inside the test process."""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.send_permit import check_send_permit
from kdeclare.providers.connect.client.connectors_port import (
    CONNECTOR_EXISTS,
    INVALID_CONNECTOR,
    ClusterInfo,
    ConfigValidation,
    ConnectorConfig,
    ConnectorOffsets,
    LiveConnector,
    PluginClass,
    TargetState,
    is_addressable,
)
from kdeclare.providers.connect.client.port import NOT_READY
from kdeclare.providers.connect.testing.connector_model import ConnectorModel
from kdeclare.providers.connect.testing.connector_plugins import (
    CLASS,
    FILE_SINK,
    FILE_SOURCE,
    PASSWORD_SINK,
    MemoryPlugin,
)
from kdeclare.testing import faults
from kdeclare.testing.faults import FaultPlan, run_request

T = TypeVar("T")

_ACTIONS = {TargetState.RUNNING: "resume", TargetState.PAUSED: "pause", TargetState.STOPPED: "stop"}


@dataclass(frozen=True, slots=True)
class ConnectCall(faults.Call):
    """One call of a method of `ConnectCluster`. ``items`` contains only the name of the connector.

    request: the request that `RestConnectCluster` sends for this call, such as
        ``PUT /connectors/orders/config``. If it sends several requests, this is the first request.
    """

    request: str = ""

    @property
    def is_mutating(self) -> bool:
        """Whether the request would change a connector."""
        return not self.request.startswith("GET") and not self.request.endswith("/validate")


class MemoryConnectCluster(ConnectorModel):
    """Implements `ConnectCluster` with the asynchronous behavior of real workers. Thread-safe.

    rebalances: the number of changes that the cluster will reject as if a rebalance were in progress.
    `ConnectorModel` describes the other parameters and attributes.
    """

    def __init__(
        self,
        *,
        lag: int = 1,
        kafka_cluster_id: str = "memory",
        plugins: Iterable[MemoryPlugin] = (FILE_SOURCE, FILE_SINK, PASSWORD_SINK),
        topics: Iterable[str] | None = None,
    ) -> None:
        super().__init__(lag=lag, plugins=plugins, topics=topics)
        self.rebalances = 0
        self.faults: FaultPlan[MemoryConnectCluster] = FaultPlan()
        self.calls: list[ConnectCall] = []
        self._info = ClusterInfo("4.3.1", kafka_cluster_id, "memory")

    def identify(self) -> ClusterInfo:
        """See `ConnectCluster.identify`."""
        return self._run("identify", None, "GET /", lambda: self._info)

    def list_connectors(self) -> Mapping[str, LiveConnector]:
        """See `ConnectCluster.list_connectors`."""

        def respond() -> Mapping[str, LiveConnector]:
            return {name: self._read(name, one) for name, one in sorted(self._state.connectors.items())}

        return self._run("list_connectors", None, "GET /connectors?expand=info&expand=status", respond)

    def describe_connector(self, name: str) -> LiveConnector | None:
        """See `ConnectCluster.describe_connector`."""

        def respond() -> LiveConnector | None:
            connector = self._state.connectors.get(name)
            return None if connector is None else self._read(name, connector)

        return self._run("describe_connector", name, f"GET /connectors/{name}", respond)

    def list_plugins(self) -> tuple[PluginClass, ...]:
        """See `ConnectCluster.list_plugins`."""
        return self._run(
            "list_plugins",
            None,
            "GET /connector-plugins",
            lambda: tuple(plugin.as_class for plugin in self.plugins),
        )

    def validate_config(self, name: str, config: ConnectorConfig) -> ConfigValidation:
        """See `ConnectCluster.validate_config`."""

        def respond() -> ConfigValidation:
            plugin, errors = self._validate({**config, "name": name})
            return ConfigValidation(errors, plugin.list_definitions(config))

        path = f"/connector-plugins/{config.get(CLASS, '')}/config/validate"
        return self._run("validate_config", name, f"PUT {path}", respond)

    def create_connector(
        self, name: str, config: ConnectorConfig, initial_state: TargetState | None = None
    ) -> None:
        """See `ConnectCluster.create_connector`."""

        def respond() -> None:
            self._require_valid(name, config)
            if name in self._state.connectors:
                raise Fault(CONNECTOR_EXISTS, f"Connector {name} already exists")
            self._create(name, config, initial_state or TargetState.RUNNING)

        self._run("create_connector", name, "POST /connectors", respond)

    def replace_config(self, name: str, config: ConnectorConfig) -> bool:
        """See `ConnectCluster.replace_config`."""

        def respond() -> bool:
            self._require_valid(name, config)
            connector = self._state.connectors.get(name)
            if connector is None:
                self._create(name, config, TargetState.RUNNING)
                return True
            self._replace_config(name, connector, config)
            return False

        return self._run("replace_config", name, f"PUT /connectors/{name}/config", respond)

    def set_state(self, name: str, state: TargetState) -> None:
        """See `ConnectCluster.set_state`."""

        def respond() -> None:
            self._set_target(self._get(name), state)

        self._run("set_state", name, f"PUT /connectors/{name}/{_ACTIONS[state]}", respond)

    def restart_connector(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """See `ConnectCluster.restart_connector`."""

        def respond() -> None:
            self._restart(self._get(name), include_tasks=include_tasks, only_failed=only_failed)

        request = (
            f"POST /connectors/{name}/restart"
            f"?includeTasks={str(include_tasks).lower()}&onlyFailed={str(only_failed).lower()}"
        )
        self._run("restart_connector", name, request, respond)

    def delete_connector(self, name: str) -> None:
        """See `ConnectCluster.delete_connector`."""

        def respond() -> None:
            self._get(name)
            del self._state.connectors[name]

        self._run("delete_connector", name, f"DELETE /connectors/{name}", respond)

    def read_offsets(self, name: str) -> ConnectorOffsets:
        """See `ConnectCluster.read_offsets`."""

        def respond() -> ConnectorOffsets:
            self._get(name)
            return self._state.offsets.get(name, ())

        return self._run("read_offsets", name, f"GET /connectors/{name}/offsets", respond)

    def alter_offsets(self, name: str, offsets: ConnectorOffsets) -> None:
        """See `ConnectCluster.alter_offsets`."""

        def respond() -> None:
            self._require_stopped(name)
            self._merge_offsets(name, offsets)

        self._run("alter_offsets", name, f"PATCH /connectors/{name}/offsets", respond)

    def delete_offsets(self, name: str) -> None:
        """See `ConnectCluster.delete_offsets`."""

        def respond() -> None:
            self._require_stopped(name)
            self._state.offsets.pop(name, None)

        self._run("delete_offsets", name, f"DELETE /connectors/{name}/offsets", respond)

    def close(self) -> None:
        """See `ConnectCluster.close`."""

    # controls for tests

    def elsewhere(self) -> "MemoryConnectCluster":
        """Return a second client of the same cluster, with its own log of calls and no simulated faults."""
        other = copy.copy(self)
        other.faults = FaultPlan()
        other.calls = []
        other.rebalances = 0
        return other

    def requests(self) -> list[str]:
        """Return the logged changes, such as ``PUT /connectors/orders/config``."""
        return [call.request for call in self.calls if call.is_mutating]

    def _run(self, method: str, name: str | None, request: str, respond: Callable[[], T]) -> T:
        call = ConnectCall(method, () if name is None else (name,), request=request)

        def answer(faults_by_name: Mapping[str, Fault]) -> T:
            try:
                with self._state.lock:
                    self._require_acceptable(call, name, faults_by_name)
                    return respond()
            except Fault:
                self.calls.append(replace(call, outcome="failed"))
                raise

        if call.is_mutating:
            check_send_permit()
        return run_request(self.faults, self.calls, call, answer, self.elsewhere)

    def _require_acceptable(
        self, call: ConnectCall, name: str | None, faults_by_name: Mapping[str, Fault]
    ) -> None:
        if name is None:
            return
        if name in faults_by_name:
            raise faults_by_name[name]
        if not is_addressable(name):
            raise Fault(INVALID_CONNECTOR, f"Connect's REST API cannot address a connector named '{name}'.")
        if call.is_mutating and self.rebalances:
            self.rebalances -= 1
            message = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
            raise Fault(NOT_READY, message, FaultKind.RETRIABLE)
