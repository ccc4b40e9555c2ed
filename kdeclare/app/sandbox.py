"""A sandbox as a person asks for it: what is not said stays as it is."""

from collections.abc import Callable
from pathlib import Path

from kdeclare.cluster import sandbox
from kdeclare.cluster.sandbox import GroupSettings, GroupStatus, SandboxSettings, SandboxStatus

Progress = Callable[[str], None]

Sandbox = SandboxStatus | GroupStatus
"""One cluster in the folder itself, or several in its subfolders."""


def start_sandbox(
    folder: Path,
    clusters: int | None,
    brokers: int | None,
    racks: int | None,
    port: int | None,
    progress: Progress,
) -> Sandbox:
    """Bring it up; None is as the sandbox in the folder has it, or the default. Raises KdeclareError."""
    several = sandbox.group_settings(folder)
    if several is None and clusters in (None, 1):
        return sandbox.start(_wanted(folder, brokers, racks, port), progress)
    if several is None:
        alone = _wanted(folder, brokers, racks, port)
        several = GroupSettings(folder, clusters or 1, alone.brokers, alone.racks, alone.port)
    wanted = GroupSettings(
        several.folder,
        several.clusters if clusters is None else clusters,
        several.brokers if brokers is None else brokers,
        several.racks if racks is None else racks,
        several.port if port is None else port,
    )
    return sandbox.start_group(wanted, progress)


def stop_sandbox(folder: Path) -> Sandbox:
    """Stop its brokers; the data stays. Raises KdeclareError."""
    several = sandbox.group_settings(folder)
    return sandbox.stop(folder) if several is None else sandbox.stop_group(several)


def reset_sandbox(folder: Path) -> None:
    """Stop it and delete its data. Raises KdeclareError."""
    several = sandbox.group_settings(folder)
    if several is None:
        sandbox.reset(folder)
    else:
        sandbox.reset_group(several)


def sandbox_status(folder: Path) -> Sandbox:
    """What it does now. Raises KdeclareError."""
    several = sandbox.group_settings(folder)
    return sandbox.status(folder) if several is None else sandbox.group_status(several)


def _wanted(folder: Path, brokers: int | None, racks: int | None, port: int | None) -> SandboxSettings:
    there = sandbox.status(folder).settings
    usual = SandboxSettings(folder)
    if there is not None:
        usual = there
    elif brokers is not None:
        usual = SandboxSettings(folder, brokers, min(brokers, usual.racks))
    return SandboxSettings(
        folder,
        usual.brokers if brokers is None else brokers,
        usual.racks if racks is None else racks,
        usual.port if port is None else port,
        log_dirs=usual.log_dirs,
    )
