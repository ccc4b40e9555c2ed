"""The way to Connect workers, for a project."""

from collections.abc import Mapping
from pathlib import Path

from kdeclare.cluster.connect.port import ConnectWorkers, Door
from kdeclare.manifests.substitution import resolve_reference
from kdeclare.model.workers import WorkerGroup


def door_of(folder: Path, environ: Mapping[str, str], timeout_s: float) -> Door:
    """Opens groups whose files and references are relative to ``folder``."""

    def door(group: WorkerGroup) -> ConnectWorkers:
        from kdeclare.cluster.connect.opening import opened  # httpx: most commands meet no worker

        return opened(group, folder, lambda text: resolve_reference(text, folder, environ), timeout_s)

    return door
