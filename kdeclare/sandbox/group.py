"""Groups of Kafka clusters on this machine that are started, stopped and reset together.

Each cluster is a sandbox in a subfolder of the group's folder.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.sandbox import control
from kdeclare.sandbox.folder_lock import Progress, claim_folder, ignore_progress, require_empty_folder
from kdeclare.sandbox.layout import Layout, build_marker_error, resolve_layout, write_atomically
from kdeclare.sandbox.settings import GroupSettings, validate_group
from kdeclare.sandbox.startup import TIMEOUT_SECONDS, start_all
from kdeclare.sandbox.status import BrokerStatus, SandboxStatus, status

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The status of several clusters in one folder.

    The ``exists`` field of a cluster is false if the cluster was reset separately or was never created.
    """

    settings: GroupSettings
    clusters: tuple[SandboxStatus, ...]

    @property
    def folder(self) -> Path:
        """The folder that contains all clusters."""
        return self.settings.folder

    @property
    def exists(self) -> bool:
        """Always true, because this object is created only for a folder with several clusters."""
        return True

    @property
    def running(self) -> bool:
        """Whether a process of one of the clusters is running."""
        return any(cluster.running for cluster in self.clusters)

    @property
    def ready(self) -> bool:
        """Whether all clusters are ready."""
        return all(cluster.ready for cluster in self.clusters)

    @property
    def brokers(self) -> tuple[BrokerStatus, ...]:
        """The brokers of all clusters."""
        return tuple(broker for cluster in self.clusters for broker in cluster.brokers)


def group_settings(folder: Path) -> GroupSettings | None:
    """Return the settings of the clusters in a folder. Return None if the folder is not a group of clusters.

    Raises KdeclareError ``sandbox-unreadable``.
    """
    layout = resolve_layout(folder)
    try:
        content: dict[str, Any] = json.loads(layout.group_marker.read_text("utf-8"))
        if content["kdeclare_sandboxes"] != _FORMAT:
            raise build_marker_error(layout.group_marker, "a different version of kdeclare wrote the file")
        return GroupSettings(
            layout.folder,
            clusters=int(content["clusters"]),
            brokers=int(content["brokers"]),
            racks=int(content["racks"]),
            port=int(content["port"]),
            connect_workers=int(content.get("connect_workers", 0)),
            secure=bool(content.get("secure", False)),
            registry=bool(content.get("registry", False)),
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise build_marker_error(layout.group_marker, str(problem.strerror)) from problem
    except (ValueError, KeyError, TypeError) as problem:
        raise build_marker_error(layout.group_marker, "kdeclare did not write the file") from problem


def group_status(settings: GroupSettings) -> GroupStatus:
    """Return the status of all clusters. Raises KdeclareError ``sandbox-unreadable``."""
    return GroupStatus(settings, _run_for_each(settings, status))


def start_group(
    settings: GroupSettings, progress: Progress, *, timeout: float = TIMEOUT_SECONDS
) -> GroupStatus:
    """Start all clusters in parallel. Raises the errors of `start`.

    timeout: the maximum time in seconds; see `start`.
    """
    layout = resolve_layout(settings.folder)
    settings = replace(settings, folder=layout.folder)
    validate_group(settings)
    with claim_folder(layout, progress):
        existing_settings = group_settings(layout.folder)
        if existing_settings is None:
            if layout.marker.exists():
                raise _build_mismatch_error("has one cluster", settings)
            require_empty_folder(layout)
            _write_group_marker(layout, settings)
        elif existing_settings != settings:
            raise _build_mismatch_error(f"was created with {_format_settings(existing_settings)}", settings)
        return GroupStatus(settings, start_all(settings.members, progress, timeout=timeout))


def stop_group(settings: GroupSettings) -> GroupStatus:
    """Stop all clusters and keep their data."""
    with claim_folder(resolve_layout(settings.folder), ignore_progress):
        return GroupStatus(settings, _run_for_each(settings, control.stop))


def reset_group(settings: GroupSettings) -> None:
    """Stop all clusters and delete their files. If the folder is empty afterwards, delete the folder."""
    layout = resolve_layout(settings.folder)
    with claim_folder(layout, ignore_progress):
        _run_for_each(settings, control.reset)
        layout.group_marker.unlink(missing_ok=True)  # last, so that an interrupted reset can be repeated
        layout.lock.unlink(missing_ok=True)
    if not any(layout.folder.iterdir()):
        layout.folder.rmdir()


def _run_for_each(settings: GroupSettings, run: Callable[[Path], SandboxStatus]) -> tuple[SandboxStatus, ...]:
    with ThreadPoolExecutor(max_workers=settings.clusters) as pool:
        return tuple(pool.map(lambda member: run(member.folder), settings.members))


def _write_group_marker(layout: Layout, settings: GroupSettings) -> None:
    content = {
        "kdeclare_sandboxes": _FORMAT,
        "clusters": settings.clusters,
        "brokers": settings.brokers,
        "racks": settings.racks,
        "port": settings.port,
        "connect_workers": settings.connect_workers,
        "secure": settings.secure,
        "registry": settings.registry,
    }
    write_atomically(layout.group_marker, json.dumps(content, indent=2) + "\n")


def _format_settings(settings: GroupSettings) -> str:
    brokers = f"{settings.brokers} broker(s) on {settings.racks} rack(s)"
    workers = f", {settings.connect_workers} Connect worker(s) each" if settings.connect_workers else ""
    secure = ", secure" if settings.secure else ""
    registry = ", a schema registry each" if settings.registry else ""
    return f"{settings.clusters} clusters of {brokers}, port {settings.port}{workers}{secure}{registry}"


def _build_mismatch_error(difference: str, settings: GroupSettings) -> KdeclareError:
    return KdeclareError(
        error(
            "sandbox-differs",
            "Sandbox has different settings",
            f"The sandbox in {settings.folder} {difference}, not {_format_settings(settings)}.",
            hint="Start it with its existing settings, or run kdeclare sandbox reset to delete it first.",
        )
    )
