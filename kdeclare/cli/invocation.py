"""One command line as the commands see it: by itself, or one of those that were typed into a shell."""

from typing import TYPE_CHECKING

from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.app.connections import ConnectionCache
    from kdeclare.app.workspace import Workspace, WorkspaceOptions
    from kdeclare.cli.options import OutputOptions
    from kdeclare.cli.pager import Pager


@dataclass(frozen=True, slots=True)
class ShellContext:
    """What the lines of one shell have in common.

    defaults: options for every line that does not say otherwise. output_options: how every line talks, at
        least.
    pager: for output that is longer than the screen; None where nobody wants one.
    """

    defaults: "WorkspaceOptions"
    connections: "ConnectionCache"
    output_options: "OutputOptions"
    pager: "Pager | None" = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """typed: the line as the person typed it, without secrets; for the history of runs.

    shared: None outside of a shell.
    """

    command_line: str = ""
    shared: ShellContext | None = None

    def options(self, given: "WorkspaceOptions") -> "WorkspaceOptions":
        """What was given, and what the shell was given where it says nothing."""
        return given.over(self.shared.defaults) if self.shared else given

    def workspace(self, options: "WorkspaceOptions") -> "Workspace":
        """The project in its environment; nothing is connected to. Raises KdeclareError."""
        import os

        from kdeclare.app.workspace import open_workspace

        connections = self.shared.connections if self.shared else None
        return open_workspace(options, os.environ, keeper=connections)
