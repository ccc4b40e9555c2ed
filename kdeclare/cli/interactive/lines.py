"""Running one line after the other in one process, each as if it were alone, from a person or a script."""

import io
import logging
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout

from kdeclare.cli.console import Console
from kdeclare.cli.interactive.words import arguments, is_continued
from kdeclare.cli.line import Shared
from kdeclare.cli.main import main
from kdeclare.cli.redaction import without_secrets
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode

PROGRAM = "kdeclare"
ABOUT: Mapping[str, str] = {
    "help": "Say what there is; of a command, how it goes: help topic alter.",
    "clear": "Clear the screen.",
    "exit": "Leave; so do quit and Ctrl-D.",
    "quit": "Leave.",
}
"""What a shell has beyond the commands."""

_HELP = """
In the shell, beyond the commands:
  help [COMMAND]   what there is, or how a command goes
  clear            clear the screen
  exit, quit       leave; so does Ctrl-D

A line is one command, with or without "kdeclare" before it, quoted as in sh;
\\ at its end continues it, # begins a comment. Tab completes; the arrow keys and
Ctrl-R find earlier lines. A line that begins with a space, or holds the value
of a sensitive config key, is not written into the history.
"""
_HELP_OPTIONS = frozenset({"-h", "--help"})
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


class Leaving(Exception):
    """The line says that it was the last."""


class Lines:
    """The lines of one shell."""

    def __init__(self, shared: Shared, console: Console) -> None:
        """console: that of the shell itself."""
        self._shared = shared
        self._console = console
        self._own: Mapping[str, Callable[[Sequence[str]], int]] = {
            "help": self._help,
            "clear": self._clear,
            "exit": self._leave,
            "quit": self._leave,
        }

    def run(self, line: str) -> int:
        """The exit code of a line; what went wrong has been said. Raises Leaving."""
        try:
            return self._ran(arguments(line))
        except KdeclareError as problem:
            return self._console.fail(problem.diagnostics, problem.exit_code)

    def _ran(self, words: list[str]) -> int:
        if words[:1] == [PROGRAM]:
            words = words[1:] or ["--help"]
        if not words:
            return ExitCode.OK
        own = self._own.get(words[0])
        return own(words[1:]) if own else self._command(words)

    def _command(self, words: Sequence[str], more: str = "") -> int:
        """more: what is to be said after it, if it is help that was asked for."""
        with _as_it_was():
            if not _HELP_OPTIONS & set(words):
                return main(words, self._shared)
            with redirect_stdout(io.StringIO()) as helping:  # no command writes it, so no console pages it
                code = main(words, self._shared)
        self._console.out(helping.getvalue() + more)
        return code

    def _help(self, words: Sequence[str]) -> int:
        if words and words[0] in ABOUT:
            self._console.out(f"{ABOUT[words[0]]}\n")
            return ExitCode.OK
        return self._command([*words, "--help"], "" if words else _HELP)

    def _clear(self, words: Sequence[str]) -> int:
        if sys.stdout.isatty() and self._console.style.on:
            self._console.out(_CLEAR, pages=False)
        return ExitCode.OK

    def _leave(self, words: Sequence[str]) -> int:
        raise Leaving


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Put back what a command has changed in the process for itself: who logs, and who hears of Ctrl-C."""
    loggers = [logging.getLogger(name) for name in ("kdeclare", "kafka")]
    logged = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    handles = threading.current_thread() is threading.main_thread()
    heard = (signal.SIGINT, signal.SIGTERM) if handles else ()
    at_signals = {number: signal.getsignal(number) for number in heard}
    try:
        yield
    finally:
        for logger, (handlers, level, propagate) in zip(loggers, logged, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
        for number, handler in at_signals.items():
            signal.signal(number, handler)


def run_script(source: Iterable[str], lines: Lines, console: Console) -> ExitCode:
    """Run what the lines of ``source`` say; the exit code of the one that failed, if one did.

    Whatever is not 0 has failed: a plan asked for its ``--detailed-exitcode`` too, as only who wants to
    stop at changes asks for that.
    """
    for number, line in logical_lines(source):
        try:
            code = ExitCode(lines.run(line))
        except Leaving:
            break
        if code is not ExitCode.OK:
            return console.fail([_stopped(number, line, code)], code)
    return ExitCode.OK


def logical_lines(source: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines with the number of the first of what a backslash at the end has joined; they count from 1."""
    begun, parts = 0, list[str]()
    for number, physical in enumerate(source, 1):
        text = physical.removesuffix("\n").removesuffix("\r")
        begun = begun if parts else number
        is_comment = not parts and text.lstrip().startswith("#")
        if is_continued(text) and not is_comment:
            parts.append(text[:-1])
            continue
        yield begun, "".join((*parts, text))
        parts = []
    if parts:
        yield begun, "".join(parts)


def _stopped(number: int, line: str, code: ExitCode) -> Diagnostic:
    try:
        shown = shlex.join(without_secrets(arguments(line)))
    except KdeclareError:
        shown = ""  # it has been shown where it could not be read
    return error(
        "script-stopped",
        f"line {number}: ended with exit code {code.value}",
        shown,
        hint="Nothing after this line was run.",
    )
