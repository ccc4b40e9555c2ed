"""What a sandbox is doing now, as data."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kdeclare.cluster.sandbox import metadata, processes
from kdeclare.cluster.sandbox.layout import Layout, Marker, layout_of, read_marker
from kdeclare.cluster.sandbox.settings import HOST, SandboxSettings

_ASK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """One broker. ``alive``: its process runs; ``ready``: it answers and is unfenced."""

    id: int
    pid: int | None
    port: int
    rack: str
    alive: bool
    ready: bool
    log: Path


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """A sandbox. ``brokers`` is empty and ``settings`` is None where the folder holds none."""

    folder: Path
    settings: SandboxSettings | None
    cluster_id: str
    brokers: tuple[BrokerStatus, ...]

    @property
    def exists(self) -> bool:
        """Whether the folder is a sandbox."""
        return self.settings is not None

    @property
    def running(self) -> bool:
        """Whether any of its processes runs."""
        return any(b.alive for b in self.brokers)

    @property
    def ready(self) -> bool:
        """Whether all of its brokers can be used."""
        return self.exists and all(b.ready for b in self.brokers)

    @property
    def bootstrap(self) -> str:
        """``host:port`` of all brokers, comma-separated; empty without a sandbox."""
        return self.settings.bootstrap if self.settings else ""

    @property
    def log_files(self) -> tuple[Path, ...]:
        """The brokers' log files."""
        return tuple(b.log for b in self.brokers)


def status(folder: Path) -> SandboxStatus:
    """The state of the sandbox in ``folder``; asks each broker that runs, up to 2 seconds.

    Raise KdeclareError ``sandbox-unreadable``.
    """
    layout = layout_of(folder)
    marker = read_marker(layout)
    return observed(layout, marker) if marker else SandboxStatus(layout.folder, None, "", ())


def observed(layout: Layout, marker: Marker) -> SandboxStatus:
    """The state of a sandbox whose marker has been read."""
    settings = marker.settings(layout.folder)
    with ThreadPoolExecutor(max_workers=settings.brokers) as pool:
        brokers = pool.map(lambda i: _broker(layout, marker, settings, i), settings.broker_ids)
        return SandboxStatus(layout.folder, settings, marker.cluster_id, tuple(brokers))


def running_process(layout: Layout, broker_id: int) -> processes.Recorded | None:
    """The process of a broker if it runs and is really this sandbox's."""
    recorded = processes.load(layout.broker(broker_id).process)
    return recorded if recorded and processes.is_alive(recorded) else None


def _broker(layout: Layout, marker: Marker, settings: SandboxSettings, broker_id: int) -> BrokerStatus:
    process = running_process(layout, broker_id)
    port = settings.broker_port(broker_id)
    view = metadata.ask(HOST, port, _ASK_SECONDS) if process else None
    return BrokerStatus(
        id=broker_id,
        pid=process.pid if process else None,
        port=port,
        rack=settings.rack(broker_id),
        alive=process is not None,
        ready=view is not None and view.cluster_id == marker.cluster_id and broker_id in view.broker_ids,
        log=layout.broker(broker_id).server_log,
    )
