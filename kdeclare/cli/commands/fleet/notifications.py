"""``kdeclare fleet notify``."""

from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.fleet_options import EngineName, FleetFile, SparkOptions
from kdeclare.cli.options.single_options import Format, validate_duration
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.report.fleet.notifications.notify_output import FleetNotifications

NOTIFY_EPILOG = build_epilog(
    "kdeclare fleet notify fleet.yaml --out audits                 about the latest audit",
    "kdeclare fleet notify fleet.yaml --out audits --dry-run       show the messages",
    "kdeclare fleet notify fleet.yaml --out audits --to platform --again",
    codes=(0, 1, 64, 130),
)


def notify(
    fleet: FleetFile,
    *,
    audit: Annotated[str, typer.Option(metavar="ID|latest", help="The audit to report.")] = "latest",
    since: Annotated[
        str | None,
        typer.Option(
            metavar="ID|DURATION|DAY",
            help="Report what has changed since this earlier audit (default: since the previous message for "
            "the same target).",
        ),
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to", metavar="NAME", help="Send only this notification of the fleet file. Repeatable."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the messages instead of sending them.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also send messages that have already been sent.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            callback=validate_duration,
            help="How long to wait for a response to each attempt.",
        ),
    ] = 10.0,
    engine: EngineName = "auto",
    output: Format = "text",
    spark: SparkOptions,
    console: Console,
) -> ExitCode:
    """Send messages about a stored audit to webhooks.

    The webhooks are in 'spec.notifications' of the fleet file. Reads the audits in DIR, and does not connect
    to any cluster. Each message is sent once, and only if there is something to report.
    """
    import os
    from dataclasses import replace

    from kdeclare.app.fleet.notify import NotifyOptions, notify_fleet

    options = replace(spark.results_options(engine), fleet=fleet)
    notify_options = NotifyOptions(audit, since, tuple(to or ()), dry_run, again, timeout)
    result = notify_fleet(options, notify_options, os.environ, console.progress)
    if console.is_json:
        console.write_document(result)
    else:
        from kdeclare.report.fleet.notifications.notify_output import render_notifications_text

        console.out(render_notifications_text(result, console.style))
    return report_failed_messages(result, console)


def report_messages(result: "FleetNotifications", console: Console) -> None:
    """Report the outcome of each message on stderr."""
    from kdeclare.report.fleet.notifications.notify_output import render_notifications_text

    console.note(render_notifications_text(result, console.err_style).rstrip("\n"))


def report_failed_messages(result: "FleetNotifications", console: Console) -> ExitCode:
    """Show the errors of messages that were not sent, and return the exit code."""
    if not result.diagnostics:
        return ExitCode.OK
    from kdeclare.report.elements.diagnostics_text import render_diagnostics

    console.say(render_diagnostics(result.diagnostics, console.err_style), end="")
    return ExitCode.ERROR
