"""``kdeclare convert``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.single_options import Format
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare convert --from strimzi topics.yaml --out manifests    one file per resource",
    "kdeclare convert --from strimzi topics.yaml                    to stdout",
    codes=(0, 1, 64),
)

SourceFormat = Literal["strimzi", "terraform", "topicctl", "kafka-gitops", "julieops", "jikkou"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "convert", epilog=_EPILOG)(convert)


def convert(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="The files to convert.", show_default=False),
    ],
    *,
    source_format: Annotated[
        SourceFormat,
        typer.Option(
            "--from",
            metavar="strimzi|terraform|topicctl|kafka-gitops|julieops|jikkou",
            help="The tool whose files are converted.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write the manifests to this folder, without overwriting files (default: stdout).",
        ),
    ] = None,
    output: Format = "text",
    console: Console,
) -> ExitCode:
    """Convert files of other tools into manifests.

    Lists everything that the manifests do not contain, with its position and the reason. Comments are lost.
    """
    from kdeclare.app.authoring.convert import convert as convert_files
    from kdeclare.app.authoring.convert import write_converted
    from kdeclare.report.conversion import render_gaps
    from kdeclare.report.elements.values import format_count

    view = convert_files(source_format, files)
    if out is not None:
        write_converted(view, out)
    if console.output == "json":
        console.write_document(view)
    elif out is None:
        console.out("---\n".join(item.text for item in view.manifests))
    if out is not None:
        console.note(f"Wrote {format_count(len(view.manifests), 'manifest')} to {out}.")
    elif not view.manifests:
        console.note("The files contain nothing that kdeclare can declare.")
    if view.gaps and console.output != "json":
        console.say(f"Not converted, or converted with a change ({len(view.gaps)}):")
        for line in render_gaps(view):
            console.say(f"  {line}")
    if view.variables:
        console.note(f"Set these environment variables before you plan: {', '.join(view.variables)}.")
    return ExitCode.OK
