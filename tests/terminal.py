"""A user at a terminal: sends keys and reads the screen."""

import os
import signal
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


class TerminalSession:
    """``kdeclare shell`` on its own pseudo-terminal."""

    def __init__(self, folder: Path, *options: str, lines: int, **environ: str) -> None:
        self._screen = pyte.Screen(_COLUMNS, lines)
        self._stream = pyte.Stream(self._screen)
        # there is no terminal that could report the cursor position
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
        """The visible text."""
        return "\n".join(line.rstrip() for line in self._screen.display).strip("\n")

    def type(self, *keys: str) -> None:
        """Press keys."""
        for key in keys:
            self._process.send(key)

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Wait until this text is on the screen."""
        deadline = time.monotonic() + seconds
        while text not in self.screen:
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.screen}"
            assert self.read_output(), f"it ended without {text!r}:\n{self.screen}"

    def interrupt(self, then: str) -> None:
        """Press Ctrl-C, repeatedly if needed: Python can miss one just before it starts to wait."""
        for seconds in (2, 2, 60):
            self.type(CTRL_C)
            with suppress(AssertionError):
                return self.wait_for(then, seconds)
        raise AssertionError(f"no {then!r} in:\n{self.screen}")

    def enter(self, line: str, *, then: str, seconds: float = 60) -> None:
        """Type a line on an empty screen, and wait for its output and for the next prompt."""
        self.type("\x0c")  # Ctrl-L, so that earlier output does not count
        self.type(line, "\r")
        self.wait_for(then, seconds)
        self.wait_for_prompt()

    def wait_for_prompt(self) -> None:
        """Wait for an empty prompt."""
        deadline = time.monotonic() + 60
        while not self.screen.endswith(">"):
            assert time.monotonic() < deadline, f"no prompt in:\n{self.screen}"
            self.read_output()

    def wait_for_exit(self) -> int:
        """Wait for the end and return the exit code."""
        self._process.expect(pexpect.EOF, timeout=60)
        return int(self._process.wait())  # its terminal closes slightly before the process ends

    def kill(self) -> None:
        """Kill the shell, whatever it is doing, and wait until it has ended."""
        if self._process.isalive():
            self._process.kill(signal.SIGKILL)
            self._process.wait()
        self._process.close()

    def read_output(self) -> bool:
        """Read new output; return False after the end of the shell."""
        try:
            self._stream.feed(self._process.read_nonblocking(65536, 0.1))
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        return True


@contextmanager
def open_terminal(folder: Path, *options: str, lines: int = 40, **environ: str) -> Iterator[TerminalSession]:
    """A shell for the duration of a with block, at its first prompt."""
    shell = TerminalSession(folder, *options, lines=lines, **environ)
    try:
        shell.wait_for_prompt()
        yield shell
    finally:
        shell.kill()
