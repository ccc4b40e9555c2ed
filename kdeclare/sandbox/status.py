"""The current status of a sandbox and of its brokers, workers and schema registry."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

from pydantic import Field

from kdeclare.core.documents import PathText
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.sandbox import health, processes
from kdeclare.sandbox.layout import Layout, Marker, ProcessFiles, read_marker, resolve_layout
from kdeclare.sandbox.security import USERS
from kdeclare.sandbox.settings import HOST, SandboxSettings

_ASK_SECONDS = 2.0


_Process = Annotated[int | None, Field(description="Process id; null if no process is running.")]
_Alive = Annotated[bool, Field(description="Whether the process is running.")]
_Ready = Annotated[bool, Field(description="Whether the server is ready to serve requests.")]
_Log = Annotated[PathText, Field(description="Path of the log file.")]


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """The status of one broker on 127.0.0.1.

    ready: whether the broker responds and is unfenced.
    """

    schema_name = "SandboxBrokerDocument"

    id: int
    pid: _Process
    port: int
    rack: str
    alive: _Alive
    ready: _Ready
    log: _Log


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """The status of one Connect worker.

    ready: whether the worker reports that it has joined its group.
    """

    schema_name = "SandboxWorkerDocument"

    id: int
    pid: _Process
    url: str
    alive: _Alive
    ready: _Ready
    log: _Log


@dataclass(frozen=True, slots=True)
class RegistryStatus:
    """The status of the schema registry.

    ready: whether the registry responds.
    """

    schema_name = "SandboxRegistryDocument"

    pid: _Process
    url: str
    alive: _Alive
    ready: _Ready
    log: _Log


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """The status of a sandbox.

    If there is no sandbox, ``brokers`` is empty and ``settings`` is None.
    """

    folder: Path
    settings: SandboxSettings | None
    cluster_id: str
    brokers: tuple[BrokerStatus, ...]
    workers: tuple[WorkerStatus, ...] = ()
    registry: RegistryStatus | None = None

    @property
    def exists(self) -> bool:
        """Whether the folder is a sandbox."""
        return self.settings is not None

    @property
    def running(self) -> bool:
        """Whether a process of the sandbox is running."""
        return any(one.alive for one in self._members)

    @property
    def ready(self) -> bool:
        """Whether all processes of the sandbox are ready."""
        return self.exists and all(one.ready for one in self._members)

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers (``host:port``), separated by commas; empty if there is no sandbox."""
        return self.settings.bootstrap if self.settings else ""

    @property
    def _members(self) -> tuple[BrokerStatus | WorkerStatus | RegistryStatus, ...]:
        registries = () if self.registry is None else (self.registry,)
        return (*self.brokers, *self.workers, *registries)

    @property
    def ca_file(self) -> Path | None:
        """The path of the workers' CA certificate (PEM); None if there are no workers."""
        return resolve_layout(self.folder).connect.authority_pem if self.workers else None

    @property
    def client_files(self) -> tuple[Path, ...]:
        """The paths of the client properties of 'admin' and 'reader'; empty if the sandbox is not secure."""
        if self.settings is None or not self.settings.secure:
            return ()
        return tuple(resolve_layout(self.folder).security.client(user) for user in USERS)

    @property
    def log_files(self) -> tuple[Path, ...]:
        """The log files of all brokers and workers, and of the schema registry."""
        return tuple(one.log for one in self._members)


def status(folder: Path) -> SandboxStatus:
    """Return the status of the sandbox in ``folder``.

    Waits at most 2 seconds for the response of each running process.

    Raises KdeclareError ``sandbox-unreadable``.
    """
    layout = resolve_layout(folder)
    marker = read_marker(layout)
    return observe_sandbox(layout, marker) if marker else SandboxStatus(layout.folder, None, "", ())


def observe_sandbox(layout: Layout, marker: Marker) -> SandboxStatus:
    """Return the status of an existing sandbox. marker: the content of its marker file."""
    settings = marker.settings(layout.folder)
    with ThreadPoolExecutor(max_workers=settings.brokers + settings.connect_workers + 1) as pool:
        registry = pool.submit(_observe_registry, layout, settings)
        brokers = pool.map(lambda i: _observe_broker(layout, marker, settings, i), settings.broker_ids)
        workers = pool.map(lambda i: _observe_worker(layout, settings, i), settings.worker_ids)
        return SandboxStatus(
            layout.folder, settings, marker.cluster_id, tuple(brokers), tuple(workers), registry.result()
        )


def running_process(files: ProcessFiles) -> processes.ProcessRecord | None:
    """Return the process record of a server; None if the process is not running."""
    recorded = processes.read_record(files.process)
    return recorded if recorded and processes.is_alive(recorded) else None


def _observe_broker(
    layout: Layout, marker: Marker, settings: SandboxSettings, broker_id: int
) -> BrokerStatus:
    process = running_process(layout.broker(broker_id))
    port = settings.get_broker_port(broker_id)
    view = health.ask(HOST, settings.get_unauthenticated_port(broker_id), _ASK_SECONDS) if process else None
    return BrokerStatus(
        id=broker_id,
        pid=process.pid if process else None,
        port=port,
        rack=settings.rack(broker_id),
        alive=process is not None,
        ready=view is not None and view.cluster_id == marker.cluster_id and broker_id in view.broker_ids,
        log=layout.broker(broker_id).server_log,
    )


def _observe_worker(layout: Layout, settings: SandboxSettings, worker_id: int) -> WorkerStatus:
    files = layout.connect.worker(worker_id)
    process = running_process(files)
    return WorkerStatus(
        id=worker_id,
        pid=process.pid if process else None,
        url=settings.get_worker_url(worker_id),
        alive=process is not None,
        ready=process is not None and health.is_healthy(settings.get_worker_port(worker_id), _ASK_SECONDS),
        log=files.server_log,
    )


def _observe_registry(layout: Layout, settings: SandboxSettings) -> RegistryStatus | None:
    if not settings.registry:
        return None
    process = running_process(layout.registry)
    return RegistryStatus(
        pid=process.pid if process else None,
        url=settings.registry_url,
        alive=process is not None,
        ready=process is not None and health.is_registry_ready(settings.registry_port, _ASK_SECONDS),
        log=layout.registry.server_log,
    )
