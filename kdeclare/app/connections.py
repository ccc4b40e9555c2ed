"""The connections of a command to the systems of an environment: opened when they are needed, closed once.

A shell keeps what can be kept from one command to the next.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from threading import Lock
from typing import Protocol

from pydantic import BaseModel, ValidationError

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.parts import Connections
from kdeclare.core.provider.connection import (
    NOT_CONFIGURED,
    Closable,
    Connects,
    Keepable,
    Surroundings,
    Target,
)
from kdeclare.core.provider.installed_providers import load_providers
from kdeclare.manifests.project import Project
from kdeclare.manifests.syntax.reference_limits import Limits
from kdeclare.manifests.syntax.substitution import resolve_reference


@dataclass(frozen=True, slots=True)
class ProjectReferences:
    """The references of a project; see `References`."""

    folder: Path
    environ: Mapping[str, str] = field(compare=False, repr=False)
    limits: Limits = ()

    def resolve(self, reference: str) -> str:
        """Return the value of a reference as manifests may have it. Raises KdeclareError."""
        return resolve_reference(reference, self.folder, self.environ, self.limits)

    def resolve_beside(self, file: Path, reference: str) -> str:
        """Return the value of a reference in a file of settings. Raises KdeclareError."""
        return resolve_reference(reference, file.parent, self.environ)


class ConnectionKeeper(Protocol):
    """Keeps connections that can serve the next command, too."""

    def open(self, target: Target, timeout_s: float) -> object:
        """Return a connection; nobody else closes one that is `Keepable`. Raises KdeclareError."""


@dataclass(frozen=True, slots=True)
class Opener:
    """What opens the connection of one provider.

    makes, is_always_needed: see `ConnectionType`. open: raises KdeclareError.
    is_kept: whether what can be kept is closed by someone else.
    is_named: whether the environment says how the system is reached, or has to: see `Connections`.
    """

    makes: type[object]
    open: Callable[[], object]
    is_always_needed: bool = False
    is_kept: bool = False
    is_named: bool = True


class Connecting:
    """The connections of one command, each opened when it is first needed.

    What every command needs is connected to in the background at once, so that files can be read meanwhile.
    To be closed by whoever asked for it.
    """

    def __init__(self, openers: Sequence[Opener] = (), given: Connections | None = None) -> None:
        """given: connections that are open already, and closed by someone else."""
        given = given or Connections()
        self._pending = [_Pending(opener) for opener in openers if not given.holds(opener.makes)]
        self._connections = given.with_openers(
            {item.opener.makes: item.get for item in self._pending if item.opener.is_named},
            {item.opener.makes: item.get for item in self._pending if not item.opener.is_named},
        )
        for item in self._needed():
            item.begin()

    def get(self) -> Connections:
        """Return the connections; those that every command needs are open. Raises KdeclareError."""
        for item in self._needed():
            item.get()
        return self._connections

    def close(self) -> None:
        """Let go of what was opened, also of what nobody asked for; waits for nothing."""
        for item in self._pending:
            item.close()

    def _needed(self) -> Iterator["_Pending"]:
        openers = ((item, item.opener) for item in self._pending)
        return (item for item, opener in openers if opener.is_always_needed and opener.is_named)


class _Pending:
    """A connection that nobody has needed yet, or that is under way."""

    def __init__(self, opener: Opener) -> None:
        self.opener = opener
        self._lock = Lock()
        self._future: Future[object] | None = None

    def begin(self) -> Future[object]:
        """Begin to connect, unless that has begun."""
        with self._lock:
            if self._future is None:
                pool = ThreadPoolExecutor(1, thread_name_prefix="connect")
                self._future = pool.submit(self.opener.open)
                pool.shutdown(wait=False)
            return self._future

    def get(self) -> object:
        """Return the connection. Raises what connecting raised."""
        return self.begin().result()

    def close(self) -> None:
        """Let go of it as soon as it is there; waits for nothing."""
        with self._lock:
            future = self._future
        if future is not None:
            future.cancel()
            future.add_done_callback(self._close)

    def _close(self, opened: Future[object]) -> None:
        if opened.cancelled() or opened.exception() is not None:
            return
        connection = opened.result()
        is_kept = self.opener.is_kept and isinstance(connection, Keepable)
        if isinstance(connection, Closable) and not is_kept:
            connection.close()


def find_openers(
    project: Project, surroundings: Surroundings, keeper: ConnectionKeeper | None = None
) -> tuple[Opener, ...]:
    """Return what opens the connections of all installed providers. Raises KdeclareError.

    A system that every command needs is left out where the environment says nothing of it and names others:
    a project of these has nothing to do with it, unless a resource or an operation is of it.
    """
    types = {p.name: p.connection for p in load_providers() if p.connection is not None}
    openers = make_openers(types, project, surroundings, keeper)
    return tuple(
        replace(opener, is_named=not is_left_out(name, connects, project, surroundings))
        for (name, connects), opener in zip(types.items(), openers, strict=True)
    )


def is_left_out(name: str, connects: Connects, project: Project, surroundings: Surroundings) -> bool:
    """Return whether an environment that names other systems does not name this one."""
    others = project.environment.providers.keys() - {name}
    if not connects.is_always_needed or not others or surroundings.options:
        return False
    return not read_settings(name, connects, project).model_dump(exclude_defaults=True)


def make_openers(
    types: Mapping[str, Connects],
    project: Project,
    surroundings: Surroundings,
    keeper: ConnectionKeeper | None = None,
) -> tuple[Opener, ...]:
    """Return what opens connections of these types, which are given by the names of their providers."""
    return tuple(
        _make_opener(name, connects, project, surroundings, keeper) for name, connects in types.items()
    )


def _make_opener(
    name: str,
    connects: Connects,
    project: Project,
    surroundings: Surroundings,
    keeper: ConnectionKeeper | None,
) -> Opener:
    def open_connection() -> object:
        target = connects.make_target(read_settings(name, connects, project), surroundings)
        opens = target.open if keeper is None else lambda timeout_s: keeper.open(target, timeout_s)
        return opens(surroundings.timeout_s)

    return Opener(connects.makes, open_connection, connects.is_always_needed, is_kept=keeper is not None)


def read_settings(provider: str, connects: Connects, project: Project) -> BaseModel:
    """Return what the environment says of a provider's system. Raises KdeclareError where it says nothing."""
    environment = project.environment
    stated = environment.providers.get(provider)
    if stated is not None:
        return stated
    fields = {k: v for k, v in environment.connection_fields.items() if k in connects.environment_fields}
    try:
        return connects.settings.model_validate(fields)
    except ValidationError:
        raise KdeclareError(_not_configured(provider, connects, project)) from None


