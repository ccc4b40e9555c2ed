"""The texts of Kafka's reassignment tool, as 4.3.1 printed them."""

import pytest

from kdeclare.providers.kafka.commands.reassign.assignments_file import PartitionAssignment
from kdeclare.providers.kafka.commands.reassign.tool_output import (
    VerifyState,
    render_cancelled,
    render_moves,
    render_proposal,
    render_rollback_hint,
    render_started,
    render_verification,
)
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move
from tests.cases import case

FOO_0, FOO_1, FOO_2, FOO_10 = (TopicPartition("foo", n) for n in (0, 1, 2, 10))
BAR_3 = TopicPartition("bar", 3)


def test_proposal_text_shows_current_and_proposed_assignment() -> None:
    current = [PartitionAssignment(FOO_0, (1, 2), ("/data/1", "any"))]
    assert render_proposal(current, [PartitionAssignment(FOO_0, (3, 1))]) == (
        "Current partition replica assignment\n"
        '{"version":1,"partitions":'
        '[{"topic":"foo","partition":0,"replicas":[1,2],"log_dirs":["/data/1","any"]}]}\n'
        "\n"
        "Proposed partition reassignment configuration\n"
        '{"version":1,"partitions":'
        '[{"topic":"foo","partition":0,"replicas":[3,1],"log_dirs":["any","any"]}]}\n'
    )


def test_rollback_hint_shows_current_assignment() -> None:
    assert render_rollback_hint([PartitionAssignment(FOO_0, (1, 2), ("/data/1", "/data/2"))]) == (
        "Current partition replica assignment\n"
        "\n"
        '{"version":1,"partitions":'
        '[{"topic":"foo","partition":0,"replicas":[1,2],"log_dirs":["/data/1","/data/2"]}]}\n'
        "\n"
        "Save this to use as the --reassignment-json-file option during rollback\n"
    )


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ([FOO_0], "Successfully started partition reassignment for foo-0\n"),
        (
            [FOO_10, FOO_2, BAR_3],
            "Successfully started partition reassignments for bar-3,foo-2,foo-10\n",
        ),
    ],
)
def test_started_text_lists_partitions(partitions: list[TopicPartition], said: str) -> None:
    assert render_started(partitions) == said


def test_moves_text_lists_moves() -> None:
    moves = {
        FOO_10: Move((2, 1), (), ()),
        FOO_2: Move((1, 3), (), (3,)),
        FOO_1: Move((1, 3, 2), (2,), ()),
        FOO_0: Move((0, 1, 2, 3, 4), (3, 4), (0, 2)),
    }
    assert render_moves(moves) == (
        "Current partition reassignments:\n"
        "foo-0: replicas: 0,1,2,3,4. adding: 3,4. removing: 0,2.\n"
        "foo-1: replicas: 1,3,2. adding: 2.\n"
        "foo-2: replicas: 1,3. removing: 3.\n"
        "foo-10: replicas: 2,1.\n"
    )


def test_moves_text_without_moves() -> None:
    assert render_moves({}) == "No partition reassignments found.\n"


@case("TOOL-04")
def test_verification_text_requires_end_of_move() -> None:
    target = (0, 1, 3)
    moving = VerifyState(FOO_0, target, current=(0, 1, 2, 3), moving=True)
    there = VerifyState(FOO_1, (1, 2, 3), current=(1, 2, 3), moving=False)
    assert render_verification([there, moving]) == (
        "Status of partition reassignment:\n"
        "Reassignment of partition foo-0 is still in progress.\n"
        "Reassignment of partition foo-1 is completed.\n"
    )
    stopped = VerifyState(FOO_0, target, current=(0, 1, 2), moving=False)
    assert render_verification([stopped]) == (
        "Status of partition reassignment:\n"
        "There is no active reassignment of partition foo-0, but replica set is 0,1,2 rather than 0,1,3.\n"
    )


def test_verification_text_at_target_during_move_is_in_progress() -> None:
    state = VerifyState(FOO_0, (1, 2), current=(1, 2), moving=True)
    assert render_verification([state]).endswith("\nReassignment of partition foo-0 is still in progress.\n")


def test_verification_text_compares_replica_order() -> None:
    state = VerifyState(FOO_0, (1, 2), current=(2, 1), moving=False)
    assert render_verification([state]).endswith(" but replica set is 2,1 rather than 1,2.\n")


def test_verification_text_of_missing_partition() -> None:
    state = VerifyState(FOO_0, (1, 2), current=None, moving=False)
    assert render_verification([state]) == (
        "Status of partition reassignment:\n"
        "There is no active reassignment of partition foo-0, but replica set is  rather than 1,2.\n"
    )


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ([], "None of the specified partition reassignments are active.\n"),
        ([FOO_0], "Successfully cancelled partition reassignment for: foo-0\n"),
        ([FOO_1, FOO_0], "Successfully cancelled partition reassignments for: foo-0,foo-1\n"),
    ],
)
def test_cancelled_text_lists_partitions(partitions: list[TopicPartition], said: str) -> None:
    assert render_cancelled(partitions) == said
