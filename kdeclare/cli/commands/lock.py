"""``kdeclare lock``."""

from typing import TYPE_CHECKING

import typer

from kdeclare.cli.command import command
from kdeclare.cli.confirmation import prompt_for_yes
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import StateOptions
from kdeclare.cli.options.single_options import Format, Yes
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.core.plans.state import LockInfo


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "show")(show)
    command(group, "break", epilog=build_epilog(codes=(0, 1, 64)))(break_)
    app.add_typer(group, name="lock", help="Show or break the state lock.")


def show(*, output: Format = "text", where: StateOptions, console: Console) -> ExitCode:
    """Show who holds the state lock.

    The lock of a local state is released when the process that holds the lock ends. The lock of a shared
    state is a lease: it ends if the process does not renew it.
    """
    from kdeclare.app.locks import find_lock_holder

    holder = find_lock_holder(where.workspace())
    if console.is_json:
        from kdeclare.report.run.documents import LockStatusDocument

        console.write_document(LockStatusDocument(holder))
    else:
        console.out(f"Locked by {_format_holder(holder)}.\n" if holder else "Not locked.\n")
    return ExitCode.OK


def break_(*, yes: Yes = False, where: StateOptions, console: Console) -> ExitCode:
    """Break the state lock that a running process holds.

    The lock of a local state is released when its process ends. A lock that you can break therefore belongs
    to a process that is still running and may have requests in progress. That process stops before its next
    request. If you can, stop the process instead.

    The lock of a shared state is a lease, which expires if its process died. After you break it, the
    next run waits until the lease would have ended, because until then, the process may not notice that it
    has lost the lock.
    """
    from kdeclare.app.locks import break_lock

    was_asked = False

    def confirm(holder: "LockInfo") -> bool:
        nonlocal was_asked
        was_asked = True
        console.out(f"Locked by {_format_holder(holder)}.\n")
        is_certain = holder.renewed is None
        process_text = "The process is still running." if is_certain else "The process may still be running."
        return yes or prompt_for_yes(console, f"{process_text} Break its lock anyway?")

    previous_holder = break_lock(where.workspace(), confirm)
    if previous_holder is not None:
        console.out("The lock was broken.\n")
    elif was_asked:
        console.say("The lock was not broken.")
        return ExitCode.ERROR
    else:
        console.out("Not locked.\n")
    return ExitCode.OK


def _format_holder(holder: "LockInfo") -> str:
    from kdeclare.report.elements.values import sanitize_for_terminal

    lease_text = f" (lease renewed at {holder.renewed})" if holder.renewed is not None else ""
    return sanitize_for_terminal(
        f"{holder.who} (process {holder.pid}) since {holder.since}: {holder.what}{lease_text}"
    )
