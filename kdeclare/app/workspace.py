"""The workspace of a command: a project in an environment, its state and its cluster."""

import getpass
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field, fields, replace
from functools import partial
from pathlib import Path

from kdeclare.app.connections import (
    ConnectionKeeper,
    PendingConnections,
    ProjectReferences,
    find_openers,
    find_target,
    make_openers,
    translate_faults,
)
from kdeclare.app.state_stores import is_shared_location, list_projects, open_state_store
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import Connections
from kdeclare.core.plans.run import REQUEST_DEADLINE_S
from kdeclare.core.provider.connection import AnyConnectionType, ConnectionContext, Target
from kdeclare.core.secrets.secret_hashes import read_keys
from kdeclare.engine.observation import identify_system, observe
from kdeclare.engine.state.port import StateStore, is_folder_name
from kdeclare.manifests.project import Environment, Project, open_project
from kdeclare.manifests.variables import GivenVariables

TIMEOUT_S = 10.0
"""The default timeout for a response from a cluster."""


@dataclass(frozen=True, slots=True)
class WorkspaceOptions:
    """The options that all commands with a cluster share. None means that the option was not given.

    timeout_s: how long to wait for the cluster, in seconds; None means `TIMEOUT_S`.
    variables: values of variables that take precedence over those in the project file.
    """

    project: Path | None = None
    env: str | None = None
    bootstrap_server: str | None = None
    command_config: Path | None = None
    state: str | None = None
    timeout_s: float | None = None
    variables: GivenVariables | None = None

    @property
    def connect_timeout_s(self) -> float:
        """The timeout for a response from the cluster."""
        return TIMEOUT_S if self.timeout_s is None else self.timeout_s

    def over(self, defaults: "WorkspaceOptions") -> "WorkspaceOptions":
        """Return these options, completed with ``defaults``.

        If these options name a project, only the timeout of ``defaults`` is used. If they name only an
        environment, the project, the state, the timeout and the variables of ``defaults`` are used.
        """
        if self.project is not None:
            defaults = WorkspaceOptions(timeout_s=defaults.timeout_s)
        elif self.env is not None:
            defaults = WorkspaceOptions(
                defaults.project,
                state=defaults.state,
                timeout_s=defaults.timeout_s,
                variables=defaults.variables,
            )
        unsaid = {f.name: getattr(defaults, f.name) for f in fields(self) if getattr(self, f.name) is None}
        if self.variables is not None and defaults.variables is not None:
            unsaid["variables"] = self.variables.over(defaults.variables)
        return replace(self, **unsaid)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The project, environment and state of a command, and functions to connect to the systems.

    cluster_name: the name of the cluster in messages, such as its bootstrap servers.
    connect: a function that starts to connect to all systems. The connections retry failed requests.
    connect_only: a function that connects only to the systems of some providers; None if that is not faster.
    state_location: the location of the state, for messages.
    find_other_stores: returns the stores of other projects, and of other environments of this project, at the
        location of the state, by project and environment. Raises KdeclareError.
    stream: the content of standard input, if it is loaded together with the manifests at given paths.
    """

    project: Project
    store: StateStore
    cluster_name: str
    connect: Callable[[], PendingConnections]
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    connect_only: Callable[[Mapping[str, AnyConnectionType]], PendingConnections] | None = None
    stream: bytes | None = field(default=None, repr=False)
    state_location: str = ""
    find_other_stores: Callable[[], Mapping[tuple[str, str], StateStore]] = dict

    def __post_init__(self) -> None:
        """Check the keys that are used to hash secrets. Raises KdeclareError for a weak key."""
        read_keys(self.environ)

    @property
    def secret_key_id(self) -> str | None:
        """The id of the key that is used to hash secrets; None if there is no key."""
        return read_keys(self.environ)

    @contextmanager
    def open_connections(
        self, connection_types: Mapping[str, AnyConnectionType] | None = None
    ) -> Iterator[Connections]:
        """Yield the connections. Raises KdeclareError.

        A Fault that is raised inside the ``with`` block is converted to a KdeclareError.
        connection_types: the connection types of the needed providers, by name. If given, the providers are
            not loaded, which saves a tenth of a second.
        """
        connect_only = self.connect_only
        pending_connections = (
            self.connect()
            if connection_types is None or connect_only is None
            else connect_only(connection_types)
        )
        try:
            with self.translate_faults():
                yield pending_connections.get()
        finally:
            pending_connections.close()

    @property
    def request_deadline_s(self) -> float:
        """The time, in seconds, after which a request without its own timeout can no longer take effect."""
        deadline_s = self.project.environment.request_deadline_s
        return REQUEST_DEADLINE_S if deadline_s is None else deadline_s

    def translate_faults(self) -> AbstractContextManager[None]:
        """Convert a Fault that is raised inside the ``with`` block to a KdeclareError."""
        return translate_faults(self.cluster_name)


def open_workspace(
    options: WorkspaceOptions,
    environ: Mapping[str, str] = os.environ,
    connections: Connections | None = None,
    *,
    keeper: ConnectionKeeper | None = None,
) -> Workspace:
    """Read the project file and locate the state, without connecting to a system.

    environ: the variables for ``${env.NAME}``.
    connections: connections that are already open, for use instead of new connections of the same class. The
    caller closes them.
    keeper: keeps connections open from one command to the next.
    Raises KdeclareError for an invalid project file, an unknown environment, or an invalid location of the
    state.
    """
    project = open_project(options.project, options.env, environ, variables=options.variables)
    return build_workspace(project, options, environ, connections, keeper=keeper)


def build_workspace(
    project: Project,
    options: WorkspaceOptions,
    environ: Mapping[str, str],
    connections: Connections | None = None,
    *,
    keeper: ConnectionKeeper | None = None,
    attempts: int | None = None,
) -> Workspace:
    """Build the `Workspace` of a project that is open already.

    The project file and the environment in ``options`` are ignored.

    connections, keeper: see `open_workspace`. attempts: see `ConnectionContext`.
    Raises KdeclareError.
    """
    environment = project.environment
    surroundings = build_surroundings(project, options, environ, attempts)
    location = options.state or project.state

    def find_state_target(provider: str) -> Target:
        return find_target(provider, project, surroundings)

    store = open_state_store(location, project.name, environment.name, surroundings, find_state_target)

    def find_other_stores() -> dict[tuple[str, str], StateStore]:
        own = (project.name, environment.name)
        names = list_projects(location, *own, surroundings, find_state_target)
        return {
            name: open_state_store(location, *name, surroundings, find_state_target)
            for name in names
            if name != own and all(map(is_folder_name, name))
        }

    cluster_name = options.bootstrap_server or environment.bootstrap_servers or environment.name
    check = None if environment.cluster_id is None else partial(_check_cluster_id, environment, cluster_name)

    def connect() -> PendingConnections:
        return PendingConnections(find_openers(project, surroundings, keeper), connections, check)

    def connect_only(types: Mapping[str, AnyConnectionType]) -> PendingConnections:
        return PendingConnections(make_openers(types, project, surroundings, keeper), connections, check)

    return Workspace(
        project,
        store,
        cluster_name,
        connect,
        environ,
        connect_only,
        state_location=location if is_shared_location(location) else os.path.normpath(location),
        find_other_stores=find_other_stores,
    )


def _check_cluster_id(environment: Environment, cluster_name: str, connections: Connections) -> None:
    """Refuse a cluster whose id differs from the id in the project file. Raises KdeclareError and Fault.

    A command that does not connect to the cluster, but only to other systems, is not affected.
    """
    pinned_id = environment.cluster_id
    live_id = identify_system(observe(connections, ()), pinned_id or "")
    if live_id not in ("", pinned_id):
        raise KdeclareError(
            error(
                "other-cluster",
                "Connected to a different cluster",
                f"The environment '{environment.name}' is for cluster {pinned_id} (clusterId in the project "
                f"file), but {cluster_name} is cluster {live_id}. Nothing was read or changed.",
                hint="Check --bootstrap-server and --env. If the cluster was replaced, change clusterId.",
                place=environment.place,
            )
        )


def build_surroundings(
    project: Project, options: WorkspaceOptions, environ: Mapping[str, str], attempts: int | None = None
) -> ConnectionContext:
    """Build the context for opening connections. It does not include the environment's own settings."""
    command_config = options.command_config
    options_by_name = {
        "bootstrap-server": options.bootstrap_server,
        "command-config": None if command_config is None else str(command_config),
    }
    return ConnectionContext(
        project.environment.name,
        project.folder,
        environ,
        ProjectReferences(project.folder, environ, project.limits),
        options.connect_timeout_s,
        {name: value for name, value in options_by_name.items() if value is not None},
        attempts,
    )


def format_user_at_host() -> str:
    """Return ``user@host`` of this process, for the history and for the holder of the lock."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
