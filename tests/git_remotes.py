"""Git repositories on this machine that tests use as the remote repositories of a state."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ParamSpec

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.provider.connection import Target
from kdeclare.core.storage.conditional_objects import ConditionalObjects
from kdeclare.core.storage.location import StorageContext, parse_state_location
from kdeclare.state_storage.git_branch import open_storage

BRANCH = "kdeclare-state"

SETUP_ENVIRON = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def run_git(folder: Path, *arguments: str) -> str:
    """Run git in a repository, and return its output."""
    command = ["git", "-C", str(folder), *arguments]
    environ = {**SETUP_ENVIRON, "GIT_AUTHOR_NAME": "ann", "GIT_AUTHOR_EMAIL": "ann@localhost"}
    environ |= {"GIT_COMMITTER_NAME": "ann", "GIT_COMMITTER_EMAIL": "ann@localhost"}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout


def create_remote(folder: Path) -> Path:
    """Create an empty bare repository."""
    folder.mkdir(parents=True)
    run_git(folder, "init", "--quiet", "--bare", "--template=", "--initial-branch=main")
    return folder


class NoReferences:
    """References that a storage must not need."""

    def resolve(self, reference: str) -> str:
        raise AssertionError(reference)

    def resolve_beside(self, file: Path, reference: str) -> str:
        raise AssertionError(reference)


def _find_no_target(name: str) -> Target:
    raise AssertionError(name)


def open_git_objects(
    url: str,
    *,
    environ: Mapping[str, str] = SETUP_ENVIRON,
    timeout_s: float = 60.0,
    project: str = "shop",
    environment: str = "lab",
) -> ConditionalObjects:
    """Open the objects of a project on a branch."""
    context = StorageContext(Path.cwd(), environ, NoReferences(), timeout_s, _find_no_target)
    return open_storage(parse_state_location(url, project, environment), context)


_Parameters = ParamSpec("_Parameters")


def get_problem(
    call: Callable[_Parameters, object], *arguments: _Parameters.args, **options: _Parameters.kwargs
) -> tuple[str, str]:
    """Return the code, and the detail with the hint, of the only error that a call must raise."""
    with pytest.raises(KdeclareError) as caught:
        call(*arguments, **options)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.code, f"{diagnostic.detail} {diagnostic.hint}"


def write_script(file: Path, *lines: str) -> Path:
    """Write an executable shell script."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(("#!/bin/sh", *lines, "")))
    file.chmod(0o755)
    return file


def push_files(remote: Path, clone: Path, files: Mapping[str, str]) -> None:
    """Add or replace files on the branch, as a person does."""
    run_git(remote, "clone", "--quiet", "--no-checkout", str(remote), str(clone))
    has_branch = BRANCH in run_git(remote, "branch")
    run_git(clone, "checkout", "--quiet", *([f"origin/{BRANCH}"] if has_branch else ["--orphan", "new"]))
    for name, text in files.items():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text(text)
    run_git(clone, "add", "--all")
    run_git(clone, "commit", "--quiet", "--message", "By a person")
    run_git(clone, "push", "--quiet", "origin", f"HEAD:refs/heads/{BRANCH}")
