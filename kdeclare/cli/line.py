"""One command line as the commands see it: by itself, or one of those that were typed into a shell."""

from typing import TYPE_CHECKING

from kdeclare.core.frozen import dataclass

if TYPE_CHECKING:
    from kdeclare.app.connections import KeptConnections
    from kdeclare.app.workspace import Options, Workspace
    from kdeclare.cli.options import Talk
    from kdeclare.cli.pager import Pager


@dataclass(frozen=True, slots=True)
class Shared:
    """What the lines of one shell have in common.

    defaults: options for every line that does not say otherwise. talk: how every line talks, at least.
    pager: for output that is longer than the screen; None where nobody wants one.
    """

    defaults: "Options"
    connections: "KeptConnections"
    talk: "Talk"
    pager: "Pager | None" = None


@dataclass(frozen=True, slots=True)
class Line:
    """typed: the line as the person typed it, without secrets; for the history of runs.

    shared: None outside of a shell.
    """

    typed: str = ""
    shared: Shared | None = None

    def options(self, given: "Options") -> "Options":
        """What was given, and what the shell was given where it says nothing."""
        return given.over(self.shared.defaults) if self.shared else given

    def workspace(self, options: "Options") -> "Workspace":
        """The project in its environment; nothing is connected to. Raises KdeclareError."""
        import os

        from kdeclare.app.workspace import open_workspace

        connections = self.shared.connections if self.shared else None
        return open_workspace(options, os.environ, keeper=connections)
