"""Output that is longer than the screen, shown in the person's pager."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kdeclare.cli.terminal_text import sanitize_for_terminal
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass

_LESS_VARIABLES = {"LESS": "FRX"}
"""How less is to be where nobody says: it leaves what fits, takes colours, and leaves the text behind."""


@dataclass(frozen=True, slots=True)
class Pager:
    """A program that shows text page by page. command: its command line."""

    command: tuple[str, ...]

    def shows(self, text: str) -> bool:
        """Show it, if stdout is a screen and the text longer; otherwise False. Raises KdeclareError."""
        if not sys.stdout.isatty() or fits(text, *shutil.get_terminal_size()):
            return False
        sys.stdout.flush()
        try:
            with _ignore_interrupts():
                # what a person leaves unread breaks no pipe, and how the program ends says nothing
                subprocess.run(
                    self.command,
                    input=sanitize_for_terminal(text).encode(errors="backslashreplace"),
                    env=_LESS_VARIABLES | os.environ,
                    check=False,
                )
        except OSError as problem:
            raise KdeclareError(
                error(
                    "no-pager",
                    "The pager cannot be started",
                    f"{shlex.join(self.command)}: {problem.strerror or problem}.",
                    hint="Set PAGER or KDECLARE_PAGER to a program that is there, or to nothing for none.",
                )
            ) from None
        return True


def find_pager(environ: Mapping[str, str]) -> Pager | None:
    """What KDECLARE_PAGER or PAGER names, else less; None where that is nothing, or the terminal is dumb.

    Raises KdeclareError for a name whose quotation has no end.
    """
    if environ.get("TERM", "dumb") == "dumb":
        return None
    command_line = environ.get("KDECLARE_PAGER", environ.get("PAGER"))
    if command_line is None:
        return Pager(("less",)) if shutil.which("less", path=environ.get("PATH")) else None
    try:
        command = tuple(shlex.split(command_line))
    except ValueError as problem:
        raise KdeclareError(
            error("no-pager", "The pager cannot be started", f"{command_line}: {problem}.")
        ) from None
    return Pager(command) if command else None


def fits(text: str, columns: int, lines: int) -> bool:
    """Whether a screen shows all of a text, and a prompt below it."""
    row_count = 0
    for line in text.splitlines():
        row_count += max(1, -(-_measure_width(line) // max(1, columns)))
        if row_count >= lines:
            return False
    return True


def _measure_width(line: str) -> int:
    """Columns that a line takes, its colours taken out."""
    from prompt_toolkit.utils import get_cwidth

    return sum(
        get_cwidth(part.partition("m")[2] if number else part)
        for number, part in enumerate(line.split("\x1b["))
    )


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Ctrl-C is for the pager. Not ignored, which the pager would inherit."""
    previous_handler = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)
