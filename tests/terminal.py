"""A person at a terminal: keys go in, and what the screen shows is looked at."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pexpect
import pyte

UP = "\x1b[A"
CTRL_C, CTRL_D = "\x03", "\x04"
_COLUMNS = 100


class AtTerminal:
    """``kdeclare shell`` on a pseudo-terminal of its own."""

    def __init__(self, folder: Path, *options: str, lines: int, **environ: str) -> None:
        self._screen = pyte.Screen(_COLUMNS, lines)
        self._stream = pyte.Stream(self._screen)
        # no terminal answers here when it is asked where its cursor is
        own = {"TERM": "xterm", "XDG_STATE_HOME": str(folder / ".state"), "PROMPT_TOOLKIT_NO_CPR": "1"}
        unset = {"NO_COLOR", "PAGER", "KDECLARE_PAGER", "LESS"}
        inherited = {name: value for name, value in os.environ.items() if name not in unset}
        self._process = pexpect.spawn(
            sys.executable,
            ["-m", "kdeclare", "shell", *options],
            cwd=folder,
            env=inherited | own | environ,
            dimensions=(lines, _COLUMNS),
            encoding="utf-8",
        )

    @property
    def screen(self) -> str:
        """What is to be seen."""
        return "\n".join(line.rstrip() for line in self._screen.display).strip("\n")

    def type(self, *keys: str) -> None:
        """Press keys."""
        for key in keys:
            self._process.send(key)

    def sees(self, text: str, seconds: float = 20) -> None:
        """Wait until it is on the screen."""
        deadline = time.monotonic() + seconds
        while text not in self.screen:
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.screen}"
            assert self.reads(), f"it ended without {text!r}:\n{self.screen}"

    def interrupts(self, then: str) -> None:
        """Press Ctrl-C, and again after a while: Python can miss one just before it begins to wait."""
        for seconds in (2, 2, 20):
            self.type(CTRL_C)
            with suppress(AssertionError):
                return self.sees(then, seconds)
        raise AssertionError(f"no {then!r} in:\n{self.screen}")

    def enter(self, line: str, *, then: str, seconds: float = 20) -> None:
        """Type a line on an empty screen, and wait for what it says and for the prompt after it."""
        self.type("\x0c")  # Ctrl-L: what was said before is no answer
        self.type(line, "\r")
        self.sees(then, seconds)
        self.prompts()

    def prompts(self) -> None:
        """Wait for an empty prompt."""
        deadline = time.monotonic() + 20
        while not self.screen.endswith(">"):
            assert time.monotonic() < deadline, f"no prompt in:\n{self.screen}"
            self.reads()

    def leaves(self) -> int:
        """Wait for the end; the exit code."""
        self._process.expect(pexpect.EOF, timeout=20)
        return int(self._process.wait())  # its terminal is gone a little before it is itself

    def end(self) -> None:
        """Whatever it does."""
        self._process.close(force=True)

    def reads(self) -> bool:
        """Look at what is new; False when it has ended."""
        try:
            self._stream.feed(self._process.read_nonblocking(65536, 0.1))
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        return True


@contextmanager
def at_terminal(folder: Path, *options: str, lines: int = 40, **environ: str) -> Iterator[AtTerminal]:
    """A shell for the length of a with block, at its first prompt."""
    shell = AtTerminal(folder, *options, lines=lines, **environ)
    try:
        shell.prompts()
        yield shell
    finally:
        shell.end()
