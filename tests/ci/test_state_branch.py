"""The state on a branch of its own, in a real git repository."""

import subprocess
from pathlib import Path

import pytest

from tests.ci.runner import Runner


def git(runner: Runner, *arguments: str) -> str:
    """Ask the remote repository."""
    command = ["git", "-C", str(runner.remote), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def kept(runner: Runner) -> dict[str, str]:
    """The files on the branch."""
    names = git(runner, "ls-tree", "-r", "--name-only", "kdeclare-state").split()
    return {name: git(runner, "show", f"kdeclare-state:{name}") for name in names}


def save(runner: Runner, text: str, step: str = "save") -> None:
    """A run of kdeclare's, and what follows it."""
    folder = runner.out / "state" / "shop" / "lab"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state.json").write_text(text)
    (folder / "lock").write_text("")
    runner.well("state.sh", step)


def test_what_is_saved_is_loaded_elsewhere(runner: Runner) -> None:
    assert "There is no branch kdeclare-state yet" in runner.well("state.sh", "load").stdout
    save(runner, "one")
    runner.afresh()
    runner.well("state.sh", "load")
    assert (runner.out / "state" / "shop" / "lab" / "state.json").read_text() == "one"
    save(runner, "two", step="save")
    assert kept(runner) == {"shop/lab/state.json": "two"}, "and no lock"
    assert (
        git(runner, "log", "--format=%s", "kdeclare-state").splitlines()
        == ["State of default after a run"] * 2
    )


def test_a_state_that_did_not_change_is_not_saved(runner: Runner) -> None:
    runner.well("state.sh", "load")
    assert "The state is as it was." in runner.well("state.sh", "save").stdout
    assert git(runner, "branch") == ""
    save(runner, "one")
    assert "The state is as it was." in runner.well("state.sh", "save").stdout
    runner.afresh()
    assert "No state was loaded" in runner.well("state.sh", "save").stdout


def test_what_others_saved_meanwhile_is_never_lost(runner: Runner) -> None:
    runner.well("state.sh", "load")
    here = runner.out / "state"
    theirs = runner.folder / "theirs"
    here.rename(theirs)
    runner.well("state.sh", "load")
    save(runner, "one")
    runner.afresh()
    runner.out.mkdir()
    theirs.rename(here)
    (here / "state.json").write_text("other")
    for _ in range(2):  # what could not be saved is tried again
        ran = runner.run("state.sh", "save")
        assert ran.returncode == 1
        assert "The state could not be saved on kdeclare-state" in ran.stderr
    assert kept(runner) == {"shop/lab/state.json": "one"}
    assert (here / "state.json").read_text() == "other"


def test_a_repository_that_does_not_answer_is_no_empty_state(runner: Runner, tmp_path: Path) -> None:
    assert runner.run("state.sh", "load", KDECLARE_STATE_REMOTE=str(tmp_path / "nowhere")).returncode != 0
    ran = runner.run("state.sh", "load", KDECLARE_STATE_REMOTE="")
    assert "is not set: which repository keeps the state" in ran.stderr


def test_a_project_that_says_itself_where_its_state_is(runner: Runner) -> None:
    for step in ("load", "save"):
        runner.well("state.sh", step, KDECLARE_STATE_BRANCH="", KDECLARE_STATE_REMOTE="")
    assert not (runner.out / "state").exists()


@pytest.mark.parametrize("step", ["load", "save"])
def test_the_token_is_in_no_command_line(runner: Runner, step: str) -> None:
    runner.well("state.sh", "load")
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    told = runner.folder / "git-arguments"
    wrapper = runner.folder / "bin" / "git"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {told}\nenv > {told}.env\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    runner.well("state.sh", step, KDECLARE_STATE_TOKEN="ghs_secret")
    header = "GIT_CONFIG_VALUE_0=Authorization: Basic eC1hY2Nlc3MtdG9rZW46Z2hzX3NlY3JldA=="
    assert header in Path(f"{told}.env").read_text().splitlines()
    assert told.read_text()
    assert "Z2hzX3NlY3JldA" not in told.read_text()
    assert "ghs_secret" not in told.read_text()
