"""Run the lines of a prompt or script in one process, one after another. Each line is a separate command."""

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
from kdeclare.core.stop_signals import STOP_SIGNALS

PROGRAM = "kdeclare"
SHELL_COMMANDS: Mapping[str, str] = {
    "help": "List the commands, or show help for one command, for example: help topic alter.",
    "clear": "Clear the screen.",
    "exit": "Leave the shell, like quit and Ctrl-D.",
    "quit": "Leave the shell.",
}
"""The commands that exist only in the shell."""

_HELP = """
Shell commands:
  help [COMMAND]   list the commands, or show help for one command
  clear            clear the screen
  exit, quit       leave the shell, like Ctrl-D

Each line is one command, quoted as in sh, with or without "kdeclare" in front.
\\ at the end of a line continues it, and # starts a comment. Tab completes words;
the arrow keys and Ctrl-R find earlier lines. Lines that begin with a space or
contain the value of a sensitive config key are not written to the history.
"""
_HELP_OPTIONS = frozenset({"-h", "--help"})
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


class ShellExit(Exception):
    """Raised by the commands that leave the shell."""


class LineRunner:
    """Runs the lines that are typed into one kdeclare shell."""

    def __init__(self, shared: ShellContext, console: Console) -> None:
        """console: the console of the shell itself."""
        self._shared = shared
        self._console = console
        self._shell_commands: Mapping[str, Callable[[Sequence[str]], int]] = {
            "help": self._show_help,
            "clear": self._clear,
            "exit": self._leave,
            "quit": self._leave,
        }

    def run(self, line: str) -> int:
        """Run a line, report errors and return the exit code. Raises ShellExit if the line ends the shell."""
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
        """Run a command. suffix: text to append if the command prints a help text."""
        with _restore_process_state():
            if not _HELP_OPTIONS & set(words):
                return main(words, self._shared)
            with redirect_stdout(
                io.StringIO()
            ) as help_output:  # typer writes the help directly to stdout, without the pager
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
    """Restore the log handlers and signal handlers of the process after a command has run."""
    loggers = [logging.getLogger(name) for name in ("kdeclare", "kafka")]
    logger_states = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    is_main_thread = threading.current_thread() is threading.main_thread()
    signals = STOP_SIGNALS if is_main_thread else ()
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
    """Run the lines of ``source`` until one fails. Return the exit code of the failed line, or OK.

    Every exit code except 0 is a failure. This includes exit code 2 of ``--detailed-exitcode``, because a
    script that passes this option should stop if there are changes.
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
    """Join each line that ends with a backslash with the next line.

    Yields each joined line with the number of its first line. Numbers start at 1.
    """
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
        redacted = f" ({shlex.join(redact_arguments(parse_arguments(line)))})"
    except KdeclareError:
        redacted = ""  # the parse error has already shown the line
    return error(
        "script-stopped",
        "Script stopped",
        f"Line {number}{redacted} ended with exit code {exit_code.value}. No later line was run.",
        hint="Correct the line and run the script again, or run only the remaining lines.",
    )
