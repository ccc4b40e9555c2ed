"""The replicas of brokers before and after a plan."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.operations.arguments import (
    AlterConfigsArgs,
)
from kdeclare.providers.kafka.reassignment.operations.arguments import MovesArgs, ReassignArgs
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic
from kdeclare.report.plan.plan_page_data import MAX_TOPIC_ROWS, BrokerReplicas, summarize_assignments
from tests.jsontypes import Json

RACKS = {1: "b", 2: "a", 3: "b", 4: "a"}


def make_operation(verb: str, args: Arguments, expect: Json = None) -> Operation:
    return Operation(verb, verb, ResourceId("Topic", "t"), args, expect or {}, {}, None, "no")


def make_reassign_args(partitions: Mapping[str, Sequence[int]]) -> ReassignArgs:
    """Build an operation that moves partitions to these replicas."""
    return ReassignArgs({name: tuple(replicas) for name, replicas in partitions.items()}, False)


def make_move(**moved: tuple[list[int], list[int]]) -> Operation:
    """Summarize moved partitions, given by name: ``t_0=(before, after)`` is t-0."""
    names = {name.replace("_", "-"): sides for name, sides in moved.items()}
    after = {name: sides[1] for name, sides in names.items()}
    return make_operation(
        "partitions.reassign", make_reassign_args(after), {name: sides[0] for name, sides in names.items()}
    )


def test_assignments_summarize_move_before_and_after() -> None:
    found = summarize_assignments([make_move(t_0=([1, 2], [4, 1]))], RACKS)
    assert found is not None
    assert found.brokers == (2, 4, 1, 3)
    assert found.topics == ("t",)
    assert found.held == {
        (0, 0): BrokerReplicas(1, 0, 0, 0),
        (0, 1): BrokerReplicas(0, 1, 0, 1),
        (0, 2): BrokerReplicas(1, 1, 1, 0),
    }
    assert (found.partitions, found.copied, found.narrowed_count) == (1, 1, 0)


def test_cancelled_move_copies_nothing_and_frees_its_targets() -> None:
    cancel = make_operation("moves.cancel", MovesArgs({"t-0": (1, 2)}), {"t-0": [4, 1]})
    found = summarize_assignments([cancel], RACKS)
    assert found is not None
    assert found.brokers == (2, 4, 1, 3)
    assert found.held == {
        (0, 0): BrokerReplicas(1, 1, 0, 0),
        (0, 1): BrokerReplicas(1, 0, 0, 0),
        (0, 2): BrokerReplicas(1, 1, 1, 1),
    }
    assert (found.partitions, found.copied) == (1, 0)


def test_replaced_move_counts_copies_of_new_move() -> None:
    cancel = make_operation("moves.cancel", MovesArgs({"t-0": (1, 2)}), {"t-0": [4, 1]})
    found = summarize_assignments([cancel, make_move(t_0=([1, 2], [3, 1]))], RACKS)
    assert found is not None
    assert found.held[0, 3] == BrokerReplicas(0, 1, 0, 1)
    assert found.copied == 1


def test_new_topics_and_partitions_have_no_replicas_before() -> None:
    create = make_operation("topic.create", NewTopic("n", None, None, {0: (1, 2), 1: (2, 1)}, {}))
    add = make_operation("partitions.increase", NewPartitions("t", 4, ((3, 4),)), {"partitions": 3})
    found = summarize_assignments([create, add], {})
    assert found is not None
    assert found.brokers == (1, 2, 3, 4)
    assert found.topics == ("n", "t")
    assert found.held[0, 0] == BrokerReplicas(0, 2, 0, 1)
    assert (found.partitions, found.copied, found.unplaced_count) == (3, 6, 0)


def test_topics_placed_by_brokers_are_only_counted() -> None:
    left = make_operation("topic.create", NewTopic("n", 3, None, None, {}))
    assert (
        summarize_assignments(
            [left, make_operation("configs.alter", AlterConfigsArgs("TOPIC", "n", ()))], RACKS
        )
        is None
    )
    found = summarize_assignments([left, make_move(t_0=([1], [2]))], RACKS)
    assert found is not None
    assert found.unplaced_count == 1


@pytest.mark.parametrize(
    ("before", "after", "narrowed"),
    [([1, 2], [1, 3], 1), ([1, 2], [3, 4], 0), ([1, 3], [1], 0), ([1, 9], [9, 8], 0), ([], [1], 0)],
)
def test_moves_to_fewer_racks_are_counted(before: list[int], after: list[int], narrowed: int) -> None:
    found = summarize_assignments([make_move(t_0=(before, after))], RACKS)
    assert found is not None
    assert found.narrowed_count == narrowed


lists = st.lists(st.integers(1, 6), max_size=4, unique=True)


@given(
    st.dictionaries(st.tuples(st.integers(0, 2 * MAX_TOPIC_ROWS), st.integers(0, 3)), st.tuples(lists, lists))
)
def test_combined_topic_row_loses_no_replicas(
    moves: dict[tuple[int, int], tuple[list[int], list[int]]],
) -> None:
    args = {f"t{topic}-{n}": after for (topic, n), (_, after) in moves.items()}
    expect = {f"t{topic}-{n}": before for (topic, n), (before, _) in moves.items()}
    found = summarize_assignments(
        [make_operation("partitions.reassign", make_reassign_args(args), expect)], RACKS
    )
    if found is None:
        assert not moves
        return
    assert sum(held.before for held in found.held.values()) == sum(
        len(before) for before, _ in moves.values()
    )
    assert sum(held.after for held in found.held.values()) == sum(len(after) for _, after in moves.values())
    assert sum(held.leads_after for held in found.held.values()) == sum(
        bool(after) for _, after in moves.values()
    )
    assert len([t for t in found.topics if t is not None]) + found.others == len(
        {topic for topic, _ in moves}
    )


def test_excess_topics_share_one_row() -> None:
    names = [f"t{n:03}-0" for n in range(MAX_TOPIC_ROWS + 5)]
    after = make_reassign_args({name: [1] for name in names})
    moved = make_operation("partitions.reassign", after, {name: [2] for name in names})
    found = summarize_assignments([moved], RACKS)
    assert found is not None
    assert found.topics[-1] is None
    assert (len(found.topics), found.others) == (MAX_TOPIC_ROWS + 1, 5)
    assert found.held[MAX_TOPIC_ROWS, 0] == BrokerReplicas(5, 0, 5, 0)
