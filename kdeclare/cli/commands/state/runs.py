"""The commands of ``kdeclare state`` about recorded runs."""

from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.completion import complete_runs
from kdeclare.cli.confirmation import build_declined_error, prompt_for_yes
from kdeclare.cli.console import Console
from kdeclare.cli.options.option_groups import ProjectOptions, StateOptions
from kdeclare.cli.options.single_options import Format, Yes, validate_location
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from datetime import timedelta

    from kdeclare.core.diagnostics import Diagnostic
    from kdeclare.report.run.views import AbandonedRun, PrunedRuns


def abandon(
    run_id: Annotated[
        str,
        typer.Argument(
            metavar="RUN_ID", help="The run to abandon.", show_default=False, autocompletion=complete_runs
        ),
    ],
    *,
    yes: Yes = False,
    output: Format = "text",
    where: StateOptions,
    console: Console,
) -> ExitCode:
    """Set aside a run that cannot be finished.

    Use this command if the plan or the journal of a run is damaged or was written by another version of
    kdeclare, or if the systems of an unfinished run no longer exist. It shows which operations the run began,
    with their last known status, and asks for confirmation. After that, the run no longer stops other
    commands.

    Nothing is deleted, no system is contacted, and the state stays the same. Run kdeclare plan afterwards: it
    shows what is missing. Temporary settings of the run, such as throttles, are not removed.
    """
    from kdeclare.app.state.abandon import abandon_run
    from kdeclare.report.run.state_text import render_abandoned_run_text

    def confirm(run: "AbandonedRun") -> bool:
        must_ask = not yes
        if console.is_text:
            console.out(render_abandoned_run_text(run, console.style), pages=False)
        elif must_ask:
            console.say(render_abandoned_run_text(run, console.err_style))
        return not must_ask or prompt_for_yes(console, "Abandon this run?")

    run = abandon_run(where.workspace(), run_id, confirm, console.command, console.progress)
    if not run.abandoned:
        return console.fail([build_declined_error()], ExitCode.ERROR)
    if console.is_json:
        console.write_document(run)
    else:
        console.out(f"Run {run.run_id} is abandoned. Run 'kdeclare plan' to see the remaining changes.\n")
    return ExitCode.OK


def prune(
    *,
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", min=1, help="Keep the last N runs."),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="DURATION",
            help="Keep all runs that are younger than this, for example 90d.",
        ),
    ] = None,
    yes: Yes = False,
    output: Format = "text",
    where: StateOptions,
    console: Console,
) -> ExitCode:
    """Remove old runs from the history.

    Specify --keep, --older-than, or both. With both, a run is removed only if it is older than
    the duration and not among the last N runs. A removed run can no longer be shown or rolled back.

    Unfinished and damaged runs are kept, unless they are abandoned. The last finished run is also kept, and
    so are runs that the state does not include yet and runs that a kept run undoes.
    """
    from kdeclare.app.state.prune import Retention, prune_runs
    from kdeclare.report.run.state_text import render_pruned_runs_text

    if keep is None and older_than is None:
        raise typer.BadParameter("Specify --keep, --older-than, or both.", param_hint="--keep")
    retention = Retention(keep, None if older_than is None else _parse_age(older_than))

    def confirm(pruned: "PrunedRuns") -> bool:
        if yes:
            return True
        console.say(render_pruned_runs_text(pruned), end="")
        return prompt_for_yes(console, "Remove these runs?")

    pruned = prune_runs(where.workspace(), retention, confirm, console.command, progress=console.progress)
    if pruned.runs and not pruned.removed:
        return console.fail([build_declined_error()], ExitCode.ERROR)
    if console.is_json:
        console.write_document(pruned)
    else:
        console.out(render_pruned_runs_text(pruned))
    return ExitCode.OK


def _parse_age(text: str) -> "timedelta":
    """Parse a duration such as 90d or 12h. Raises BadParameter."""
    from datetime import timedelta

    from kdeclare.core.units import parse_duration

    try:
        return timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"'{text}' is not a duration. Write a number with a unit, such as 90d or 12h.",
            param_hint="--older-than",
        ) from None


def migrate(
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="DIR|URI",
            callback=validate_location,
            help="The new location of the state.",
            show_default=False,
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DIR|URI",
            callback=validate_location,
            help="The current location of the state (default: from the project file).",
        ),
    ] = None,
    output: Format = "text",
    where: ProjectOptions,
    console: Console,
) -> ExitCode:
    """Copy the state with all runs to another location.

    Each location is a folder or shared storage. The target must not contain a state of this project and
    environment. kdeclare locks both locations, copies plans, journals and summaries as they are, and reads
    everything back. The current state is not changed. Afterwards, change the location in the project file.

    Finish or abandon an unfinished run first. Damaged runs are not copied.
    """
    from dataclasses import replace

    from kdeclare.app.state.migrate import migrate_state
    from kdeclare.engine.state.location import identify_state
    from kdeclare.report.run.state_text import render_migrated_state_text
    from kdeclare.report.run.state_views import MigratedState

    options = where.options()
    source_workspace = where.line.workspace(replace(options, state=source or options.state))
    target_workspace = where.line.workspace(replace(options, state=to))
    project = source_workspace.project
    from_ = source or options.state or project.state
    if len({identify_state(place, project.name, project.environment.name) for place in (from_, to)}) == 1:
        raise typer.BadParameter("This is the current location of the state.", param_hint="--to")
    state, damaged_ids = migrate_state(
        source_workspace.store, target_workspace.store, console.command, console.progress
    )
    target_workspace.store.close()
    migrated = MigratedState(
        source=str(from_),
        target=to,
        lineage=state.lineage,
        serial=state.serial,
        resources=len(state.resources),
        runs=len(source_workspace.store.runs()) - len(damaged_ids),
        skipped=damaged_ids,
    )
    console.notices(_warn_skipped(run_id) for run_id in damaged_ids)
    if console.is_json:
        console.write_document(migrated)
    else:
        console.out(render_migrated_state_text(migrated))
    return ExitCode.OK


def _warn_skipped(run_id: str) -> "Diagnostic":
    from kdeclare.core.diagnostics import warning

    return warning(
        "run-not-copied",
        "A damaged run was not copied",
        f"Run {run_id} cannot be read, so it is missing at the new location.",
        hint=f"Run 'kdeclare history {run_id}' with the old location to see why. Keep the old location if "
        "you need the run.",
    )
