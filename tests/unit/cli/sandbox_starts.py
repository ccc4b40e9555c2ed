"""Requests to start a sandbox, without starting it."""

from collections.abc import Callable

from kdeclare import sandbox
from kdeclare.sandbox import SandboxSettings, SandboxStatus
from tests.unit.cli.command_line import CommandLine


def record_starts(
    kdeclare: CommandLine, status: Callable[[SandboxSettings], SandboxStatus]
) -> list[SandboxSettings]:
    """Record the requested settings; ``status`` returns the status of the started sandbox."""
    asked: list[SandboxSettings] = []

    def start(wanted: SandboxSettings, progress: object) -> SandboxStatus:
        asked.append(wanted)
        return status(wanted)

    kdeclare.monkeypatch.setattr(sandbox, "start", start)
    return asked
