"""Exit codes of the commands (see docs/reference/exit-codes.md)."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit status of a command, for scripts."""

    OK = 0
    ERROR = 1
    CHANGES = 2
    DENIED = 3
    STALE = 4
    PARTIAL = 5
    LOCKED = 6
    USAGE = 64
    INTERRUPTED = 130
