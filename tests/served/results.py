"""Convert results of the in-memory cluster to error codes of the protocol."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from kdeclare.core.live.faults import Fault, Outcome
from kdeclare.providers.kafka.client.faults import get_error_name

K = TypeVar("K", bound=Hashable)

_CODES = {get_error_name(code): code for code in range(-1, 140)}


class ConnectionLost(Exception):
    """A broker closes the connection instead of sending a response."""


def get_code(result: Outcome) -> int:
    """Return the error code of a result; 0 for success.

    Raises ConnectionLost for a fault that only a client can have.
    """
    if not isinstance(result, Fault):
        return 0
    if result.error == "NETWORK_EXCEPTION":
        raise ConnectionLost
    return _CODES[result.error]


def get_message(result: Outcome) -> str | None:
    """Return the error message of a result; None for success."""
    return (result.message or None) if isinstance(result, Fault) else None


def send_items(keys: Iterable[K], send: Callable[[], Mapping[K, Outcome]]) -> Mapping[K, Outcome]:
    """Return the result of each item. A fault of the whole request becomes the result of every item."""
    try:
        return send()
    except Fault as fault:
        return dict.fromkeys(keys, fault)
