"""Two projects and one topic at real brokers: nothing is taken over silently (decision 0016)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.sandbox import SandboxStatus
from tests.kafka.test_bad_input import Project, open_project

pytestmark = pytest.mark.kafka

DAY, WEEK = "86400000", "604800000"


@pytest.fixture
def owner(sandbox: SandboxStatus, tmp_path: Path) -> Iterator[Project]:
    """A team that applied its topic."""
    with open_project(sandbox.bootstrap, tmp_path / "owner") as (project, _):
        project.topics("orders", configs={"retention.ms": WEEK})
        project.done("apply", "--yes")
        yield project


@pytest.fixture
def other(owner: Project, tmp_path: Path) -> Project:
    """Another team that declares the same topic differently."""
    project = Project(tmp_path / "other", owner.bootstrap, owner.prefix)
    project.topics("orders", partitions=3, configs={"retention.ms": DAY})
    return project


def test_topic_of_another_team_is_adopted_only_when_asked_for(owner: Project, other: Project) -> None:
    plan = other("plan")
    assert plan.code is ExitCode.DENIED
    assert "BLOCKED: adoption" in plan.out
    assert other("apply", "--yes").code is ExitCode.DENIED
    assert owner.in_order()
    saved = other.done("plan", "--adopt", "--out", "it.plan")
    assert "adopt: exists, not owned yet" in saved.out
    other.done("apply", "it.plan", "--yes")
    assert other.in_order()
    assert owner("plan").out.count(DAY) == 1


def test_rolling_back_an_adoption_releases_the_topic(owner: Project, other: Project) -> None:
    other.topics("orders", configs={"retention.ms": DAY})
    other.done("apply", "--adopt", "--yes")
    other.done("rollback", "--yes")
    assert owner.in_order()
    assert other("plan").code is ExitCode.DENIED, "it is not owned anymore"


def test_topic_that_equals_its_manifest_is_taken_over_by_the_first_apply(
    owner: Project, other: Project
) -> None:
    other.topics("orders", configs={"retention.ms": WEEK})
    assert "adopted on" in other.done("apply", "--yes").out
    other.topics("orders", configs={"retention.ms": DAY})
    assert "manifest changed" in other.done("apply", "--yes").out


def test_topic_that_was_recreated_is_reported_and_not_deleted(
    owner: Project, sandbox: SandboxStatus, tmp_path: Path
) -> None:
    """The state has the id from the answer to CreateTopics; `kdeclare topic` stands in for someone else."""
    stranger = Project(tmp_path / "stranger", owner.bootstrap, owner.prefix)
    name = owner.name("orders")
    assert '"topicId"' in (owner.state / "state.json").read_text()

    def recreate(retention: str) -> None:
        stranger.done("topic", "delete", name, "--yes")
        config = f"retention.ms={retention}"
        stranger.done(
            "topic",
            "create",
            name,
            "--partitions",
            "1",
            "--replication-factor",
            "1",
            "--config",
            config,
            "--yes",
        )

    recreate(WEEK)
    plan = owner.done("plan")
    assert plan.out.startswith("No changes.")
    assert "deleted and re-created outside kdeclare" in plan.out
    owner.done("apply", "--yes")
    assert "re-created" not in owner.done("plan").out
    recreate(DAY)
    plan = owner("plan")
    assert plan.code is ExitCode.DENIED
    assert "recreated: a different topic than the one applied before" in plan.out
    owner.topics()
    ran = owner.done("apply", "--yes", "--allow-deletes", "--allow-empty")
    assert "Apply leaves the new topic unchanged" in ran.out + ran.err
    assert name in stranger.done("topic", "list").out
