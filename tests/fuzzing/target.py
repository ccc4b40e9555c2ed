"""Targets of fuzzers, and how one input is checked."""

import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import kdeclare
from kdeclare.core.diagnostics import KdeclareError

CPU_LIMIT_S = 2.0
"""The CPU time that one input may take. No input is longer than `MAX_INPUT_BYTES`."""
MAX_INPUT_BYTES = 64 * 1024
MEMORY_LIMIT_BYTES = 2 * 1024**3
"""How much the address space may grow after all modules are loaded."""

_PACKAGE = f"{Path(kdeclare.__file__).parent}/"

Mutator = Callable[[bytes, int], bytes]
"""Changes an input. The number is a seed: the same number makes the same change."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something that reads input of others.

    read: reads one input through the same functions as the commands. It raises `KdeclareError`, or one of
        ``accepted``, for an input that it refuses. Any other exception would be a traceback.
    make_seeds: returns valid inputs.
    mutate: changes an input so that it stays well-formed more often than after a change of single bytes.
    accepted: exceptions that a caller of ``read`` handles.
    """

    name: str
    read: Callable[[bytes], None]
    make_seeds: Callable[[], Sequence[bytes]]
    mutate: Mutator
    accepted: tuple[type[BaseException], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that a target does not handle.

    place: the exception and the last line of kdeclare in its traceback. Findings with the same place have the
        same cause.
    """

    target: str
    place: str
    details: str
    data: bytes


class InputTimeout(BaseException):
    """An input took too long. Not an Exception, so that no code handles it by accident."""


def check_input(target: Target, data: bytes) -> Finding | None:
    """Read one input, and return a finding if the target raises an unexpected exception or takes too long."""
    accepted: tuple[type[BaseException], ...] = (KdeclareError, *target.accepted)
    try:
        with _limit_cpu_time():
            target.read(data)
    except accepted:
        return None
    except (Exception, InputTimeout) as problem:  # noqa: BLE001  every other exception is a finding
        return Finding(target.name, _find_place(problem), "".join(traceback.format_exception(problem)), data)
    return None


def limit_memory() -> None:
    """Limit the address space of this process, so that an input that needs too much raises MemoryError."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        used = int(file.read().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_LIMIT_BYTES, hard))


@contextmanager
def _limit_cpu_time() -> Iterator[None]:
    """Raise InputTimeout after `CPU_LIMIT_S` of CPU time in this block. Other processes do not matter."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise InputTimeout(f"more than {CPU_LIMIT_S} s of CPU time")

    started = time.process_time()
    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    if time.process_time() - started > CPU_LIMIT_S:  # the time was spent in one call of C code
        raise InputTimeout(f"more than {CPU_LIMIT_S} s of CPU time")


def _find_place(problem: BaseException) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(_PACKAGE)] or list(frames)
    last = own[-1]
    return f"{type(problem).__name__} at {last.filename.removeprefix(_PACKAGE)}:{last.name}:{last.lineno}"
