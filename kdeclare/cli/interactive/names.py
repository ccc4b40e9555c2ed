"""The names that the cluster, the state and the project know, as far as they are to be had at once."""

import os
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeVar

from kdeclare.cli.line import Line, Shared
from kdeclare.core.diagnostics import KdeclareError

if TYPE_CHECKING:
    from kdeclare.app.workspace import Workspace
    from kdeclare.core.parts import Connections

T = TypeVar("T")

_REMEMBERED_S = 10.0
_PATIENCE_S = 3.0
"""How long Tab may wait for the cluster."""


class Names(Protocol):
    """What can be named on a line; empty where it is not to be had."""

    def live(self, kind: str) -> tuple[str, ...]:
        """Live objects of a kind."""

    def ask(self, key: Hashable, question: "Callable[[Connections], T]", nothing: T) -> T:
        """The answer to a question of a provider; ``nothing`` where there is none.

        key: what the answer is remembered under.
        """

    def declared(self) -> tuple[str, ...]:
        """What the manifests declare, as KIND/NAME."""

    def runs(self) -> tuple[str, ...]:
        """Runs, the latest first."""

    def environments(self) -> tuple[str, ...]:
        """Environments of the project."""


class LiveNames:
    """Asked over the connection that the lines share, and remembered for a few seconds.

    What cannot be had is no reason to bother whoever types: the next command says what is wrong.
    """

    def __init__(self, shared: Shared, clock: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._clock = clock
        self._known: dict[object, tuple[float, object]] = {}
        # A completion that takes long goes on in its thread while the next one begins in another, and the
        # connection that they share is not made for two at once.
        self._asking = Lock()

    def live(self, kind: str) -> tuple[str, ...]:
        """As `Names` says."""
        from kdeclare.core.resources.capabilities import list_names

        nothing: tuple[str, ...] = ()
        return self.ask(("live", kind), lambda connections: tuple(list_names(kind, connections)), nothing)

    def ask(self, key: Hashable, question: "Callable[[Connections], T]", nothing: T) -> T:
        """As `Names` says."""
        from kdeclare.app.known_names import ask_systems

        return self._asked(("ask", key), lambda workspace: ask_systems(workspace, question), nothing)

    def declared(self) -> tuple[str, ...]:
        """As `Names` says."""
        from kdeclare.app.known_names import declared

        return self._asked("declared", declared, ())

    def runs(self) -> tuple[str, ...]:
        """As `Names` says."""
        from kdeclare.app.known_names import run_ids

        return self._asked("runs", run_ids, ())

    def environments(self) -> tuple[str, ...]:
        """As `Names` says."""
        from kdeclare.app.known_names import environment_names

        return self._remembered("environments", lambda: environment_names(self._shared.defaults.project), ())

    def forget(self) -> None:
        """Ask anew: a command may have changed anything."""
        self._known.clear()

    def _asked(self, key: object, ask: "Callable[[Workspace], T]", nothing: T) -> T:
        timeout_s = self._shared.defaults.timeout_s
        patient = replace(
            self._shared.defaults,
            timeout_s=_PATIENCE_S if timeout_s is None else min(timeout_s, _PATIENCE_S),
        )
        line = Line(shared=self._shared)
        return self._remembered(key, lambda: ask(line.workspace(patient)), nothing)

    def _remembered(self, key: object, ask: Callable[[], T], nothing: T) -> T:
        then, value = self._known.get(key, (None, nothing))
        if then is not None and self._clock() - then < _REMEMBERED_S:
            return value  # type: ignore[return-value]  # what is kept under a key is what was asked for it
        with self._asking:
            then, value = self._known.get(key, (None, nothing))
            if then is not None and self._clock() - then < _REMEMBERED_S:
                return value  # type: ignore[return-value]  # another thread has asked meanwhile
            try:
                found = ask()
            except KdeclareError:
                found = nothing
            self._known[key] = (self._clock(), found)
            return found


def files(begun: str) -> list[str]:
    """Files and folders whose path begins so; folders with a slash at the end."""
    folder, _, name = begun.rpartition("/")
    there = Path(folder or ("/" if begun.startswith("/") else ".")).expanduser()
    try:
        entries = sorted(there.iterdir())
    except OSError:
        return []
    hidden = name.startswith(".")
    shown = [e for e in entries if e.name.startswith(name) and e.name.startswith(".") <= hidden]
    lead = begun[: len(begun) - len(name)]
    return [f"{lead}{entry.name}{os.sep if entry.is_dir() else ''}" for entry in shown]
