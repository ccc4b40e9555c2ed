"""Requests to start a sandbox, without starting it."""

from collections.abc import Callable

from kdeclare import sandbox
from kdeclare.sandbox import SandboxSettings, SandboxStatus
from tests.unit.cli.command_line import CommandLine


def starts(
    kdeclare: CommandLine, status: Callable[[SandboxSettings], SandboxStatus]
) -> list[SandboxSettings]:
    """What will be asked for; ``status`` is what is said to have come of it."""
    asked: list[SandboxSettings] = []

    def start(wanted: SandboxSettings, progress: object) -> SandboxStatus:
        asked.append(wanted)
        return status(wanted)

    kdeclare.monkeypatch.setattr(sandbox, "start", start)
    return asked
