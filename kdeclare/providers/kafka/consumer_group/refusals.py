"""Explain why brokers refused changes to a group: the partitions, the reason, and the missing permission.

The permissions are those that KafkaApis checks: OffsetCommit needs Read on the group and on the topics,
OffsetDelete needs Delete on the group and Read on the topics, and DeleteGroups needs Delete on the group.
"""

from collections.abc import Mapping, Sequence

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.core.plans.run import NOT_PROPAGATED
from kdeclare.core.units import format_count
from kdeclare.providers.kafka.consumer_group.arguments import OffsetChange
from kdeclare.providers.kafka.error_names import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED
from kdeclare.providers.kafka.ids import TopicPartition

_MAX_PARTITIONS = 10
"""The maximum number of partitions that an error lists for each reason."""


def merge_offset_results(
    group: str, changes: Mapping[str, OffsetChange], results: Mapping[TopicPartition, Result]
) -> Result:
    """Merge the results for the partitions of one group. Partitions with the same reason are listed together.

    If only some of the offsets were changed, the merged error says so, and a rollback restores the changed
    offsets.
    """
    faults = {name: results[TopicPartition.parse(name)] for name in changes}
    refused = {name: fault for name, fault in faults.items() if fault is not None}
    if not refused:
        return None
    names_by_reason: dict[str, list[str]] = {}
    for name, fault in refused.items():
        reason = f"{_describe_reason(group, name, changes[name], fault)} ({fault.error})"
        names_by_reason.setdefault(reason, []).append(name)
    message = "; ".join(f"{_join_names(names)}: {reason}" for reason, names in names_by_reason.items())
    first = next(iter(refused.values()))
    if any(fault.kind is FaultKind.UNKNOWN for fault in refused.values()):
        return Fault(first.error, message, FaultKind.UNKNOWN)
    done_count = len(faults) - len(refused)
    if done_count:
        return Fault(NOT_PROPAGATED, f"{message}. {format_count(done_count, 'other offset')} changed")
    return Fault(first.error, message, first.kind)


def explain_refused_deletion(group: str, result: Result) -> Result:
    """Return the result of deleting a group. If a permission is missing, the error names the permission."""
    if result is None or result.error != GROUP_AUTHORIZATION_FAILED:
        return result
    reason = _describe_missing_right("Delete", f"group {group}")
    return Fault(result.error, f"{reason} ({result.error})", result.kind)


def describe_right(group: str, changes: Mapping[str, OffsetChange]) -> str:
    """Describe the permissions that are required to change offsets of a group."""
    operations = dict.fromkeys(map(_find_group_operation, changes.values()))
    topics = dict.fromkeys(TopicPartition.parse(name).topic for name in changes)
    return f"{' and '.join(operations)} on group {group}, and Read on topic {', '.join(topics)}"


def _describe_reason(group: str, name: str, change: OffsetChange, fault: Fault) -> str:
    if fault.error == TOPIC_AUTHORIZATION_FAILED:
        return _describe_missing_right("Read", f"topic {TopicPartition.parse(name).topic}")
    if fault.error == GROUP_AUTHORIZATION_FAILED:
        return _describe_missing_right(_find_group_operation(change), f"group {group}")
    # the message that kdeclare uses if the broker's error has no message
    subject = f"offset of {name} in group {group}"
    return "refused" if fault.message in ("", subject) else fault.message


def _describe_missing_right(operation: str, subject: str) -> str:
    return f"the principal needs {operation} on {subject}"


def _find_group_operation(change: OffsetChange) -> str:
    return "Delete" if change.after is None else "Read"


def _join_names(names: Sequence[str]) -> str:
    hidden_count = len(names) - _MAX_PARTITIONS
    shown = ", ".join(names[:_MAX_PARTITIONS])
    return f"{shown} and {format_count(hidden_count, 'more partition')}" if hidden_count > 0 else shown
