"""Start, observe and end the processes of brokers and workers.

A process is identified by its pid, start time and command line, because the system reuses pids.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.sandbox.layout import write_atomically

_PROC = Path("/proc")
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """The data that identifies a started process.

    began: the start time, in a format that depends on the operating system. mark: an argument on the command
        line by which kdeclare recognizes the process.
    """

    pid: int
    began: str
    mark: str


@dataclass(frozen=True, slots=True)
class ObservedProcess:
    """The current state of a process.

    began: the start time, in a format that depends on the operating system. command: the command line; empty
    while the process is ending.
    """

    began: str
    command: str
    ended: bool


def spawn(command: Sequence[str], environment: Mapping[str, str], output: Path, mark: str) -> ProcessRecord:
    """Start a process in its own session, so that it continues after this process ends.

    output: the file to which stdout and stderr of the process are appended. mark: an element of ``command``
    that identifies the process.
    """
    with output.open("ab") as output_file:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output_file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # Detach from the process, which from now on is identified by its record.
    process.returncode = 0
    process_state = observe(process.pid)
    return ProcessRecord(process.pid, process_state.began if process_state else "", mark)


def observe(pid: int) -> ObservedProcess | None:
    """Return the process that currently has this pid; None if no process has the pid."""
    process_state = _observe_proc(pid) if (_PROC / "self" / "stat").exists() else _observe_ps(pid)
    if process_state is not None and process_state.ended:
        _reap(pid)
    return process_state


def is_alive(record: ProcessRecord) -> bool:
    """Whether the recorded process is still running. A different process with the same pid does not count."""
    process_state = observe(record.pid)
    if process_state is None or process_state.ended or process_state.began != record.began:
        return False
    return not process_state.command or record.mark in process_state.command


def send_signal(record: ProcessRecord, signal_number: signal.Signals) -> None:
    """Send a signal to the recorded process if it is still running."""
    if is_alive(record):
        try:
            os.kill(record.pid, signal_number)
        except ProcessLookupError:  # the process has just ended
            return


def await_exit(records: Iterable[ProcessRecord], seconds: float) -> tuple[ProcessRecord, ...]:
    """Wait at most ``seconds`` until all processes have ended. Return the processes still running."""
    return _await_exit(records, seconds, seconds)


def terminate(records: Iterable[ProcessRecord], patience: float, after_first: float) -> None:
    """Terminate the processes, and kill the processes that do not end in time.

    Processes are killed after ``patience`` seconds, or ``after_first`` seconds after the first of them has
    ended, whichever comes first.
    """
    remaining = tuple(records)
    for record in remaining:
        send_signal(record, signal.SIGTERM)
    remaining = _await_exit(remaining, patience, after_first)
    for record in remaining:
        send_signal(record, signal.SIGKILL)
    await_exit(remaining, 10)


def _await_exit(
    records: Iterable[ProcessRecord], seconds: float, after_first: float
) -> tuple[ProcessRecord, ...]:
    remaining = all_records = tuple(r for r in records if is_alive(r))
    deadline = time.monotonic() + seconds
    while remaining and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        previous, remaining = remaining, tuple(r for r in remaining if is_alive(r))
        if previous == all_records != remaining:
            deadline = min(deadline, time.monotonic() + after_first)
    return remaining


def write_record(record: ProcessRecord, path: Path) -> None:
    """Write the record of a process to a file."""
    content = {"pid": record.pid, "began": record.began, "mark": record.mark}
    write_atomically(path, json.dumps(content) + "\n")


def read_record(path: Path) -> ProcessRecord | None:
    """Read the record of a process from a file. Return None if the file is missing or not valid."""
    try:
        content = json.loads(path.read_text("utf-8"))
        return ProcessRecord(int(content["pid"]), str(content["began"]), str(content["mark"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _reap(pid: int) -> None:
    # A child of this process stays a zombie until its exit code is read.
    try:
        os.waitpid(pid, os.WNOHANG)
    except OSError:
        return


def _observe_proc(pid: int) -> ObservedProcess | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
        command = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    # The process name in parentheses can contain any characters, so the fields are counted from its end.
    fields = stat.rpartition(")")[2].split()
    state, threads, began = fields[0], int(fields[17]), fields[19]
    # In a killed JVM, the first thread can be a zombie while other threads still hold the ports.
    has_ended = state in ("Z", "X") and threads <= 1
    return ObservedProcess(began, os.fsdecode(command.replace(b"\0", b" ")), has_ended)


def _observe_ps(pid: int) -> ObservedProcess | None:
    completed = subprocess.run(
        ["ps", "-ww", "-o", "stat=,lstart=,command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    return parse_ps(completed.stdout) if completed.returncode == 0 else None


def parse_ps(text: str) -> ObservedProcess | None:
    """Parse one line of ``ps -o stat=,lstart=,command=``. The start time (lstart) has five words."""
    words = text.split(maxsplit=6)
    if len(words) < 6:
        return None
    command = words[6].rstrip("\n") if len(words) > 6 else ""
    return ObservedProcess(began=" ".join(words[1:6]), command=command, ended=words[0].startswith("Z"))
