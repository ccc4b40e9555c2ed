"""A branch of a remote repository: read its newest commit, and push a commit based on it.

A push fails if another writer has pushed in the meantime.

The local repository is bare, temporary and shallow. It contains the newest commit that was read, and the
commits that this process pushed. Nothing is ever checked out.
"""

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.temporary_folders import create_temporary_folder
from kdeclare.state_storage.git_errors import (
    build_access_error,
    build_remote_error,
    build_storage_error,
    find_failure_kind,
    format_reason,
)
from kdeclare.state_storage.git_process import Git, GitResult, build_git_environ

if TYPE_CHECKING:
    import tempfile

_ATTEMPTS: Final = 3

# Why a push is refused if another process has pushed. Sources: git's transport.c, refs/files-backend.c and
# builtin/receive-pack.c.
_OVERTAKEN = re.compile(
    r"stale info|fetch first|non-fast-forward|already exists|failed to update ref|cannot lock ref"
    r"|failed to lock|unable to create .*\.lock|incorrect old value|but expected"
)
_PORCELAIN_LINE = re.compile(rb"(.)\t[^\t]*\t(.*)")


class PushOutcome(StrEnum):
    """Whether a push changed the branch.

    OVERTAKEN: another process had moved the branch away from the expected commit.
    """

    PUSHED = "pushed"
    OVERTAKEN = "overtaken"


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a remote repository.

    remote: the URL for git. name: the name of the branch. location: the URL of the state, for messages.
    """

    remote: str
    name: str
    location: str

    @property
    def ref(self) -> str:
        """The full name of the branch in the remote repository."""
        return f"refs/heads/{self.name}"


@dataclass(frozen=True, slots=True)
class GitRepository:
    """The local repository for one remote branch. A caller must not use it in two threads at once.

    environ: the environment variables of the process. timeout_s: how long to wait for a response, in seconds.
    """

    branch: Branch
    timeout_s: float
    environ: Mapping[str, str] = field(repr=False)
    folder: "tempfile.TemporaryDirectory[str]" = field(repr=False)
    git: Git = field(repr=False)

    def close(self) -> None:
        """Delete the local repository."""
        self.folder.cleanup()

    def read_tip(self, known_tip: str | None) -> str | None:
        """Return the newest commit of the branch after fetching it; None if the branch does not exist.

        known_tip: a commit that the local repository has. If the branch still ends at this commit, nothing is
        fetched.
        """
        if known_tip is not None:
            result = self._ask("read", "ls-remote", self.branch.remote, self.branch.ref)
            lines = (line.split(b"\t") for line in result.stdout.splitlines())
            tips = [words[0].decode() for words in lines if words[-1] == self.branch.ref.encode()]
            if not tips or tips[0] == known_tip:
                return tips[0] if tips else None
        return self._fetch(known_tip)

    def _fetch(self, known_tip: str | None) -> str | None:
        known = () if known_tip is None else (f"--negotiation-tip={known_tip}",)
        options = ("--depth=1", "--no-tags", "--progress", "--no-auto-maintenance", *known)
        result = self._ask(
            "read", "fetch", *options, self.branch.remote, self.branch.ref, accepts=_is_without_branch
        )
        if result.exit_code:
            return None
        return (Path(self.folder.name) / "FETCH_HEAD").read_text("utf-8").split()[0]

    def list_blobs(self, commit: str, folder: str) -> dict[str, str]:
        """Return the blob ids of the files in a folder of a commit, by their paths in the folder."""
        listing = self._run("ls-tree", "-r", "-z", "--full-tree", commit, "--", f"{folder}/").stdout
        blobs: dict[str, str] = {}
        for line in listing.split(b"\0"):
            facts, _, path = line.partition(b"\t")
            words = facts.split()
            if len(words) == 3 and words[1] == b"blob":
                blobs[path.decode(errors="surrogateescape").removeprefix(f"{folder}/")] = words[2].decode()
        return blobs

    def list_files(self, commit: str) -> tuple[str, ...]:
        """Return the paths of all files of a commit."""
        listing = self._run("ls-tree", "-r", "-z", "--full-tree", "--name-only", commit).stdout
        return tuple(path.decode(errors="surrogateescape") for path in listing.split(b"\0") if path)

    def read_blob(self, blob: str) -> bytes:
        """Return the content of a blob."""
        return self._run("cat-file", "blob", blob).stdout

    def write_blob(self, data: bytes) -> str:
        """Store content in the local repository. Return the blob id."""
        return self._run("hash-object", "-w", "--stdin", data=data).stdout.decode().strip()

    def commit(self, parent: str | None, blobs: Mapping[str, str | None], message: str) -> str:
        """Create a commit that changes some files of ``parent``, and return its id.

        parent: the id of the parent commit; None starts a new history.
        blobs: the new blob ids of the files, by path; None removes a file.
        """
        index = {"GIT_INDEX_FILE": str(Path(self.folder.name) / "kdeclare-index")}
        self._run("read-tree", parent or "--empty", variables=index)
        lines = (
            f"0 {'0' * 40}\t{path}\0" if blob is None else f"100644 {blob}\t{path}\0"
            for path, blob in blobs.items()
        )
        self._run("update-index", "-z", "--index-info", data="".join(lines).encode(), variables=index)
        tree = self._run("write-tree", variables=index).stdout.decode().strip()
        parents = () if parent is None else ("-p", parent)
        return self._run("commit-tree", tree, *parents, data=message.encode()).stdout.decode().strip()

    def push(self, commit: str, expected_tip: str | None) -> PushOutcome:
        """Move the branch from ``expected_tip``, the parent of ``commit``, to ``commit``, or change nothing.

        The push uses ``--force-with-lease`` as a compare-and-swap. Without it, git would create the branch
        again if it had been deleted. The push never discards commits, because ``commit`` is a child of
        ``expected_tip``.
        """
        lease = f"--force-with-lease={self.branch.ref}:{expected_tip or ''}"
        options = ("--porcelain", "--progress", lease)
        result = self._ask(
            "write", "push", *options, self.branch.remote, f"{commit}:{self.branch.ref}", accepts=_is_refused
        )
        if result.exit_code == 0:
            return PushOutcome.PUSHED
        reason = _find_refusal(result)
        # After a lost response, a repeated push is refused although the first one succeeded.
        if _OVERTAKEN.search(reason) or self.read_tip(expected_tip) != expected_tip:
            return PushOutcome.OVERTAKEN
        raise build_access_error(
            f"{self.branch.location} refused the push: {format_reason(result)}; {reason}.",
            "Permit the user or the token to push to this branch: check the rules for protected branches and "
            "the hooks of the server. Or use another branch with ?branch=NAME.",
        )

    def _ask(
        self,
        action: Literal["read", "write"],
        *arguments: str,
        accepts: Callable[[GitResult], bool] = lambda result: False,
    ) -> GitResult:
        """Run a command on the remote repository, and repeat it after a transient failure.

        accepts: a function that returns True for a failure that the caller handles. Such a failure is not
            retried.
        """
        deadline = time.monotonic() + self.timeout_s
        for attempt in range(1, _ATTEMPTS + 1):
            result = self.git.run_remote(*arguments)
            if result.exit_code == 0 or accepts(result):
                return result
            is_last = attempt == _ATTEMPTS or time.monotonic() >= deadline
            if is_last or not find_failure_kind(result).is_transient:
                break
            time.sleep(random.uniform(0.2, 0.5) * attempt)
        raise build_remote_error(action, self.branch.location, result, self.timeout_s, self.environ)

    def _run(
        self, *arguments: str, data: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> GitResult:
        result = self.git.run(*arguments, data=data, variables=variables)
        if result.exit_code:
            raise _build_local_error(arguments[0], self.folder.name, result)
        return result


def open_repository(branch: Branch, environ: Mapping[str, str], timeout_s: float) -> GitRepository:
    """Create the local repository. Nothing is read from the remote one. Raises KdeclareError."""
    try:
        folder = create_temporary_folder("kdeclare-state-")
    except OSError as cause:
        raise build_storage_error(
            f"Cannot create a folder for temporary files: {cause.strerror or cause}.",
            "Set TMPDIR to a folder that is writable.",
        ) from cause
    try:
        git = Git(build_git_environ(environ, Path(folder.name), branch.remote), timeout_s)
        git.check_version()
        result = git.run("init", "--quiet", "--bare", "--template=", "--object-format=sha1")
        if result.exit_code:
            raise _build_local_error("init", folder.name, result)
    except BaseException:
        folder.cleanup()
        raise
    return GitRepository(branch, timeout_s, environ, folder, git)


def _build_local_error(command: str, folder: str, result: GitResult) -> KdeclareError:
    reason = "it did not finish in time" if result.timed_out else format_reason(result)
    return build_storage_error(
        f"`git {command}` failed in the temporary folder {folder}: {reason}.",
        "Check that the disk is not full, and that git works. To use a different folder, set TMPDIR.",
    )


def _is_without_branch(result: GitResult) -> bool:
    return "couldn't find remote ref" in result.stderr.lower()


def _is_refused(result: GitResult) -> bool:
    return bool(_find_refusal(result))


def _find_refusal(result: GitResult) -> str:
    """Return why the remote repository or git itself refused to move the branch; empty if neither refused."""
    for line in result.stdout.splitlines():
        match = _PORCELAIN_LINE.fullmatch(line)
        if match and match[1] == b"!" and not match[2].startswith(b"[remote failure]"):
            return match[2].decode(errors="replace")
    return ""
