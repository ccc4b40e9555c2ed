"""Find and break the lock of an environment's state."""

from collections.abc import Callable

from kdeclare.app.workspace import Workspace
from kdeclare.core.plans.state import LockInfo


def find_lock_holder(workspace: Workspace) -> LockInfo | None:
    """Return the holder of the lock, or None if the lock is free. Raises KdeclareError."""
    return workspace.store.read_holder()


def break_lock(workspace: Workspace, confirm: Callable[[LockInfo], bool]) -> LockInfo | None:
    """Break the lock if ``confirm`` returns True, and return the previous holder. Raises KdeclareError."""
    holder = workspace.store.read_holder()
    if holder is None or not confirm(holder):
        return None
    workspace.store.break_lock(holder)
    return holder
