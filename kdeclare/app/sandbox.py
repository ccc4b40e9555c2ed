"""Start, stop and inspect a sandbox. Settings that are not given keep their current values."""

from collections.abc import Callable
from pathlib import Path

from kdeclare import sandbox
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.sandbox import GroupSettings, GroupStatus, SandboxSettings, SandboxStatus

Progress = Callable[[str], None]

Sandbox = SandboxStatus | GroupStatus
"""A sandbox with one cluster in the folder itself, or with several clusters in subfolders."""


@dataclass(frozen=True, slots=True)
class SandboxRequest:
    """Requested settings of a sandbox.

    None means the current value of an existing sandbox, or the default of a new sandbox.
    """

    clusters: int | None = None
    brokers: int | None = None
    racks: int | None = None
    port: int | None = None
    connect_workers: int | None = None
    secure: bool | None = None
    registry: bool | None = None


def start_sandbox(folder: Path, request: SandboxRequest, progress: Progress) -> Sandbox:
    """Start the sandbox. Raises KdeclareError."""
    group_settings = sandbox.group_settings(folder)
    if group_settings is None and request.clusters in (None, 1):
        return sandbox.start(_resolve_settings(folder, request), progress)
    if group_settings is None:
        single_settings = _resolve_settings(folder, request)
        group_settings = GroupSettings(
            folder,
            request.clusters or 1,
            single_settings.brokers,
            single_settings.racks,
            single_settings.port,
            single_settings.connect_workers,
            single_settings.secure,
            single_settings.registry,
        )
    requested_settings = GroupSettings(
        group_settings.folder,
        _choose_number(request.clusters, group_settings.clusters),
        _choose_number(request.brokers, group_settings.brokers),
        _choose_number(request.racks, group_settings.racks),
        _choose_number(request.port, group_settings.port),
        _choose_number(request.connect_workers, group_settings.connect_workers),
        group_settings.secure if request.secure is None else request.secure,
        group_settings.registry if request.registry is None else request.registry,
    )
    return sandbox.start_group(requested_settings, progress)


def stop_sandbox(folder: Path) -> Sandbox:
    """Stop all processes and keep the data. Raises KdeclareError."""
    group_settings = sandbox.group_settings(folder)
    return sandbox.stop(folder) if group_settings is None else sandbox.stop_group(group_settings)


def reset_sandbox(folder: Path) -> None:
    """Stop the sandbox and delete its data. Raises KdeclareError."""
    group_settings = sandbox.group_settings(folder)
    if group_settings is None:
        sandbox.reset(folder)
    else:
        sandbox.reset_group(group_settings)


def read_sandbox_status(folder: Path) -> Sandbox:
    """Return the current status of the sandbox. Raises KdeclareError."""
    group_settings = sandbox.group_settings(folder)
    return sandbox.status(folder) if group_settings is None else sandbox.group_status(group_settings)


def _resolve_settings(folder: Path, request: SandboxRequest) -> SandboxSettings:
    existing_settings = sandbox.status(folder).settings
    default_settings = SandboxSettings(folder)
    if existing_settings is not None:
        default_settings = existing_settings
    elif request.brokers is not None:
        default_settings = SandboxSettings(
            folder, request.brokers, min(request.brokers, default_settings.racks)
        )
    return SandboxSettings(
        folder,
        _choose_number(request.brokers, default_settings.brokers),
        _choose_number(request.racks, default_settings.racks),
        _choose_number(request.port, default_settings.port),
        log_dirs=default_settings.log_dirs,
        connect_workers=_choose_number(request.connect_workers, default_settings.connect_workers),
        secure=default_settings.secure if request.secure is None else request.secure,
        registry=default_settings.registry if request.registry is None else request.registry,
    )


def _choose_number(requested: int | None, default: int) -> int:
    return default if requested is None else requested
