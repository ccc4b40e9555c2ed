"""The conditions of a partition, as counted by Kafka's TopicCommand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.providers.kafka.live import Move, Partition, PartitionCondition, list_conditions

OFFLINE, UNDER_MIN, UNDER, AT_MIN, OTHER, MOVING = PartitionCondition


@pytest.mark.parametrize(
    ("partition", "min_isr", "expected"),
    [
        (Partition((1, 2, 3), 1, (1, 2, 3)), 2, ()),
        (Partition((1, 2, 3), 2, (3, 2, 1)), 2, (OTHER,)),
        (Partition((1, 2, 3), 1, (1, 2)), 2, (UNDER, AT_MIN)),
        (Partition((1, 2, 3), 1, (1,)), 2, (UNDER_MIN, UNDER)),
        (Partition((1, 2, 3), 1, (1,)), None, (UNDER,)),
        (Partition((1, 2, 3), None, (3,)), None, (OFFLINE, UNDER)),
        (Partition((1, 2, 3), None, (3,)), 1, (OFFLINE, UNDER_MIN, UNDER, AT_MIN)),
        (Partition((1,), 1, (1,)), 1, (AT_MIN,)),
    ],
)
def test_conditions_of_partition_at_rest(
    partition: Partition, min_isr: int | None, expected: tuple[PartitionCondition, ...]
) -> None:
    assert list_conditions(partition, None, min_isr) == expected


@pytest.mark.parametrize(
    ("partition", "move", "expected"),
    [
        # 4 replaces 3: meanwhile, three replicas must be in sync.
        (Partition((1, 2, 4, 3), 1, (1, 2, 3)), Move((1, 2, 4, 3), (4,), (3,)), (MOVING,)),
        (Partition((1, 2, 4, 3), 1, (1, 2)), Move((1, 2, 4, 3), (4,), (3,)), (UNDER, MOVING)),
        # A higher replication factor is not required before the end; a lower one applies only at the end.
        (Partition((1, 2, 3), 1, (1,)), Move((1, 2, 3), (2, 3), ()), (MOVING,)),
        (Partition((1, 2, 3), 1, (1, 2)), Move((1, 2, 3), (), (3,)), (UNDER, MOVING)),
        # The preferred leader is the first of the replicas after the move.
        (Partition((4, 1, 2), 1, (1, 2)), Move((4, 1, 2), (4,), (2,)), (OTHER, MOVING)),
        (Partition((3, 1, 2), 1, (3, 1, 2)), Move((3, 1, 2), (), (3,)), (MOVING,)),
    ],
)
def test_conditions_of_partition_during_move(
    partition: Partition, move: Move, expected: tuple[PartitionCondition, ...]
) -> None:
    assert list_conditions(partition, move, None) == expected


@given(st.permutations(range(5)), st.integers(0, 5), st.integers(0, 5), st.integers(1, 6))
def test_conditions_follow_min_isr_and_replication_factor(
    replicas: list[int], factor: int, in_sync: int, min_isr: int
) -> None:
    partition = Partition(tuple(replicas[:factor]), 0, tuple(replicas[: min(factor, in_sync)]))
    found = list_conditions(partition, None, min_isr)
    assert (UNDER_MIN in found) == (len(partition.isr) < min_isr)
    assert (AT_MIN in found) == (len(partition.isr) == min_isr)
    assert (UNDER in found) == (len(partition.isr) < factor)
    assert not {OFFLINE, MOVING} & set(found)
