"""The ``kdeclare`` command, and ``python -m kdeclare``."""

import gc
import os
import signal
import sys
from typing import NoReturn

from kdeclare.core.stop_signals import STOP_SIGNALS

_GC_THRESHOLD = 500_000
"""Number of new objects that triggers a garbage collection.

A command creates many long-lived objects and hardly any reference cycles. With Python's default, garbage
collection takes a fifth of the time of a plan, and it starts while modules are still being imported.
"""


def run() -> None:
    """Run the command line.

    Ctrl-C also works while modules are still being imported. The other `STOP_SIGNALS` have the same effect as
    Ctrl-C, so that a stopped command releases its lease and deletes its temporary files.
    """
    gc.set_threshold(_GC_THRESHOLD)
    try:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _interrupt)
        _replace_closed_streams()
        from kdeclare.cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        sys.exit(130)  # `ExitCode.INTERRUPTED`, which may not have been imported yet


def _replace_closed_streams() -> None:
    """Open the null device for each standard stream that was closed when the process started.

    Otherwise, the next file that is opened, such as the state file, gets the file descriptor of the closed
    stream. A program that this process starts would then write its messages to that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor <= number:  # the lowest free descriptor is that of the stream
                os.set_inheritable(descriptor, True)
            setattr(sys, name, open(descriptor, "r" if number == 0 else "w"))  # noqa: PTH123, SIM115


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()
