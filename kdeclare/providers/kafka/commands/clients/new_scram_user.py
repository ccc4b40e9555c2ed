"""The command ``kdeclare new scram-user``, which creates a manifest for a user with SCRAM credentials."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.commands.new import write_new_manifest
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ProjectOptions
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.app.authoring.scaffolds import SpecLine

_EPILOG = build_epilog(
    "kdeclare new scram-user checkout",
    "kdeclare new scram-user checkout --password '${file.secrets/checkout}' --iterations 8192",
    codes=(0, 1, 64),
)


def register(app: typer.Typer) -> None:
    """Register the command with ``kdeclare new``."""
    command(app, "scram-user", epilog=_EPILOG)(scram_user)


def scram_user(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the user, without 'User:'.")],
    *,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(metavar="MECHANISM", help="SCRAM-SHA-512 (the default) or SCRAM-SHA-256. Repeatable."),
    ] = None,
    password: Annotated[
        str | None,
        typer.Option(
            metavar="REFERENCE",
            help="Where the password comes from: ${env.NAME} or ${file.PATH} (default: an environment "
            "variable that is named after the user).",
        ),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of iterations (default: chosen by kdeclare)."),
    ] = None,
    setting: ProjectOptions,
    console: Console,
) -> ExitCode:
    """Write a manifest for a SCRAM user and print its path.

    The manifest contains a reference to the password, never the password. Before the file is written, the
    manifest is checked in the same way as by kdeclare validate, except that the password can be missing. The
    command does not contact a cluster and does not overwrite files.
    """
    from kdeclare.core.resources.ids import ResourceId
    from kdeclare.core.suggestions import format_suggestion
    from kdeclare.manifests.syntax.substitution import is_single_reference
    from kdeclare.providers.kafka.scram_user.credential import MAX_ITERATIONS, MIN_ITERATIONS, Mechanism
    from kdeclare.providers.kafka.scram_user.kind import name_password_variables

    known = [*Mechanism]
    for text in mechanism or ():
        if text not in known:
            suggestion = format_suggestion(text, known) or f"Use one of {', '.join(known)}."
            raise typer.BadParameter(f"'{text}' is not a mechanism. {suggestion}", param_hint="--mechanism")
    reference = password if password is not None else f"${{env.{name_password_variables([name])[name]}}}"
    if not (is_single_reference(reference) and reference.startswith(("${env.", "${file."))):
        raise typer.BadParameter(
            "takes a reference, such as '${env.CHECKOUT_PASSWORD}', and not the password itself.",
            param_hint="--password",
        )
    if iterations is not None and not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise typer.BadParameter(
            f"must be between {MIN_ITERATIONS} and {MAX_ITERATIONS}.", param_hint="--iterations"
        )
    spec = list(_render_spec_lines(mechanism or [Mechanism.SHA_512], reference, iterations))
    return write_new_manifest(console, setting, ResourceId("ScramUser", name), spec, needs_values=False)


def _render_spec_lines(
    mechanisms: Sequence[str], password: str, iterations: int | None
) -> "Iterator[SpecLine]":
    from kdeclare.app.authoring.scaffolds import SpecLine, render_value

    yield SpecLine("mechanisms:", "--mechanism")
    for mechanism in dict.fromkeys(mechanisms):
        yield SpecLine(f"  {mechanism}:", "--mechanism")
        yield SpecLine(f"    password: {render_value(password)}", "--password")
        if iterations is not None:
            yield SpecLine(f"    iterations: {iterations}", "--iterations")
