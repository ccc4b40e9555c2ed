"""Keep the objects of a shared state as files on a branch of a git repository.

A write is a commit that is pushed at once. The push is the compare-and-swap: it is refused if the branch has
moved. The write is then applied to the new commit, unless another process wrote the same object.

The path of a file is ``<project>/<environment>/<key>``. Its first line is ``kdeclare-object`` and a random
number, and the rest is the content of the object. The number makes the blob id unique for every write, so the
blob id is the version of the object.
"""

import random
import re
import threading
import time
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit, urlunsplit

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.storage.conditional_objects import (
    ConditionalObjects,
    ObjectConflict,
    ObjectVersion,
    StoredObject,
)
from kdeclare.core.storage.location import StateLocation, StorageContext, build_location_error
from kdeclare.state_storage.first_line import make_first_line, split_first_line
from kdeclare.state_storage.git_errors import build_storage_error
from kdeclare.state_storage.git_repository import Branch, GitRepository, PushOutcome, open_repository

DEFAULT_BRANCH = "kdeclare-state"

REVISION_VARIABLE = "KDECLARE_REVISION"
"""The environment variable in which CI passes the commit of the manifests.

The messages of the commits on the state branch mention this commit.
"""

MAX_OBJECT_BYTES = 32 * 1024 * 1024
"""The maximum size of an object. GitHub warns about files above 50 MB.

Similar versions of a file need little space, because git stores them as differences.
"""

STATE_FILE = "state.json"
"""The name of the object with the state."""

_MAX_CONTENTION_S = 60.0
_MAX_PAUSE_S = 2.0
_BRANCH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The files of one project and environment in a commit. commit: None if the branch does not exist."""

    commit: str | None
    blobs: Mapping[str, str]


class GitBranchObjects:
    """`ConditionalObjects` on a branch of a git repository."""

    def __init__(self, branch: Branch, folder: str, context: StorageContext) -> None:
        """Create the object without accessing the repository.

        folder: the folder of the objects on the branch.
        """
        self._branch = branch
        self._folder = folder
        self._context = context
        self._repository: GitRepository | None = None
        self._snapshot: _Snapshot | None = None
        self._mutex = threading.Lock()
        self._started_refreshes = 0

    @property
    def max_object_bytes(self) -> int:
        """See `ConditionalObjects.max_object_bytes`."""
        return MAX_OBJECT_BYTES

    def get(self, key: str) -> StoredObject | None:
        """See `ConditionalObjects.get`."""
        blob = self._read_snapshot().blobs.get(key)
        if blob is None:
            return None
        divided = split_first_line(self._open().read_blob(blob))
        if divided is None:
            raise _build_corruption_error(self.get_location(key))
        return StoredObject(divided[1], ObjectVersion(blob))

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """See `ConditionalObjects.list_keys`."""
        return tuple(sorted(key for key in self._read_snapshot().blobs if key.startswith(prefix)))

    def list_projects(self) -> tuple[tuple[str, str], ...]:
        """See `ListsProjects.list_projects`."""
        commit = self._read_snapshot().commit
        if commit is None:
            return ()
        paths = (path.split("/") for path in self._open().list_files(commit))
        return tuple(sorted((p[0], p[1]) for p in paths if len(p) == 3 and p[2] == STATE_FILE))

    def create(self, key: str, data: bytes) -> ObjectVersion:
        """See `ConditionalObjects.create`."""
        return self._write(key, data, None)

    def replace(self, key: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        """See `ConditionalObjects.replace`."""
        return self._write(key, data, version)

    def delete(self, keys: Iterable[str]) -> None:
        """See `ConditionalObjects.delete`. All objects are deleted in one commit."""
        names = tuple(dict.fromkeys(keys))
        with self._mutex:
            # Objects that other processes created since the last read must be deleted, too.
            snapshot = self._refresh() if names else _Snapshot(None, {})
            contention = _Contention(self._branch.location)
            while existing := [key for key in names if key in snapshot.blobs]:
                if self._push(snapshot, dict.fromkeys(existing)):
                    return
                contention.wait()
                snapshot = self._refresh()

    def _write(self, key: str, data: bytes, version: ObjectVersion | None) -> ObjectVersion:
        if len(data) > MAX_OBJECT_BYTES:
            raise ValueError(f"'{key}' has {len(data)} bytes")
        with self._mutex:
            # If nothing has changed since the last read, the push alone decides.
            is_current = self._snapshot is None
            snapshot = self._snapshot or self._refresh()
            blob = self._open().write_blob(make_first_line() + data)
            contention = _Contention(self._branch.location)
            # After a lost response, the branch can contain this write, which its blob id proves.
            while snapshot.blobs.get(key) != blob:
                if snapshot.blobs.get(key) == version:
                    if self._push(snapshot, {key: blob}):
                        break
                    contention.wait()
                elif is_current:
                    raise ObjectConflict(key)
                snapshot, is_current = self._refresh(), True
            return ObjectVersion(blob)

    def _push(self, snapshot: _Snapshot, blobs: Mapping[str, str | None]) -> bool:
        """Commit changes to the files in ``snapshot``, and push the commit.

        Return False if the branch has moved since ``snapshot`` was read.
        """
        repository = self._open()
        paths = {f"{self._folder}/{key}": blob for key, blob in blobs.items()}
        commit = repository.commit(snapshot.commit, paths, self._build_message(blobs))
        if repository.push(commit, snapshot.commit) is PushOutcome.OVERTAKEN:
            return False
        changed = {**snapshot.blobs, **blobs}
        self._snapshot = _Snapshot(commit, {key: blob for key, blob in changed.items() if blob is not None})
        return True

    def _build_message(self, blobs: Mapping[str, str | None]) -> str:
        """Return the message of a commit. Its last line tells GitHub and GitLab not to start CI jobs."""
        verb = "Write" if any(blobs.values()) else "Delete"
        what = next(iter(blobs)) if len(blobs) == 1 else f"{len(blobs)} objects"
        revision = self._context.environ.get(REVISION_VARIABLE, "")
        details = [f"Revision: {revision}"] if re.fullmatch(r"[0-9A-Za-z._/-]{1,100}", revision) else []
        return "\n\n".join([f"{verb} {what} of {self._folder}", *details, "[skip ci]"]) + "\n"

    def _read_snapshot(self) -> _Snapshot:
        """Return the current contents of the branch. Simultaneous calls share one request."""
        earlier_refreshes = self._started_refreshes
        with self._mutex:
            if self._snapshot is not None and self._started_refreshes > earlier_refreshes:
                return self._snapshot  # from a request that started after this call
            return self._refresh()

    def _refresh(self) -> _Snapshot:
        """Read the branch. The caller must hold the mutex."""
        self._started_refreshes += 1
        earlier, self._snapshot = self._snapshot, None
        repository = self._open()
        tip = repository.read_tip(None if earlier is None else earlier.commit)
        if earlier is not None and earlier.commit == tip:
            snapshot = earlier
        elif tip is None:
            snapshot = _Snapshot(None, {})
        else:
            snapshot = _Snapshot(tip, repository.list_blobs(tip, self._folder))
            self._check_layout(repository, snapshot)
        self._snapshot = snapshot
        return snapshot

    def _check_layout(self, repository: GitRepository, snapshot: _Snapshot) -> None:
        """Raise KdeclareError if the branch contains a copy of a local state folder."""
        state = snapshot.blobs.get(STATE_FILE)
        has_runs = any(key.startswith("runs/") for key in snapshot.blobs)
        if has_runs or (state is not None and repository.read_blob(state).startswith(b"{")):
            raise KdeclareError(
                error(
                    "state-old-layout",
                    "The state on the branch has an old layout",
                    f"{self.get_location('')} contains a copy of a local state folder. Earlier CI scripts "
                    "stored the state in this form.",
                    hint="Run `kdeclare state migrate` once, or use another branch with ?branch=NAME; see "
                    "docs/state-git.md.",
                )
            )

    def _open(self) -> GitRepository:
        if self._repository is None:
            context = self._context
            self._repository = open_repository(self._branch, context.environ, context.timeout_s)
        return self._repository

    def get_location(self, key: str) -> str:
        """See `ConditionalObjects.get_location`."""
        return f"{self._folder}/{key} on branch '{self._branch.name}' of {self._branch.remote}"

    def close(self) -> None:
        """See `ConditionalObjects.close`."""
        with self._mutex:
            repository, self._repository, self._snapshot = self._repository, None, None
        if repository is not None:
            repository.close()


class _Contention:
    """Limits how long a write is retried while other processes push to the same branch."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._ends_at = time.monotonic() + _MAX_CONTENTION_S
        self._max_pause_s = 0.05

    def wait(self) -> None:
        """Wait a random time before the next attempt. Raises KdeclareError after the time limit."""
        if time.monotonic() >= self._ends_at:
            raise build_storage_error(
                f"Cannot write {self._location}: other processes have been pushing to the branch for "
                f"{_MAX_CONTENTION_S:g} s.",
                "Run the command again, or use a separate branch for each environment with ?branch=NAME.",
            )
        time.sleep(random.uniform(0, self._max_pause_s))
        self._max_pause_s = min(2 * self._max_pause_s, _MAX_PAUSE_S)


