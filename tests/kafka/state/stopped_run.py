"""``kdeclare`` as a process that stops itself at its first request for a change.

    python -m tests.kafka.state.stopped_run before|after ARGUMENT...

before, after: whether the process stops (SIGSTOP) before it checks that it still holds the lock for that
request, or between the check and the request. It goes on when it gets SIGCONT.
"""

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from kdeclare.__main__ import run
from kdeclare.engine.state.local_store import LocalStore
from kdeclare.engine.state.shared.store import SharedStore


def stop_once(check_lock: Callable[[Any], None], moment: str) -> Callable[[Any], None]:
    """Wrap the method with which a run checks the lock before it sends a request."""
    is_first = True

    def check_and_stop(store: Any) -> None:
        nonlocal is_first
        if not is_first:
            check_lock(store)
            return
        is_first = False
        if moment == "after":
            check_lock(store)
        # A signal to the process can reach another thread first, and this thread would go on for a moment.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        if moment == "before":
            check_lock(store)

    return check_and_stop


if __name__ == "__main__":
    moment = sys.argv.pop(1)
    for store_type in (LocalStore, SharedStore):
        setattr(store_type, "check_lock", stop_once(store_type.check_lock, moment))  # noqa: B010
    run()
