"""What can go wrong with stored state, as errors that a person can act on."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.state import LockInfo

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}


@contextmanager
def explain_os_errors(action: str, path: Path) -> Iterator[None]:
    """Turn an OSError inside the block into a KdeclareError: "Cannot ``action`` ``path``: …"."""
    try:
        yield
    except OSError as cause:
        raise _build_io_error(action, path, cause) from cause


def _build_io_error(action: str, path: Path, cause: OSError) -> KdeclareError:
    reason = cause.strerror or str(cause)
    if cause.errno in _FULL:
        return _build_error(
            "disk-full",
            "No space left for the state",
            f"Cannot {action} {path}: {reason}.",
            "Free some space and run the command again; what was stored before is intact.",
        )
    if cause.errno in _FORBIDDEN:
        access = "readable" if action == "read" else "writable"
        return _build_error(
            "state-no-access",
            f"The state is not {access}",
            f"Cannot {action} {path}: {reason}.",
            f"Make it {access} for the user that runs kdeclare, or choose another folder with --state.",
        )
    if cause.errno in _NO_LOCKS:
        return _build_error(
            "state-no-locks",
            "The state folder's file system has no locks",
            f"Cannot {action} {path}: {reason}.",
            "Keep the state on a file system with flock (a local disk, NFS version 4).",
        )
    return _build_error(
        "state-io",
        "The state cannot be used",
        f"Cannot {action} {path}: {reason}.",
        "Check that the state folder (--state) is a folder on a working file system.",
    )


def build_corruption_error(location: str, reason: str, hint: str) -> KdeclareError:
    """Stored text that is not what was written; ``location`` is the file and, where known, the line."""
    return _build_error("state-corrupt", "Stored state is damaged", f"{location}: {reason}.", hint)


def build_version_error(location: str, found_version: object, known_version: int) -> KdeclareError:
    """A state written in a format that this kdeclare does not know."""
    return _build_error(
        "state-version",
        "The state has another format version",
        f"{location} has format version {found_version}; this kdeclare reads version {known_version}.",
        "Use the kdeclare that wrote it, or a newer one.",
    )


def build_lost_update_error(reason: str) -> KdeclareError:
    """A write that would have lost someone else's."""
    return _build_error(
        "state-overtaken",
        "The state was changed by someone else",
        f"The state was not written: {reason}.",
        "Run `kdeclare status`, then plan again; nothing that was stored is lost.",
    )


def build_locked_error(holder: LockInfo) -> KdeclareError:
    """The lock is someone else's."""
    return _build_error(
        "locked",
        "The state is locked",
        f"The state is locked by {format_holder(holder)}.",
        "Wait until it has ended. A process that died holds no lock, so this one is still running.",
        ExitCode.LOCKED,
    )


def build_lock_lost_error() -> KdeclareError:
    """This process held the lock, and someone broke it."""
    return _build_error(
        "lock-lost",
        "The lock was broken by someone else",
        "Nothing more is written: the lock of this run was broken with `kdeclare lock break`.",
        "Run `kdeclare status` to see what is unfinished.",
        ExitCode.LOCKED,
    )


def build_holder_changed_error(expected: LockInfo, current_holder: LockInfo | None) -> KdeclareError:
    """The lock to be broken is not held by the one it was to be taken from."""
    holder_text = (
        f"it is held by {format_holder(current_holder)} now" if current_holder else "nobody holds it now"
    )
    return _build_error(
        "lock-changed",
        "The lock was not broken",
        f"The lock is no longer held by {format_holder(expected)}; {holder_text}.",
        "Look again with `kdeclare lock show`.",
    )


def build_unknown_run_error(run_id: str) -> KdeclareError:
    """There is no run of that id."""
    return _build_error(
        "unknown-run", "No such run", f"There is no run '{run_id}'.", "`kdeclare history` lists the runs."
    )


def build_run_exists_error(run_id: str) -> KdeclareError:
    """A run of that id was recorded before."""
    return _build_error(
        "run-exists",
        "The run exists already",
        f"A run '{run_id}' is recorded already.",
        "Run the command again; it gets an id of its own.",
    )


def build_location_error(detail: str, hint: str) -> KdeclareError:
    """A state location, project or environment name that no store can be opened for."""
    return _build_error("state-location", "The state's location cannot be used", detail, hint)


def format_holder(holder: LockInfo) -> str:
    """A holder in words: who, which process, since when, doing what."""
    return f"{holder.who} (pid {holder.pid}, since {holder.since}): {holder.what}"


def _build_error(
    code: str, summary: str, detail: str, hint: str, exit_code: ExitCode = ExitCode.ERROR
) -> KdeclareError:
    return KdeclareError(error(code, summary, detail, hint=hint), exit_code=exit_code)
