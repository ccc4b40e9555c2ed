"""Errors about stored data, with hints that users can follow."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.state import LockInfo

_CORRUPT = "state-corrupt"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}


@contextmanager
def explain_os_errors(action: str, path: Path) -> Iterator[None]:
    """Convert an OSError inside the ``with`` block to a KdeclareError: "Cannot ``action`` ``path``: …"."""
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
            "Free some space and run the command again. The stored data is intact.",
        )
    if cause.errno in _FORBIDDEN:
        access = "readable" if action == "read" else "writable"
        return _build_error(
            "state-no-access",
            "No access to the state",
            f"Cannot {action} {path}: {reason}.",
            f"Make this path {access} for the user that runs kdeclare, or choose another folder with "
            "--state.",
        )
    if cause.errno in _NO_LOCKS:
        return _build_error(
            "state-no-locks",
            "The state folder's file system does not support locks",
            f"Cannot {action} {path}: {reason}.",
            "Keep the state on a file system that supports flock (a local disk, or NFS version 4).",
        )
    return _build_error(
        "state-io",
        "The state cannot be used",
        f"Cannot {action} {path}: {reason}.",
        "Check that the state folder (--state) is a folder on a working file system.",
    )


def build_corruption_error(location: str, reason: str, hint: str) -> KdeclareError:
    """Return the error about damaged content. ``location`` is the file and, if known, the line."""
    return _build_error(_CORRUPT, "Stored state is damaged", f"{location}: {reason}.", hint)


def is_corruption(problem: KdeclareError) -> bool:
    """Whether the error is only about damaged data, and not about data that cannot be accessed."""
    return all(d.code == _CORRUPT for d in problem.diagnostics)


def build_version_error(location: str, found_version: object, known_version: int) -> KdeclareError:
    """Return the error about a state in a format that this version of kdeclare does not know."""
    return _build_error(
        "state-version",
        "The state has a different format version",
        f"{location} has format version {found_version}; this kdeclare reads version {known_version}.",
        "Use the kdeclare version that wrote the state, or a newer version.",
    )


def build_lost_update_error(reason: str) -> KdeclareError:
    """Return the error about a write that would overwrite the changes of another process."""
    return _build_error(
        "state-overtaken",
        "Another process changed the state",
        f"The state was not written: {reason}.",
        "Run `kdeclare status`, then plan again. The stored data is intact.",
    )


def build_locked_error(holder: LockInfo) -> KdeclareError:
    """Return the error about a lock that another process holds."""
    return _build_error(
        "locked",
        "The state is locked",
        f"The state is locked by {format_holder(holder)}. That process is still running: a process that died "
        "holds no lock.",
        "Wait until the process ends.",
        ExitCode.LOCKED,
    )


def build_lease_held_error(holder: LockInfo, renewed: str, duration_s: float) -> KdeclareError:
    """Return the error about a lease that another process holds.

    renewed: when the holder last renewed the lease, according to the clock of the holder.
    """
    return _build_error(
        "locked",
        "The state is locked",
        f"The state is locked by {format_holder(holder)}. The lease was last renewed at {renewed}.",
        f"Wait until the process ends. If it died, run the command again {duration_s:g} s after the last "
        "renewal: kdeclare then watches the lease, and takes over if it is not renewed.",
        ExitCode.LOCKED,
    )


def build_lock_lost_error() -> KdeclareError:
    """Return the error about a lock that this process held until another process broke it."""
    return _build_error(
        "lock-lost",
        "The lock was broken",
        "The lock of this run was broken with `kdeclare lock break`, so nothing more is written.",
        "Run `kdeclare status` to see what is unfinished.",
        ExitCode.LOCKED,
    )


def build_lease_ended_error(duration_s: float) -> KdeclareError:
    """Return the error about a lease that this process could not renew in time."""
    return _build_error(
        "lease-ended",
        "The lease on the state ended",
        f"This run did not renew its lease on the state for {duration_s:g} s, so another run may have taken "
        "over. Nothing more is sent or written.",
        "Check whether the machine was suspended, and whether the state storage responds. Then run "
        "`kdeclare status` to see what is unfinished.",
        ExitCode.LOCKED,
    )


def build_lease_clock_error(platform: str) -> KdeclareError:
    """Return the error about a system without a monotonic clock that keeps running during suspend."""
    return _build_error(
        "lease-clock",
        "A shared state cannot be locked on this system",
        f"The system '{platform}' has no clock that keeps running while the machine is suspended. kdeclare "
        "could fail to notice that the lease on the state has ended.",
        "Run kdeclare on Linux or macOS, or keep the state in a local folder.",
    )


def build_journal_overtaken_error(run_id: str) -> KdeclareError:
    """Return the error about a journal to which another process has appended."""
    return _build_error(
        "journal-overtaken",
        "Another process continued the run",
        f"The journal of run {run_id} was continued by another process, so this process writes nothing more.",
        "Run `kdeclare status` to see the outcome of the run.",
        ExitCode.LOCKED,
    )


def build_holder_changed_error(expected: LockInfo, current_holder: LockInfo | None) -> KdeclareError:
    """Return the error about breaking a lock whose holder has changed."""
    holder_text = f"it is now held by {format_holder(current_holder)}" if current_holder else "it is now free"
    return _build_error(
        "lock-changed",
        "The lock was not broken",
        f"The lock is no longer held by {format_holder(expected)}; {holder_text}.",
        "Run `kdeclare lock show` to see the current holder.",
    )


def build_unknown_run_error(run_id: str) -> KdeclareError:
    """Return the error about an unknown run id."""
    return _build_error(
        "unknown-run",
        "No such run",
        f"There is no run '{run_id}'.",
        "Run `kdeclare history` to list the runs.",
    )


def build_run_exists_error(run_id: str) -> KdeclareError:
    """Return the error about a run id that is already in use."""
    return _build_error(
        "run-exists",
        "The run already exists",
        f"A run '{run_id}' is already recorded.",
        "Run the command again. The new run gets a new id.",
    )


def build_run_abandoned_error(run_id: str) -> KdeclareError:
    """Return the error about a run that is already abandoned."""
    return _build_error(
        "run-abandoned",
        "The run is abandoned",
        f"Run {run_id} was abandoned with `kdeclare state abandon`, so the outcome of some of its operations "
        "may be unknown.",
        "Run `kdeclare history` to see who abandoned it, and `kdeclare plan` to see the remaining changes.",
    )


def format_holder(holder: LockInfo) -> str:
    """Describe the holder of a lock: the user, the process, the start time, and the command."""
    return f"{holder.who} (pid {holder.pid}, since {holder.since}): {holder.what}"


def _build_error(
    code: str, summary: str, detail: str, hint: str, exit_code: ExitCode = ExitCode.ERROR
) -> KdeclareError:
    return KdeclareError(error(code, summary, detail, hint=hint), exit_code=exit_code)
