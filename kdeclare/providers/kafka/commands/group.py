"""The command ``kdeclare group``, with the actions of Kafka's kafka-consumer-groups."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kdeclare.cli.adhoc import run_and_show
from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions
from kdeclare.cli.options.single_options import Format, Yes
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.commands.group_options import (
    ExecutionOptions,
    GroupSelectionOptions,
    ListFilter,
    OffsetScope,
    ResetTargets,
    build_offset_deletion_request,
    build_reset_request,
)

if TYPE_CHECKING:
    from kdeclare.app.apply import ApplyOptions
    from kdeclare.providers.kafka.commands.group_changes import GroupPlan
    from kdeclare.report.adhoc import AdhocResult

_LIST_EPILOG = build_epilog(
    "kdeclare group list",
    "kdeclare group list --type share,streams",
    "kdeclare group list --in-state Empty --format names",
    codes=(0, 1, 64, 130),
)
_DESCRIBE_EPILOG = build_epilog(
    "kdeclare group describe billing",
    "kdeclare group describe --group billing --members",
    "kdeclare group describe --all-groups --summary",
    codes=(0, 1, 64, 130),
)
_CODES = (0, 1, 3, 5, 6, 64, 130)
_RESET_EPILOG = build_epilog(
    "kdeclare group reset-offsets billing --topic orders --to-earliest --dry-run",
    "kdeclare group reset-offsets --group billing --topic orders:0,1 --shift-by -100",
    "kdeclare group reset-offsets billing --all-topics --to-datetime 2026-11-28T04:00:00.000",
    "kdeclare group reset-offsets billing --all-topics --to-current --export > offsets.csv",
    "kdeclare group reset-offsets billing --from-file offsets.csv",
    "kdeclare rollback                                      restore the recorded offsets",
    codes=_CODES,
)
_DELETE_OFFSETS_EPILOG = build_epilog(
    "kdeclare group delete-offsets billing --topic orders --dry-run",
    "kdeclare group delete-offsets billing --topic orders:0,1",
    "kdeclare rollback                 commit the recorded offsets again",
    codes=_CODES,
)
_DELETE_EPILOG = build_epilog(
    "kdeclare group delete billing",
    "kdeclare rollback                 commit the recorded offsets again",
    codes=_CODES,
)
ListFormat = Annotated[
    Literal["text", "json", "names"],
    typer.Option(
        "--format",
        metavar="text|json|names",
        help="Output format: text for people, JSON for scripts, or one id per line.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan without changing anything.")]


def register(app: typer.Typer) -> None:
    """Register the commands with the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "list", epilog=_LIST_EPILOG)(list_groups)
    command(group, "describe", epilog=_DESCRIBE_EPILOG)(describe)
    command(group, "reset-offsets", epilog=_RESET_EPILOG)(reset_offsets)
    command(group, "delete-offsets", epilog=_DELETE_OFFSETS_EPILOG)(delete_offsets)
    command(group, "delete", epilog=_DELETE_EPILOG)(delete)
    app.add_typer(group, name="group", help="List, describe and delete groups, and reset their offsets.")


