"""Show output that is longer than the screen in the user's pager."""

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
"""Default options of less: quit if the text fits on the screen, show colors, leave the text on the screen."""


@dataclass(frozen=True, slots=True)
class Pager:
    """A program that shows text page by page. command: its command line."""

    command: tuple[str, ...]

    def shows(self, text: str) -> bool:
        """Show the text if stdout is a terminal too small for it, and return whether that was the case.

        Raises KdeclareError if the pager cannot be started.
        """
        if not sys.stdout.isatty() or fits(text, *shutil.get_terminal_size()):
            return False
        sys.stdout.flush()
        try:
            with _ignore_interrupts():
                # quitting the pager early is not a broken pipe, and its exit code has no meaning
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
                    hint="Set PAGER or KDECLARE_PAGER to an installed program, or to an empty value to use "
                    "no pager.",
                )
            ) from None
        return True


def find_pager(environ: Mapping[str, str]) -> Pager | None:
    """Return the pager that KDECLARE_PAGER or PAGER names, less by default.

    None if the variable is empty, if less is not installed, and on a dumb terminal. Raises KdeclareError for
    a variable with an unclosed quote.
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
            error(
                "no-pager",
                "The pager cannot be started",
                f"{command_line}: {problem}.",
                hint="Correct the quotes in KDECLARE_PAGER or PAGER.",
            )
        ) from None
    return Pager(command) if command else None


def fits(text: str, columns: int, lines: int) -> bool:
    """Return whether the whole text and a prompt below it fit on the screen."""
    row_count = 0
    for line in text.splitlines():
        row_count += max(1, -(-_measure_width(line) // max(1, columns)))
        if row_count >= lines:
            return False
    return True


def _measure_width(line: str) -> int:
    """Return the columns that a line takes, not counting its color codes."""
    from prompt_toolkit.utils import get_cwidth

    return sum(
        get_cwidth(part.partition("m")[2] if number else part)
        for number, part in enumerate(line.split("\x1b["))
    )


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Leave Ctrl-C to the pager. The handler is empty, because the pager would inherit SIG_IGN."""
    previous_handler = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)
