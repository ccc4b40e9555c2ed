"""``kdeclare lock``."""

from typing import TYPE_CHECKING

import typer

from kdeclare.cli.command import command
from kdeclare.cli.confirmation import is_yes
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import Format, Where, Yes
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.core.plans.state import LockInfo


def register(app: typer.Typer) -> None:
    """Put the commands into the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "show")(show)
    command(group, "break", epilog=epilog(codes=(0, 1, 64)))(break_)
    app.add_typer(group, name="lock", help="Who holds the lock of the state.")


def show(*, output: Format = "text", where: Where, console: Console) -> ExitCode:
    """Show who holds the lock of the state. No process, no lock: it dies with its holder."""
    from kdeclare.app.locks import lock_holder

    holder = lock_holder(where.workspace())
    if console.is_json:
        from kdeclare.report.run.documents import LockShown

        console.out_document(LockShown(holder))
    else:
        console.out(f"Locked by {_described(holder)}.\n" if holder else "Not locked.\n")
    return ExitCode.OK


def break_(*, yes: Yes = False, where: Where, console: Console) -> ExitCode:
    """Take the lock from its holder.

    Its holder is alive, as a dead process holds no lock, and may have requests under way; it finds
    out with its next write and stops then. Better stop the process itself if you can.
    """
    from kdeclare.app.locks import break_lock

    asked = False

    def confirm(holder: "LockInfo") -> bool:
        nonlocal asked
        asked = True
        console.out(f"Locked by {_described(holder)}.\n")
        return yes or is_yes(console, "It is alive. Break its lock all the same?")

    broken = break_lock(where.workspace(), confirm)
    if broken is not None:
        console.out("The lock is broken.\n")
    elif asked:
        console.say("The lock was left alone.")
        return ExitCode.ERROR
    else:
        console.out("Not locked.\n")
    return ExitCode.OK


def _described(holder: "LockInfo") -> str:
    from kdeclare.report.elements.values import clean

    return clean(f"{holder.who} (process {holder.pid}) since {holder.since}: {holder.what}")
