"""The time and the commit of a plan."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kdeclare.app.plan_origin import find_plan_origin
from kdeclare.core.plans.plan_origin import PlanOrigin

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
TIME = "2026-01-31T12:00:00Z"
COMMIT = "c" * 40


def run_git(folder: Path, *arguments: str) -> str:
    user = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false")
    command = ["git", *user, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    run_git(tmp_path, "init", "-q")
    project = tmp_path / "kafka"
    project.mkdir()
    (project / "topics.yaml").write_text("a: 1\n")
    run_git(tmp_path, "add", ".")
    run_git(tmp_path, "commit", "-q", "-m", "First")
    return project


def test_origin_in_a_checkout_names_commit_and_author(checkout: Path) -> None:
    commit = run_git(checkout, "rev-parse", "HEAD")
    (checkout / "plan.html").write_text("the page of the plan itself")
    (checkout.parent / "other.yaml").write_text("outside of the project")
    environ = {"GITHUB_SHA": COMMIT, "GITHUB_ACTOR": "ben"}
    assert find_plan_origin(checkout, environ, NOW) == PlanOrigin(TIME, "Ann", commit)


@pytest.mark.parametrize("name", ["topics.yaml", "new.yaml"])
def test_origin_reports_local_changes(checkout: Path, name: str) -> None:
    (checkout / name).write_text("a: 2\n")
    assert find_plan_origin(checkout, {}, NOW).has_local_changes


@pytest.mark.parametrize(
    ("environ", "author", "commit"),
    [
        ({"GITHUB_SHA": COMMIT, "GITHUB_ACTOR": "ben"}, "ben", COMMIT),
        ({"CI_COMMIT_SHA": COMMIT, "GITLAB_USER_LOGIN": "cat"}, "cat", COMMIT),
        ({"BUILD_SOURCEVERSION": COMMIT}, "", COMMIT),
        ({"GIT_COMMIT": "main", "CHANGE_AUTHOR": "dan"}, "", ""),
        ({}, "", ""),
    ],
)
def test_origin_outside_of_git_is_from_the_ci_system(
    tmp_path: Path, environ: dict[str, str], author: str, commit: str
) -> None:
    assert find_plan_origin(tmp_path / "missing", environ, NOW) == PlanOrigin(TIME, author, commit)
