"""The groups in which ``kdeclare --help`` lists the commands."""

from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup

WORKFLOW = "Workflow"
INSPECT = "Inspect"
AD_HOC = "Ad hoc"
PROJECT = "Project"
TOOLS = "Tools"

HELP_GROUPS = (WORKFLOW, INSPECT, AD_HOC, PROJECT, TOOLS)
"""The groups of commands, in the order in which ``kdeclare --help`` shows them."""


UNLISTED: Mapping[str, str] = {"convert": "import", "catalog": "show-manifest", "fmt": "validate"}
"""Commands that ``kdeclare --help`` does not list, to save space.

Each command is mapped to a listed command, whose summary mentions it.
"""


def get_help_group(command: Any) -> str:
    """Return the group that a Click command declares as its ``rich_help_panel``.

    If the command declares no group or an unknown group, return "Ad hoc", because most commands of providers
    change one resource ad hoc.
    """
    declared_group = getattr(command, "rich_help_panel", None)
    return declared_group if declared_group in HELP_GROUPS else AD_HOC


class RootGroup(TyperGroup):
    """The command ``kdeclare``. Its help lists the commands by group and fits on one screen."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by group with their untruncated summaries, then one line with the options.

        There are no empty lines between the groups, because with them the help would not fit on one screen.
        """
        formatter.write_paragraph()
        commands = {
            name: command
            for name, command in self.commands.items()
            if not command.hidden and name not in UNLISTED
        }
        width = max(map(len, commands), default=0)  # one width for all groups, so that the summaries align
        for group in HELP_GROUPS:
            rows = [
                (name.ljust(width), command.get_short_help_str(limit=len(command.help or "")))
                for name, command in commands.items()
                if get_help_group(command) == group
            ]
            if rows:
                formatter.write_heading(group)
                with formatter.indentation():
                    formatter.write_dl(rows)
        option_names = ", ".join(max(param.opts, key=len) for param in self.get_params(ctx))
        formatter.write_text(f"Options: {option_names}")
