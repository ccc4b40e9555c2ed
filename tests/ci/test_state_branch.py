"""The state on a separate branch, in a real git repository."""

import subprocess
from pathlib import Path

import pytest

from tests.ci.pull_request import apply_merge, open_pull_request, plan_pull_request
from tests.ci.runner import STEPS, Runner
from tests.git_remotes import BRANCH, push_files, run_git

pytestmark = pytest.mark.slow


@pytest.fixture
def github(runner: Runner) -> Runner:
    """Provide a GitHub runner with a pull request that declares a topic."""
    open_pull_request(runner)
    runner.topic("orders")
    return runner


def run_kdeclare(runner: Runner, *arguments: str) -> str:
    """Run a command outside the steps, and return its output."""
    command = [str(runner.folder / "bin" / "kdeclare"), *arguments, "--env", "lab"]
    ran = subprocess.run(
        command, env=runner.environ, cwd=runner.checkout, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def list_commits(runner: Runner) -> list[str]:
    """Return the subjects of the commits on the branch, oldest first."""
    if BRANCH not in run_git(runner.remote, "branch"):
        return []
    return run_git(runner.remote, "log", "--reverse", "--format=%s", BRANCH).splitlines()


def test_apply_saves_each_change_of_the_state_at_once(github: Runner) -> None:
    plan_pull_request(github)
    assert list_commits(github) == [], "a plan writes nothing"
    assert apply_merge(github) == 0
    keys = [subject.split()[1].split("/")[0] for subject in list_commits(github)]
    assert keys.index("plans") < keys.index("journals") < keys.index("state.json")
    assert keys[-1] == "lease.json", "the lease is released at the end"
    body = run_git(github.remote, "log", "-1", "--format=%B", BRANCH)
    assert "[skip ci]" in body
    commits = len(list_commits(github))
    github.switch_machine()
    for command in ("plan", "audit"):
        github.run_ok("github/run.sh", KDECLARE_COMMAND=command, KDECLARE_PULL="12")
        assert github.exit_code == 0
    assert len(list_commits(github)) == commits


def test_load_without_branch_starts_with_empty_state(github: Runner) -> None:
    ran = github.run_ok("github/run.sh", KDECLARE_COMMAND="plan", KDECLARE_PULL="12")
    assert "Branch kdeclare-state does not exist yet" in ran.stdout
    assert github.exit_code == 0


def test_branch_with_copy_of_state_folder_is_refused(github: Runner) -> None:
    folder = github.folder / "local"
    run_kdeclare(github, "apply", "--yes", "--state", str(folder))
    files = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}
    assert "shop/lab/state.json" in files
    push_files(github.remote, github.folder / "clone", files)
    github.run_ok("github/run.sh", KDECLARE_COMMAND="plan", KDECLARE_PULL="12")
    assert github.exit_code == 1
    [comment] = github.service_data["comments"]
    assert "The state on the branch has an old layout" in comment["body"]
    assert "kdeclare state migrate" in comment["body"]
    assert list_commits(github) == ["By a person"]
    clone = github.folder / "old-state"  # as the documentation says
    options = ("--quiet", "--branch", BRANCH, "--single-branch")
    run_git(github.folder, "clone", *options, str(github.remote), str(clone))
    for state in (folder, clone):
        assert "apply" in run_kdeclare(github, "history", "--state", str(state))
    assert "orders" not in run_kdeclare(github, "plan", "--state", str(clone)), "nothing is adopted again"


def test_load_fails_if_repository_is_unreachable(runner: Runner, tmp_path: Path) -> None:
    assert runner.run("state.sh", "load", KDECLARE_STATE_REMOTE=str(tmp_path / "nowhere")).returncode != 0
    for step in ("state.sh", "apply.sh"):
        ran = runner.run(step, "load", KDECLARE_STATE_REMOTE="")
        assert ran.returncode != 0
        assert "is not set; set it to the repository that stores the state" in ran.stderr


def test_load_without_branch_setting_does_nothing(runner: Runner) -> None:
    runner.run_ok("state.sh", "load", KDECLARE_STATE_BRANCH="", KDECLARE_STATE_REMOTE="")
    assert not (runner.out / "state.git").exists()


def test_workflow_of_version_01_can_still_call_save(runner: Runner) -> None:
    assert "kdeclare has saved the state itself" in runner.run_ok("state.sh", "save").stdout
    assert runner.run("state.sh").returncode == 64


@pytest.mark.parametrize(
    ("remote", "location"),
    [
        ("https://git.example/a/b.git", "git+https://git.example/a/b.git"),
        ("ssh://git@git.example:22/a/b.git", "git+ssh://git@git.example:22/a/b.git"),
        ("git@git.example:a/b.git", "git+ssh://git@git.example/a/b.git"),
        ("/srv/a.git", "git+file:///srv/a.git"),
        ("states/a.git", "git+file://{checkout}/states/a.git"),
    ],
)
def test_repository_becomes_location_of_state(runner: Runner, remote: str, location: str) -> None:
    script = f'writes_state=true; . {STEPS}/settings.sh; printf "%s\\n" "${{reach[@]}}"'
    ran = subprocess.run(
        ["bash", "-c", script],
        env=runner.environ | {"KDECLARE_STATE_REMOTE": remote},
        cwd=runner.checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    *_, option, value = ran.stdout.splitlines()
    assert (option, value) == (
        "--state",
        f"{location.format(checkout=runner.checkout.resolve())}?branch=kdeclare-state",
    )


@pytest.mark.parametrize(("command", "is_passed"), [("plan", False), ("audit", False), ("apply", True)])
def test_only_apply_passes_login_of_state_to_kdeclare(github: Runner, command: str, is_passed: bool) -> None:
    plan_pull_request(github)
    told = github.folder / "environ"
    (github.folder / "bin" / "kdeclare").write_text(f"#!/bin/sh\nenv >> {told}\necho '{{}}'\n")
    secrets = {"KDECLARE_STATE_TOKEN": "ghs_state", "GH_TOKEN": "ghs_other"}
    github.run("github/run.sh", KDECLARE_COMMAND=command, **secrets)
    assert ("KDECLARE_STATE_TOKEN=ghs_state" in told.read_text()) is is_passed
    assert "ghs_other" not in told.read_text()


def test_token_is_in_no_git_command_line(github: Runner) -> None:
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    told = github.folder / "git-arguments"
    wrapper = github.folder / "bin" / "git"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {told}\nenv >> {told}.env\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    github.environ["KDECLARE_STATE_TOKEN"] = "ghs_secret"
    plan_pull_request(github)
    header = "GIT_CONFIG_VALUE_0=Authorization: Basic eC1hY2Nlc3MtdG9rZW46Z2hzX3NlY3JldA=="
    assert header in Path(f"{told}.env").read_text().splitlines()
    assert apply_merge(github) == 0
    assert "push --porcelain" in told.read_text()
    for secret in ("Z2hzX3NlY3JldA", "ghs_secret"):
        assert secret not in told.read_text()
        assert secret not in run_git(github.remote, "log", "--patch", BRANCH)
