"""Whether a request took effect: expected and actual state side by side, until they agree (KIP-4).

KIP-4, "Topic Metadata Request": requests are asynchronous, and metadata is what tells that they are done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdeclare.core.clock import Clock
from kdeclare.core.operation_type import is_identity
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.registry import type_of
from kdeclare.engine.observation import observe, select_all

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class Verified:
    """What was seen last, and what of it is not as it should be.

    unlike: by operation id, the elements of its view that differ; empty where all agree.
    seconds: how long it took until all agreed, or until time was up.
    """

    live: LiveState
    unlike: Mapping[str, tuple[str, ...]]
    seconds: float


def verify(
    connections: Connections, operations: Sequence[Operation], clock: Clock, timeout_s: float
) -> Verified:
    """Read what ``operations``, which were done, are about, until it is as they leave it or time is up.

    Auxiliary operations are left out. Raises Fault when a system does not answer.
    """
    operations = [op for op in operations if not type_of(op).is_auxiliary]
    selections = select_all(operations)
    last = {claim: op.id for op in operations for claim in type_of(op).claims(op).values()}
    begun, pause = clock.monotonic(), _FIRST_PAUSE_S
    while True:
        live = observe(connections, selections)
        unlike = {op.id: found for op in operations if (found := _differing(op, live, last))}
        passed = clock.monotonic() - begun
        if not unlike or passed >= timeout_s:
            return Verified(live, unlike, passed)
        clock.sleep(min(pause, timeout_s - passed))
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def _differing(op: Operation, live: LiveState, last: Mapping[str, str]) -> tuple[str, ...]:
    """The elements that ``op`` is the last one to do something about, and that are not as it leaves them."""
    verb = type_of(op)
    now, claims = verb.view(op, live), verb.claims(op)
    return tuple(
        element
        for element, value in verb.expected_state(op).items()
        if not is_identity(element) and last[claims[element]] == op.id and now.get(element) != value
    )
