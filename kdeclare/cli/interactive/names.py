"""The names that the cluster, the state and the project know, as far as they are to be had at once."""

import os
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeVar

from kdeclare.cli.invocation import Invocation, ShellContext
from kdeclare.core.diagnostics import KdeclareError

if TYPE_CHECKING:
    from kdeclare.app.workspace import Workspace
    from kdeclare.core.parts import Connections

T = TypeVar("T")

_CACHE_S = 10.0
_QUERY_TIMEOUT_S = 3.0
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

    def __init__(self, shell: ShellContext, clock: Callable[[], float] = time.monotonic) -> None:
        self._shell = shell
        self._clock = clock
        self._cache: dict[object, tuple[float, object]] = {}
        # A completion that takes long goes on in its thread while the next one begins in another, and the
        # connection that they share is not made for two at once.
        self._query_lock = Lock()

    def live(self, kind: str) -> tuple[str, ...]:
        """As `Names` says."""
        from kdeclare.core.resources.manifest_capabilities import (
            list_names,
        )

        nothing: tuple[str, ...] = ()
        return self.ask(("live", kind), lambda connections: tuple(list_names(kind, connections)), nothing)

    def ask(self, key: Hashable, question: "Callable[[Connections], T]", nothing: T) -> T:
        """As `Names` says."""
        from kdeclare.app.known_names import ask_systems

        return self._query(("ask", key), lambda workspace: ask_systems(workspace, question), nothing)

    def declared(self) -> tuple[str, ...]:
        """As `Names` says."""
        from kdeclare.app.known_names import list_declared_names

        return self._query("declared", list_declared_names, ())

    def runs(self) -> tuple[str, ...]:
        """As `Names` says."""
        from kdeclare.app.known_names import list_run_ids

        return self._query("runs", list_run_ids, ())

    def environments(self) -> tuple[str, ...]:
        """As `Names` says."""
        from kdeclare.app.known_names import list_environment_names

        return self._get_cached(
            "environments", lambda: list_environment_names(self._shell.defaults.project), ()
        )

    def forget(self) -> None:
        """Ask anew: a command may have changed anything."""
        self._cache.clear()

    def _query(self, key: object, ask: "Callable[[Workspace], T]", nothing: T) -> T:
        timeout_s = self._shell.defaults.timeout_s
        options = replace(
            self._shell.defaults,
            timeout_s=_QUERY_TIMEOUT_S if timeout_s is None else min(timeout_s, _QUERY_TIMEOUT_S),
        )
        invocation = Invocation(shared=self._shell)
        return self._get_cached(key, lambda: ask(invocation.workspace(options)), nothing)

    def _get_cached(self, key: object, ask: Callable[[], T], nothing: T) -> T:
        cached_at, value = self._cache.get(key, (None, nothing))
        if cached_at is not None and self._clock() - cached_at < _CACHE_S:
            return value  # type: ignore[return-value]  # what is kept under a key is what was asked for it
        with self._query_lock:
            cached_at, value = self._cache.get(key, (None, nothing))
            if cached_at is not None and self._clock() - cached_at < _CACHE_S:
                return value  # type: ignore[return-value]  # another thread has asked meanwhile
            try:
                answer = ask()
            except KdeclareError:
                answer = nothing
            self._cache[key] = (self._clock(), answer)
            return answer


def list_files(prefix: str) -> list[str]:
    """Files and folders whose path begins so; folders with a slash at the end."""
    folder, _, name = prefix.rpartition("/")
    folder_path = Path(folder or ("/" if prefix.startswith("/") else ".")).expanduser()
    try:
        entries = sorted(folder_path.iterdir())
    except OSError:
        return []
    is_hidden = name.startswith(".")
    matching = [e for e in entries if e.name.startswith(name) and e.name.startswith(".") <= is_hidden]
    typed_folder = prefix[: len(prefix) - len(name)]
    return [f"{typed_folder}{entry.name}{os.sep if entry.is_dir() else ''}" for entry in matching]