def _not_configured(provider: str, connects: Connects, project: Project) -> Diagnostic:
    models = connects.settings.model_fields.items()
    needed = [field.alias or name for name, field in models if field.is_required()]
    example = f"providers: {{{provider}: {{{', '.join(f'{name}: …' for name in needed)}}}}}"
    where = "the environment" if project.file is not None else "an environment of a project file"
    return error(
        NOT_CONFIGURED,
        "System is not configured",
        f"The environment '{project.environment.name}' does not say how '{provider}' is to be reached.",
        hint=f"Add {example} to {where}.",
        place=project.environment.place,
        subject=provider,
    )


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn a Fault that reaches here into a KdeclareError. name: what messages call the environment."""
    try:
        yield
    except Fault as fault:
        raise KdeclareError(explain_fault(fault, name)) from fault


def explain_fault(fault: Fault, name: str) -> Diagnostic:
    """Return what a refusal of a whole request means, in the words of the provider that it comes from."""
    for provider in reversed(load_providers()):
        found = provider.connection.explain(fault, name) if provider.connection is not None else None
        if found is not None:
            return found
    if fault.kind is not FaultKind.REFUSED:
        return error(
            "system-lost",
            "A system does not answer any more",
            f"{fault.message or 'No reason is given'} ({fault.error}).",
            hint="Look at the system; then kdeclare status says whether anything is left unfinished.",
        )
    return error(
        "refused-by-system",
        "A system refuses the request",
        f"{fault.message or 'No reason is given'} ({fault.error}).",
    )


_log = logging.getLogger(__name__)

_ANSWERS_WITHIN_S = 2.0
"""How long a kept connection may take to say that it still works."""
_MOST = 4
"""How many are kept; of more, the one that was wanted longest ago is let go."""


class KeptConnections:
    """Gives the connection again which it has opened before, if it still answers.

    Whoever gets one that is `Keepable` must not close it. One that does not answer any more is opened
    again: then what is wrong is said as it is at a first connection, within the time that was given for
    it, and a system is found that came back elsewhere. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[Target, Keepable] = {}

    def open(self, target: Target, timeout_s: float) -> object:
        """The connection. Raises KdeclareError."""
        until = time.monotonic() + timeout_s
        with self._lock:
            known = self._open.get(target)
        if known is not None:
            if _answers(known, min(timeout_s / 2, _ANSWERS_WITHIN_S)):
                self._keep(target, known)
                return known
            self._let_go(target, known)
        made = target.open(max(0.1, until - time.monotonic()))
        if isinstance(made, Keepable):
            self._keep(target, made)
        return made

    def close(self) -> None:
        """Let go of all of them, waiting for nothing."""
        with self._lock:
            closing = list(self._open.items())
        for item in closing:
            self._let_go(*item)

    def _keep(self, target: Target, kept: Keepable) -> None:
        with self._lock:
            before = self._open.pop(target, kept)
            self._open[target] = kept  # the last is the latest
            spare = list(self._open.items())[:-_MOST]
        if before is not kept:  # two were opened at the same time
            _close(before)
        for item in spare:
            self._let_go(*item)

    def _let_go(self, target: Target, kept: Keepable) -> None:
        with self._lock:
            if self._open.get(target) is kept:
                del self._open[target]
        _close(kept)


def _answers(connection: Keepable, within_s: float) -> bool:
    answered: Future[bool] = Future()

    def ask() -> None:
        try:
            connection.check()
        except Exception as problem:  # noqa: BLE001  a new connection says what is wrong, if it still is
            _log.info("connecting again: %s", problem)
            answered.set_result(False)
        else:
            answered.set_result(True)

    threading.Thread(target=ask, name="still-there", daemon=True).start()
    return bool(wait([answered], within_s).done) and answered.result()


def _close(connection: object) -> None:
    """In the background: what does not answer does not end at once either."""

    def close() -> None:
        if isinstance(connection, Closable):
            with suppress(Fault, OSError):
                connection.close()

    threading.Thread(target=close, name="close", daemon=True).start()
