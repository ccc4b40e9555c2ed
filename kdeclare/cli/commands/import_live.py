"""``kdeclare import``."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options import ConnectionOptions
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdeclare.core.resources.manifest_capabilities import (
        OmittedObjects,
    )


_EPILOG = build_epilog(
    "kdeclare import --out manifests              everything, one file a resource",
    "kdeclare import --match 'payments\\..*'       some of it, to stdout",
    codes=(0, 1, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
    command(app, "import", epilog=_EPILOG)(import_)


def import_(
    *,
    match: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="Only resources whose whole name it matches (default: all)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Write files there, overwriting nothing (default: to stdout)."
        ),
    ] = None,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Write a live cluster as manifests.

    With them, the next plan says "No changes.".
    """
    from kdeclare.app.authoring.import_live import import_cluster, write_manifests
    from kdeclare.report.elements.values import format_count

    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    left_out: list[OmittedObjects] = []
    results = import_cluster(workspace, match, left_out.extend)
    if not results:
        explanation = f"nothing whose whole name '{match}' matches; internal topics are left out"
        console.note(f"There is {explanation if match else 'nothing to import'}.")
    if out is None:
        console.out("---\n".join(item.text for item in results))
    else:
        write_manifests(results, out)
        console.note(f"Wrote {format_count(len(results), 'manifest')} to {out}.")
    variables = sorted({name for item in results for name in _VARIABLE.findall(item.text)})
    if variables:
        console.note(f"Secrets cannot be read. Set these variables before you plan: {', '.join(variables)}.")
    if left_out_text := _describe_left_out(left_out):
        console.note(left_out_text)
    return ExitCode.OK


_VARIABLE = re.compile(r"(?<!\$)\$\{env\.(\w+)\}")
"""A reference that an imported manifest has in place of a secret; ``$${`` is a text."""


def _describe_left_out(left_out: "Sequence[OmittedObjects]") -> str:
    """What is in no manifest, and why; empty where that is nothing."""
    from kdeclare.report.elements.values import format_count, join_nonempty

    descriptions = join_nonempty(
        f"{format_count(left.count, left.one, left.many)} ({left.why})" for left in left_out
    )
    return f"Left out: {descriptions}." if descriptions else ""
