"""Who holds the lock of an environment's state, and taking it away."""

from collections.abc import Callable

from kdeclare.app.workspace import Workspace
from kdeclare.core.plans.state import LockInfo


def find_lock_holder(workspace: Workspace) -> LockInfo | None:
    """Who holds the lock; None when nobody does. Raises KdeclareError."""
    return workspace.store.read_holder()


def break_lock(workspace: Workspace, confirm: Callable[[LockInfo], bool]) -> LockInfo | None:
    """Take the lock from its holder if ``confirm`` says so; who lost it. Raises KdeclareError."""
    holder = workspace.store.read_holder()
    if holder is None or not confirm(holder):
        return None
    workspace.store.break_lock(holder)
    return holder
