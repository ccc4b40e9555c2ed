"""Lines from a file or a pipe, to the first that fails."""

import shlex
from collections.abc import Iterable, Iterator

from kdeclare.cli.console import Console
from kdeclare.cli.interactive.lines import Leaving, Lines
from kdeclare.cli.interactive.words import arguments, is_continued
from kdeclare.cli.redaction import without_secrets
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exits import ExitCode


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
