"""The connections of providers to their systems, and the settings for these connections in environments.

A provider declares one `ConnectionType`, which converts the settings of an environment to a `Target`. The
target is a frozen value with all data that is needed to open the connection. kdeclare opens the connection on
first use, and closes it at the end of the command. The interactive shell reuses a connection for the next
command if the connection has a method that checks whether the system still responds (`Keepable`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault

NOT_CONFIGURED = "provider-not-configured"
"""The error code for a system that the environment does not configure."""


def is_not_configured(problem: Exception) -> bool:
    """Whether the exception means that the environment does not configure the system."""
    return isinstance(problem, KdeclareError) and {d.code for d in problem.diagnostics} == {NOT_CONFIGURED}


class References(Protocol):
    """Resolves references such as ``${env.NAME}``."""

    def resolve(self, reference: str) -> str:
        """Return the value of a reference in a manifest. Raises KdeclareError.

        Paths are relative to the folder of the project. Only sources that the project allows are read.
        """

    def resolve_beside(self, file: Path, reference: str) -> str:
        """Return the value of a reference in a file that connection settings name. Raises KdeclareError.

        Paths are relative to the folder of the file. The project's allow list does not apply, because the
        user who runs kdeclare chooses this file, and the file is not reviewed with the manifests.
        """


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """The data that is needed for a connection to a system, in addition to the settings of the system.

    environment: the name of the environment, for messages.
    folder: the folder of the project file.
    environ: the environment variables of the process.
    options: command-line options that override settings, by option name without dashes.
    timeout_s: the maximum time, in seconds, to wait for a response from the system.
    attempts: the maximum number of attempts for a retriable request; None for the provider's own default.
    """

    environment: str
    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    references: References = field(repr=False)
    timeout_s: float
    options: Mapping[str, str] = field(default_factory=dict)
    attempts: int | None = None


class Target(Protocol):
    """All data that is needed to connect to one system, including file contents and resolved references.

    A target is frozen and hashable. Equal targets connect to the same system in the same way.
    """

    def open(self, timeout_s: float) -> object:
        """Open the connection within ``timeout_s`` seconds.

        Raises KdeclareError, or Fault if the system refuses the request.
        """


@runtime_checkable
class Closable(Protocol):
    """A connection with resources that must be released."""

    def close(self) -> None:
        """Release the resources. A second call has no effect."""


@runtime_checkable
class Keepable(Protocol):
    """A connection that the interactive shell reuses for the next command. Other connections are reopened."""

    def check(self) -> None:
        """Send a small request. Raises an exception if the system does not respond."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file that settings refer to.

    holds_references: whether the file can contain references to more files and to environment variables.
    is_in_project: whether a relative path is relative to the folder of the project, and not to the working
        folder.
    """

    path: Path
    holds_references: bool = False
    is_in_project: bool = False


_Settings = TypeVar("_Settings", bound=BaseModel)


def _find_no_files(settings: BaseModel, options: Mapping[str, str]) -> Iterable[SettingsFile]:
    return ()


@dataclass(frozen=True, slots=True)
class ConnectionType(Generic[_Settings]):
    """The definition of a provider's connection to its system.

    makes: the class of the connection. Collectors and operation types look up the connection by this class.
    settings: the model of the environment's settings for the system, under ``providers`` and the provider's
        name. If the model has no mandatory field, an environment can omit the settings. Editors show the
        descriptions of the fields. Values of type `SecretText` are never displayed.
    locate: converts the settings to a target. Raises KdeclareError if settings are invalid or missing.
    environment_fields: settings that are fields of the environment itself, not fields below ``providers``.
    environment_field: the field of the environment that contains all settings, such as ``connect``. Providers
        use it for named endpoints. None means that the settings are below ``providers``.
    is_always_needed: whether every command that reads systems needs this connection. The command then opens
        the connection early, while it is still reading files.
    find_files: returns the files that are needed to connect, given the settings and
        `ConnectionContext.options`. Tasks on other machines receive these files. Files whose absolute path is
        valid on every machine are omitted. Raises KdeclareError.
    explain: converts a fault to a diagnostic, given the display name of the environment; returns None if the
        fault does not come from this system.
    """

    makes: type[object]
    settings: type[_Settings]
    locate: Callable[[_Settings, ConnectionContext], Target]
    environment_fields: frozenset[str] = frozenset()
    environment_field: str | None = None
    is_always_needed: bool = False
    find_files: Callable[[_Settings, Mapping[str, str]], Iterable[SettingsFile]] = _find_no_files
    explain: Callable[[Fault, str], Diagnostic | None] = lambda fault, name: None

    def list_files(self, settings: BaseModel, options: Mapping[str, str]) -> Iterable[SettingsFile]:
        """Return the files that are needed to connect. Raises KdeclareError."""
        return self.find_files(self._narrow_settings(settings), options)

    def make_target(self, settings: BaseModel, surroundings: ConnectionContext) -> Target:
        """Convert the settings to the target to connect to. Raises KdeclareError."""
        return self.locate(self._narrow_settings(settings), surroundings)

    def _narrow_settings(self, settings: BaseModel) -> _Settings:
        if not isinstance(settings, self.settings):
            raise TypeError(f"expected {self.settings.__name__}, got {type(settings).__name__}")
        return settings


class AnyConnectionType(Protocol):
    """A `ConnectionType` with any type of settings."""

    @property
    def makes(self) -> type[object]:
        """See `ConnectionType`."""

    @property
    def settings(self) -> type[BaseModel]:
        """See `ConnectionType`."""

    @property
    def environment_fields(self) -> frozenset[str]:
        """See `ConnectionType`."""

    @property
    def environment_field(self) -> str | None:
        """See `ConnectionType`."""

    @property
    def is_always_needed(self) -> bool:
        """See `ConnectionType`."""

    @property
    def explain(self) -> Callable[[Fault, str], Diagnostic | None]:
        """See `ConnectionType`."""

    def make_target(self, settings: BaseModel, surroundings: ConnectionContext) -> Target:
        """See `ConnectionType`."""

    def list_files(self, settings: BaseModel, options: Mapping[str, str]) -> Iterable[SettingsFile]:
        """See `ConnectionType`."""
