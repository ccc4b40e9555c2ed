"""``kdeclare validate`` and ``kdeclare fmt``."""

from dataclasses import field
from pathlib import Path
from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.invocation import Invocation
from kdeclare.cli.options.option_groups import ProjectOptions
from kdeclare.cli.options.single_options import FindingsFormat, Paths
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

_EPILOG = build_epilog(
    "kdeclare validate manifests",
    "jsonnet -y topics.jsonnet | kdeclare validate -    manifests that another program writes",
    codes=(0, 1, 3, 64),
)


_FMT_EPILOG = build_epilog(
    "kdeclare fmt                       the project file, all manifests and all overlays",
    "kdeclare fmt --check               in CI: show the differences and fail",
    "kdeclare fmt manifests/shop fleet.yaml",
    "kdeclare fmt - < topic.yaml        for an editor: from standard input to standard output",
    codes=(0, 1, 64),
)


@dataclass(frozen=True, slots=True)
class ProjectFileOptions:
    """The option for the project file, for a command that uses no environment.

    line: the context of the command line. This field is not an option.
    """

    project: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Project file (default: kdeclare.yaml, if it exists)."),
    ] = None
    line: Invocation = field(default_factory=Invocation, kw_only=True)

    def find_project(self) -> Path | None:
        """Return the given project file, or else the project file of the kdeclare shell."""
        from kdeclare.app.workspace import WorkspaceOptions

        return self.line.options(WorkspaceOptions(self.project)).project


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    command(app, "validate", epilog=_EPILOG)(validate)
    command(app, "fmt", epilog=_FMT_EPILOG)(format_files)


def validate(
    paths: Paths = None,
    *,
    output: FindingsFormat = "text",
    setting: ProjectOptions,
    console: Console,
) -> ExitCode:
    """Check manifests without a cluster (to format them: fmt).

    Checks the syntax, fields, references, duplicates, config keys and contradictions, and reports all errors
    at once with their positions.
    """
    import os

    from kdeclare.app.authoring.validate import validate as check
    from kdeclare.cli.standard_input import read_manifest_input
    from kdeclare.report.outcome import validation_outcome

    options = setting.options()
    console.concerns(options.project, _get_category)
    given = read_manifest_input(paths, setting.line)
    view = check(options.project, options.env, given.paths, os.environ, given.stream, options.variables)
    outcome = validation_outcome(view)
    if console.output == "json":
        console.write_document(view)
    elif console.output == "sarif":
        from kdeclare.report.sarif import build_validation_sarif

        console.write_json(build_validation_sarif(view, console.checkout()))
    else:
        from kdeclare.report.elements.diagnostics_text import render_diagnostics

        diagnostics_output = render_diagnostics(view.diagnostics, console.style)
        paint = console.style.red if outcome.exit_code else console.style.green
        headline_label, colon, headline_rest = outcome.headline.partition(":")
        console.out(f"{diagnostics_output}\n" if diagnostics_output else "")
        console.out(f"{paint(headline_label + colon)}{headline_rest}\n")
    return outcome.exit_code


def _get_category() -> str:
    from kdeclare.report.sarif import VALIDATION_CATEGORY

    return VALIDATION_CATEGORY


def format_files(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Files or folders, or - for standard input (default: the project file, and the manifests "
            "and overlays of all environments).",
            show_default=False,
        ),
    ] = None,
    *,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Write no files. Show the differences, and exit with 1 if there are any."
        ),
    ] = False,
    setting: ProjectFileOptions,
    console: Console,
) -> ExitCode:
    """Write manifests in a uniform layout.

    Orders the fields (apiVersion, kind, metadata, forEach, spec), indents each level by two columns, and
    removes repeated blank lines and white space at the ends of lines. Comments are kept, and the meaning of a
    manifest never changes. Prints the names of the changed files. JSON files are not formatted.
    """
    from kdeclare.app.authoring.format_manifests import (
        build_unformatted_error,
        format_manifests,
        render_diff,
        write_formatted,
    )
    from kdeclare.cli.standard_input import read_manifest_input
    from kdeclare.report.elements.values import format_count

    given = read_manifest_input(paths, setting.line)
    if given.stream is not None:
        if given.paths:
            raise typer.BadParameter("'-' cannot be combined with other paths.", param_hint="PATH")
        return _format_stream(console, given.stream, check=check)
    formatted = format_manifests(setting.find_project(), given.paths)
    if check:
        console.out("".join(map(render_diff, formatted.edits)))
        errors = [build_unformatted_error(edit) for edit in formatted.edits]
    else:
        write_formatted(formatted)
        console.out("".join(f"{edit.file}\n" for edit in formatted.edits))
        errors = []
    errors += [problem for problem in formatted.diagnostics if problem.is_error]
    console.notices(problem for problem in formatted.diagnostics if not problem.is_error)
    if errors:
        return console.fail(errors, ExitCode.ERROR)
    verb = "are formatted" if check else f"read, {len(formatted.edits):,} of them changed"
    console.note(f"{format_count(formatted.count, 'file')} {verb}.")
    return ExitCode.OK


def _format_stream(console: Console, data: bytes, *, check: bool) -> ExitCode:
    from kdeclare.app.authoring.format_manifests import build_unformatted_error, format_stream, render_diff
    from kdeclare.manifests.editing.documents import FileEdit
    from kdeclare.manifests.syntax.files import STREAM

    text, notices = format_stream(data)
    console.notices(notices)
    edit = FileEdit(STREAM, data, text)
    if not check:
        console.out(text.decode("utf-8-sig"), pages=False)
    elif text != data:
        console.out(render_diff(edit))
        return console.fail([build_unformatted_error(edit)], ExitCode.ERROR)
    return ExitCode.OK
