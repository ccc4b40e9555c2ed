"""The state on a separate branch, in a real git repository."""

import subprocess
from pathlib import Path

import pytest

from tests.ci.runner import Runner

pytestmark = pytest.mark.slow


def run_git(runner: Runner, *arguments: str) -> str:
    """Run git in the remote repository."""
    command = ["git", "-C", str(runner.remote), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def read_branch(runner: Runner) -> dict[str, str]:
    """Return the files on the branch."""
    names = run_git(runner, "ls-tree", "-r", "--name-only", "kdeclare-state").split()
    return {name: run_git(runner, "show", f"kdeclare-state:{name}") for name in names}


def run_and_save(runner: Runner, text: str, step: str = "save", environment: str = "lab") -> None:
    """Run kdeclare, and the steps after it."""
    folder = runner.out / "state" / "shop" / environment
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state.json").write_text(text)
    (folder / "lock").write_text("")
    runner.run_ok("state.sh", step)


def test_saved_state_is_loaded_by_next_job(runner: Runner) -> None:
    assert "Branch kdeclare-state does not exist yet" in runner.run_ok("state.sh", "load").stdout
    run_and_save(runner, "one")
    runner.switch_machine()
    runner.run_ok("state.sh", "load")
    assert (runner.out / "state" / "shop" / "lab" / "state.json").read_text() == "one"
    run_and_save(runner, "two", step="save")
    assert read_branch(runner) == {"shop/lab/state.json": "two"}, "and no lock"
    assert (
        run_git(runner, "log", "--format=%s", "kdeclare-state").splitlines()
        == ["State of default after a run"] * 2
    )


def test_unchanged_state_is_not_saved(runner: Runner) -> None:
    runner.run_ok("state.sh", "load")
    assert "The state has not changed." in runner.run_ok("state.sh", "save").stdout
    assert run_git(runner, "branch") == ""
    run_and_save(runner, "one")
    assert "The state has not changed." in runner.run_ok("state.sh", "save").stdout
    runner.switch_machine()
    assert "No state was loaded" in runner.run_ok("state.sh", "save").stdout


LINES = "".join(f"{line}\n" for line in range(40))


def save_from_other_job(runner: Runner, environment: str, text: str) -> None:
    """Save the state of another job that started with the same state."""
    here, aside = runner.out / "state", runner.folder / "aside"
    here.rename(aside)
    runner.run_ok("state.sh", "load")
    run_and_save(runner, text, environment=environment)
    runner.switch_machine()
    runner.out.mkdir()
    aside.rename(here)


@pytest.mark.parametrize("before", [False, True], ids=["no branch yet", "a branch"])
def test_states_of_concurrent_environments_are_merged(runner: Runner, before: bool) -> None:
    runner.run_ok("state.sh", "load")
    if before:
        for environment in ("one", "two", "three"):
            run_and_save(runner, LINES, environment=environment)
        runner.switch_machine()
        runner.run_ok("state.sh", "load")
    save_from_other_job(runner, "one", f"{LINES}1")
    save_from_other_job(runner, "two", f"{LINES}2")
    run_and_save(runner, f"{LINES}3", environment="three")
    environments = {"one": 1, "two": 2, "three": 3}
    assert read_branch(runner) == {
        f"shop/{name}/state.json": f"{LINES}{n}" for name, n in environments.items()
    }
    assert "The state has not changed." in runner.run_ok("state.sh", "save").stdout


def test_save_refuses_to_overwrite_concurrent_state(runner: Runner) -> None:
    runner.run_ok("state.sh", "load")
    run_and_save(runner, LINES)
    save_from_other_job(runner, "lab", f"{LINES}theirs\n")
    mine = runner.out / "state" / "shop" / "lab" / "state.json"
    mine.write_text(f"mine\n{LINES}")  # changes in different lines, which git would merge
    told = runner.folder / "told"
    for _ in range(2):  # a failed save is retried
        ran = runner.run("state.sh", "save", KDECLARE_ENV="lab", GITHUB_OUTPUT=str(told))
        assert ran.returncode == 1
        assert "The state could not be saved on kdeclare-state" in ran.stderr
    assert read_branch(runner) == {"shop/lab/state.json": f"{LINES}theirs\n"}
    assert mine.read_text() == f"mine\n{LINES}"
    assert set(told.read_text().splitlines()) == {"artifact=kdeclare-state-not-saved-lab"}


def test_load_fails_if_repository_is_unreachable(runner: Runner, tmp_path: Path) -> None:
    assert runner.run("state.sh", "load", KDECLARE_STATE_REMOTE=str(tmp_path / "nowhere")).returncode != 0
    ran = runner.run("state.sh", "load", KDECLARE_STATE_REMOTE="")
    assert "is not set; set it to the repository that stores the state" in ran.stderr


def test_state_steps_without_branch_do_nothing(runner: Runner) -> None:
    for step in ("load", "save"):
        runner.run_ok("state.sh", step, KDECLARE_STATE_BRANCH="", KDECLARE_STATE_REMOTE="")
    assert not (runner.out / "state").exists()


@pytest.mark.parametrize("step", ["load", "save"])
def test_token_is_in_no_git_command_line(runner: Runner, step: str) -> None:
    runner.run_ok("state.sh", "load")
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    told = runner.folder / "git-arguments"
    wrapper = runner.folder / "bin" / "git"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {told}\nenv > {told}.env\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    runner.run_ok("state.sh", step, KDECLARE_STATE_TOKEN="ghs_secret")
    header = "GIT_CONFIG_VALUE_0=Authorization: Basic eC1hY2Nlc3MtdG9rZW46Z2hzX3NlY3JldA=="
    assert header in Path(f"{told}.env").read_text().splitlines()
    assert told.read_text()
    assert "Z2hzX3NlY3JldA" not in told.read_text()
    assert "ghs_secret" not in told.read_text()
