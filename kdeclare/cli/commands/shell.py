"""``kdeclare shell``."""

import io
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.cli.invocation import ShellContext


_EPILOG = build_epilog(
    "kdeclare shell                                 use the cluster of the project",
    "kdeclare shell --bootstrap-server broker:9092  connect to a different cluster",
    "kdeclare shell < commands.txt                  run a script, like kdeclare shell commands.txt",
    codes=(0, 1, 2, 3, 4, 5, 6, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "shell", epilog=_EPILOG)(shell)


def shell(
    script: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Script with one command per line (default: a prompt).", show_default=False
        ),
    ] = None,
    *,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Run commands at a prompt over one connection.

    Type the same commands as on the command line, without "kdeclare" in front. The options of the shell apply
    to every line, unless the line overrides them.

    With FILE, or if standard input is not a terminal, the lines are a script. The script stops at the first
    line whose exit code is not 0, reports the line and exits with the same code. If the script comes from
    standard input, its commands cannot ask for confirmation and need --yes.
    """
    from kdeclare.app.connections import ConnectionCache
    from kdeclare.cli.invocation import ShellContext

    if reach.line.shared is not None:
        raise KdeclareError(
            error(
                "shell-in-shell",
                "Already in the shell",
                "A kdeclare shell cannot be started inside a kdeclare shell.",
                hint="Type commands directly at this prompt, or leave the shell with 'exit' first.",
            ),
            exit_code=ExitCode.USAGE,
        )
    if not console.verbose:
        # Otherwise, log messages of the shared connection would appear between the lines.
        logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
    cache = ConnectionCache()
    shell_context = ShellContext(reach.collect_options(), cache, console.output_options)
    try:
        if script is None and sys.stdin.isatty():
            return _run_prompt(shell_context, console)
        if script is not None:
            return _run_lines(_read_script(script), shell_context, console)
        with _detach_stdin() as lines:
            return _run_lines(lines, shell_context, console)
    finally:
        cache.close()


def _run_prompt(shell_context: "ShellContext", console: Console) -> ExitCode:
    from dataclasses import replace

    from kdeclare.cli.interactive.session import Session
    from kdeclare.cli.pager import find_pager

    pager = find_pager(os.environ)
    paged_console = Console(console.output_options, console.output, console.command, pager)
    return Session(replace(shell_context, pager=pager), paged_console).run()


def _run_lines(lines: Iterable[str], shell_context: "ShellContext", console: Console) -> ExitCode:
    from kdeclare.cli.interactive.line_runner import LineRunner, run_script

    return run_script(lines, LineRunner(shell_context, console), console)


def _read_script(file: Path) -> list[str]:
    """Read the lines of a script. Raises KdeclareError."""
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = (
            "The file is not UTF-8" if isinstance(problem, ValueError) else problem.strerror or str(problem)
        )
        raise KdeclareError(
            error(
                "unreadable-file",
                "The script cannot be read",
                f"{file}: {reason}.",
                hint="Check the path, the permissions and the encoding (UTF-8) of the script.",
            )
        ) from None


@contextmanager
def _detach_stdin() -> Iterator[TextIO]:
    """Yield the lines of a script from stdin. Commands get an empty stdin, so they cannot read the script."""
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):  # stdin is not a file
        lines, sys.stdin = sys.stdin, io.StringIO()
        try:
            yield lines
        finally:
            sys.stdin = lines
        return
    with os.fdopen(os.dup(descriptor), encoding="utf-8", errors="surrogateescape") as lines:
        null_descriptor = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null_descriptor, descriptor)
        os.close(null_descriptor)
        try:
            yield lines
        finally:
            os.dup2(lines.fileno(), descriptor)
