"""Commands of two checkouts of a project that share a state in a topic of the managed cluster."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.sandbox import SandboxStatus
from tests.kafka.state.topics import StateTopics
from tests.kafka.test_bad_input import Project, open_project
from tests.polling import wait_for

pytestmark = pytest.mark.kafka


@pytest.fixture
def checkouts(sandbox: SandboxStatus, tmp_path: Path) -> Iterator[tuple[Project, Project]]:
    """The same project in two folders."""
    with open_project(sandbox.bootstrap, tmp_path / "one") as (project, _):
        yield project, Project(tmp_path / "two", sandbox.bootstrap, project.prefix)


def test_two_checkouts_share_one_state(checkouts: tuple[Project, Project], topic: str) -> None:
    one, two = checkouts
    state = ("--state", f"kafka://{topic}")
    for project in checkouts:
        project.topics("orders", "payments")
    one.done("apply", "--yes", *state)
    assert two.done("plan", *state).out.startswith("No changes.")
    two.topics("orders", "payments", configs={"retention.ms": 5000})
    two.done("apply", "--yes", *state)
    # without the shared state, this override would be unmanaged
    assert "retention.ms" in one.done("plan", *state).out
    one.done("rollback", "--yes", *state)
    assert one.done("plan", *state).out.startswith("No changes.")
    assert len(two.done("history", *state).out.splitlines()) == 4
    assert not (one.folder / "state").exists()
    assert not (two.folder / "state").exists()


@pytest.mark.thorough
def test_run_of_killed_process_is_continued_elsewhere(
    checkouts: tuple[Project, Project], sandbox: SandboxStatus, topic: str
) -> None:
    one, two = checkouts
    # On a busy machine, it takes up to half a minute until the next command looks at the lease.
    state = ("--state", f"kafka://{topic}?lease=40")
    for project in checkouts:
        project.topics(*(f"t{number}" for number in range(100)))
    process = one.start("apply", "--yes", *state)
    observer = StateTopics(sandbox.bootstrap).open(topic, project="bad", environment="real")
    try:
        wait_for(lambda: bool(observer.list_keys("journals/")), every=0.02)
        process.kill()
        process.communicate()
    finally:
        observer.close()
    assert "not locked" not in two("status", *state).out
    deadline = time.monotonic() + 180
    while (ran := two("apply", "--yes", *state)).code is ExitCode.LOCKED:  # the lease has not ended yet
        assert time.monotonic() < deadline, ran
        time.sleep(5)
    assert ran.code is ExitCode.OK, ran
    assert two.done("plan", *state).out.startswith("No changes.")
    assert one.done("plan", *state).out.startswith("No changes.")
