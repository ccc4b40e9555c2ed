"""One command line as its command sees it: run on its own or typed into a kdeclare shell."""

from typing import TYPE_CHECKING

from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.app.connections import ConnectionCache
    from kdeclare.app.workspace import Workspace, WorkspaceOptions
    from kdeclare.cli.options import OutputOptions
    from kdeclare.cli.pager import Pager


@dataclass(frozen=True, slots=True)
class ShellContext:
    """Settings shared by the lines of one shell.

    defaults: options of every line that does not override them. output_options: the shell's output options,
        combined with those of each line.
    pager: shows output that is longer than the screen; None to use no pager.
    """

    defaults: "WorkspaceOptions"
    connections: "ConnectionCache"
    output_options: "OutputOptions"
    pager: "Pager | None" = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """command_line: the line as typed, without secrets; recorded in the history of runs.

    shared: the settings of the shell; None outside of a shell.
    """

    command_line: str = ""
    shared: ShellContext | None = None

    def options(self, given: "WorkspaceOptions") -> "WorkspaceOptions":
        """Return the given options, completed with those of the shell."""
        return given.over(self.shared.defaults) if self.shared else given

    def workspace(self, options: "WorkspaceOptions") -> "Workspace":
        """Open the project in its environment without connecting to a system. Raises KdeclareError."""
        import os

        from kdeclare.app.workspace import open_workspace

        connections = self.shared.connections if self.shared else None
        return open_workspace(options, os.environ, keeper=connections)
