"""Find out when a plan was made, and from which commit."""

import os
import re
import subprocess
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from kdeclare.core.clock import format_second
from kdeclare.core.plans.plan_origin import PlanOrigin
from kdeclare.core.secrets.child_environ import build_child_environ

_CI_VARIABLES = (
    ("GITHUB_SHA", "GITHUB_ACTOR"),
    ("CI_COMMIT_SHA", "GITLAB_USER_LOGIN"),
    ("BUILD_SOURCEVERSION", "BUILD_REQUESTEDFOR"),
    ("GIT_COMMIT", "CHANGE_AUTHOR"),
)
"""The variables of GitHub Actions, GitLab, Azure Pipelines and Jenkins for the commit and its author."""

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_TIMEOUT_S = 10


def find_plan_origin(folder: Path, environ: Mapping[str, str], created_at: datetime) -> PlanOrigin:
    """Return the time, and the current commit of the git checkout that contains ``folder``.

    If git is missing or ``folder`` is not in a checkout, the commit comes from the variables of the CI
    system. Never raises: a plan is valid without a commit.
    """
    time = format_second(created_at)
    commit, _, author = _run_git(folder, "log", "-1", "--format=%H%x00%an").strip().partition("\0")
    if _COMMIT.fullmatch(commit):
        return PlanOrigin(time, author, commit, _has_local_changes(folder))
    for commit_name, author_name in _CI_VARIABLES:
        if _COMMIT.fullmatch(environ.get(commit_name, "")):
            return PlanOrigin(time, environ.get(author_name, ""), environ[commit_name])
    return PlanOrigin(time)


def _has_local_changes(folder: Path) -> bool:
    """Whether git reports a changed file, or an untracked file that can be a manifest.

    Other untracked files are ignored, such as the saved plan and its HTML page.
    """
    changed = _run_git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    untracked = ("ls-files", "--others", "--exclude-standard", "--", "*.yaml", "*.yml", "*.json")
    return bool(changed or _run_git(folder, *untracked))


def _run_git(folder: Path, *arguments: str) -> str:
    """Return the output of a git command; empty if it fails."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
            env=build_child_environ(os.environ),
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")
