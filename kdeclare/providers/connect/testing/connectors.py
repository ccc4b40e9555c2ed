"""`MemoryConnectCluster`: the connectors of a Connect cluster that runs inside the test process."""

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass as mutable_dataclass
from dataclasses import field
from threading import RLock
from typing import TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.connect.client.connectors_port import (
    CONNECTOR_EXISTS,
    CONNECTOR_MISSING,
    INVALID_CONNECTOR,
    NOT_STOPPED,
    ClusterInfo,
    ConfigValidation,
    ConnectorConfig,
    ConnectorOffset,
    ConnectorOffsets,
    LiveConnector,
    PluginClass,
    RunState,
    TargetState,
    TaskStatus,
    find_class,
    is_addressable,
)
from kdeclare.providers.connect.client.port import NOT_READY
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

_WORKER = "memory:8083"
_PLACEHOLDER = re.compile(r"\$\{[^{}]*?:(?:[^{}]*?:)?[^{}]*?\}")
_ACTIONS = {TargetState.RUNNING: "resume", TargetState.PAUSED: "pause", TargetState.STOPPED: "stop"}


@dataclass(frozen=True, slots=True)
class ConnectCall(faults.Call):
    """One request: the method of `ConnectCluster`, and the name of the connector as its only item.

    request: the request that `RestConnectCluster` sends, such as ``PUT /connectors/orders/config``. If it
        sends several requests, this is the first.
    """

    request: str = ""

    @property
    def is_mutating(self) -> bool:
        """Whether the request would change a connector."""
        return not self.request.startswith("GET") and not self.request.endswith("/validate")


@dataclass(frozen=True, slots=True)
class _Status:
    """A reported status. state: None as long as there is no status."""

    state: str | None
    tasks: tuple[TaskStatus, ...] = ()
    trace: str = ""


@mutable_dataclass
class _Connector:
    """A connector in the config topic, and what is known about its tasks.

    task_count: the number of task configs. pending: the statuses that the next reads report.
    """

    config: dict[str, str]
    target: TargetState
    task_count: int = 0
    pending: list[_Status] = field(default_factory=list)
    connector_trace: str = ""
    task_traces: dict[int, str] = field(default_factory=dict)


@mutable_dataclass
class _State:
    connectors: dict[str, _Connector] = field(default_factory=dict)
    offsets: dict[str, ConnectorOffsets] = field(default_factory=dict)
    lock: RLock = field(default_factory=RLock)


