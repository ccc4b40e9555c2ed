"""The context in which a command runs: its command line, and the kdeclare shell, if one is used."""

from typing import TYPE_CHECKING

from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.app.connections import ConnectionCache
    from kdeclare.app.workspace import Workspace, WorkspaceOptions
    from kdeclare.cli.options.option_groups import OutputOptions
    from kdeclare.cli.pager import Pager


@dataclass(frozen=True, slots=True)
class ShellContext:
    """Settings shared by the lines of one shell.

    defaults: the options that apply to every line unless the line overrides them. output_options: the output
        options of the shell, which are combined with the output options of each line.
    pager: the pager for output that is longer than the screen; None to use no pager.
    """

    defaults: "WorkspaceOptions"
    connections: "ConnectionCache"
    output_options: "OutputOptions"
    pager: "Pager | None" = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """One execution of a command.

    command_line: the line as typed, without secrets. It is recorded in the history of runs. shared: the
    settings of the kdeclare shell; None if the command does not run in a kdeclare shell.
    """

    command_line: str = ""
    shared: ShellContext | None = None

    def options(self, given: "WorkspaceOptions") -> "WorkspaceOptions":
        """Return the given options. Options that are not given are taken from the kdeclare shell."""
        return given.over(self.shared.defaults) if self.shared else given

    def workspace(self, options: "WorkspaceOptions") -> "Workspace":
        """Open the project in its environment without connecting to a system. Raises KdeclareError."""
        import os

        from kdeclare.app.workspace import open_workspace

        connections = self.shared.connections if self.shared else None
        return open_workspace(options, os.environ, keeper=connections)
