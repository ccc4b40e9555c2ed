"""What a command works with: a project in an environment, its state, and its cluster."""

import getpass
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kdeclare.app.client_config import read_client_config
from kdeclare.app.connect.door import ProjectDoor
from kdeclare.app.faults import explained
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.run import REQUEST_DEADLINE_S
from kdeclare.core.scrubber import SCRUBBER
from kdeclare.core.secret_hashes import read_keys
from kdeclare.engine.state.location import open_store
from kdeclare.engine.state.port import StateStore
from kdeclare.manifests.project import Project, open_project
from kdeclare.providers.connect.client.port import Door
from kdeclare.providers.connect.workers.values import is_sensitive
from kdeclare.providers.kafka.port import QUOTA_EXCEEDED, Cluster

if TYPE_CHECKING:
    from kdeclare.providers.kafka.client.retry import Retry

_log = logging.getLogger(__name__)

TIMEOUT_S = 10.0
"""How long to wait for a cluster where nobody says."""

Connector = Callable[[str, Mapping[str, str], float, Door], Cluster]
"""Opens a cluster at addresses with client properties, within seconds; the door leads to Connect workers."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options that all commands with a cluster share, as given.

    timeout_s: how long to wait for the cluster; None is `TIMEOUT_S`.
    """

    project: Path | None = None
    env: str | None = None
    bootstrap_server: str | None = None
    command_config: Path | None = None
    state: str | None = None
    timeout_s: float | None = None

    @property
    def patience_s(self) -> float:
        """How long to wait for the cluster."""
        return TIMEOUT_S if self.timeout_s is None else self.timeout_s

    def over(self, defaults: "Options") -> "Options":
        """These, and where they say nothing the defaults.

        Whoever names another project or environment means its servers too, and not the defaults'.
        """
        if self.project is not None:
            defaults = Options(timeout_s=defaults.timeout_s)
        elif self.env is not None:
            defaults = Options(defaults.project, state=defaults.state, timeout_s=defaults.timeout_s)
        unsaid = {f.name: getattr(defaults, f.name) for f in fields(self) if getattr(self, f.name) is None}
        return replace(self, **unsaid)


@dataclass(frozen=True)
class Workspace:
    """Project, environment and state. The cluster is connected to only when `cluster` is entered.

    connect: opens the cluster; retries are already around it.
    keeps: whether it stays open when whoever entered it is done, as somebody else closes it.
    """

    project: Project
    store: StateStore
    cluster_name: str
    connect: Callable[[], Cluster]
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    keeps: bool = False

    def __post_init__(self) -> None:
        """Have the keys at hand that hashes of secrets may need. Raises KdeclareError for a weak one."""
        read_keys(self.environ)

    @property
    def secret_key_id(self) -> str | None:
        """Of the key that hashes of secrets are made with, if there is one."""
        return read_keys(self.environ)

    @contextmanager
    def cluster(self) -> Iterator[Cluster]:
        """The cluster, connected. Raises KdeclareError, also for whatever the cluster refuses inside."""
        connection = self.connecting()
        try:
            with self.explained():
                yield connection.get()
        finally:
            connection.close()

    @property
    def request_deadline_s(self) -> float:
        """For how long brokers may work on a request that carries no timeout."""
        stated = self.project.environment.request_deadline_s
        return REQUEST_DEADLINE_S if stated is None else stated

    def connecting(self) -> "Connection":
        """Begin to connect, so that files can be read meanwhile; to be closed by whoever asked."""
        return Connection(self.connect, keeps=self.keeps)

    def explained(self) -> AbstractContextManager[None]:
        """Inside, a Fault becomes a KdeclareError."""
        return explained(self.cluster_name)


