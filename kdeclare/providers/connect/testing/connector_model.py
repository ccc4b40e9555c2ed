"""The state of `MemoryConnectCluster`, and the methods with which tests read and change it.

After each change, the next reads return the statuses that real workers report for a short time: no
status, no tasks, or the tasks from before the change.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass as mutable_dataclass
from dataclasses import field
from threading import RLock

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.client.connectors_port import (
    CONNECTOR_MISSING,
    INVALID_CONNECTOR,
    NOT_STOPPED,
    ConnectorConfig,
    ConnectorOffset,
    ConnectorOffsets,
    LiveConnector,
    RunState,
    TargetState,
    TaskStatus,
    find_class,
)
from kdeclare.providers.connect.testing.connector_plugins import (
    CLASS,
    FILE_SINK,
    FILE_SOURCE,
    PASSWORD_SINK,
    MemoryPlugin,
)

_WORKER = "memory:8083"
_PLACEHOLDER = re.compile(r"\$\{[^{}]*?:(?:[^{}]*?:)?[^{}]*?\}")


@dataclass(frozen=True, slots=True)
class _Status:
    """A reported status. state: None if there is no status yet."""

    state: str | None
    tasks: tuple[TaskStatus, ...] = ()
    trace: str = ""


@mutable_dataclass
class _Connector:
    """A connector in the config topic, and the state of its tasks.

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


class ConnectorModel:
    """The base class of `MemoryConnectCluster`: its state, and the methods for tests.

    lag: the number of reads of a connector that report each intermediate status. 0 means that changes are
        completed at once.
    plugins: the installed classes.
    topics: the existing topics; None means that every topic exists. A source whose topic is missing stays
        RUNNING, and its tasks cannot be paused. Tests can change the set.
    missing_folders: file sinks whose file is in one of these folders fail. Tests can change the set.
    placeholders: the values of placeholders. Placeholders that are not listed stay unresolved.
    unresolvable: placeholders that a config provider fails to resolve.
    """

    def __init__(
        self,
        *,
        lag: int = 1,
        plugins: Iterable[MemoryPlugin] = (FILE_SOURCE, FILE_SINK, PASSWORD_SINK),
        topics: Iterable[str] | None = None,
    ) -> None:
        self.lag = lag
        self.plugins = tuple(plugins)
        self.topics = None if topics is None else set(topics)
        self.missing_folders = {"/no/such/dir"}
        self.placeholders: dict[str, str] = {}
        self.unresolvable: set[str] = set()
        self._state = _State()

    def fail_connector(self, name: str, trace: str) -> None:
        """Make a connector fail until it is restarted or gets a different config."""
        with self._state.lock:
            self._get(name).connector_trace = trace

    def fail_task(self, name: str, task_id: int, trace: str) -> None:
        """Make a task fail until it is restarted or the connector gets a different config."""
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

    def _get(self, name: str) -> _Connector:
        if name not in self._state.connectors:
            raise Fault(CONNECTOR_MISSING, f"Connector {name} not found")
        return self._state.connectors[name]

    def _create(self, name: str, config: ConnectorConfig, target: TargetState) -> None:
        connector = self._state.connectors[name] = _Connector(_normalize(name, config), target)
        self._count_tasks(connector)
        self._report(connector, _Status(None), _Status(target.value))

    def _replace_config(self, name: str, connector: _Connector, config: ConnectorConfig) -> None:
        before = self._compute_status(connector)
        connector.config = _normalize(name, config)
        connector.connector_trace = ""
        self._count_tasks(connector)
        self._start_tasks(connector, range(connector.task_count))
        unassigned = tuple(TaskStatus(n, RunState.UNASSIGNED.value) for n in range(connector.task_count))
        self._report(connector, before, _Status(RunState.UNASSIGNED.value, unassigned))

    def _set_target(self, connector: _Connector, target: TargetState) -> None:
        if connector.target is target:
            return
        before = self._compute_status(connector)
        connector.target = target
        self._count_tasks(connector)
        # The connector changes its state before its tasks do. A stopped connector briefly keeps its tasks.
        self._report(connector, before, _Status(target.value, before.tasks))

    def _restart(self, connector: _Connector, *, include_tasks: bool, only_failed: bool) -> None:
        before = self._compute_status(connector)
        state = before.state
        if not only_failed or before.state == RunState.FAILED:
            connector.connector_trace, state = "", RunState.RESTARTING.value
        restarting = {
            task.id
            for task in before.tasks
            if include_tasks and (not only_failed or task.state == RunState.FAILED)
        }
        self._start_tasks(connector, restarting)
        tasks = (
            TaskStatus(task.id, RunState.RESTARTING.value, task.worker_id) if task.id in restarting else task
            for task in before.tasks
        )
        self._report(connector, _Status(state, tuple(tasks)))

    def _count_tasks(self, connector: _Connector) -> None:
        """Set the number of tasks. A paused connector keeps its tasks, whatever its new config is."""
        count = connector.task_count
        if connector.target is TargetState.STOPPED:
            connector.task_count = 0
        elif connector.target is TargetState.RUNNING:
            connector.task_count = self._find_plugin(connector.config).count_tasks(connector.config)
        self._start_tasks(connector, range(count, connector.task_count))

    def _start_tasks(self, connector: _Connector, task_ids: Iterable[int]) -> None:
        trace = self._find_failure(connector.config)
        connector.task_traces |= dict.fromkeys(task_ids, trace)

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
        trace = connector.task_traces.get(task_id)
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
        """Return the stack trace of the tasks of a file sink; empty if the tasks can open the file."""
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
        """Return the connector class, and the validation errors by key. Errors contain no resolved values."""
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
