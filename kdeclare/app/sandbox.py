"""A sandbox as a person asks for it: what is not said stays as it is."""

from collections.abc import Callable
from pathlib import Path

from kdeclare import sandbox
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.sandbox import GroupSettings, GroupStatus, SandboxSettings, SandboxStatus

Progress = Callable[[str], None]

Sandbox = SandboxStatus | GroupStatus
"""One cluster in the folder itself, or several in its subfolders."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was said about a sandbox; None is as the one in the folder has it, or the default."""

    clusters: int | None = None
    brokers: int | None = None
    racks: int | None = None
    port: int | None = None
    connect_workers: int | None = None
    secure: bool | None = None


def start_sandbox(folder: Path, asked: Asked, progress: Progress) -> Sandbox:
    """Bring it up. Raises KdeclareError."""
    several = sandbox.group_settings(folder)
    if several is None and asked.clusters in (None, 1):
        return sandbox.start(_wanted(folder, asked), progress)
    if asked.connect_workers or asked.secure:
        raise _of_one(folder, "Connect workers" if asked.connect_workers else "Users and their rights")
    if several is None:
        alone = _wanted(folder, asked)
        several = GroupSettings(folder, asked.clusters or 1, alone.brokers, alone.racks, alone.port)
    wanted = GroupSettings(
        several.folder,
        _or(asked.clusters, several.clusters),
        _or(asked.brokers, several.brokers),
        _or(asked.racks, several.racks),
        _or(asked.port, several.port),
    )
    return sandbox.start_group(wanted, progress)


def stop_sandbox(folder: Path) -> Sandbox:
    """Stop its brokers and workers; the data stays. Raises KdeclareError."""
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


def _wanted(folder: Path, asked: Asked) -> SandboxSettings:
    there = sandbox.status(folder).settings
    usual = SandboxSettings(folder)
    if there is not None:
        usual = there
    elif asked.brokers is not None:
        usual = SandboxSettings(folder, asked.brokers, min(asked.brokers, usual.racks))
    return SandboxSettings(
        folder,
        _or(asked.brokers, usual.brokers),
        _or(asked.racks, usual.racks),
        _or(asked.port, usual.port),
        log_dirs=usual.log_dirs,
        connect_workers=_or(asked.connect_workers, usual.connect_workers),
        secure=usual.secure if asked.secure is None else asked.secure,
    )


def _or(asked: int | None, usual: int) -> int:
    return usual if asked is None else asked


def _of_one(folder: Path, what: str) -> KdeclareError:
    return KdeclareError(
        error(
            "sandbox-settings",
            "Wrong sandbox settings",
            f"{what} belong to one cluster, and several clusters were asked for or are there.",
            hint="Leave --clusters, --connect-workers or --secure out, or use another folder than"
            f" {folder}: --folder DIR.",
        )
    )
