"""Evaluate the status of connectors: target state, failures, and progress toward a state."""

import re
from collections import Counter

from kdeclare.core.live.faults import Fault
from kdeclare.core.secrets.scrubber import SCRUBBED
from kdeclare.providers.connect.client.connectors_port import LiveConnector, RunState

TRANSITIONAL_STATES = frozenset({"", RunState.UNASSIGNED, RunState.RESTARTING})
"""The states that connectors have only briefly, for example during a rebalance."""

FAILED, RUNNING, PAUSED, STOPPED = (
    state.value for state in (RunState.FAILED, RunState.RUNNING, RunState.PAUSED, RunState.STOPPED)
)


def find_target_state(connector: LiveConnector) -> str | None:
    """Infer the target state of a connector from its status; None if the status is ambiguous.

    The target state of a failed connector is RUNNING, because Connect does not pause failed connectors.
    """
    if connector.state == FAILED:
        return RUNNING
    return None if connector.state in TRANSITIONAL_STATES else connector.state


def has_reached(connector: LiveConnector, state: str) -> bool:
    """Whether a connector and all of its tasks have the given state. A stopped connector has no tasks."""
    if connector.state != state:
        return False
    if state == STOPPED:
        return not connector.tasks
    if state == PAUSED:  # failed tasks stay failed, and a connector that is created as PAUSED has no tasks
        return all(task.state in (PAUSED, FAILED) for task in connector.tasks)
    return bool(connector.tasks) and all(task.state == state for task in connector.tasks)


def list_failures(connector: LiveConnector) -> tuple[str, ...]:
    """Return one clause with the reason for each failure of the connector or one of its tasks."""
    failures = [_format_failure("the connector", connector.trace)] if connector.state == FAILED else []
    failures += [
        _format_failure(f"task {task.id}", task.trace) for task in connector.tasks if task.state == FAILED
    ]
    return tuple(failures)


def describe_status(connector: LiveConnector | None) -> str:
    """Return the states of a connector and its tasks as a clause that can be part of a message."""
    if connector is None:
        return "it does not exist"
    counts = Counter(task.state for task in connector.tasks)
    tasks_text = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items())) or "none"
    return f"it is {connector.state or 'without a status'} (tasks: {tasks_text})"


def describe_fault(fault: Fault) -> str:
    """Return the message of a fault as a clause that can be part of another message."""
    return redact_message(fault.message or fault.error).rstrip(".")


def _format_failure(part: str, trace: str) -> str:
    reason = redact_message(trace)
    return f"{part} failed: {reason.rstrip('.')}" if reason else f"{part} failed"


_ASSIGNMENT = re.compile(
    r"""(?ix)\b([\w.-]*(?:password|passphrase|secret|token|credentials?|key)["']?)(\s*[=:]\s*)
    ("[^"]*"|'[^']*'|[^\s,;&}]+)"""
)
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def redact_message(text: str) -> str:
    """Return the first line of a message, without credentials.

    Workers resolve placeholders themselves, so their messages can contain secrets unknown to kdeclare.
    """
    line = next(iter(text.strip().splitlines()), "")
    return _ASSIGNMENT.sub(rf"\1\2{SCRUBBED}", _CREDENTIALS.sub(SCRUBBED, line)).strip()
