"""The file layout of a sandbox, and the marker file that identifies a folder as a sandbox."""

import json
from pathlib import Path
from typing import Any

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.sandbox.settings import SandboxSettings

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ProcessFiles:
    """The log and process files of one broker or worker."""

    folder: Path

    @property
    def logs(self) -> Path:
        """The folder that log4j writes to."""
        return self.folder / "logs"

    @property
    def server_log(self) -> Path:
        """The log of the server."""
        return self.logs / "server.log"

    @property
    def console_log(self) -> Path:
        """The output of the process itself, mostly JVM errors."""
        return self.logs / "console.log"

    @property
    def process(self) -> Path:
        """The pid and start time of the process."""
        return self.folder / "process.json"


@dataclass(frozen=True, slots=True)
class BrokerFiles(ProcessFiles):
    """The files of one broker."""

    @property
    def properties(self) -> Path:
        """The broker's ``server.properties``; rewritten at each start."""
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        """Kafka's first log directory, which also contains the metadata."""
        return self.folder / "data"

    def log_dirs(self, count: int) -> tuple[Path, ...]:
        """Return all of Kafka's log directories."""
        return (self.data, *(self.folder / f"data-{number}" for number in range(2, count + 1)))


@dataclass(frozen=True, slots=True)
class WorkerFiles(ProcessFiles):
    """The files of one Connect worker."""

    @property
    def properties(self) -> Path:
        """The worker's ``worker.properties``; rewritten at each start."""
        return self.folder / "worker.properties"

    @property
    def keystore(self) -> Path:
        """The key and certificate that the worker starts with (PKCS12)."""
        return self.folder / "keystore.p12"


@dataclass(frozen=True, slots=True)
class AuthorityFiles:
    """A certificate authority, and the files with which clients and servers trust it."""

    folder: Path

    @property
    def authority(self) -> Path:
        """The key and certificate of the authority (PKCS12)."""
        return self.folder / "ca.p12"

    @property
    def authority_pem(self) -> Path:
        """The authority's certificate only, for clients (PEM)."""
        return self.folder / "ca.pem"

    @property
    def truststore(self) -> Path:
        """The authority's certificate only, for servers and Java clients (PKCS12)."""
        return self.folder / "truststore.p12"


@dataclass(frozen=True, slots=True)
class SecurityFiles(AuthorityFiles):
    """The files that the brokers of a secure sandbox share, and those for their clients."""

    @property
    def keystore(self) -> Path:
        """The key and certificate of all brokers (PKCS12)."""
        return self.folder / "broker.p12"

    def client(self, user: str) -> Path:
        """Return the client properties file of one of the sandbox's users."""
        return self.folder / f"{user}.properties"


@dataclass(frozen=True, slots=True)
class ConnectFiles(AuthorityFiles):
    """The files of a sandbox's Connect workers."""

    @property
    def plugins(self) -> Path:
        """The only element of ``plugin.path``. Users can add connectors to this folder."""
        return self.folder / "plugins"

    @property
    def workers(self) -> Path:
        """The parent of the workers' folders."""
        return self.folder / "workers"

    def worker(self, worker_id: int) -> WorkerFiles:
        """Return the files of one worker."""
        return WorkerFiles(self.workers / str(worker_id))


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a sandbox. ``folder`` is absolute."""

    folder: Path

    @property
    def marker(self) -> Path:
        """The file that identifies a folder as a sandbox."""
        return self.folder / "sandbox.json"

    @property
    def group_marker(self) -> Path:
        """The file that identifies a folder as a group of sandboxes, each in a subfolder."""
        return self.folder / "clusters.json"

    @property
    def lock(self) -> Path:
        """Held while a sandbox is being started, stopped or reset."""
        return self.folder / ".lock"

    @property
    def brokers(self) -> Path:
        """The parent of the brokers' folders."""
        return self.folder / "brokers"

    def broker(self, broker_id: int) -> BrokerFiles:
        """Return the files of one broker."""
        return BrokerFiles(self.brokers / str(broker_id))

    @property
    def connect(self) -> ConnectFiles:
        """The files of the Connect workers."""
        return ConnectFiles(self.folder / "connect")

    @property
    def security(self) -> SecurityFiles:
        """The files of a secure sandbox."""
        return SecurityFiles(self.folder / "security")


def resolve_layout(folder: Path) -> Layout:
    """Return the layout of a sandbox in ``folder``, which need not exist."""
    return Layout(folder.expanduser().resolve())


@dataclass(frozen=True, slots=True)
class Marker:
    """The content of the marker file. ``formatted``: the brokers' data folders are complete."""

    brokers: int
    racks: int
    port: int
    cluster_id: str
    kafka: str
    formatted: bool
    log_dirs: int = 1
    connect_workers: int = 0
    secure: bool = False

    def settings(self, folder: Path) -> SandboxSettings:
        """Return the settings that the sandbox was created with."""
        return SandboxSettings(
            folder, self.brokers, self.racks, self.port, self.log_dirs, self.connect_workers, self.secure
        )


def read_marker(layout: Layout) -> Marker | None:
    """Return the marker, or None if there is no sandbox. Raises KdeclareError if it cannot be read."""
    try:
        text = layout.marker.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise build_marker_error(layout.marker, str(problem.strerror)) from problem
    try:
        content: dict[str, Any] = json.loads(text)
        if content["kdeclare_sandbox"] != _FORMAT:
            raise build_marker_error(layout.marker, "another version of kdeclare wrote it")
        return Marker(
            brokers=int(content["brokers"]),
            racks=int(content["racks"]),
            port=int(content["port"]),
            cluster_id=str(content["cluster_id"]),
            kafka=str(content["kafka"]),
            formatted=bool(content["formatted"]),
            log_dirs=int(content.get("log_dirs", 1)),
            connect_workers=int(content.get("connect_workers", 0)),
            secure=bool(content.get("secure", False)),
        )
    except (ValueError, KeyError, TypeError) as problem:
        raise build_marker_error(layout.marker, "kdeclare did not write it") from problem


def write_marker(layout: Layout, marker: Marker) -> None:
    """Write the marker atomically."""
    content = {
        "kdeclare_sandbox": _FORMAT,
        "brokers": marker.brokers,
        "racks": marker.racks,
        "port": marker.port,
        "cluster_id": marker.cluster_id,
        "kafka": marker.kafka,
        "formatted": marker.formatted,
        "log_dirs": marker.log_dirs,
        "connect_workers": marker.connect_workers,
        "secure": marker.secure,
    }
    write_atomically(layout.marker, json.dumps(content, indent=2) + "\n")


def write_atomically(path: Path, text: str) -> None:
    """Replace a file atomically, so that no reader sees a partial file."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)


def build_marker_error(marker: Path, reason: str) -> KdeclareError:
    """Return the error about a marker file that cannot be used."""
    return KdeclareError(
        error(
            "sandbox-unreadable",
            "Sandbox marker file cannot be used",
            f"{marker} cannot be used: {reason}.",
            hint="Use another folder, or delete this folder if you do not need anything in it.",
        )
    )
