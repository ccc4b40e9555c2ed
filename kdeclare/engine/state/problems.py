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
def explained(doing: str, path: Path) -> Iterator[None]:
    """Turn an OSError inside the block into a KdeclareError: "Cannot ``doing`` ``path``: …"."""
    try:
        yield
    except OSError as cause:
        raise _failure(doing, path, cause) from cause


def _failure(doing: str, path: Path, cause: OSError) -> KdeclareError:
    reason = cause.strerror or str(cause)
    if cause.errno in _FULL:
        return _problem(
            "disk-full",
            "No space left for the state",
            f"Cannot {doing} {path}: {reason}.",
            "Free some space and run the command again; what was stored before is intact.",
        )
    if cause.errno in _FORBIDDEN:
        access = "readable" if doing == "read" else "writable"
        return _problem(
            "state-no-access",
            f"The state is not {access}",
            f"Cannot {doing} {path}: {reason}.",
            f"Make it {access} for the user that runs kdeclare, or choose another folder with --state.",
        )
    if cause.errno in _NO_LOCKS:
        return _problem(
            "state-no-locks",
            "The state folder's file system has no locks",
            f"Cannot {doing} {path}: {reason}.",
            "Keep the state on a file system with flock (a local disk, NFS version 4).",
        )
    return _problem(
        "state-io",
        "The state cannot be used",
        f"Cannot {doing} {path}: {reason}.",
        "Check that the state folder (--state) is a folder on a working file system.",
    )


def corrupt(where: str, reason: str, hint: str) -> KdeclareError:
    """Stored text that is not what was written; ``where`` is the file and, where known, the line."""
    return _problem("state-corrupt", "Stored state is damaged", f"{where}: {reason}.", hint)


def other_version(where: str, found: object, known: int) -> KdeclareError:
    """A state written in a format that this kdeclare does not know."""
    return _problem(
        "state-version",
        "The state has another format version",
        f"{where} has format version {found}; this kdeclare reads version {known}.",
        "Use the kdeclare that wrote it, or a newer one.",
    )


def overtaken(reason: str) -> KdeclareError:
    """A write that would have lost someone else's."""
    return _problem(
        "state-overtaken",
        "The state was changed by someone else",
        f"The state was not written: {reason}.",
        "Run `kdeclare status`, then plan again; nothing that was stored is lost.",
    )


def taken(holder: LockInfo) -> KdeclareError:
    """The lock is someone else's."""
    return _problem(
        "locked",
        "The state is locked",
        f"The state is locked by {describe(holder)}.",
        "Wait until it has ended. A process that died holds no lock, so this one is still running.",
        ExitCode.LOCKED,
    )


def lock_lost() -> KdeclareError:
    """This process held the lock, and someone broke it."""
    return _problem(
        "lock-lost",
        "The lock was broken by someone else",
        "Nothing more is written: the lock of this run was broken with `kdeclare lock break`.",
        "Run `kdeclare status` to see what is unfinished.",
        ExitCode.LOCKED,
    )


def not_the_holder(expected: LockInfo, now: LockInfo | None) -> KdeclareError:
    """The lock to be broken is not held by the one it was to be taken from."""
    found = f"it is held by {describe(now)} now" if now else "nobody holds it now"
    return _problem(
        "lock-changed",
        "The lock was not broken",
        f"The lock is no longer held by {describe(expected)}; {found}.",
        "Look again with `kdeclare lock show`.",
    )


def unknown_run(run_id: str) -> KdeclareError:
    """There is no run of that id."""
    return _problem(
        "unknown-run", "No such run", f"There is no run '{run_id}'.", "`kdeclare history` lists the runs."
    )


def run_exists(run_id: str) -> KdeclareError:
    """A run of that id was recorded before."""
    return _problem(
        "run-exists",
        "The run exists already",
        f"A run '{run_id}' is recorded already.",
        "Run the command again; it gets an id of its own.",
    )


def bad_location(detail: str, hint: str) -> KdeclareError:
    """A state location, project or environment name that no store can be opened for."""
    return _problem("state-location", "The state's location cannot be used", detail, hint)


def describe(holder: LockInfo) -> str:
    """A holder in words: who, which process, since when, doing what."""
    return f"{holder.who} (pid {holder.pid}, since {holder.since}): {holder.what}"


def _problem(
    code: str, summary: str, detail: str, hint: str, exit_code: ExitCode = ExitCode.ERROR
) -> KdeclareError:
    return KdeclareError(error(code, summary, detail, hint=hint), exit_code=exit_code)
