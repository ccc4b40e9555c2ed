"""Stopping and resetting a sandbox, and its single brokers."""

import shutil
import signal
from pathlib import Path

from kdeclare.cluster.sandbox import launch, processes
from kdeclare.cluster.sandbox.claiming import claimed, unheard
from kdeclare.cluster.sandbox.layout import Layout, Marker, layout_of, read_marker
from kdeclare.cluster.sandbox.ports import refuse_taken
from kdeclare.cluster.sandbox.starting import TIMEOUT_SECONDS, Rising, bring_up
from kdeclare.cluster.sandbox.status import SandboxStatus, observed, running_process, status
from kdeclare.model.diagnostics import KdeclareError, error

# Enough to close the files of thousands of partitions.
_STOP_PATIENCE_SECONDS = 60.0

# The active controller takes 5 s to give up its office. A broker that has not said good-bye to the
# controllers before most of them are gone would wait for minutes; its data is safe all the same.
_LAST_PATIENCE_SECONDS = 7.0


def stop(folder: Path) -> SandboxStatus:
    """Stop all brokers; their data stays. Does nothing where none runs.

    Only processes that are this sandbox's own are touched. A broker that does not end is killed,
    after a minute at the latest.
    """
    layout = layout_of(folder)
    if not layout.marker.exists():
        return status(folder)
    with claimed(layout, unheard):
        _stop(layout)
        return status(folder)


def reset(folder: Path) -> SandboxStatus:
    """Stop the sandbox and delete what is its own in the folder; the folder too if that empties it.

    Does nothing, and deletes nothing, where the folder is not a sandbox.
    """
    layout = layout_of(folder)
    if not layout.marker.exists():
        return status(folder)
    with claimed(layout, unheard):
        if read_marker(layout) is not None:
            _stop(layout, patience=0.0)  # no need to let them tidy up what is deleted next
            shutil.rmtree(layout.brokers, ignore_errors=True)
            layout.marker.unlink(missing_ok=True)  # last, so that an interrupted reset can be repeated
        layout.lock.unlink(missing_ok=True)
    if not any(layout.folder.iterdir()):
        layout.folder.rmdir()
    return status(folder)


def kill_broker(folder: Path, broker_id: int) -> SandboxStatus:
    """Kill one broker at once, as a crash would (SIGKILL). Does nothing if it does not run."""
    layout, marker = _existing(folder, broker_id)
    process = running_process(layout, broker_id)
    if process is not None:
        processes.send(process, signal.SIGKILL)
        processes.wait_gone([process], 10)
    return observed(layout, marker)


def start_broker(folder: Path, broker_id: int, *, timeout: float = TIMEOUT_SECONDS) -> SandboxStatus:
    """Start one broker of a sandbox again, and return when it can be used. Raises as ``start`` does."""
    layout, marker = _existing(folder, broker_id)
    with claimed(layout, unheard):
        if running_process(layout, broker_id) is None:
            refuse_taken(marker.settings(layout.folder), [broker_id])
            bring_up(launch.runtime(), [Rising(layout, marker, [broker_id], unheard)], timeout)
        return observed(layout, marker)


def _existing(folder: Path, broker_id: int) -> tuple[Layout, Marker]:
    layout = layout_of(folder)
    marker = read_marker(layout)
    if marker is None or broker_id not in marker.settings(layout.folder).broker_ids:
        raise KdeclareError(
            error(
                "sandbox-missing",
                "No such broker",
                f"There is no sandbox with a broker {broker_id} in {layout.folder}.",
                hint="Start the sandbox first.",
            )
        )
    return layout, marker


def _stop(layout: Layout, patience: float = _STOP_PATIENCE_SECONDS) -> None:
    folders = layout.brokers.iterdir() if layout.brokers.exists() else iter(())
    recorded = [processes.load(layout.broker(int(f.name)).process) for f in folders if f.name.isdigit()]
    processes.end([r for r in recorded if r is not None], patience, _LAST_PATIENCE_SECONDS)