class MemoryConnectCluster:
    """Implements `ConnectCluster` with the asynchronous behavior of real workers. Safe to use from threads.

    Each change is followed by the intermediate statuses that real workers report for a moment: no status, no
    tasks, or the tasks from before the change.

    lag: the number of reads of a connector that report each intermediate status. 0 means that changes are
        completed at once.
    rebalances: the number of changes that the next rebalances reject.
    plugins: the installed classes.
    topics: the existing topics; None means that every topic exists. A source whose topic is missing stays
        RUNNING, and its task cannot be paused. Tests can change the set.
    missing_folders: file connectors whose file is in one of these folders fail.
    placeholders: the values of placeholders. Placeholders that are not listed stay unresolved.
    unresolvable: placeholders that a config provider fails to resolve.
    """

    def __init__(
        self,
        *,
        lag: int = 1,
        kafka_cluster_id: str = "memory",
        plugins: Iterable[MemoryPlugin] = (FILE_SOURCE, FILE_SINK, PASSWORD_SINK),
        topics: Iterable[str] | None = None,
    ) -> None:
        self.lag = lag
        self.rebalances = 0
        self.plugins = tuple(plugins)
        self.topics = None if topics is None else set(topics)
        self.missing_folders = {"/no/such/dir"}
        self.placeholders: dict[str, str] = {}
        self.unresolvable: set[str] = set()
        self.faults: FaultPlan[MemoryConnectCluster] = FaultPlan()
        self.calls: list[ConnectCall] = []
        self._info = ClusterInfo("4.3.1", kafka_cluster_id, "memory")
        self._state = _State()

    # the protocol

    def identify(self) -> ClusterInfo:
        """See `ConnectCluster.identify`."""
        return self._run("identify", "", "GET /", lambda: self._info)

    def list_connectors(self) -> Mapping[str, LiveConnector]:
        """See `ConnectCluster.list_connectors`."""

        def respond() -> Mapping[str, LiveConnector]:
            return {name: self._read(name, one) for name, one in sorted(self._state.connectors.items())}

        return self._run("list_connectors", "", "GET /connectors?expand=info&expand=status", respond)

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
            "",
            "GET /connector-plugins",
            lambda: tuple(plugin.as_class for plugin in self.plugins),
        )

    def validate_config(self, name: str, config: ConnectorConfig) -> ConfigValidation:
        """See `ConnectCluster.validate_config`."""

        def respond() -> ConfigValidation:
            plugin, errors = self._validate({**config, "name": name})
            return ConfigValidation(errors, plugin.definitions)

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
            before = self._compute_status(connector)
            connector.config = _normalize(name, config)
            connector.connector_trace, connector.task_traces = "", {}
            self._count_tasks(connector)
            unassigned = tuple(TaskStatus(n, RunState.UNASSIGNED.value) for n in range(connector.task_count))
            self._report(connector, before, _Status(RunState.UNASSIGNED.value, unassigned))
            return False

        return self._run("replace_config", name, f"PUT /connectors/{name}/config", respond)

    def set_state(self, name: str, state: TargetState) -> None:
        """See `ConnectCluster.set_state`."""

        def respond() -> None:
            connector = self._get(name)
            if connector.target is state:
                return
            before = self._compute_status(connector)
            connector.target = state
            self._count_tasks(connector)
            # The connector changes its state before its tasks do; a stopped one keeps them for a moment.
            self._report(connector, before, _Status(state.value, before.tasks))

        self._run("set_state", name, f"PUT /connectors/{name}/{_ACTIONS[state]}", respond)

    def restart_connector(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """See `ConnectCluster.restart_connector`."""

        def respond() -> None:
            connector = self._get(name)
            before = self._compute_status(connector)
            state = before.state
            if not only_failed or before.state == RunState.FAILED:
                connector.connector_trace, state = "", RunState.RESTARTING.value
            restarting = {
                task.id
                for task in before.tasks
                if include_tasks and (not only_failed or task.state == RunState.FAILED)
            }
            for task_id in restarting:
                connector.task_traces.pop(task_id, None)
            tasks = (
                TaskStatus(task.id, RunState.RESTARTING.value, task.worker_id)
                if task.id in restarting
                else task
                for task in before.tasks
            )
            self._report(connector, _Status(state, tuple(tasks)))

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
        """Return a second client of the same cluster, with a separate log and without faults."""
        other = copy.copy(self)
        other.faults = FaultPlan()
        other.calls = []
        other.rebalances = 0
        return other

    def requests(self) -> list[str]:
        """Return the logged changes, such as ``PUT /connectors/orders/config``."""
        return [call.request for call in self.calls if call.is_mutating]

    def fail_connector(self, name: str, trace: str) -> None:
        """Let a connector fail until it is restarted or gets another config."""
        with self._state.lock:
            self._get(name).connector_trace = trace

    def fail_task(self, name: str, task_id: int, trace: str) -> None:
        """Let a task fail until it is restarted or the connector gets another config."""
        with self._state.lock:
            self._get(name).task_traces[task_id] = trace

    def set_offsets(self, name: str, offsets: ConnectorOffsets) -> None:
        """Set the offsets that the tasks of a connector have committed. The connector need not exist."""
        with self._state.lock:
            self._state.offsets[name] = offsets

    def settle(self) -> None:
        """Skip all intermediate statuses."""
        with self._state.lock:
            for connector in self._state.connectors.values():
                connector.pending = []

    # inside

    def _run(self, method: str, name: str, request: str, respond: Callable[[], T]) -> T:
        call = ConnectCall(method, (name,) if name else (), request=request)

        def answer(faults_by_name: Mapping[str, Fault]) -> T:
            with self._state.lock:
                if name in faults_by_name:
                    raise faults_by_name[name]
                if name and not is_addressable(name):
                    raise Fault(
                        INVALID_CONNECTOR, f"Connect's REST API cannot address a connector named '{name}'."
                    )
                if call.is_mutating and self.rebalances:
                    self.rebalances -= 1
                    raise Fault(
                        NOT_READY,
                        "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
                        FaultKind.RETRIABLE,
                    )
                return respond()

        return run_request(self.faults, self.calls, call, answer, self.elsewhere)

    def _get(self, name: str) -> _Connector:
        if name not in self._state.connectors:
            raise Fault(CONNECTOR_MISSING, f"Connector {name} not found")
        return self._state.connectors[name]

    def _create(self, name: str, config: ConnectorConfig, target: TargetState) -> None:
        connector = self._state.connectors[name] = _Connector(_normalize(name, config), target)
        self._count_tasks(connector)
        self._report(connector, _Status(None), _Status(target.value))

    def _count_tasks(self, connector: _Connector) -> None:
        """Set the number of tasks. A paused connector keeps its tasks, whatever its new config is."""
        if connector.target is TargetState.STOPPED:
            connector.task_count = 0
        elif connector.target is TargetState.RUNNING:
            connector.task_count = self._find_plugin(connector.config).count_tasks(connector.config)

    def _report(self, connector: _Connector, *statuses: _Status) -> None:
        connector.pending = [status for status in statuses for _ in range(self.lag)]

    def _read(self, name: str, connector: _Connector) -> LiveConnector:
        status = connector.pending.pop(0) if connector.pending else self._compute_status(connector)
        type_ = self._find_plugin(connector.config).type
        if status.state is None:
            return LiveConnector(name, type_, dict(connector.config))
        return LiveConnector(
            name, type_, dict(connector.config), status.state, _WORKER, status.trace, status.tasks
        )

    def _compute_status(self, connector: _Connector) -> _Status:
        """Return the status after all intermediate statuses."""
        tasks = tuple(self._compute_task(connector, task_id) for task_id in range(connector.task_count))
        if connector.connector_trace:
            return _Status(RunState.FAILED.value, tasks, connector.connector_trace.partition("\n")[0])
        return _Status(connector.target.value, tasks)

    def _compute_task(self, connector: _Connector, task_id: int) -> TaskStatus:
        trace = connector.task_traces.get(task_id) or self._find_failure(connector.config)
        if trace:
            return TaskStatus(task_id, RunState.FAILED.value, _WORKER, trace.partition("\n")[0])
        if connector.target is TargetState.PAUSED and not self._lacks_topic(connector):
            return TaskStatus(task_id, RunState.PAUSED.value, _WORKER)
        return TaskStatus(task_id, RunState.RUNNING.value, _WORKER)

    def _lacks_topic(self, connector: _Connector) -> bool:
        plugin = self._find_plugin(connector.config)
        topics = plugin.list_topics(connector.config)
        return plugin.type == "source" and self.topics is not None and not self.topics.issuperset(topics)

    def _find_failure(self, config: ConnectorConfig) -> str:
        """Return the trace of the tasks of a file connector that cannot open its file; otherwise empty."""
        plugin, file = self._find_plugin(config), self._resolve(config.get("file", ""))
        if plugin is not FILE_SINK or file.rpartition("/")[0] not in self.missing_folders:
            return ""
        return (
            f"org.apache.kafka.connect.errors.ConnectException: Couldn't find or create file '{file}' for "
            "FileStreamSinkTask\n\tat org.apache.kafka.connect.file.FileStreamSinkTask.start"
        )

    def _find_plugin(self, config: ConnectorConfig) -> MemoryPlugin:
        if not config.get(CLASS):
            raise Fault(INVALID_CONNECTOR, "The config has no connector.class.")
        name = find_class((plugin.as_class for plugin in self.plugins), config[CLASS])
        for plugin in self.plugins:
            if plugin.name == name:
                return plugin
        raise Fault(
            INVALID_CONNECTOR,
            "Failed to find any class that implements Connector and which name matches "
            f"{config[CLASS]}, available connectors are: {', '.join(p.name for p in self.plugins)}",
        )

    def _validate(self, config: ConnectorConfig) -> tuple[MemoryPlugin, Mapping[str, tuple[str, ...]]]:
        """Return the class and the errors by key, without resolved values."""
        resolved = {key: self._resolve(value) for key, value in config.items()}
        plugin = self._find_plugin(resolved)
        errors = plugin.find_errors(resolved)
        return plugin, {
            key: tuple(
                message.replace(resolved[key], config[key]) if resolved.get(key) else message
                for message in messages
            )
            for key, messages in errors.items()
        }

    def _require_valid(self, name: str, config: ConnectorConfig) -> None:
        if config.get("name", name) != name:
            raise Fault(INVALID_CONNECTOR, "Connector name configuration doesn't match connector name")
        messages = [m for found in self._validate({**config, "name": name})[1].values() for m in found]
        if messages:
            raise Fault(
                INVALID_CONNECTOR,
                f"Connector configuration is invalid and contains the following {len(messages)} error(s):\n"
                + "\n".join(messages),
            )

    def _resolve(self, value: str) -> str:
        placeholders = _PLACEHOLDER.findall(value)
        for placeholder in placeholders:
            if placeholder in self.unresolvable:
                raise Fault(INVALID_CONNECTOR, f"The config provider cannot resolve {placeholder}")
            value = value.replace(placeholder, self.placeholders.get(placeholder, placeholder))
        return value

    def _require_stopped(self, name: str) -> None:
        connector = self._get(name)
        if connector.target is not TargetState.STOPPED:
            raise Fault(
                NOT_STOPPED,
                "Connectors must be in the STOPPED state before their offsets can be modified.",
            )

    def _merge_offsets(self, name: str, offsets: ConnectorOffsets) -> None:
        merged = {_get_partition_key(one): one for one in self._state.offsets.get(name, ())}
        for one in offsets:
            if one.offset is None:
                merged.pop(_get_partition_key(one), None)
            else:
                merged[_get_partition_key(one)] = one
        self._state.offsets[name] = tuple(merged.values())


def _get_partition_key(offset: ConnectorOffset) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, repr(value)) for key, value in offset.partition.items()))


def _normalize(name: str, config: ConnectorConfig) -> dict[str, str]:
    """Return the config as Connect stores it: all values are strings."""
    return {**{key: str(value) for key, value in config.items()}, "name": name}
