"""How providers connect: what an environment says of their system, and what is opened by it.

A provider declares one `ConnectionType`. From the settings of an environment it makes a target, a frozen
value that holds all that leads to the system; a target opens the connection. Generic code decides when: a
connection is opened when it is first needed, closed once, and kept between the commands of a shell if it can
be asked whether it still answers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault

NOT_CONFIGURED = "provider-not-configured"
"""The code of an error about a system of which the environment says nothing."""


class References(Protocol):
    """Gives the values that references such as ``${env.NAME}`` stand for."""

    def resolve(self, reference: str) -> str:
        """Return the value, of a reference as manifests may have it. Raises KdeclareError.

        Paths are relative to the project's folder; only what the project allows is read.
        """

    def resolve_beside(self, file: Path, reference: str) -> str:
        """Return the value, of a reference in a file of settings. Raises KdeclareError.

        Paths are relative to the file's folder. What the project allows does not matter: such a file is not
        part of what is reviewed, and is named by those who run kdeclare.
        """


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """What leads to a system besides its settings.

    environment: the name of the environment, for messages.
    folder: of the project file.
    environ: the variables of the process.
    options: what the command line says instead of settings, by the option's name without dashes.
    timeout_s: how long to wait for a system that does not answer.
    attempts: how often a request is sent at most that may work the next time; None: as the provider sees fit.
    """

    environment: str
    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    references: References = field(repr=False)
    timeout_s: float
    options: Mapping[str, str] = field(default_factory=dict)
    attempts: int | None = None


class Target(Protocol):
    """All that leads to one system, with files read and references resolved: a frozen, hashable value.

    Two that are equal lead to the same system in the same way.
    """

    def open(self, timeout_s: float) -> object:
        """Open the connection, within this time. Raises KdeclareError, or Fault where the system refuses."""


@runtime_checkable
class Closable(Protocol):
    """A connection that holds something that has to be let go of."""

    def close(self) -> None:
        """Let go of it. Safe to call twice."""


@runtime_checkable
class Keepable(Protocol):
    """A connection that can serve the next command of a shell, too. Others are opened again."""

    def check(self) -> None:
        """Ask the system for something small. Raises whatever says that it does not answer."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file that settings lead to.

    holds_references: whether references can stand in it, which then lead to further files and variables.
    """

    path: Path
    holds_references: bool = False


_Settings = TypeVar("_Settings", bound=BaseModel)


def _find_no_files(settings: BaseModel, options: Mapping[str, str]) -> Iterable[SettingsFile]:
    return ()


@dataclass(frozen=True, slots=True)
class ConnectionType(Generic[_Settings]):
    """How one provider connects to its system.

    makes: the class of its connection, by which collectors and operation types find it.
    settings: the model of what an environment says of the system, under ``providers`` and the provider's
        name. Where it has no mandatory field, an environment need not say anything. Descriptions of its
        fields are shown by editors; the value of one of the type `SecretText` is shown nowhere.
    locate: makes the target of settings. Raises KdeclareError, also where something is missing.
    environment_fields: the fields of its settings that stand in the environment itself instead.
    is_always_needed: whether every command connects that looks at systems. It then does so while it still
        reads files.
    find_files: finds the files that connecting reads, given the settings and `ConnectionContext.options`;
        tasks on other machines are sent them. What has an absolute path that holds on every machine is left
        out. Raises KdeclareError.
    explain: what a fault means for people, given what messages call the environment; None where the fault
        does not come from this system.
    """

    makes: type[object]
    settings: type[_Settings]
    locate: Callable[[_Settings, ConnectionContext], Target]
    environment_fields: frozenset[str] = frozenset()
    is_always_needed: bool = False
    find_files: Callable[[_Settings, Mapping[str, str]], Iterable[SettingsFile]] = _find_no_files
    explain: Callable[[Fault, str], Diagnostic | None] = lambda fault, name: None

    def list_files(self, settings: BaseModel, options: Mapping[str, str]) -> Iterable[SettingsFile]:
        """Return the files that connecting reads. Raises KdeclareError."""
        return self.find_files(self._narrow_settings(settings), options)

    def make_target(self, settings: BaseModel, surroundings: ConnectionContext) -> Target:
        """Return what leads to the system. Raises KdeclareError."""
        return self.locate(self._narrow_settings(settings), surroundings)

    def _narrow_settings(self, settings: BaseModel) -> _Settings:
        if not isinstance(settings, self.settings):
            raise TypeError(f"settings of {type(settings).__name__}, not {self.settings.__name__}")
        return settings


class AnyConnectionType(Protocol):
    """A `ConnectionType` of whatever settings."""

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
    def is_always_needed(self) -> bool:
        """See `ConnectionType`."""

    @property
    def explain(self) -> Callable[[Fault, str], Diagnostic | None]:
        """See `ConnectionType`."""

    def make_target(self, settings: BaseModel, surroundings: ConnectionContext) -> Target:
        """See `ConnectionType`."""

    def list_files(self, settings: BaseModel, options: Mapping[str, str]) -> Iterable[SettingsFile]:
        """See `ConnectionType`."""