class Connection:
    """A connection under way."""

    def __init__(self, connect: Callable[[], Cluster], *, keeps: bool = False) -> None:
        """keeps: see `Workspace`."""
        self._keeps = keeps
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="connect")
        self._future: Future[Cluster] = self._pool.submit(connect)

    def get(self) -> Cluster:
        """The cluster. Raises what connecting raised."""
        return self._future.result()

    def close(self) -> None:
        """Let go of it, also when nobody asked for it; waits for nothing."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if not self._keeps:
            self._future.add_done_callback(_close)


def _close(connected: Future[Cluster]) -> None:
    if not connected.cancelled() and connected.exception() is None:
        connected.result().close()


def open_workspace(
    options: Options,
    environ: Mapping[str, str] = os.environ,
    connector: Connector | None = None,
    *,
    keeps: bool = False,
) -> Workspace:
    """Read the project file and find the state; nothing is connected to.

    environ: what ``${env.NAME}`` means. connector: opens the cluster, in place of a connection to Kafka: it
        is given addresses, client properties, seconds and a way to Connect workers. keeps: see `Workspace`.
    Raises KdeclareError for a project file that cannot be used, or has no such environment, and for a state
    that cannot be where it is said to be.
    """
    project = open_project(options.project, options.env, environ)
    return workspace_of(project, options, environ, connector, keeps=keeps)


def workspace_of(
    project: Project,
    options: Options,
    environ: Mapping[str, str],
    connector: Connector | None = None,
    *,
    keeps: bool = False,
) -> Workspace:
    """The workspace of a project that is open already; its file and environment in ``options`` are not used.

    connector: in place of `connect_kafka`. keeps: see `Workspace`. Raises KdeclareError.
    """
    environment = project.environment
    servers = options.bootstrap_server or environment.bootstrap_servers
    store = open_store(options.state or project.state, project.name, environment.name)
    timeout_s = options.patience_s

    def connect() -> Cluster:
        config = client_config(project, options, environ)
        if not (servers or config.get("bootstrap.servers")):
            raise _no_servers(project)
        door = ProjectDoor(project.folder, environ, timeout_s, project.limits)
        return (connector or connect_kafka)(servers or "", config, timeout_s, door)

    return Workspace(project, store, servers or environment.name, connect, environ, keeps)


_QUOTED = re.compile(r'(?:password|secret|token)\w*\s*=\s*"((?:[^"\\]|\\.)*)"', re.IGNORECASE)


def client_config(project: Project, options: Options, environ: Mapping[str, str]) -> dict[str, str]:
    """The client properties of an environment, and over them those of the command line.

    Raises KdeclareError when a file cannot be read or a reference in it leads nowhere.
    """
    config = dict(project.environment.client_config)
    for file in (project.environment.client_config_file, options.command_config):
        if file is not None:
            config |= read_client_config(file, environ)
    for name, value in config.items():
        if is_sensitive(name):
            SCRUBBER.register(value)
            for quoted in _QUOTED.findall(value):  # of a JAAS config, its password is what others repeat
                SCRUBBER.register(quoted)
    return config


def connect_kafka(
    servers: str, config: Mapping[str, str], timeout_s: float, door: Door, attempts: int = 6
) -> Cluster:
    """Real brokers, with retries around them. Raises KdeclareError."""
    from kdeclare.providers.kafka.client import connect as open_kafka
    from kdeclare.providers.kafka.client.retry import Again
    from kdeclare.providers.kafka.client.retrying import Retrying

    cluster = open_kafka(servers, config, timeout_s=timeout_s, door=door)
    for found in cluster.diagnostics:
        _log.warning("%s", found.detail or found.summary)
    return Retrying(cluster, Again(attempts, on_retry=log_retry))


def log_retry(retry: "Retry") -> None:
    """Tell those who read the log, and everybody of long waits for a quota, now and then."""
    if retry.fault.error == QUOTA_EXCEEDED and retry.attempt % 10 == 1:
        left = f"; {retry.items} left" if retry.items else ""
        _log.warning("%s%s: waiting until brokers take more", retry.fault.message, left)
        return
    _log.info("%s: %s; attempt %d, again in %.1f s", retry.call, retry.fault, retry.attempt, retry.delay_s)


def _no_servers(project: Project) -> KdeclareError:
    return KdeclareError(
        error(
            "no-bootstrap-server",
            "No cluster to connect to",
            f"Neither --bootstrap-server nor the environment '{project.environment.name}' names one.",
            hint="Give --bootstrap-server HOST:PORT, or bootstrapServers in the project file.",
        )
    )


def who() -> str:
    """user@host, for the history and for other people's messages."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
