"""What a person chooses about a sandbox, and what follows from it: free ports, racks, roles."""

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

# Connect workers listen beyond all brokers, and below all controllers.
WORKER_PORT_OFFSET = 50

# The listeners of a secure broker: a block of ports for each security protocol, beside the workers'.
LISTENERS = {"SASL_SSL": 0, "SSL": 20, "SASL_PLAINTEXT": 60, "PLAINTEXT": 80}

# Controllers listen that far above the broker of the same id, so that a sandbox is two blocks of ports.
CONTROLLER_PORT_OFFSET = 100

# From one cluster's first broker to the next one's: beyond all that a cluster can listen on.
CLUSTER_PORT_STEP = 2 * CONTROLLER_PORT_OFFSET


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """One sandbox: where it keeps its files and what it consists of.

    Broker ids count from 1; broker *i* listens on ``port + i - 1`` and its controller, if it has
    one, 100 above that. Racks are ``rack-a``, ``rack-b``, … round robin over the brokers. Every broker
    has ``log_dirs`` log directories. Ids of Connect workers count from 1 too; worker *i* serves HTTPS
    on ``port + 50 + i - 1``. ``secure``: clients have to say who they are and may do what ACLs grant;
    brokers then listen for every security protocol, SASL_SSL on the port above.
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
        """The ids of the brokers that are controllers too.

        Three from three brokers on; one below that, because two lose their quorum with either.
        """
        return range(1, 4 if self.brokers >= 3 else 2)

    @property
    def bootstrap(self) -> str:
        """``host:port`` of all brokers, comma-separated, as a client wants it."""
        return ",".join(f"{HOST}:{self.get_broker_port(i)}" for i in self.broker_ids)

    def get_broker_port(self, broker_id: int) -> int:
        """The port that clients connect to."""
        return self.port + broker_id - 1

    def get_controller_port(self, broker_id: int) -> int:
        """The port of that broker's controller."""
        return self.get_broker_port(broker_id) + CONTROLLER_PORT_OFFSET

    def ports(self, broker_id: int) -> tuple[int, ...]:
        """All ports that this broker's process listens on."""
        if self.secure:
            own = tuple(self.get_listener_port(broker_id, protocol) for protocol in LISTENERS)
        else:
            own = (self.get_broker_port(broker_id),)
        return (*own, self.get_controller_port(broker_id)) if broker_id in self.controller_ids else own

    def get_listener_port(self, broker_id: int, protocol: str) -> int:
        """The port of a secure broker for clients with this ``security.protocol``."""
        return self.get_broker_port(broker_id) + LISTENERS[protocol]

    def get_unauthenticated_port(self, broker_id: int) -> int:
        """The port where anybody is told who is in the cluster."""
        return (
            self.get_listener_port(broker_id, "PLAINTEXT") if self.secure else self.get_broker_port(broker_id)
        )

    @property
    def worker_ids(self) -> range:
        """The ids of all Connect workers."""
        return range(1, self.connect_workers + 1)

    def get_worker_port(self, worker_id: int) -> int:
        """The port of that worker's REST listener."""
        return self.port + WORKER_PORT_OFFSET + worker_id - 1

    def get_worker_url(self, worker_id: int) -> str:
        """What that worker is reached at, and known as in its group."""
        return f"https://{HOST}:{self.get_worker_port(worker_id)}"

    def rack(self, broker_id: int) -> str:
        """The value of ``broker.rack``."""
        return f"rack-{string.ascii_lowercase[(broker_id - 1) % self.racks]}"


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Several clusters of the same shape in one folder: sandboxes ``cluster-1``, ``cluster-2``, …

    ``brokers`` and ``racks`` are those of each. ``port`` is that of the first broker of the first
    cluster; every cluster begins 200 above the one before.
    """

    folder: Path
    clusters: int
    brokers: int = 3
    racks: int = 3
    port: int = 19092

    @property
    def members(self) -> tuple[SandboxSettings, ...]:
        """The clusters, each a sandbox of its own."""
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
    """Raise KdeclareError when no clusters can have these settings."""
    if not 1 <= settings.clusters <= MAX_CLUSTERS:
        raise _build_settings_error(
            f"A sandbox has 1 to {MAX_CLUSTERS} clusters, not {settings.clusters}.", "--clusters"
        )
    for member in settings.members:
        validate_settings(member)


def validate_settings(settings: SandboxSettings) -> None:
    """Raise KdeclareError when no sandbox can have these settings."""
    if not 1 <= settings.brokers <= MAX_BROKERS:
        raise _build_settings_error(
            f"A sandbox has 1 to {MAX_BROKERS} brokers, not {settings.brokers}.", "--brokers"
        )
    if not 1 <= settings.racks <= settings.brokers:
        raise _build_settings_error(
            f"{settings.brokers} broker(s) stand on 1 to {settings.brokers} racks, not {settings.racks}.",
            "--racks",
        )
    if not 1 <= settings.log_dirs <= MAX_LOG_DIRS:
        raise _build_settings_error(
            f"A broker has 1 to {MAX_LOG_DIRS} log directories, not {settings.log_dirs}.", "another number"
        )
    if not 0 <= settings.connect_workers <= MAX_WORKERS:
        raise _build_settings_error(
            f"A sandbox has 0 to {MAX_WORKERS} Connect workers, not {settings.connect_workers}.",
            "--connect-workers",
        )
    if settings.secure and settings.connect_workers:
        raise _build_settings_error(
            "A secure sandbox has no Connect workers.", "--secure or --connect-workers"
        )
    ports = [port for i in settings.broker_ids for port in settings.ports(i)]
    highest_port = max(*ports, *map(settings.get_worker_port, settings.worker_ids))
    if settings.port < 1024 or highest_port > 65535:
        raise _build_settings_error(
            f"Ports {settings.port} to {highest_port} would be needed; only 1024 to 65535 can be used.",
            "--port",
        )
    if "," in str(settings.folder):
        raise _build_settings_error(
            f"Kafka takes no comma in a folder's name: {settings.folder}.", "another folder"
        )


def _build_settings_error(detail: str, option: str) -> KdeclareError:
    return KdeclareError(error("sandbox-settings", "Wrong sandbox settings", detail, hint=f"Give {option}."))


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback address now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Kafka does: connections of an earlier run that linger are no obstacle.
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
                "A port is taken",
                f"{'Ports' if taken_ports[1:] else 'Port'} {ports_text} on "
                f"{HOST}: in use by another process.",
                hint="Stop that process, or choose other ports with --port"
                f" (the sandbox uses {settings.port} and up{workers_text}, and {CONTROLLER_PORT_OFFSET} above"
                " that for controllers).",
            )
        )
