"""A sandbox as a person asks for it: what is not said stays as it is."""

from collections.abc import Callable
from pathlib import Path

from kdeclare.cluster import sandbox
from kdeclare.cluster.sandbox import SandboxSettings, SandboxStatus

Progress = Callable[[str], None]


def start_sandbox(
    folder: Path, brokers: int | None, racks: int | None, port: int | None, progress: Progress
) -> SandboxStatus:
    """Bring it up; None is as the sandbox in the folder has it, or the default. Raises KdeclareError."""
    there = sandbox.status(folder).settings
    usual = SandboxSettings(folder)
    if there is not None:
        usual = there
    elif brokers is not None:
        usual = SandboxSettings(folder, brokers, min(brokers, usual.racks))
    settings = SandboxSettings(
        folder,
        usual.brokers if brokers is None else brokers,
        usual.racks if racks is None else racks,
        usual.port if port is None else port,
        log_dirs=usual.log_dirs,
    )
    return sandbox.start(settings, progress)


def stop_sandbox(folder: Path) -> SandboxStatus:
    """Stop its brokers; the data stays. Raises KdeclareError."""
    return sandbox.stop(folder)


def reset_sandbox(folder: Path) -> SandboxStatus:
    """Stop it and delete its data. Raises KdeclareError."""
    return sandbox.reset(folder)


def sandbox_status(folder: Path) -> SandboxStatus:
    """What it does now. Raises KdeclareError."""
    return sandbox.status(folder)
