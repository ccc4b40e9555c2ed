"""The settings of a sandbox, and the ports, racks and roles that follow from them."""

import socket
import string
from collections.abc import Iterable
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass

HOST = "127.0.0.1"

MAX_BROKERS = 20
MAX_LOG_DIRS = 10

MAX_CLUSTERS = 20

MAX_WORKERS = 10

# The ports of Connect workers are above those of all brokers and below those of all controllers.
WORKER_PORT_OFFSET = 50

# The listeners of a secure broker: a block of ports per security protocol, next to the workers' ports.
LISTENERS = {"SASL_SSL": 0, "SSL": 20, "SASL_PLAINTEXT": 60, "PLAINTEXT": 80}

# Controllers listen this far above the broker of the same id, so that a sandbox uses two blocks of ports.
CONTROLLER_PORT_OFFSET = 100

# The distance between the first brokers of two clusters; it is greater than a cluster's whole port range.
CLUSTER_PORT_STEP = 2 * CONTROLLER_PORT_OFFSET


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """One sandbox: the folder of its files, and its members.

    Broker ids start at 1; broker *i* listens on ``port + i - 1``, and its controller, if it has one, 100
    above that. Racks are ``rack-a``, ``rack-b``, … round robin across the brokers. Every broker has
    ``log_dirs`` log directories. Ids of Connect workers also start at 1; worker *i* serves HTTPS on ``port +
    50 + i - 1``. ``secure``: whether clients must authenticate and need ACLs. Brokers then have a listener
    for every security protocol, with SASL_SSL on ``port + i - 1``.
    """

    folder: Path
    brokers: int = 3
    racks: int = 3
    port: int = 19092
    log_dirs: int = 1
    connect_workers: int = 0
    secure: bool = False

    @property
    def broker_ids(self) -> range:
        """The ids of all brokers."""
        return range(1, self.brokers + 1)

    @property
    def controller_ids(self) -> range:
        """The ids of the brokers that are also controllers.

        With three or more brokers, there are three; otherwise one, because two controllers would lose their
        quorum if either failed.
        """
        return range(1, 4 if self.brokers >= 3 else 2)

    @property
    def bootstrap(self) -> str:
        """``host:port`` of all brokers, comma-separated, as clients expect it."""
        return ",".join(f"{HOST}:{self.get_broker_port(i)}" for i in self.broker_ids)

    def get_broker_port(self, broker_id: int) -> int:
        """Return the port that clients connect to."""
        return self.port + broker_id - 1

    def get_controller_port(self, broker_id: int) -> int:
        """Return the port of this broker's controller."""
        return self.get_broker_port(broker_id) + CONTROLLER_PORT_OFFSET

    def ports(self, broker_id: int) -> tuple[int, ...]:
        """Return all ports that this broker's process listens on."""
        if self.secure:
            own = tuple(self.get_listener_port(broker_id, protocol) for protocol in LISTENERS)
        else:
            own = (self.get_broker_port(broker_id),)
        return (*own, self.get_controller_port(broker_id)) if broker_id in self.controller_ids else own

    def get_listener_port(self, broker_id: int, protocol: str) -> int:
        """Return the port of a secure broker for clients with this ``security.protocol``."""
        return self.get_broker_port(broker_id) + LISTENERS[protocol]

    def get_unauthenticated_port(self, broker_id: int) -> int:
        """Return the port that serves cluster metadata without authentication."""
        return (
            self.get_listener_port(broker_id, "PLAINTEXT") if self.secure else self.get_broker_port(broker_id)
        )

    @property
    def worker_ids(self) -> range:
        """The ids of all Connect workers."""
        return range(1, self.connect_workers + 1)

    def get_worker_port(self, worker_id: int) -> int:
        """Return the port of this worker's REST listener."""
        return self.port + WORKER_PORT_OFFSET + worker_id - 1

    def get_worker_url(self, worker_id: int) -> str:
        """Return the URL of this worker, which also identifies it in its group."""
        return f"https://{HOST}:{self.get_worker_port(worker_id)}"

    def rack(self, broker_id: int) -> str:
        """Return the value of ``broker.rack``."""
        return f"rack-{string.ascii_lowercase[(broker_id - 1) % self.racks]}"


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Several clusters of the same shape in one folder: sandboxes ``cluster-1``, ``cluster-2``, …

    ``brokers`` and ``racks`` apply to each cluster. ``port`` is that of the first broker of the first
    cluster; each further cluster starts 200 ports above the previous one.
    """

    folder: Path
    clusters: int
    brokers: int = 3
    racks: int = 3
    port: int = 19092

    @property
    def members(self) -> tuple[SandboxSettings, ...]:
        """The clusters, each of which is a sandbox."""
        return tuple(
            SandboxSettings(
                self.folder / f"cluster-{number}",
                self.brokers,
                self.racks,
                self.port + (number - 1) * CLUSTER_PORT_STEP,
            )
            for number in range(1, self.clusters + 1)
        )


def validate_group(settings: GroupSettings) -> None:
    """Raise KdeclareError if the settings are not valid for a group of clusters."""
    if not 1 <= settings.clusters <= MAX_CLUSTERS:
        raise _build_settings_error(
            f"A sandbox has 1 to {MAX_CLUSTERS} clusters, not {settings.clusters}.", "--clusters"
        )
    for member in settings.members:
        validate_settings(member)


def validate_settings(settings: SandboxSettings) -> None:
    """Raise KdeclareError if the settings are not valid for a sandbox."""
    if not 1 <= settings.brokers <= MAX_BROKERS:
        raise _build_settings_error(
            f"A sandbox has 1 to {MAX_BROKERS} brokers, not {settings.brokers}.", "--brokers"
        )
    if not 1 <= settings.racks <= settings.brokers:
        raise _build_settings_error(
            f"{settings.brokers} broker(s) can be on 1 to {settings.brokers} racks, not {settings.racks}.",
            "--racks",
        )
    if not 1 <= settings.log_dirs <= MAX_LOG_DIRS:
        raise _build_settings_error(
            f"A broker has 1 to {MAX_LOG_DIRS} log directories, not {settings.log_dirs}.",
            "the number of log directories",
        )
    if not 0 <= settings.connect_workers <= MAX_WORKERS:
        raise _build_settings_error(
            f"A sandbox has 0 to {MAX_WORKERS} Connect workers, not {settings.connect_workers}.",
            "--connect-workers",
        )
    if settings.secure and settings.connect_workers:
        raise _build_settings_error(
            "A secure sandbox cannot have Connect workers.", "--secure or --connect-workers"
        )
    ports = [port for i in settings.broker_ids for port in settings.ports(i)]
    highest_port = max(*ports, *map(settings.get_worker_port, settings.worker_ids))
    if settings.port < 1024 or highest_port > 65535:
        raise _build_settings_error(
            f"The sandbox needs ports {settings.port} to {highest_port}, but only 1024 to 65535 are allowed.",
            "--port",
        )
    if "," in str(settings.folder):
        raise _build_settings_error(
            f"Kafka does not accept a comma in a folder name: {settings.folder}.", "the folder"
        )


def _build_settings_error(detail: str, option: str) -> KdeclareError:
    return KdeclareError(
        error("sandbox-settings", "Invalid sandbox settings", detail, hint=f"Correct {option}.")
    )


def is_free(port: int) -> bool:
    """Whether a server could currently listen on this port of the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Kafka sets this too, so lingering connections of an earlier run do not matter.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def require_free_ports(
    settings: SandboxSettings, broker_ids: Iterable[int], worker_ids: Iterable[int] = ()
) -> None:
    """Raise KdeclareError ``port-taken`` unless the ports of these brokers and workers are free."""
    owners_by_port = {p: f"broker {i}" for i in broker_ids for p in settings.ports(i)}
    owners_by_port |= {
        settings.get_controller_port(i): f"controller {i}" for i in broker_ids if i in settings.controller_ids
    }
    owners_by_port |= {settings.get_worker_port(i): f"Connect worker {i}" for i in worker_ids}
    taken_ports = [p for p in owners_by_port if not is_free(p)]
    if taken_ports:
        ports_text = ", ".join(f"{p} ({owners_by_port[p]})" for p in taken_ports)
        workers_text = (
            f", {WORKER_PORT_OFFSET} above that for Connect workers" if settings.connect_workers else ""
        )
        raise KdeclareError(
            error(
                "port-taken",
                "Port already in use",
                f"{'Ports' if taken_ports[1:] else 'Port'} {ports_text} on "
                f"{HOST} {'are' if taken_ports[1:] else 'is'} in use by another process.",
                hint="Stop that process, or choose other ports with --port"
                f" (the sandbox uses ports from {settings.port} on{workers_text}, and"
                f" {CONTROLLER_PORT_OFFSET} above that for controllers).",
            )
        )
