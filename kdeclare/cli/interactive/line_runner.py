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
from kdeclare.cli.interactive.words import is_continued, parse_arguments
from kdeclare.cli.invocation import ShellContext
from kdeclare.cli.main import main
from kdeclare.cli.redaction import redact_arguments
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode

PROGRAM = "kdeclare"
SHELL_COMMANDS: Mapping[str, str] = {
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


class ShellExit(Exception):
    """The line says that it was the last."""


class LineRunner:
    """The lines of one shell."""

    def __init__(self, shared: ShellContext, console: Console) -> None:
        """console: that of the shell itself."""
        self._shared = shared
        self._console = console
        self._shell_commands: Mapping[str, Callable[[Sequence[str]], int]] = {
            "help": self._show_help,
            "clear": self._clear,
            "exit": self._leave,
            "quit": self._leave,
        }

    def run(self, line: str) -> int:
        """The exit code of a line; what went wrong has been said. Raises Leaving."""
        try:
            return self._run_words(parse_arguments(line))
        except KdeclareError as problem:
            return self._console.fail(problem.diagnostics, problem.exit_code)

    def _run_words(self, words: list[str]) -> int:
        if words[:1] == [PROGRAM]:
            words = words[1:] or ["--help"]
        if not words:
            return ExitCode.OK
        shell_command = self._shell_commands.get(words[0])
        return shell_command(words[1:]) if shell_command else self._run_command(words)

    def _run_command(self, words: Sequence[str], suffix: str = "") -> int:
        """more: what is to be said after it, if it is help that was asked for."""
        with _restore_process_state():
            if not _HELP_OPTIONS & set(words):
                return main(words, self._shared)
            with redirect_stdout(
                io.StringIO()
            ) as help_output:  # no command writes it, so no console pages it
                exit_code = main(words, self._shared)
        self._console.out(help_output.getvalue() + suffix)
        return exit_code

    def _show_help(self, words: Sequence[str]) -> int:
        if words and words[0] in SHELL_COMMANDS:
            self._console.out(f"{SHELL_COMMANDS[words[0]]}\n")
            return ExitCode.OK
        return self._run_command([*words, "--help"], "" if words else _HELP)

    def _clear(self, words: Sequence[str]) -> int:
        if sys.stdout.isatty() and self._console.style.on:
            self._console.out(_CLEAR, pages=False)
        return ExitCode.OK

    def _leave(self, words: Sequence[str]) -> int:
        raise ShellExit


@contextmanager
def _restore_process_state() -> Iterator[None]:
    """Put back what a command has changed in the process for itself: who logs, and who hears of Ctrl-C."""
    loggers = [logging.getLogger(name) for name in ("kdeclare", "kafka")]
    logger_states = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    is_main_thread = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if is_main_thread else ()
    signal_handlers = {number: signal.getsignal(number) for number in signals}
    try:
        yield
    finally:
        for logger, (handlers, level, propagate) in zip(loggers, logger_states, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
        for number, handler in signal_handlers.items():
            signal.signal(number, handler)


def run_script(source: Iterable[str], runner: LineRunner, console: Console) -> ExitCode:
    """Run what the lines of ``source`` say; the exit code of the one that failed, if one did.

    Whatever is not 0 has failed: a plan asked for its ``--detailed-exitcode`` too, as only who wants to
    stop at changes asks for that.
    """
    for number, line in join_continued_lines(source):
        try:
            exit_code = ExitCode(runner.run(line))
        except ShellExit:
            break
        if exit_code is not ExitCode.OK:
            return console.fail([_build_stopped_error(number, line, exit_code)], exit_code)
    return ExitCode.OK


def join_continued_lines(source: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines with the number of the first of what a backslash at the end has joined; they count from 1."""
    first_number, parts = 0, list[str]()
    for number, raw_line in enumerate(source, 1):
        text = raw_line.removesuffix("\n").removesuffix("\r")
        first_number = first_number if parts else number
        is_comment = not parts and text.lstrip().startswith("#")
        if is_continued(text) and not is_comment:
            parts.append(text[:-1])
            continue
        yield first_number, "".join((*parts, text))
        parts = []
    if parts:
        yield first_number, "".join(parts)


def _build_stopped_error(number: int, line: str, exit_code: ExitCode) -> Diagnostic:
    try:
        redacted = shlex.join(redact_arguments(parse_arguments(line)))
    except KdeclareError:
        redacted = ""  # it has been shown where it could not be read
    return error(
        "script-stopped",
        f"line {number}: ended with exit code {exit_code.value}",
        redacted,
        hint="Nothing after this line was run.",
    )
