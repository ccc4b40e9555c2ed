"""``kdeclare import``."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import Reach
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdeclare.core.resources.capabilities import LeftOut


_EPILOG = epilog(
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
    reach: Reach,
    console: Console,
) -> ExitCode:
    """Write a live cluster as manifests.

    With them, the next plan says "No changes.".
    """
    from kdeclare.app.authoring.import_live import import_cluster, write_manifests
    from kdeclare.report.elements.values import plural

    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    left_out: list[LeftOut] = []
    imported = import_cluster(workspace, match, left_out.extend)
    if not imported:
        unlike = f"nothing whose whole name '{match}' matches; internal topics are left out"
        console.note(f"There is {unlike if match else 'nothing to import'}.")
    if out is None:
        console.out("---\n".join(item.text for item in imported))
    else:
        write_manifests(imported, out)
        console.note(f"Wrote {plural(len(imported), 'manifest')} to {out}.")
    variables = sorted({name for item in imported for name in _VARIABLE.findall(item.text)})
    if variables:
        console.note(f"Secrets cannot be read. Set these variables before you plan: {', '.join(variables)}.")
    if said := _describe_left_out(left_out):
        console.note(said)
    return ExitCode.OK


_VARIABLE = re.compile(r"(?<!\$)\$\{env\.(\w+)\}")
"""A reference that an imported manifest has in place of a secret; ``$${`` is a text."""


def _describe_left_out(left_out: "Sequence[LeftOut]") -> str:
    """What is in no manifest, and why; empty where that is nothing."""
    from kdeclare.report.elements.values import listed, plural

    said = listed(f"{plural(left.count, left.one, left.many)} ({left.why})" for left in left_out)
    return f"Left out: {said}." if said else ""
