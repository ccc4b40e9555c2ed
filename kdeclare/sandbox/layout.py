"""The paths of the files of a sandbox, and the marker file that identifies a folder as a sandbox."""

import json
from pathlib import Path
from typing import Any

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.sandbox.settings import SandboxSettings

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ProcessFiles:
    """The paths of the log files and the process record of one broker, worker or schema registry."""

    folder: Path

    @property
    def logs(self) -> Path:
        """The folder to which log4j writes."""
        return self.folder / "logs"

    @property
    def server_log(self) -> Path:
        """The log of the server."""
        return self.logs / "server.log"

    @property
    def console_log(self) -> Path:
        """The file with the standard output and standard error of the process, mostly errors of the JVM."""
        return self.logs / "console.log"

    @property
    def process(self) -> Path:
        """The file with the process record (see `processes.ProcessRecord`)."""
        return self.folder / "process.json"


@dataclass(frozen=True, slots=True)
class BrokerFiles(ProcessFiles):
    """The paths of the files of one broker."""

    @property
    def properties(self) -> Path:
        """The broker's ``server.properties``, which is rewritten at each start."""
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        """The first log directory of the broker. It also contains the metadata log."""
        return self.folder / "data"

    def log_dirs(self, count: int) -> tuple[Path, ...]:
        """Return the log directories of the broker. count: the number of log directories."""
        return (self.data, *(self.folder / f"data-{number}" for number in range(2, count + 1)))


@dataclass(frozen=True, slots=True)
class WorkerFiles(ProcessFiles):
    """The paths of the files of one Connect worker."""

    @property
    def properties(self) -> Path:
        """The worker's ``worker.properties``, which is rewritten at each start."""
        return self.folder / "worker.properties"

    @property
    def keystore(self) -> Path:
        """The keystore (PKCS12) with the key and certificate that the worker uses when it starts."""
        return self.folder / "keystore.p12"


@dataclass(frozen=True, slots=True)
class RegistryFiles(ProcessFiles):
    """The paths of the files of the schema registry."""

    @property
    def app(self) -> Path:
        """The folder with the jars of the registry."""
        return self.folder / "app"

    @property
    def properties(self) -> Path:
        """The registry's ``registry.properties``, which is rewritten at each start."""
        return self.folder / "registry.properties"

    @property
    def data(self) -> Path:
        """The path of the database, without the extensions of its files."""
        return self.folder / "data" / "registry"


@dataclass(frozen=True, slots=True)
class AuthorityFiles:
    """The paths of the keystore, certificate and truststore of a certificate authority."""

    folder: Path

    @property
    def authority(self) -> Path:
        """The keystore (PKCS12) with the key and certificate of the certificate authority."""
        return self.folder / "ca.p12"

    @property
    def authority_pem(self) -> Path:
        """The certificate of the certificate authority as a PEM file, for clients."""
        return self.folder / "ca.pem"

    @property
    def truststore(self) -> Path:
        """The truststore (PKCS12) with the authority's certificate, for servers and Java clients."""
        return self.folder / "truststore.p12"


@dataclass(frozen=True, slots=True)
class SecurityFiles(AuthorityFiles):
    """The paths of the files that all brokers of a secure sandbox share, and of the files for clients."""

    @property
    def keystore(self) -> Path:
        """The keystore (PKCS12) with the key and certificate of all brokers."""
        return self.folder / "broker.p12"

    def client(self, user: str) -> Path:
        """Return the path of the client properties of a user of the sandbox."""
        return self.folder / f"{user}.properties"


