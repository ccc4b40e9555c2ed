"""Send a request again for the items that failed with a RETRIABLE fault."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeGuard, TypeVar

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.retry import Attempts, RetryPolicy

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T")


def send_with_retries(
    policy: RetryPolicy,
    call: str,
    items: Sequence[T],
    get_key: Callable[[T], K],
    send: Callable[[Sequence[T]], Mapping[K, R | Fault]],
) -> Mapping[K, R | Fault]:
    """Send items, and send them again as long as they fail with a RETRIABLE fault and attempts are left.

    call: the name of the request in log messages. get_key: returns the key of an item in the result of
    ``send``. Raises Fault if the first request fails as a whole.
    """
    results: dict[K, R | Fault] = {}
    remaining = items
    attempts = Attempts(policy, call)
    while True:
        try:
            results.update(send(remaining))
        except Fault as fault:
            if attempts.goes_on(None if not results else len(remaining), fault):
                continue
            if not results:
                raise
            # other items already have results, so this fault applies to the remaining items only
            results.update({get_key(item): fault for item in remaining})
            return results
        failed = {name: result for name, result in results.items() if _is_retriable(result)}
        if not failed:
            return results
        remaining = [item for item in remaining if get_key(item) in failed]
        if not attempts.goes_on(len(remaining), _find_longest_throttle(failed.values())):
            return results


def _find_longest_throttle(faults: Iterable[Fault]) -> Fault:
    """Return the fault with the longest throttle time. If no fault has a throttle time, return any fault."""
    return max(faults, key=lambda fault: fault.retry_after_s)


def _is_retriable(result: object) -> TypeGuard[Fault]:
    return isinstance(result, Fault) and result.kind is FaultKind.RETRIABLE
