"""Several clusters in one folder: sandboxes in subfolders, that are started, stopped and reset together."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.sandbox import control
from kdeclare.sandbox.folder_lock import Progress, claimed, refuse_foreign, unheard
from kdeclare.sandbox.layout import Layout, layout_of, unreadable, write_whole
from kdeclare.sandbox.settings import GroupSettings, check_group
from kdeclare.sandbox.starting import TIMEOUT_SECONDS, start_all
from kdeclare.sandbox.status import BrokerStatus, SandboxStatus, status

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The clusters of a folder. One that was reset by itself, or never made, does not ``exists``."""

    settings: GroupSettings
    clusters: tuple[SandboxStatus, ...]

    @property
    def folder(self) -> Path:
        """What all of them are in."""
        return self.settings.folder

    @property
    def exists(self) -> bool:
        """Always: where there are not several clusters, there is no such status."""
        return True

    @property
    def running(self) -> bool:
        """Whether any process of any of them runs."""
        return any(cluster.running for cluster in self.clusters)

    @property
    def ready(self) -> bool:
        """Whether all brokers of all of them can be used."""
        return all(cluster.ready for cluster in self.clusters)

    @property
    def brokers(self) -> tuple[BrokerStatus, ...]:
        """The brokers of all of them."""
        return tuple(broker for cluster in self.clusters for broker in cluster.brokers)


def group_settings(folder: Path) -> GroupSettings | None:
    """What the clusters in the folder were made as; None where there are not several.

    Raise KdeclareError ``sandbox-unreadable``.
    """
    layout = layout_of(folder)
    try:
        content: dict[str, Any] = json.loads(layout.group_marker.read_text("utf-8"))
        if content["kdeclare_sandboxes"] != _FORMAT:
            raise unreadable(layout.group_marker, "another version of kdeclare wrote it")
        numbers = (int(content[name]) for name in ("clusters", "brokers", "racks", "port"))
        return GroupSettings(layout.folder, *numbers)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise unreadable(layout.group_marker, str(problem.strerror)) from problem
    except (ValueError, KeyError, TypeError) as problem:
        raise unreadable(layout.group_marker, "it is not kdeclare's") from problem


def group_status(settings: GroupSettings) -> GroupStatus:
    """The state of all clusters. Raise KdeclareError ``sandbox-unreadable``."""
    return GroupStatus(settings, _each(settings, status))


def start_group(
    settings: GroupSettings, progress: Progress, *, timeout: float = TIMEOUT_SECONDS
) -> GroupStatus:
    """Bring all clusters up side by side; to each applies what ``start`` says, and it raises the same."""
    layout = layout_of(settings.folder)
    settings = replace(settings, folder=layout.folder)
    check_group(settings)
    with claimed(layout, progress):
        made = group_settings(layout.folder)
        if made is None:
            if layout.marker.exists():
                raise _differs("is one cluster", settings)
            refuse_foreign(layout)
            _write(layout, settings)
        elif made != settings:
            raise _differs(f"was made with {_text(made)}", settings)
        return GroupStatus(settings, start_all(settings.members, progress, timeout=timeout))


def stop_group(settings: GroupSettings) -> GroupStatus:
    """Stop all clusters; their data stays."""
    with claimed(layout_of(settings.folder), unheard):
        return GroupStatus(settings, _each(settings, control.stop))


def reset_group(settings: GroupSettings) -> None:
    """Stop all clusters and delete what is theirs; the folder too if that empties it."""
    layout = layout_of(settings.folder)
    with claimed(layout, unheard):
        _each(settings, control.reset)
        layout.group_marker.unlink(missing_ok=True)  # last, so that an interrupted reset can be repeated
        layout.lock.unlink(missing_ok=True)
    if not any(layout.folder.iterdir()):
        layout.folder.rmdir()


def _each(settings: GroupSettings, act: Callable[[Path], SandboxStatus]) -> tuple[SandboxStatus, ...]:
    with ThreadPoolExecutor(max_workers=settings.clusters) as pool:
        return tuple(pool.map(lambda member: act(member.folder), settings.members))


def _write(layout: Layout, settings: GroupSettings) -> None:
    content = {
        "kdeclare_sandboxes": _FORMAT,
        "clusters": settings.clusters,
        "brokers": settings.brokers,
        "racks": settings.racks,
        "port": settings.port,
    }
    write_whole(layout.group_marker, json.dumps(content, indent=2) + "\n")


def _text(settings: GroupSettings) -> str:
    brokers = f"{settings.brokers} broker(s) on {settings.racks} rack(s)"
    return f"{settings.clusters} clusters of {brokers}, port {settings.port}"


def _differs(found: str, settings: GroupSettings) -> KdeclareError:
    return KdeclareError(
        error(
            "sandbox-differs",
            "The sandbox has other settings",
            f"The sandbox in {settings.folder} {found}, not {_text(settings)}.",
            hint="Start it with its own settings, or remove it and its data first: kdeclare sandbox reset.",
        )
    )