def list_groups(
    *,
    only: ListFilter,
    output: ListFormat = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """List groups with their type and state.

    The list contains all types of groups: classic and consumer groups, share groups and streams groups.
    Groups of Kafka Connect workers are classic groups with the protocol 'connect'.
    """
    from kdeclare.providers.kafka.commands.describe_groups import list_groups as look

    states, types, workspace = only.states(), only.types(), reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    view = look(workspace, states, types)
    if console.is_json:
        console.write_document(view)
        return ExitCode.OK
    from kdeclare.providers.kafka.commands.group_text import render_group_list, render_group_names

    if output == "names":
        console.out(render_group_names(view))
    else:
        console.out(render_group_list(view, console.width, console.style))
    return ExitCode.OK


def describe(
    *,
    groups: GroupSelectionOptions,
    members: Annotated[bool, typer.Option("--members", help="Show the members.")] = False,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Show the offsets. This is the default.")
    ] = False,
    summary: Annotated[bool, typer.Option("--summary", help="Show only the state and the lag.")] = False,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Show groups with their committed offsets and their lag.

    The lag of a partition is the number of offsets between the committed offset and the end of the log. JSON
    output always contains offsets and members.
    """
    from kdeclare.providers.kafka.commands.describe_groups import describe_groups

    if summary and (members or offsets):
        raise typer.BadParameter("cannot be combined with --members and --offsets.", param_hint="--summary")
    names, workspace = groups.select(), reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    view = describe_groups(workspace, names)
    if console.is_json:
        console.write_document(view)
        return ExitCode.OK
    from kdeclare.providers.kafka.commands.group_text import render_groups

    console.out(
        render_groups(
            view,
            console.width,
            console.style,
            offsets=not summary and (offsets or not members),
            members=members,
        )
    )
    return ExitCode.OK


def reset_offsets(
    *,
    groups: GroupSelectionOptions,
    scope: OffsetScope,
    targets: ResetTargets,
    execution: ExecutionOptions,
    yes: Yes = False,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Change the committed offsets of consumer groups.

    Shows the old and the new offset of each partition, and how many records the group skips or reads again.
    Then asks for confirmation. 'kdeclare rollback' restores the old offsets. kdeclare does not change a group
    that has members: stop the members first. As in Kafka's tool, an offset outside the log is replaced with
    the start or end offset of the log.
    """
    from kdeclare.providers.kafka.commands.group_changes import plan_reset
    from kdeclare.providers.kafka.commands.group_changes import reset_offsets as run_reset

    request, is_dry_run = build_reset_request(groups, scope, targets), execution.is_dry_run()
    workspace = reach.workspace()
    if is_dry_run:
        console.progress("Reading the cluster", 0, 0)
        return _show_plan(console, plan_reset(workspace, request), export=execution.export)
    return _run(console, "Reset these offsets?", lambda how: run_reset(workspace, request, how), yes=yes)


def delete_offsets(
    *,
    groups: GroupSelectionOptions,
    scope: OffsetScope,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Delete committed offsets of consumer groups.

    Afterwards, a consumer of the group starts at the position that its 'auto.offset.reset' setting
    determines. Shows the offsets and asks for confirmation. 'kdeclare rollback' commits the offsets again.
    kdeclare does not change a group that has members: stop the members first.
    """
    from kdeclare.providers.kafka.commands.group_changes import delete_offsets as run_deletion
    from kdeclare.providers.kafka.commands.group_changes import plan_offset_deletion

    request, workspace = build_offset_deletion_request(groups, scope), reach.workspace()
    if dry_run:
        console.progress("Reading the cluster", 0, 0)
        return _show_plan(console, plan_offset_deletion(workspace, request))
    return _run(console, "Delete these offsets?", lambda how: run_deletion(workspace, request, how), yes=yes)


def delete(
    *,
    groups: GroupSelectionOptions,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Delete consumer groups with their committed offsets.

    Shows the plan and asks for confirmation. 'kdeclare rollback' commits the deleted offsets again. kdeclare
    does not delete a group that has members: stop the members first.
    """
    from kdeclare.providers.kafka.commands.group_changes import delete_groups, plan_deletion

    names, workspace = groups.select(), reach.workspace()
    if dry_run:
        console.progress("Reading the cluster", 0, 0)
        return _show_plan(console, plan_deletion(workspace, names))
    return _run(
        console,
        "Delete these groups and their offsets?",
        lambda how: delete_groups(workspace, names, how),
        yes=yes,
    )


def _run(
    console: Console,
    question: str,
    run_command: "Callable[[ApplyOptions], AdhocResult | None]",
    *,
    yes: bool,
) -> ExitCode:
    return run_and_show(console, question, run_command, {}, yes=yes)


def _show_plan(console: Console, planned: "GroupPlan", *, export: bool = False) -> ExitCode:
    """Show the plan of a dry run. If the change to a group cannot be planned, show the errors."""
    from dataclasses import replace

    from kdeclare.core.diagnostics import sort_diagnostics
    from kdeclare.report.outcome import plan_outcome

    problems = [problem for problems in planned.failed.values() for problem in problems]
    if export:
        from kdeclare.providers.kafka.consumer_group.reset_values import render_offsets_file

        console.notices([*problems, *planned.plan.diagnostics])
        console.out(render_offsets_file(planned.offsets))
    elif console.is_json:
        diagnostics = sort_diagnostics([*planned.plan.diagnostics, *problems])
        console.write_plan(replace(planned.plan, diagnostics=diagnostics))
    else:
        from kdeclare.report.plan.plan_text import plan_text

        console.notices(problems)
        if planned.resources or not problems:
            console.out(plan_text(planned.plan, console.style))
    if problems:
        return ExitCode.PARTIAL if planned.resources else ExitCode.ERROR
    return plan_outcome(planned.plan).exit_code
