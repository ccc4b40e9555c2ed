"""Texts of Kafka's tool about log directories and throttles; the lines were recorded from it."""

import pytest

from kdeclare.providers.kafka.commands.reassign.tool_output import (
    DirState,
    render_dir_states,
    render_dirs_not_started,
    render_dirs_started,
    render_throttles_cleared,
)
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import ReplicaDirs

AT = TopicPartition("mv", 0)


@pytest.mark.parametrize(
    ("dirs", "silent", "line"),
    [
        (ReplicaDirs("/b"), False, "Reassignment of replica mv-0-3 completed successfully."),
        (ReplicaDirs("/a", "/b"), False, "Reassignment of replica mv-0-3 is still in progress."),
        (
            ReplicaDirs("/b", "/c"),
            False,
            "Partition mv-0 on broker 3 is being moved to log dir /c instead of /b.",
        ),
        (
            ReplicaDirs("/a"),
            False,
            "Partition mv-0 on broker 3 is not being moved from log dir /a to /b.",
        ),
        (
            None,
            False,
            "Partition mv-0 is not found in any live log dir on broker 3. "
            "There is likely an offline log directory on the broker.",
        ),
        (None, True, "Partition mv-0 cannot be found in any live log directory on broker 3."),
    ],
)
def test_dir_state_text_describes_progress(dirs: ReplicaDirs | None, silent: bool, line: str) -> None:
    assert render_dir_states([DirState(3, AT, "/b", dirs, silent)]) == f"{line}\n"


def test_dir_states_without_directories_are_empty_line() -> None:
    assert render_dir_states([]) == "\n"


def test_started_dirs_are_sorted_by_broker() -> None:
    later = TopicPartition("aa", 1)
    states = [DirState(3, AT, "/b", None), DirState(10, later, "/b", None), DirState(3, later, "/b", None)]
    started = render_dirs_started(states).splitlines()
    assert started[0] == "Successfully started moving log directory to /b for replica aa-1 with broker 3 "
    assert [line.split("replica ")[1] for line in started[1:]] == [
        "mv-0 with broker 3 ",
        "aa-1 with broker 10 ",
    ]
    assert render_dirs_not_started(states) == (
        "Timed out before log directory moves could be started for: aa-1-3,mv-0-3,aa-1-10"
    )
    assert render_dirs_not_started(states[:1]) == (
        "Timed out before log directory move could be started for: mv-0-3"
    )


def test_cleared_throttles_use_singular_and_plural() -> None:
    assert render_throttles_cleared({3}, {"mv"}) == (
        "Clearing broker-level throttles on broker 3\nClearing topic-level throttles on topic mv\n"
    )
    assert render_throttles_cleared({10, 3}, {"mv", "foo"}) == (
        "Clearing broker-level throttles on brokers 3,10\nClearing topic-level throttles on topics foo,mv\n"
    )
    assert render_throttles_cleared((), ()) == ""
