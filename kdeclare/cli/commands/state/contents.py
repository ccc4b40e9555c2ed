"""The commands of ``kdeclare state`` about owned resources and the state as a whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.completion import complete_owned
from kdeclare.cli.confirmation import build_declined_error, prompt_for_yes
from kdeclare.cli.console import Console
from kdeclare.cli.options.option_groups import StateOptions
from kdeclare.cli.options.single_options import Format, Yes
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdeclare.core.resources.ids import ResourceId
    from kdeclare.report.run.state_views import OwnershipChange

Owned = Annotated[
    str,
    typer.Argument(
        metavar="KIND/NAME", help="An owned resource.", show_default=False, autocompletion=complete_owned
    ),
]


def list_(*, output: Format = "text", where: StateOptions, console: Console) -> ExitCode:
    """List the resources that kdeclare owns."""
    from kdeclare.app.state.ownership import list_owned
    from kdeclare.report.run.state_text import render_owned_resources_text

    owned = list_owned(where.workspace())
    if console.is_json:
        console.write_document(owned)
    else:
        console.out(render_owned_resources_text(owned))
    return ExitCode.OK


def show(resource: Owned, *, output: Format = "text", where: StateOptions, console: Console) -> ExitCode:
    """Show the ownership record of a resource.

    The record contains the fields that kdeclare applied last. Of secrets, it contains only salted hashes.
    """
    from kdeclare.app.state.ownership import show_owned
    from kdeclare.report.run.state_text import render_owned_resource_text

    owned = show_owned(where.workspace(), parse_owned(resource))
    if console.is_json:
        console.write_document(owned)
    else:
        console.out(render_owned_resource_text(owned, console.style))
    return ExitCode.OK


def move(
    old: Owned,
    new: Annotated[str, typer.Argument(metavar="NEW", help="KIND/NEW-NAME.", show_default=False)],
    *,
    yes: Yes = False,
    output: Format = "text",
    where: StateOptions,
    console: Console,
) -> ExitCode:
    """Move an ownership record to another name.

    Use this command after you changed metadata.name in a manifest, so that kdeclare does not treat the
    resource as new. It only changes the state. If the name identifies the resource in its system, as for a
    topic, the resource is not renamed: kdeclare then owns the resource with the new name, and no longer the
    one with the old name.
    """
    from kdeclare.app.state.contents import move_ownership
    from kdeclare.cli.options.option_values import parse_resource

    old_id, new_id = parse_owned(old), parse_resource("NEW", new)
    if old_id.kind != new_id.kind:
        raise typer.BadParameter(
            f"'{old}' and '{new}' have different kinds. The kind of a resource cannot change.",
            param_hint="NEW",
        )
    question = f"Move the ownership of {old_id} to {new_id}? Only the state is changed."
    change = move_ownership(
        where.workspace(), old_id, new_id, _make_prompt(console, question, yes), console.command
    )
    return _report_change(console, change, f"The ownership record of {old_id} was moved to {new_id}.")


def remove(
    resources: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND/NAME",
            help="The resources to release.",
            show_default=False,
            autocompletion=complete_owned,
        ),
    ],
    *,
    yes: Yes = False,
    output: Format = "text",
    where: StateOptions,
    console: Console,
) -> ExitCode:
    """Release resources without changing any system.

    kdeclare no longer owns the resources, but does not delete them. This is the same as kdeclare apply
    --forget, but it needs no connection to a system, and it works for resources whose kind is not installed.
    Remove the manifests as well, or the next plan shows the resources again, as resources to adopt.
    """
    from kdeclare.app.state.contents import release_ownership
    from kdeclare.report.elements.values import format_count

    ids = [parse_owned(text) for text in dict.fromkeys(resources)]
    names = str(ids[0]) if len(ids) == 1 else format_count(len(ids), "resource")
    question = f"Release {names}? Nothing is deleted."
    change = release_ownership(where.workspace(), ids, _make_prompt(console, question, yes), console.command)
    return _report_change(console, change, f"Released {names}. Only the state was changed.")


def pull(
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the document to this file, not to stdout."),
    ] = None,
    where: StateOptions,
    console: Console,
) -> ExitCode:
    """Print the state as a JSON document.

    The document has the format of state.json, and is the input of kdeclare state push. It contains no
    secrets, only salted hashes of secrets.
    """
    from kdeclare.app.state.ownership import read_state, save_state
    from kdeclare.engine.state.document import encode_state

    state = read_state(where.workspace())
    if out is None:
        console.out(encode_state(state), pages=False)
    else:
        save_state(state, out)
        console.note(f"Wrote the state with serial {state.serial} to {out}.")
    return ExitCode.OK


def push(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A document that kdeclare state pull wrote.", show_default=False),
    ],
    *,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also accept a document of another state or cluster, or one that is older than the state.",
        ),
    ] = False,
    yes: Yes = False,
    output: Format = "text",
    where: StateOptions,
    console: Console,
) -> ExitCode:
    """Replace the state with a document.

    Use this command to restore a damaged or lost state. The document must be a later version of the state.
    With --force, kdeclare accepts any state. It changes only the serial of the document, and does not add the
    effects of later runs. The previous state is kept as state.json.backup.
    """
    from kdeclare.app.state.contents import push_state
    from kdeclare.app.state.ownership import load_state_text

    change = push_state(
        where.workspace(),
        load_state_text(file),
        str(file),
        _make_prompt(console, f"Replace the state with {file}?", yes),
        console.command,
        force=force,
    )
    return _report_change(console, change, f"The state was replaced. Its serial is {change.serial}.")


def _make_prompt(console: Console, question: str, yes: bool) -> "Callable[[OwnershipChange], bool]":
    """Return a function that shows a change of the state, and asks whether to write it."""

    def confirm(change: "OwnershipChange") -> bool:
        from kdeclare.report.run.state_text import render_ownership_change_text

        console.notices(change.diagnostics, asking=not yes)
        if yes:
            return True
        console.say(render_ownership_change_text(change), end="")
        return prompt_for_yes(console, question)

    return confirm


def _report_change(console: Console, change: "OwnershipChange", text: str) -> ExitCode:
    if not change.written:
        return console.fail([build_declined_error()], ExitCode.ERROR)
    if console.is_json:
        console.write_document(change)
    else:
        from kdeclare.report.run.state_text import render_ownership_change_text

        console.out(render_ownership_change_text(change) + text + "\n")
    return ExitCode.OK


def parse_owned(text: str) -> "ResourceId":
    """Parse KIND/NAME. The kind need not be installed. Raises BadParameter."""
    from kdeclare.core.resources.ids import ResourceId

    try:
        return ResourceId.parse(text)
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' does not have the form KIND/NAME, for example Topic/orders.", param_hint="KIND/NAME"
        ) from None
