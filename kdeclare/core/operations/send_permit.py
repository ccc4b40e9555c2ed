"""The permission to send requests that change a system.

A process may change systems only while it holds the lock of the state. Checking that once per operation is
not enough: the process can be stopped at any point, and a client can repeat a request minutes later. So
clients call `check_send_permit` immediately before every request that changes something, including repeated
requests. If the lock is then lost, at most the one request that was just checked can still be sent.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SendCheck = Callable[[], None]
"""Returns normally if this process still has permission to change systems; otherwise raises KdeclareError."""


def _allow() -> None:
    """Allow every request. This is the check for callers that lock no state, such as client tests."""


_check: ContextVar[SendCheck] = ContextVar("kdeclare_send_check", default=_allow)


@contextmanager
def require_permit(check: SendCheck) -> Iterator[None]:
    """Call ``check`` before each request that this thread sends inside the ``with`` block."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def check_send_permit() -> None:
    """Return normally if this thread has permission to send a request that changes something.

    Call this function immediately before the request is sent. Raises KdeclareError.
    """
    _check.get()()


def get_send_check() -> SendCheck:
    """Return the check of this thread, for a client that sends this thread's requests in another thread."""
    return _check.get()
