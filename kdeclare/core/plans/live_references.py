"""Within a time limit, find objects in other systems that refer to the objects that a plan deletes."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

from kdeclare.core.diagnostics import KdeclareError, summarize_diagnostics
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.resources.changes import Action, Change

Found = TypeVar("Found")
_TIME_LIMIT_S = 10.0
"""The maximum time that a plan waits for the responses of all systems of one provider, in seconds."""
_TOO_SLOW = Fault("TOO_SLOW", f"it did not respond within {_TIME_LIMIT_S:.0f} s")
_NOT_USABLE = "NOT_USABLE"
"""The code of a fault that an unusable setting causes, such as the path of a file that does not exist."""


def find_deleted_names(changes: Sequence[Change], kind: str) -> tuple[str, ...]:
    """Return the names of all resources of a kind that a plan deletes."""
    return tuple(
        change.id.name for change in changes if change.id.kind == kind and change.action is Action.DELETE
    )


def read_systems(reads: Mapping[str, Callable[[], Found]]) -> Mapping[str, Found | Fault]:
    """Read several systems at the same time.

    For each system, return the result, or the reason why it cannot be read. A system that does not respond
    within 10 s counts as too slow, even if its client continues to wait.

    reads: a function for each system, by name. It can raise Fault and KdeclareError.
    """
    answers = {name: _start_read(read) for name, read in reads.items()}
    wait(answers.values(), _TIME_LIMIT_S)
    return {name: answer.result() if answer.done() else _TOO_SLOW for name, answer in answers.items()}


def _start_read(read: Callable[[], Found]) -> Future[Found | Fault]:
    answer: Future[Found | Fault] = Future()

    def run() -> None:
        try:
            answer.set_result(attempt_read(read))
        except Exception as problem:  # noqa: BLE001  raised again by the thread that waits for the answer
            answer.set_exception(problem)

    threading.Thread(target=run, name="references", daemon=True).start()
    return answer


def attempt_read(read: Callable[[], Found]) -> Found | Fault:
    """Return the result of a read, or the reason why it failed."""
    try:
        return read()
    except Fault as fault:
        return fault
    except KdeclareError as problem:
        return Fault(_NOT_USABLE, summarize_diagnostics(problem.diagnostics))


def build_unknown_references(resource: str, what: str, reason: str) -> Observation:
    """Build the observation that kdeclare could not determine which objects refer to the deleted objects.

    what: what is unknown, as a clause such as ``which connectors refer to the deleted topics``.
    reason: why it is unknown, as a clause.
    """
    text = f"kdeclare could not determine {what}: {reason.rstrip('.')}."
    return Observation(resource, "not-determined", ObservationLevel.UNKNOWN, text)
