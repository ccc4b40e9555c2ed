"""Exit codes of the commands (contract, docs/reference/exit-codes.md)."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means to a script."""

    OK = 0
    ERROR = 1
    CHANGES = 2
    DENIED = 3
    STALE = 4
    PARTIAL = 5
    LOCKED = 6
    USAGE = 64
    INTERRUPTED = 130
