"""``kdeclare import``."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions
from kdeclare.cli.options.option_values import parse_pairs
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdeclare.app.authoring.import_live import ImportResult
    from kdeclare.app.workspace import Workspace
    from kdeclare.core.resources.manifest_capabilities import (
        OmittedObjects,
    )


_EPILOG = build_epilog(
    "kdeclare import --out manifests              all resources, one file per resource",
    "kdeclare import --match 'payments\\..*'       some resources, to stdout",
    "kdeclare import --factor-defaults --out manifests  with common values in Defaults",
    "kdeclare import --unmanaged --label team=checkout --out manifests  what the project does not manage",
    codes=(0, 1, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "import", epilog=_EPILOG)(import_)


def import_(
    *,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="Only resources whose whole name matches this regular expression (default: all).",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write the manifests to this folder, without overwriting files (default: stdout).",
        ),
    ] = None,
    include_declared: Annotated[
        bool,
        typer.Option("--include-declared", help="Include resources that the project already declares."),
    ] = False,
    unmanaged: Annotated[
        bool,
        typer.Option("--unmanaged", help="Only resources that the project neither declares nor owns."),
    ] = False,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Add this label to each manifest. Repeatable."),
    ] = None,
    factor_defaults: Annotated[
        bool,
        typer.Option(
            "--factor-defaults",
            help="Move the values that most resources of a kind have in common to Defaults manifests.",
        ),
    ] = False,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Generate manifests from a cluster (from files: convert).

    Resources that the project already declares are left out. A plan with the generated manifests reports
    "No changes."
    """
    from kdeclare.app.authoring.import_live import (
        ALREADY_DECLARED,
        ALREADY_OWNED,
        EXCLUDED,
        import_cluster,
        write_manifests,
    )
    from kdeclare.report.elements.values import format_count

    if unmanaged and include_declared:
        raise typer.BadParameter("cannot be combined with --include-declared.", param_hint="--unmanaged")
    if factor_defaults and include_declared:
        raise typer.BadParameter(
            "cannot be combined with --include-declared.", param_hint="--factor-defaults"
        )
    labels = parse_pairs("--label", label)
    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    left_out: list[OmittedObjects] = []
    results = import_cluster(
        workspace,
        match,
        left_out.extend,
        include_declared=include_declared,
        include_owned=not unmanaged,
        labels=labels,
    )
    if factor_defaults:
        results = _move_common_values(workspace, results, out, console)
    if not results and not any(item.why in (ALREADY_DECLARED, ALREADY_OWNED, EXCLUDED) for item in left_out):
        no_match = f"No resource has a name that fully matches '{match}'. Internal topics are not imported."
        console.note(no_match if match else "There is nothing to import.")
    if out is None:
        console.out("---\n".join(item.text for item in results))
    else:
        write_manifests(results, out)
        console.note(f"Wrote {format_count(len(results), 'manifest')} to {out}.")
    lines = (line for item in results for line in item.text.splitlines())
    # Variables in comments are only examples.
    variables = sorted(
        {name for line in lines if not line.lstrip().startswith("#") for name in _VARIABLE.findall(line)}
    )
    if variables:
        console.note(
            "The values of secrets cannot be read from the cluster. "
            f"Set these environment variables before you plan: {', '.join(variables)}."
        )
    if left_out_text := _describe_left_out(left_out):
        console.note(left_out_text)
    return ExitCode.OK


def _move_common_values(
    workspace: "Workspace", imported: "Sequence[ImportResult]", out: Path | None, console: Console
) -> "tuple[ImportResult, ...]":
    """Move common values to Defaults manifests, and report what was moved."""
    from kdeclare.app.authoring.import_defaults import move_common_values
    from kdeclare.report.elements.values import format_count

    moved = move_common_values(workspace, imported, out)
    for item in moved.created:
        values = format_count(item.value_count, "common value")
        console.note(f"{item.id} has {values} of {item.resource_count} {item.kind} manifests.")
    for kind in moved.unchanged_kinds:
        console.note(
            f"The common values of the {kind} manifests were not moved to Defaults, because the move "
            "would change what the manifests declare."
        )
    if imported and not moved.created and not moved.unchanged_kinds:
        console.note(
            "There are no common values for Defaults. A value is common if more than half, and at least "
            "three, of the imported resources of a kind have it."
        )
    return moved.results


_VARIABLE = re.compile(r"(?<!\$)\$\{env\.(\w+)\}")
"""Matches ``${env.NAME}`` in an imported manifest, but not ``$${env.NAME}``, which is literal text."""


def _describe_left_out(left_out: "Sequence[OmittedObjects]") -> str:
    """Return a sentence about the objects that were not imported, with counts and reasons; empty if none."""
    from kdeclare.report.elements.values import format_count, join_nonempty

    descriptions = join_nonempty(
        f"{format_count(left.count, left.one, left.many)} ({left.why})" for left in left_out
    )
    return f"Left out: {descriptions}." if descriptions else ""
