"""Starting, stopping and resetting a sandbox."""

import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from kdeclare.cluster.sandbox import launch, processes, readiness
from kdeclare.cluster.sandbox.layout import Layout, Marker, layout_of, read_marker, write_marker
from kdeclare.cluster.sandbox.locking import held
from kdeclare.cluster.sandbox.settings import HOST, SandboxSettings, check
from kdeclare.cluster.sandbox.status import SandboxStatus, observed, running_process, status
from kdeclare.model.diagnostics import KdeclareError, error

# Enough to close the files of thousands of partitions.
_STOP_PATIENCE_SECONDS = 60.0

# The active controller takes 5 s to give up its office. A broker that has not said good-bye to the
# controllers before most of them are gone would wait for minutes; its data is safe all the same.
_LAST_PATIENCE_SECONDS = 7.0

Progress = Callable[[str], None]


def start(settings: SandboxSettings, progress: Progress, *, timeout: float = 300.0) -> SandboxStatus:
    """Bring the sandbox up and return when all its brokers can be used.

    Makes it if the folder holds none, starts what is not running, and does nothing if all runs.
    When it fails, also by an interrupt, the processes that it started are gone. ``timeout``: seconds
    until all brokers have to be ready. Raise KdeclareError ``sandbox-settings``, ``sandbox-differs``,
    ``sandbox-folder``, ``sandbox-unreadable``, ``sandbox-format``, ``sandbox-start``, ``port-taken``,
    or what Java and the jars raise.
    """
    layout = layout_of(settings.folder)
    settings = replace(settings, folder=layout.folder)
    check(settings)
    with _locked(layout, progress):
        marker = read_marker(layout)
        if marker is None:
            _refuse_foreign(layout)
        elif marker.settings(layout.folder) != settings:
            raise _differs(marker, settings)
        else:
            now = observed(layout, marker)
            if now.ready:
                return now
        down = [i for i in settings.broker_ids if running_process(layout, i) is None]
        _refuse_taken_ports(settings, down)
        kafka = launch.runtime(progress)
        if marker is None or not marker.formatted:
            marker = _make(kafka, layout, settings, progress)
        _bring_up(kafka, layout, marker, down, progress, timeout)
        return observed(layout, marker)


def stop(folder: Path) -> SandboxStatus:
    """Stop all brokers; their data stays. Does nothing where none runs.

    Only processes that are this sandbox's own are touched. A broker that does not end is killed,
    after a minute at the latest.
    """
    layout = layout_of(folder)
    if not layout.marker.exists():
        return status(folder)
    with _locked(layout, _unheard):
        _stop(layout)
        return status(folder)


def reset(folder: Path) -> SandboxStatus:
    """Stop the sandbox and delete what is its own in the folder; the folder too if that empties it.

    Does nothing, and deletes nothing, where the folder is not a sandbox.
    """
    layout = layout_of(folder)
    if not layout.marker.exists():
        return status(folder)
    with _locked(layout, _unheard):
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


def start_broker(folder: Path, broker_id: int, *, timeout: float = 300.0) -> SandboxStatus:
    """Start one broker of a sandbox again, and return when it can be used. Raises as ``start`` does."""
    layout, marker = _existing(folder, broker_id)
    with _locked(layout, _unheard):
        if running_process(layout, broker_id) is None:
            _refuse_taken_ports(marker.settings(layout.folder), [broker_id])
            _bring_up(launch.runtime(), layout, marker, [broker_id], _unheard, timeout)
        return observed(layout, marker)


def _unheard(_: str) -> None:
    return


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


@contextmanager
def _locked(layout: Layout, progress: Progress) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            layout.folder.mkdir(parents=True, exist_ok=True)
            told = "waiting for another command that uses this sandbox"
            stack.enter_context(held(layout.lock, lambda: progress(told)))
        except OSError as problem:
            raise _unusable(layout, str(problem.strerror or problem)) from problem
        yield


def _make(kafka: launch.Runtime, layout: Layout, settings: SandboxSettings, progress: Progress) -> Marker:
    progress(f"making the data folders of {settings.brokers} broker(s), Kafka {kafka.jars.version}")
    marker = Marker(
        brokers=settings.brokers,
        racks=settings.racks,
        port=settings.port,
        cluster_id=launch.new_id(),
        kafka=kafka.jars.version,
        formatted=False,
        log_dirs=settings.log_dirs,
    )
    try:
        write_marker(layout, marker)
        launch.format_storage(kafka, layout, settings, marker.cluster_id)
        marker = replace(marker, formatted=True)
        write_marker(layout, marker)
    except OSError as problem:
        raise _unusable(layout, str(problem.strerror or problem)) from problem
    return marker


def _bring_up(
    kafka: launch.Runtime,
    layout: Layout,
    marker: Marker,
    broker_ids: list[int],
    progress: Progress,
    timeout: float,
) -> None:
    settings = marker.settings(layout.folder)
    started: list[processes.Recorded] = []
    try:
        for broker_id in broker_ids:
            started.append(launch.spawn_broker(kafka, layout, settings, broker_id))
        readiness.wait(layout, marker, progress, timeout)
    except BaseException as problem:
        for process in started:
            processes.send(process, signal.SIGKILL)
        processes.wait_gone(started, 10)
        if isinstance(problem, OSError):
            raise _unusable(layout, str(problem.strerror or problem)) from problem
        raise


def _stop(layout: Layout, patience: float = _STOP_PATIENCE_SECONDS) -> None:
    folders = layout.brokers.iterdir() if layout.brokers.exists() else iter(())
    recorded = [processes.load(layout.broker(int(f.name)).process) for f in folders if f.name.isdigit()]
    processes.end([r for r in recorded if r is not None], patience, _LAST_PATIENCE_SECONDS)


def _refuse_foreign(layout: Layout) -> None:
    others = sorted(p.name for p in layout.folder.iterdir() if p != layout.lock)
    if others:
        layout.lock.unlink(missing_ok=True)
        raise _unusable(layout, f"it is not empty and not a sandbox (it holds {others[0]})")


def _refuse_taken_ports(settings: SandboxSettings, broker_ids: list[int]) -> None:
    taken = [p for i in broker_ids for p in settings.ports(i) if not is_free(p)]
    if taken:
        named = ", ".join(map(str, taken))
        raise KdeclareError(
            error(
                "port-taken",
                "A port is taken",
                f"{'Ports' if taken[1:] else 'Port'} {named} on {HOST}: in use by another process.",
                hint="Stop that process, or choose other ports with --port"
                f" (the sandbox uses {settings.port} and up, and 100 above that for controllers).",
            )
        )


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback address now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Kafka does: connections of an earlier run that linger are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _differs(marker: Marker, settings: SandboxSettings) -> KdeclareError:
    def text(made: Marker | SandboxSettings) -> str:
        folders = f", {made.log_dirs} log directories a broker" if made.log_dirs > 1 else ""
        return f"{made.brokers} broker(s) on {made.racks} rack(s), port {made.port}{folders}"

    return KdeclareError(
        error(
            "sandbox-differs",
            "The sandbox has other settings",
            f"The sandbox in {settings.folder} was made with {text(marker)}, not {text(settings)}.",
            hint="Start it with its own settings, or remove it and its data first: kdeclare sandbox reset.",
        )
    )


def _unusable(layout: Layout, why: str) -> KdeclareError:
    return KdeclareError(
        error(
            "sandbox-folder",
            "The sandbox folder cannot be used",
            f"The folder {layout.folder} cannot be used for a sandbox: {why}.",
            hint="Choose an empty or new folder that can be written to.",
        )
    )