def open_storage(location: StateLocation, context: StorageContext) -> ConditionalObjects:
    """Open the branch of the git repository at a state location. See `OpenStorage`.

    The URL is ``git+ssh://…``, ``git+https://…`` or ``git+file:///…``, with the option ``branch``.
    """
    parts = urlsplit(location.url)
    scheme = location.scheme.removeprefix("git+")
    if scheme == "https" and "@" in parts.netloc:
        raise build_location_error(
            f"The URL of the state on {parts.hostname} contains a user name, which may be a token.",
            "Remove the part before the '@'. Set KDECLARE_STATE_USER and KDECLARE_STATE_TOKEN instead.",
        )
    location.check_options("branch", "lease")
    if scheme == "file" and parts.netloc:
        raise build_location_error(
            f"'{location.url}' names the host '{parts.netloc}', but the repository must be on this machine.",
            "Write three slashes before the absolute path: git+file:///srv/state.git.",
        )
    if not location.path or (scheme != "file" and not parts.hostname):
        raise build_location_error(
            f"'{location.url}' does not name a repository.",
            f"Write git+{scheme}://{'' if scheme == 'file' else 'HOST'}/PATH, where PATH is the path of the "
            "repository.",
        )
    name = location.options.get("branch", DEFAULT_BRANCH)
    if not _BRANCH_NAME.fullmatch(name) or ".." in name or re.search(r"(\.lock|\.)(/|$)", name):
        raise build_location_error(
            f"'{location.url}': '{name}' is not a valid branch name.",
            "Use letters, digits, '-', '_', '.' and '/', for example ?branch=kdeclare-state.",
        )
    remote = urlunsplit((scheme, parts.netloc, parts.path, "", ""))
    folder = f"{location.project}/{location.environment}"
    return GitBranchObjects(Branch(remote, name, location.url), folder, context)


def _build_corruption_error(location: str) -> KdeclareError:
    return KdeclareError(
        error(
            "state-corrupt",
            "Stored state is damaged",
            f"{location}: the first line of the file is not 'kdeclare-object' followed by a number, so "
            "kdeclare did not write the file.",
            hint="Restore the file: revert the commit on the branch that changed it, and push.",
        )
    )
