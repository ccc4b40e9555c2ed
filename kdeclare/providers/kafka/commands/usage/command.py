"""The command ``kdeclare usage``: who writes and reads topics."""

from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.help_groups import INSPECT
from kdeclare.cli.options.option_groups import ConnectionOptions
from kdeclare.cli.options.single_options import Format
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.commands.options import TopicNames
from kdeclare.providers.kafka.commands.topic import ExcludeInternal, IfExists

_DEFAULT_AGE = "30d"
_MAX_AGE_S = 100 * 365 * 86_400.0
_EPILOG = build_epilog(
    "kdeclare usage                                all topics except internal ones",
    "kdeclare usage orders                         the groups of one topic",
    "kdeclare usage 'payments\\..*' --format json",
    "kdeclare usage --unused --older-than 90d      no members, and no writes for 90 days",
    codes=(0, 1, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Register the command with the application."""
    command(app, "usage", epilog=_EPILOG, help_group=INSPECT)(show_usage)


def show_usage(
    *,
    topics: TopicNames,
    unused: Annotated[
        bool,
        typer.Option("--unused", help="Only topics without active consumers and without recent writes."),
    ] = False,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="DURATION",
            help=f"With --unused, the minimum time since the last write (default: {_DEFAULT_AGE}).",
        ),
    ] = None,
    exclude_internal: ExcludeInternal = False,
    if_exists: IfExists = False,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Show who writes and reads topics.

    Shows the records, the size, the newest record, the active producers and the groups of each topic. The
    groups are shown with their members and unread records. Run this command before you delete a topic. Values
    that cannot be determined are shown as '?', with the reason.
    """
    from kdeclare.providers.kafka.commands.usage.describe_usage import describe_usage
    from kdeclare.providers.kafka.commands.usage.usage_text import render_usage

    if older_than is not None and not unused:
        raise typer.BadParameter("requires --unused.", param_hint="--older-than")
    unused_for_s = _parse_age(older_than or _DEFAULT_AGE) if unused else None
    names, workspace = topics.given(), reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    view = describe_usage(
        workspace,
        names,
        console.progress,
        if_exists=if_exists,
        exclude_internal=exclude_internal,
        unused_for_s=unused_for_s,
    )
    if console.is_json:
        console.write_document(view)
        return ExitCode.OK
    console.notices(view.diagnostics)
    has_details = view.of_topics == 1 and not unused
    console.out(render_usage(view, console.width, console.style, has_details=has_details))
    return ExitCode.OK


def _parse_age(text: str) -> float:
    """Convert a duration such as 90d or 12h to seconds. Raises BadParameter."""
    from kdeclare.core.units import parse_duration

    try:
        age_s = parse_duration(text)
        if age_s > _MAX_AGE_S:
            raise ValueError
        return age_s
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"'{text}' is not a duration of at most 100 years. Write a number with a unit, such as 90d or "
            "12h.",
            param_hint="--older-than",
        ) from None
