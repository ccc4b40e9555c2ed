"""Broker processes: starting them, and knowing them again by more than a pid, which gets reused."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kdeclare.core.frozen import dataclass
from kdeclare.sandbox.layout import write_whole

_PROC = Path("/proc")
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Recorded:
    """A process that was started: its pid, when it began (opaque), and words of its command line."""

    pid: int
    began: str
    mark: str


@dataclass(frozen=True, slots=True)
class Observed:
    """A process as the system shows it now. Its command line is empty while it is dying."""

    began: str
    command: str
    ended: bool


def spawn(command: Sequence[str], environment: Mapping[str, str], output: Path, mark: str) -> Recorded:
    """Start a process in a session of its own, so that it outlives this one.

    Both its outputs go to the end of the file ``output``; ``mark`` has to be one of its arguments.
    """
    with output.open("ab") as sink:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # Let go of it: it is known by its record from here on, also to other processes.
    process.returncode = 0
    observed = observe(process.pid)
    return Recorded(process.pid, observed.began if observed else "", mark)


def observe(pid: int) -> Observed | None:
    """What runs under this pid now, or None."""
    now = _observe_proc(pid) if (_PROC / "self" / "stat").exists() else _observe_ps(pid)
    if now is not None and now.ended:
        _reap(pid)
    return now


def is_alive(recorded: Recorded) -> bool:
    """Whether the recorded process itself is still there; another one with its pid does not count."""
    now = observe(recorded.pid)
    if now is None or now.ended or now.began != recorded.began:
        return False
    return not now.command or recorded.mark in now.command


def send(recorded: Recorded, number: signal.Signals) -> None:
    """Signal the process if it is still the recorded one."""
    if is_alive(recorded):
        try:
            os.kill(recorded.pid, number)
        except ProcessLookupError:  # it ended in between
            return


def wait_gone(recorded: Iterable[Recorded], seconds: float) -> tuple[Recorded, ...]:
    """Wait until all have ended, at most so long. Return those that have not."""
    return _wait_gone(recorded, seconds, seconds)


def end(recorded: Iterable[Recorded], patience: float, after_first: float) -> None:
    """Terminate the processes, and kill those that do not end.

    That is after ``patience`` seconds, or ``after_first`` seconds after the first of them ended.
    """
    left = tuple(recorded)
    for one in left:
        send(one, signal.SIGTERM)
    left = _wait_gone(left, patience, after_first)
    for one in left:
        send(one, signal.SIGKILL)
    wait_gone(left, 10)


def _wait_gone(recorded: Iterable[Recorded], seconds: float, after_first: float) -> tuple[Recorded, ...]:
    left = all_of_them = tuple(r for r in recorded if is_alive(r))
    deadline = time.monotonic() + seconds
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        before, left = left, tuple(r for r in left if is_alive(r))
        if before == all_of_them != left:
            deadline = min(deadline, time.monotonic() + after_first)
    return left


def save(recorded: Recorded, path: Path) -> None:
    """Write the record of a process."""
    content = {"pid": recorded.pid, "began": recorded.began, "mark": recorded.mark}
    write_whole(path, json.dumps(content) + "\n")


def load(path: Path) -> Recorded | None:
    """The record of a process, or None where there is no usable one."""
    try:
        content = json.loads(path.read_text("utf-8"))
        return Recorded(int(content["pid"]), str(content["began"]), str(content["mark"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _reap(pid: int) -> None:
    # A child of this very process stays a zombie until somebody asks for its exit code.
    try:
        os.waitpid(pid, os.WNOHANG)
    except OSError:
        return


def _observe_proc(pid: int) -> Observed | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
        command = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    # The name in parentheses can hold anything; the fields after it are fixed.
    fields = stat.rpartition(")")[2].split()
    state, threads, began = fields[0], int(fields[17]), fields[19]
    # The first thread of a killed JVM is a zombie before the others have let go of the ports.
    ended = state in ("Z", "X") and threads <= 1
    return Observed(began, os.fsdecode(command.replace(b"\0", b" ")), ended)


def _observe_ps(pid: int) -> Observed | None:
    done = subprocess.run(
        ["ps", "-ww", "-o", "stat=,lstart=,command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    return parse_ps(done.stdout) if done.returncode == 0 else None


def parse_ps(text: str) -> Observed | None:
    """Read one line of ``ps -o stat=,lstart=,command=``; lstart is five words."""
    words = text.split(maxsplit=6)
    if len(words) < 6:
        return None
    command = words[6].rstrip("\n") if len(words) > 6 else ""
    return Observed(began=" ".join(words[1:6]), command=command, ended=words[0].startswith("Z"))
