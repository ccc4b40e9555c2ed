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
from kdeclare.core.secrets.child_environ import build_child_environ

_LESS_VARIABLES = {"LESS": "FRX"}
"""The default options of less: quit if the text fits (F), show colors (R), keep the screen (X).
"""


@dataclass(frozen=True, slots=True)
class Pager:
    """A program that shows text page by page. command: the command line of the program."""

    command: tuple[str, ...]

    def shows(self, text: str) -> bool:
        """Show the text in the pager if stdout is a terminal and the text does not fit on the screen.

        Return whether the pager showed the text. Raises KdeclareError if the pager cannot be started.
        """
        if not sys.stdout.isatty() or fits(text, *shutil.get_terminal_size()):
            return False
        sys.stdout.flush()
        try:
            with _ignore_interrupts():
                # users can quit the pager before it has read all text, and its exit code has no meaning
                subprocess.run(
                    self.command,
                    input=sanitize_for_terminal(text).encode(errors="backslashreplace"),
                    env=_LESS_VARIABLES | build_child_environ(os.environ),
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
    """Return the pager that KDECLARE_PAGER or, if that is not set, PAGER names. The default is ``less``.

    Return None on a dumb terminal, if the variable that is used is empty, or if neither variable is set and
    ``less`` is not installed. Raises KdeclareError if the value of the variable has an unclosed quote.
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
    """Return whether the text, followed by a line for a prompt, fits on the screen."""
    row_count = 0
    for line in text.splitlines():
        row_count += max(1, -(-_measure_width(line) // max(1, columns)))
        if row_count >= lines:
            return False
    return True


def _measure_width(line: str) -> int:
    """Return the number of columns of a line, not counting color codes."""
    from prompt_toolkit.utils import get_cwidth

    return sum(
        get_cwidth(part.partition("m")[2] if number else part)
        for number, part in enumerate(line.split("\x1b["))
    )


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C in this process, so that only the pager handles it.

    The signal handler is an empty function rather than SIG_IGN, because the pager would inherit SIG_IGN.
    """
    previous_handler = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)
