"""Read the states of other projects at the location of the state."""

from concurrent.futures import ThreadPoolExecutor

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, info
from kdeclare.engine.planning.other_owners import OtherState
from kdeclare.engine.state.port import StateStore

_THREADS = 8
_MAX_NAMED = 3


class OtherStatesReader:
    """Reads the states of other projects once, and remembers which ones could not be read.

    A plan does not need these states, so a state that cannot be read is only reported.
    """

    def __init__(self, workspace: Workspace) -> None:
        """Create a reader. Nothing is read yet."""
        self._workspace = workspace
        self._states: tuple[OtherState, ...] | None = None
        self.problems: list[str] = []

    def read(self) -> tuple[OtherState, ...]:
        """Return the states that could be read."""
        if self._states is None:
            self._states = self._read_all()
        return self._states

    def _read_all(self) -> tuple[OtherState, ...]:
        try:
            stores = self._workspace.find_other_stores()
        except KdeclareError as problem:
            self.problems.append(problem.diagnostics[0].detail)
            return ()
        if not stores:
            return ()
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="states") as pool:
            found = pool.map(self._read_store, stores.keys(), stores.values())
            return tuple(state for state in found if state is not None)

    def _read_store(self, name: tuple[str, str], store: StateStore) -> OtherState | None:
        try:
            state = store.read()
        except KdeclareError as problem:
            self.problems.append(
                f"Project '{name[0]}', environment '{name[1]}': {problem.diagnostics[0].detail}"
            )
            return None
        finally:
            store.close()
        return None if state is None else OtherState(*name, self._workspace.state_location, state)

    def report(self) -> tuple[Diagnostic, ...]:
        """Return a notice about states that could not be read."""
        if not self.problems:
            return ()
        problems = sorted(self.problems)
        more = f" {len(problems) - _MAX_NAMED} more could not be read." if len(problems) > _MAX_NAMED else ""
        return (
            info(
                "other-states-not-read",
                "States of other projects not read",
                f"{' '.join(problems[:_MAX_NAMED])}{more} The plan cannot detect resources that these "
                "projects own.",
            ),
        )
