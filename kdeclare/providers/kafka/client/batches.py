"""Many items in requests of bounded size, with a result for each of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from kdeclare.core.faults import Fault, FaultKind, Result
from kdeclare.providers.kafka.client.faults import fault_for_code, unanswered
from kdeclare.providers.kafka.client.wire import Wire

K = TypeVar("K")
T = TypeVar("T")

ITEMS_A_REQUEST = 500
RECORDS_A_REQUEST = 5000
"""Half of what a KRaft controller writes for one request (QuorumController.MAX_RECORDS_PER_USER_OP)."""


def chunks(
    items: Iterable[T], size: int = ITEMS_A_REQUEST, *, records: Callable[[T], int] = lambda _: 1
) -> list[list[T]]:
    """The items in lists of at most ``size`` and of a bounded number of metadata records.

    records: how many of them an item makes; an item with too many stands alone.
    """
    parts: list[list[T]] = []
    total = RECORDS_A_REQUEST
    for item in items:
        weight = records(item)
        if not parts or len(parts[-1]) >= size or total + weight > RECORDS_A_REQUEST:
            parts.append([])
            total = 0
        parts[-1].append(item)
        total += weight
    return parts


def send_batches(
    wire: Wire,
    items: Sequence[T],
    *,
    key: Callable[[T], K],
    request: Callable[[list[T]], Any],
    codes: Callable[[Any], Iterable[tuple[K, int, str | None]]],
    records: Callable[[T], int] = lambda _: 1,
    validate_only: bool = False,
    nodes: Sequence[int] | None = None,
    has_quota: bool = False,
) -> dict[K, Result]:
    """Send items to the controller, or to ``nodes``, and give a result for each.

    key: what names an item; codes: key, error code and message of each item in a response.
    has_quota: the requests count against the quota of controller mutations. They are sent one after the
        other: a broker that refuses one leaves the next on its connection unanswered for the throttle time.
    Raises Fault when there was one request and it failed; of several, the failed ones count by item.
    """

    def read(response: Any) -> Mapping[K, Result]:
        return {
            name: _fault(response, code, text, changes=not validate_only) if code else None
            for name, code, text in codes(response)
        }

    parts = chunks(items, records=records)
    requests = [request(part) for part in parts]
    window = 1 if has_quota else 2
    answers = wire.ask(requests, read, changes=not validate_only, nodes=nodes, window=window)
    if len(answers) == 1 and isinstance(answers[0], Fault):
        raise answers[0]
    results: dict[K, Result] = {}
    for part, answer in zip(parts, answers, strict=True):
        for item in part:
            name = key(item)
            results[name] = answer if isinstance(answer, Fault) else answer.get(name, unanswered())
    if any(fault is not None and fault.kind is FaultKind.RETRIABLE for fault in results.values()):
        wire.refresh()  # NOT_CONTROLLER and the like: know better next time
    return results


def _fault(response: Any, code: int, text: str | None, *, changes: bool) -> Fault:
    throttle_ms = getattr(response, "throttle_time_ms", None) or 0
    return fault_for_code(code, text, changes=changes, throttle_ms=throttle_ms)
