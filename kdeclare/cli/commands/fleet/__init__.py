"""``kdeclare fleet``."""

import typer

from kdeclare.cli.command import command
from kdeclare.cli.commands.fleet.audits import AUDIT_EPILOG, REPORT_EPILOG, audit, report
from kdeclare.cli.commands.fleet.notifications import NOTIFY_EPILOG, notify
from kdeclare.cli.commands.fleet.rollouts import (
    ABORT_EPILOG,
    APPLY_EPILOG,
    PAUSE_EPILOG,
    PLAN_EPILOG,
    RESUME_EPILOG,
    abort,
    apply,
    pause,
    plan,
    resume,
)
from kdeclare.cli.commands.fleet.snapshots import (
    DIFF_EPILOG,
    HISTORY_EPILOG,
    SNAPSHOT_EPILOG,
    diff,
    history,
    snapshot,
)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "snapshot", epilog=SNAPSHOT_EPILOG)(snapshot)
    command(group, "diff", epilog=DIFF_EPILOG)(diff)
    command(group, "audit", epilog=AUDIT_EPILOG)(audit)
    command(group, "report", epilog=REPORT_EPILOG)(report)
    command(group, "notify", epilog=NOTIFY_EPILOG)(notify)
    command(group, "plan", epilog=PLAN_EPILOG)(plan)
    command(group, "apply", epilog=APPLY_EPILOG)(apply)
    command(group, "pause", epilog=PAUSE_EPILOG)(pause)
    command(group, "resume", epilog=RESUME_EPILOG)(resume)
    command(group, "abort", epilog=ABORT_EPILOG)(abort)
    command(group, "history", epilog=HISTORY_EPILOG)(history)
    app.add_typer(group, name="fleet", help="Snapshot, audit and change many clusters.")
