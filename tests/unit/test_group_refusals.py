"""Errors of refused changes to groups: which partitions, why, and what a rollback restores."""

import pytest

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.core.plans.run import NOT_PROPAGATED
from kdeclare.providers.kafka.consumer_group.arguments import OffsetChange
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.consumer_group.refusals import (
    describe_right,
    explain_refused_deletion,
    merge_offset_results,
)
from kdeclare.providers.kafka.ids import TopicPartition

COMMIT = OffsetChange(CommittedOffset(5), None)
DELETION = OffsetChange(None, CommittedOffset(5))
NO_READ = Fault("TOPIC_AUTHORIZATION_FAILED", "")


def merge(*results: Result, change: OffsetChange = COMMIT) -> Fault | None:
    """Merge the results of partitions of ``orders``."""
    changes = {f"orders-{number}": change for number in range(len(results))}
    by_partition = {TopicPartition("orders", number): result for number, result in enumerate(results)}
    return merge_offset_results("billing", changes, by_partition)


def test_success_of_all_partitions_is_no_fault() -> None:
    assert merge(None, None) is None


def test_many_refused_partitions_are_counted() -> None:
    fault = merge(*[NO_READ] * 12)
    assert fault is not None
    assert fault.message == (
        f"{', '.join(f'orders-{number}' for number in range(10))} and 2 more partitions: the principal needs "
        "Read on topic orders (TOPIC_AUTHORIZATION_FAILED)"
    )
    assert (fault.error, fault.kind) == ("TOPIC_AUTHORIZATION_FAILED", FaultKind.REFUSED)


def test_different_reasons_are_listed_separately() -> None:
    unknown = Fault("UNKNOWN_TOPIC_OR_PARTITION", "offset of orders-1 in group billing")
    fault = merge(NO_READ, unknown, Fault("OFFSET_METADATA_TOO_LARGE", "the metadata is too large"))
    assert fault is not None
    assert fault.message == (
        "orders-0: the principal needs Read on topic orders (TOPIC_AUTHORIZATION_FAILED); "
        "orders-1: refused (UNKNOWN_TOPIC_OR_PARTITION); "
        "orders-2: the metadata is too large (OFFSET_METADATA_TOO_LARGE)"
    )


@pytest.mark.parametrize(("change", "operation"), [(COMMIT, "Read"), (DELETION, "Delete")])
def test_missing_permission_on_group_depends_on_change(change: OffsetChange, operation: str) -> None:
    fault = merge(Fault("GROUP_AUTHORIZATION_FAILED", ""), change=change)
    assert fault is not None
    assert f"the principal needs {operation} on group billing" in fault.message
    right = describe_right("billing", {"orders-0": change, "orders-1": change})
    assert right == f"{operation} on group billing, and Read on topic orders"


def test_partial_refusal_has_effect() -> None:
    fault = merge(NO_READ, None, None)
    assert fault is not None
    assert fault.error == NOT_PROPAGATED
    assert fault.message.endswith("(TOPIC_AUTHORIZATION_FAILED). 2 other offsets changed")


def test_unknown_outcome_of_one_partition_is_unknown_for_all() -> None:
    fault = merge(None, Fault("REQUEST_TIMED_OUT", "no response", FaultKind.UNKNOWN))
    assert fault is not None
    assert (fault.error, fault.kind) == ("REQUEST_TIMED_OUT", FaultKind.UNKNOWN)


def test_other_errors_of_deletions_are_unchanged() -> None:
    active = Fault("NON_EMPTY_GROUP", "group billing")
    assert explain_refused_deletion("billing", active) is active
    assert explain_refused_deletion("billing", None) is None
