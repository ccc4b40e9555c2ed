"""Look up names for completion in the cluster, the state and the project. Slow lookups return no names."""

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
"""The longest time, in seconds, that completion waits for a response from the cluster."""


class Names(Protocol):
    """A source of names for completion. If names are unavailable, the methods return nothing."""

    def live(self, kind: str) -> tuple[str, ...]:
        """Return the names of the live objects of a kind."""

    def ask(self, key: Hashable, question: "Callable[[Connections], T]", nothing: T) -> T:
        """Call ``question`` with the connections, and return the result; ``nothing`` if the call fails.

        Providers use this method to complete their own parameters. key: the key under which the result is
        cached.
        """

    def declared(self) -> tuple[str, ...]:
        """Return the resources that the manifests declare, as KIND/NAME."""

    def runs(self) -> tuple[str, ...]:
        """Return the ids of past runs, latest first."""

    def environments(self) -> tuple[str, ...]:
        """Return the names of the environments of the project."""


class LiveNames:
    """Names for completion, read over the connection of the shell and cached for 10 seconds.

    Errors are not reported while the user types. The next command reports them.
    """

    def __init__(self, shell: ShellContext, clock: Callable[[], float] = time.monotonic) -> None:
        self._shell = shell
        self._clock = clock
        self._cache: dict[object, tuple[float, object]] = {}
        # A slow completion continues in its thread while the next completion starts in a different thread.
        # Both use the same connection, which does not support concurrent use.
        self._query_lock = Lock()

    def live(self, kind: str) -> tuple[str, ...]:
        """See `Names`."""
        from kdeclare.core.resources.manifest_capabilities import (
            list_names,
        )

        nothing: tuple[str, ...] = ()
        return self.ask(("live", kind), lambda connections: tuple(list_names(kind, connections)), nothing)

    def ask(self, key: Hashable, question: "Callable[[Connections], T]", nothing: T) -> T:
        """See `Names`."""
        from kdeclare.app.known_names import ask_systems

        return self._query(("ask", key), lambda workspace: ask_systems(workspace, question), nothing)

    def declared(self) -> tuple[str, ...]:
        """See `Names`."""
        from kdeclare.app.known_names import list_declared_names

        return self._query("declared", list_declared_names, ())

    def runs(self) -> tuple[str, ...]:
        """See `Names`."""
        from kdeclare.app.known_names import list_run_ids

        return self._query("runs", list_run_ids, ())

    def environments(self) -> tuple[str, ...]:
        """See `Names`."""
        from kdeclare.app.known_names import list_environment_names

        return self._get_cached(
            "environments", lambda: list_environment_names(self._shell.defaults.project), ()
        )

    def forget(self) -> None:
        """Clear the cache after a command, because the command may have changed the names."""
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
            return value  # type: ignore[return-value]  # the key determines the type of the cached value
        with self._query_lock:
            cached_at, value = self._cache.get(key, (None, nothing))
            if cached_at is not None and self._clock() - cached_at < _CACHE_S:
                return value  # type: ignore[return-value]  # another thread has filled the cache meanwhile
            try:
                answer = ask()
            except KdeclareError:
                answer = nothing
            self._cache[key] = (self._clock(), answer)
            return answer


def list_files(prefix: str) -> list[str]:
    """Return the files and folders whose paths start with ``prefix``. Folder paths end with a slash."""
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
