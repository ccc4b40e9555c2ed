"""The two source trees to compare: a worktree of the base commit, and the current repository."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Cost, environment

REPOSITORY = Path(__file__).parents[2]
_METERED = Path(__file__).with_name("metered.py")


@dataclass(frozen=True, slots=True)
class Revision:
    """One of the two source trees to compare.

    folder: the folder for the output of its processes.
    env: the environment variables that select its code and its compiled files.
    """

    name: str
    tree: Path
    folder: Path
    env: Mapping[str, str]

    def run(self, arguments: Sequence[str], folder: Path, expected: Collection[int] = (0,)) -> Cost:
        """Run ``python -m ARGUMENTS``, and measure the process with all its child processes.

        The memory is that of the largest process. Raises RuntimeError for an exit code not in ``expected``.
        """
        measured = self.folder / "cost.json"
        command = [sys.executable, "-I", str(_METERED), str(measured), sys.executable, "-m", *arguments]
        done = subprocess.run(command, cwd=folder, env=self.env, capture_output=True, text=True, check=False)
        if done.returncode not in expected:
            shown = f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
            raise RuntimeError(f"{self.name}: {' '.join(arguments)} exited with {done.returncode}:\n{shown}")
        return Cost(**json.loads(measured.read_text()), output=done.stdout)


@contextmanager
def open_revisions(commit: str) -> Iterator[tuple[Revision, Revision]]:
    """Check out the base commit in a temporary folder, and compile both source trees."""
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as temporary:
        folder = Path(temporary)
        _git("worktree", "add", "--quiet", "--detach", str(folder / "tree"), commit)
        try:
            yield _prepare("base", folder / "tree", folder), _prepare("new", REPOSITORY, folder)
        finally:
            _git("worktree", "remove", "--force", str(folder / "tree"))


def describe(commit: str) -> str:
    """Return the short hash of a commit. For HEAD, append ``+changes`` if there are uncommitted changes."""
    changed = _git("status", "--porcelain", "--untracked-files=no") if commit == "HEAD" else ""
    return _git("rev-parse", "--short", commit) + ("+changes" if changed else "")


def _prepare(name: str, tree: Path, folder: Path) -> Revision:
    own = folder / name
    own.mkdir()
    revision = Revision(name, tree, own, environment(folder / f"{name}-cache", tree))
    revision.run(["compileall", "-q", str(tree / "kdeclare"), str(tree / "benchmarks")], own)
    return revision


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(REPOSITORY), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
