"""The settings of a sandbox. They determine the ports, racks and roles of its servers."""

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

# The ports of the schema registry are between the ports of brokers and the ports of Connect workers.
REGISTRY_PORT_OFFSET = 40

# The path of the API of Confluent Schema Registry in the URL of the registry.
REGISTRY_PATH = "/apis/ccompat/v7"

# The ports of Connect workers are higher than the ports of brokers, and lower than the ports of controllers.
WORKER_PORT_OFFSET = 50

# The listeners of a secure broker by security protocol. The number is added to the port of the broker. The
# resulting ports do not overlap with the ports of workers and controllers.
LISTENERS = {"SASL_SSL": 0, "SSL": 20, "SASL_PLAINTEXT": 60, "PLAINTEXT": 80}

# The difference between the port of a controller and the port of the broker with the same id.
CONTROLLER_PORT_OFFSET = 100

# The difference between the ports of two clusters. It is greater than the range of ports that a cluster uses.
CLUSTER_PORT_STEP = 2 * CONTROLLER_PORT_OFFSET


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """The settings of one sandbox.

    folder: the folder for the files of the sandbox.
    brokers: the number of brokers, whose ids start at 1. Broker *i* listens on ``port + i - 1``. If it is
        also a controller, the controller listens on ``port + 100 + i - 1``.
    racks: the number of racks: ``rack-a``, ``rack-b``, … Brokers are assigned to racks round robin.
    log_dirs: the number of log directories of each broker.
    connect_workers: the number of Connect workers, whose ids start at 1. Worker *i* serves HTTPS on
        ``port + 50 + i - 1``.
    secure: whether clients must authenticate and need ACLs. If so, a broker has one listener for each
        security protocol, and SASL_SSL is on ``port + i - 1``.
    registry: whether the sandbox has a schema registry. It serves HTTP on ``port + 40``.
    """

    folder: Path
    brokers: int = 3
    racks: int = 3
    port: int = 19092
    log_dirs: int = 1
    connect_workers: int = 0
    secure: bool = False
    registry: bool = False

    @property
    def broker_ids(self) -> range:
        """The ids of all brokers."""
        return range(1, self.brokers + 1)

    @property
    def controller_ids(self) -> range:
        """The ids of the brokers that are also controllers.

        A sandbox with three or more brokers has three controllers. Smaller sandboxes have one controller,
        because the quorum of two controllers would not survive the failure of one of them.
        """
        return range(1, 4 if self.brokers >= 3 else 2)

    @property
    def bootstrap(self) -> str:
        """The value of ``bootstrap.servers``: ``host:port`` of all brokers, separated by commas."""
        return ",".join(f"{HOST}:{self.get_broker_port(i)}" for i in self.broker_ids)

    def get_broker_port(self, broker_id: int) -> int:
        """Return the port to which clients of a broker connect."""
        return self.port + broker_id - 1

    def get_controller_port(self, broker_id: int) -> int:
        """Return the port of the controller that runs in the broker with this id."""
        return self.get_broker_port(broker_id) + CONTROLLER_PORT_OFFSET

    def ports(self, broker_id: int) -> tuple[int, ...]:
        """Return all ports on which the process of a broker listens."""
        if self.secure:
            own = tuple(self.get_listener_port(broker_id, protocol) for protocol in LISTENERS)
        else:
            own = (self.get_broker_port(broker_id),)
        return (*own, self.get_controller_port(broker_id)) if broker_id in self.controller_ids else own

    def get_listener_port(self, broker_id: int, protocol: str) -> int:
        """Return the port of a secure broker for clients that use this security protocol."""
        return self.get_broker_port(broker_id) + LISTENERS[protocol]

    def get_unauthenticated_port(self, broker_id: int) -> int:
        """Return the port of a broker for clients that do not authenticate."""
        return (
            self.get_listener_port(broker_id, "PLAINTEXT") if self.secure else self.get_broker_port(broker_id)
        )

    @property
    def worker_ids(self) -> range:
        """The ids of all Connect workers."""
        return range(1, self.connect_workers + 1)

    def get_worker_port(self, worker_id: int) -> int:
        """Return the port of the REST API of a worker."""
        return self.port + WORKER_PORT_OFFSET + worker_id - 1

    def get_worker_url(self, worker_id: int) -> str:
        """Return the URL of a Connect worker. The URL also identifies the worker in its group."""
        return f"https://{HOST}:{self.get_worker_port(worker_id)}"

    @property
    def registry_port(self) -> int:
        """The port of the schema registry for clients."""
        return self.port + REGISTRY_PORT_OFFSET

    @property
    def registry_management_port(self) -> int:
        """The port on which the schema registry reports its health and metrics."""
        return self.registry_port + 1

    @property
    def registry_url(self) -> str:
        """The URL of the schema registry for clients."""
        return f"http://{HOST}:{self.registry_port}{REGISTRY_PATH}"

    def rack(self, broker_id: int) -> str:
        """Return the rack of a broker (``broker.rack``)."""
        return f"rack-{string.ascii_lowercase[(broker_id - 1) % self.racks]}"


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The settings of several clusters that differ only in their folders and ports.

    folder: the folder that contains a sandbox for each cluster: ``cluster-1``, ``cluster-2``, …
    brokers, racks, connect_workers: the numbers of brokers, racks and Connect workers in each cluster.
    registry: whether each cluster has a schema registry.
    port: the port of the first broker of the first cluster. The ports of each further cluster are 200 higher.
    """

    folder: Path
    clusters: int
    brokers: int = 3
    racks: int = 3
    port: int = 19092
    connect_workers: int = 0
    secure: bool = False
    registry: bool = False

    @property
    def members(self) -> tuple[SandboxSettings, ...]:
        """The settings of each cluster."""
        return tuple(
            SandboxSettings(
                self.folder / f"cluster-{number}",
                self.brokers,
                self.racks,
                self.port + (number - 1) * CLUSTER_PORT_STEP,
                connect_workers=self.connect_workers,
                secure=self.secure,
                registry=self.registry,
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
    ports = [port for i in settings.broker_ids for port in settings.ports(i)]
    ports += map(settings.get_worker_port, settings.worker_ids)
    if settings.registry:
        ports.append(settings.registry_management_port)
    highest_port = max(ports)
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
    """Whether a server can currently listen on this port of the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Kafka also sets this option, so that closed connections of an earlier process do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def require_free_ports(
    settings: SandboxSettings,
    broker_ids: Iterable[int],
    worker_ids: Iterable[int] = (),
    *,
    registry: bool = False,
) -> None:
    """Raise KdeclareError ``port-taken`` if a port of these brokers and workers is in use.

    registry: whether the ports of the schema registry must be free, too.
    """
    owners_by_port = {p: f"broker {i}" for i in broker_ids for p in settings.ports(i)}
    owners_by_port |= {
        settings.get_controller_port(i): f"controller {i}" for i in broker_ids if i in settings.controller_ids
    }
    owners_by_port |= {settings.get_worker_port(i): f"Connect worker {i}" for i in worker_ids}
    if registry:
        for port in (settings.registry_port, settings.registry_management_port):
            owners_by_port[port] = "schema registry"
    taken_ports = [p for p in owners_by_port if not is_free(p)]
    if taken_ports:
        ports_text = ", ".join(f"{p} ({owners_by_port[p]})" for p in taken_ports)
        registry_text = f" schema registry ports at {settings.registry_port}," if settings.registry else ""
        workers_text = (
            f" Connect worker ports at {settings.port + WORKER_PORT_OFFSET},"
            if settings.connect_workers
            else ""
        )
        raise KdeclareError(
            error(
                "port-taken",
                "Port already in use",
                f"{'Ports' if taken_ports[1:] else 'Port'} {ports_text} on "
                f"{HOST} {'are' if taken_ports[1:] else 'is'} in use by another process.",
                hint="Stop that process, or choose different ports with --port. Broker ports start at"
                f" {settings.port},{registry_text}{workers_text} and controller ports at"
                f" {settings.port + CONTROLLER_PORT_OFFSET}.",
            )
        )
