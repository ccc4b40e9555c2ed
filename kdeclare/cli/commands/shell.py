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
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import Reach
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.cli.line import Shared


_EPILOG = epilog(
    "kdeclare shell                                 the project's cluster",
    "kdeclare shell --bootstrap-server broker:9092  any cluster",
    "kdeclare shell < commands.txt                  a script; so does kdeclare shell commands.txt",
    codes=(0, 1, 2, 3, 4, 5, 6, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
    command(app, "shell", epilog=_EPILOG)(shell)


def shell(
    script: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Run the lines of this file.", show_default=False),
    ] = None,
    *,
    reach: Reach,
    console: Console,
) -> ExitCode:
    """Type commands at a prompt, over one connection.

    The commands are those of the command line, without "kdeclare" before them. The options given here
    hold for every line that does not say otherwise.

    Without a terminal, or with FILE, the lines are a script: it stops at the first line whose exit code is
    not 0, names it, and exits with that code. Of lines from stdin nobody can be asked: give them --yes.
    """
    from kdeclare.app.connections import KeptConnections
    from kdeclare.cli.line import Shared

    if reach.line.shared is not None:
        raise KdeclareError(
            error("shell-in-shell", "This is the shell already", hint="Type the command by itself."),
            exit_code=ExitCode.USAGE,
        )
    if not console.verbose:
        # between the lines, a connection that is kept would tell of its own troubles
        logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
    connections = KeptConnections()
    shared = Shared(reach.given(), connections, console.talk)
    try:
        if script is None and sys.stdin.isatty():
            return _at_the_prompt(shared, console)
        if script is not None:
            return _through(_read(script), shared, console)
        with _stdin_apart() as lines:
            return _through(lines, shared, console)
    finally:
        connections.close()


def _at_the_prompt(shared: "Shared", console: Console) -> ExitCode:
    from dataclasses import replace

    from kdeclare.cli.interactive.session import Session
    from kdeclare.cli.pager import pager_of

    pager = pager_of(os.environ)
    paged = Console(console.talk, console.output, console.command, pager)
    return Session(replace(shared, pager=pager), paged).run()


def _through(lines: Iterable[str], shared: "Shared", console: Console) -> ExitCode:
    from kdeclare.cli.interactive.lines import Lines, run_script

    return run_script(lines, Lines(shared, console), console)


def _read(file: Path) -> list[str]:
    """The lines of a script. Raises KdeclareError."""
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        why = "It is not UTF-8 text" if isinstance(problem, ValueError) else problem.strerror or str(problem)
        raise KdeclareError(error("unreadable-file", "The file cannot be read", f"{file}: {why}.")) from None


@contextmanager
def _stdin_apart() -> Iterator[TextIO]:
    """The lines of stdin, kept from the commands: none of them takes the rest of a script for an answer."""
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):  # no file at all
        lines, sys.stdin = sys.stdin, io.StringIO()
        try:
            yield lines
        finally:
            sys.stdin = lines
        return
    with os.fdopen(os.dup(descriptor), encoding="utf-8", errors="surrogateescape") as lines:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, descriptor)
        os.close(nothing)
        try:
            yield lines
        finally:
            os.dup2(lines.fileno(), descriptor)