@dataclass(frozen=True, slots=True)
class ConnectFiles(AuthorityFiles):
    """The paths of the files of all Connect workers of a sandbox."""

    @property
    def plugins(self) -> Path:
        """The folder with connector plug-ins (``plugin.path``). Users can add connectors to this folder."""
        return self.folder / "plugins"

    @property
    def workers(self) -> Path:
        """The folder that contains a folder for each worker."""
        return self.folder / "workers"

    def worker(self, worker_id: int) -> WorkerFiles:
        """Return the paths of the files of one worker."""
        return WorkerFiles(self.workers / str(worker_id))


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of the files of a sandbox. folder: the absolute path of the sandbox folder."""

    folder: Path

    @property
    def marker(self) -> Path:
        """The marker file, which identifies the folder as a sandbox."""
        return self.folder / "sandbox.json"

    @property
    def group_marker(self) -> Path:
        """The marker file of a folder with several clusters, each of which is a sandbox in a subfolder."""
        return self.folder / "clusters.json"

    @property
    def lock(self) -> Path:
        """The lock file, which is locked while the sandbox is being started, stopped or reset."""
        return self.folder / ".lock"

    @property
    def brokers(self) -> Path:
        """The folder that contains a folder for each broker."""
        return self.folder / "brokers"

    def broker(self, broker_id: int) -> BrokerFiles:
        """Return the paths of the files of one broker."""
        return BrokerFiles(self.brokers / str(broker_id))

    @property
    def connect(self) -> ConnectFiles:
        """The paths of the files of the Connect workers."""
        return ConnectFiles(self.folder / "connect")

    @property
    def registry(self) -> RegistryFiles:
        """The paths of the files of the schema registry."""
        return RegistryFiles(self.folder / "registry")

    @property
    def security(self) -> SecurityFiles:
        """The paths of the certificates and client properties of a secure sandbox."""
        return SecurityFiles(self.folder / "security")


def resolve_layout(folder: Path) -> Layout:
    """Return the paths of a sandbox in ``folder``. The folder does not have to exist."""
    return Layout(folder.expanduser().resolve())


@dataclass(frozen=True, slots=True)
class Marker:
    """The content of the marker file of a sandbox.

    kafka: the version of Kafka with which the sandbox was created. formatted: whether the data folders of all
    brokers are complete.
    """

    brokers: int
    racks: int
    port: int
    cluster_id: str
    kafka: str
    formatted: bool
    log_dirs: int = 1
    connect_workers: int = 0
    secure: bool = False
    registry: bool = False

    def settings(self, folder: Path) -> SandboxSettings:
        """Return the settings of the sandbox. folder: the current path of the sandbox."""
        return SandboxSettings(
            folder,
            self.brokers,
            self.racks,
            self.port,
            self.log_dirs,
            self.connect_workers,
            self.secure,
            self.registry,
        )


def read_marker(layout: Layout) -> Marker | None:
    """Return the content of the marker file; None if the folder is not a sandbox.

    Raises KdeclareError ``sandbox-unreadable`` if the marker file cannot be used.
    """
    try:
        text = layout.marker.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise build_marker_error(layout.marker, str(problem.strerror)) from problem
    try:
        content: dict[str, Any] = json.loads(text)
        if content["kdeclare_sandbox"] != _FORMAT:
            raise build_marker_error(layout.marker, "a different version of kdeclare wrote the file")
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
            registry=bool(content.get("registry", False)),
        )
    except (ValueError, KeyError, TypeError) as problem:
        raise build_marker_error(layout.marker, "kdeclare did not write the file") from problem


def write_marker(layout: Layout, marker: Marker) -> None:
    """Write the marker file of a sandbox atomically."""
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
        "registry": marker.registry,
    }
    write_atomically(layout.marker, json.dumps(content, indent=2) + "\n")


def write_atomically(path: Path, text: str) -> None:
    """Replace a file atomically, so that no reader sees a partial file."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)


def build_marker_error(marker: Path, reason: str) -> KdeclareError:
    """Build the error for a marker file that cannot be used."""
    return KdeclareError(
        error(
            "sandbox-unreadable",
            "Sandbox marker file cannot be used",
            f"{marker} cannot be used: {reason}.",
            hint="Use a different folder, or delete this folder if you do not need its content.",
        )
    )
