"""``kdeclare doctor``."""

from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions
from kdeclare.cli.options.single_options import Format
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare doctor                                        this project and its cluster",
    "kdeclare doctor --bootstrap-server broker:9093 --command-config client.properties",
    "kdeclare doctor --kind Acl --kind ScramUser            permissions for kinds that are not declared yet",
    codes=(0, 1, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "doctor", epilog=_EPILOG)(doctor)


def doctor(
    *,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Also check the permissions for this kind, even if no manifest declares it. Repeatable.",
        ),
    ] = None,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Check this machine, the project, its state and its systems.

    Shows the result of each check, and how to fix problems. For each system, doctor checks the connection to
    every address, the permissions and the supported features. Changes nothing. Exits with 1 if a required
    check fails.
    """
    from kdeclare.app.doctor import run_doctor

    kinds = frozenset(kind or ())
    _require_known_kinds(kinds)
    view = run_doctor(reach.options(), console.progress, kinds=kinds)
    if console.is_json:
        from kdeclare.report.doctor import build_doctor_document

        console.write_document(build_doctor_document(view))
    else:
        from kdeclare.report.doctor import render_doctor_text

        console.out(render_doctor_text(view, console.style, console.width))
    return view.exit_code


def _require_known_kinds(kinds: frozenset[str]) -> None:
    from kdeclare.core.provider.provider_queries import find_auxiliary_kinds
    from kdeclare.core.provider.registry import KINDS
    from kdeclare.core.suggestions import format_alternatives, format_suggestion

    known = [*KINDS, *sorted(find_auxiliary_kinds())]
    for kind in sorted(kinds.difference(known)):
        hint = format_suggestion(kind, known) or f"Use {format_alternatives(known)}."
        raise typer.BadParameter(f"the kind '{kind}' does not exist. {hint}", param_hint="--kind")
