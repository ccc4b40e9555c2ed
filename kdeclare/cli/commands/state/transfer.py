"""``kdeclare state transfer``: give the ownership of resources to another project."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.commands.state.contents import parse_owned
from kdeclare.cli.completion import complete_owned
from kdeclare.cli.confirmation import build_declined_error, prompt_for_yes
from kdeclare.cli.console import Console
from kdeclare.cli.options.option_groups import StateOptions
from kdeclare.cli.options.single_options import Format, Yes, validate_location
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.report.run.state_views import OwnershipTransfer


def transfer(
    resources: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND/NAME",
            help="The resources to transfer.",
            show_default=False,
            autocompletion=complete_owned,
        ),
    ],
    *,
    to_project: Annotated[
        Path,
        typer.Option(
            "--to-project", metavar="FILE", help="Project file of the new owner.", show_default=False
        ),
    ],
    to_env: Annotated[
        str | None,
        typer.Option(
            "--to-env",
            metavar="NAME",
            help="Environment of the new owner (default: its defaultEnvironment, or its only environment).",
        ),
    ] = None,
    to_state: Annotated[
        str | None,
        typer.Option(
            "--to-state",
            metavar="DIR|URI",
            callback=validate_location,
            help="Location of the state of the new owner (default: from its project file).",
        ),
    ] = None,
    yes: Yes = False,
    output: Format = "text",
    where: StateOptions,
    console: Console,
) -> ExitCode:
    """Transfer the ownership of resources to another project.

    The two projects have to manage the same cluster. kdeclare locks both states and moves the ownership
    records, with the fields that were applied last. It changes no system, so nothing is deleted, created or
    adopted.

    Move the manifests to the other project as well. Until the new owner applies them, preventDestroy protects
    the resources from deletion.
    """
    from kdeclare.app.state.transfer import transfer_ownership
    from kdeclare.app.workspace import WorkspaceOptions
    from kdeclare.engine.state.location import identify_state
    from kdeclare.report.elements.values import format_count
    from kdeclare.report.run.state_text import render_ownership_transfer_text

    ids = [parse_owned(text) for text in dict.fromkeys(resources)]
    names = str(ids[0]) if len(ids) == 1 else format_count(len(ids), "resource")
    options = where.options()
    source = where.workspace()
    target_options = WorkspaceOptions(to_project, to_env, state=to_state)
    target = where.line.workspace(target_options)
    locations = {
        identify_state(chosen.state or w.project.state, w.project.name, w.project.environment.name)
        for chosen, w in ((options, source), (target_options, target))
    }
    if len(locations) == 1:
        raise typer.BadParameter(
            "This project and environment already own the resources.", param_hint="--to-project"
        )

    def confirm(change: "OwnershipTransfer") -> bool:
        console.notices(change.diagnostics, asking=not yes)
        if yes:
            return True
        console.say(render_ownership_transfer_text(change), end="")
        return prompt_for_yes(console, f"Transfer the ownership of {names}? Only the two states are changed.")

    done = transfer_ownership(source, target, ids, confirm, console.command, console.progress)
    target.store.close()
    if not done.written:
        return console.fail([build_declined_error()], ExitCode.ERROR)
    if console.is_json:
        console.write_document(done)
    else:
        console.out(
            render_ownership_transfer_text(done)
            + f"The ownership of {names} was transferred. Only the two states were changed.\n"
        )
    return ExitCode.OK
