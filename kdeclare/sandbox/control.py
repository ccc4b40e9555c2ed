"""Stop and reset a sandbox, and stop and start its individual brokers and workers."""

import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox import launch, processes
from kdeclare.sandbox.certificates import CERTIFICATE_DAYS, issue_keystore
from kdeclare.sandbox.folder_lock import claim_folder, ignore_progress
from kdeclare.sandbox.layout import Layout, Marker, ProcessFiles, read_marker, resolve_layout
from kdeclare.sandbox.settings import require_free_ports
from kdeclare.sandbox.startup import TIMEOUT_SECONDS, SandboxStartup, start_processes
from kdeclare.sandbox.status import SandboxStatus, observe_sandbox, running_process, status
from kdeclare.sandbox.workers.worker_startup import build_worker_startup

# A broker needs this time to close the files of thousands of partitions.
_STOP_PATIENCE_SECONDS = 60.0

# Connect gives its tasks five seconds, but waits much longer for open connections of its REST server.
_WORKER_PATIENCE_SECONDS = 30.0

# The active controller takes 5 s to resign. If most controllers end before a broker has finished its
# controlled shutdown, the broker waits for minutes, although its data is safe.
_LAST_PATIENCE_SECONDS = 7.0


def stop(folder: Path) -> SandboxStatus:
    """Stop all workers, brokers and the schema registry of a sandbox, and keep their data.

    Processes that do not belong to the sandbox are not stopped. A worker or registry that does not end is
    killed after 30 seconds. A broker that does not end is killed after 60 seconds, or 7 seconds after the
    first broker has ended, whichever comes first.
    """
    layout = resolve_layout(folder)
    if not layout.marker.exists():
        return status(folder)
    with claim_folder(layout, ignore_progress):
        _stop_processes(layout)
        return status(folder)


def reset(folder: Path) -> SandboxStatus:
    """Stop the sandbox and delete its files. If the folder is empty afterwards, delete the folder.

    If the folder is not a sandbox, nothing is deleted.
    """
    layout = resolve_layout(folder)
    if not layout.marker.exists():
        return status(folder)
    with claim_folder(layout, ignore_progress):
        if read_marker(layout) is not None:
            _stop_processes(layout, patience=0.0)  # no clean shutdown, because the data will be deleted
            for folder in (layout.connect.folder, layout.security.folder, layout.registry.folder):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(layout.brokers, ignore_errors=True)
            layout.marker.unlink(missing_ok=True)  # last, so that an interrupted reset can be repeated
        layout.lock.unlink(missing_ok=True)
    if not any(layout.folder.iterdir()):
        layout.folder.rmdir()
    return status(folder)


def kill_broker(folder: Path, broker_id: int) -> SandboxStatus:
    """Kill one broker with SIGKILL to simulate a crash. Do nothing if the broker is not running."""
    layout, marker = _require_broker(folder, broker_id)
    _kill_process(layout.broker(broker_id))
    return observe_sandbox(layout, marker)


def kill_worker(folder: Path, worker_id: int) -> SandboxStatus:
    """Kill one Connect worker with SIGKILL to simulate a crash. Do nothing if the worker is not running.

    The other workers of the group notice the crash after ten seconds (``session.timeout.ms``).
    """
    layout, marker = _require_worker(folder, worker_id)
    _kill_process(layout.connect.worker(worker_id))
    return observe_sandbox(layout, marker)


def start_broker(folder: Path, broker_id: int, *, timeout: float = TIMEOUT_SECONDS) -> SandboxStatus:
    """Start one stopped broker of a sandbox, and return when it is ready. Raises the errors of `start`.

    timeout: the maximum time in seconds until the broker is ready.
    """
    layout, marker = _require_broker(folder, broker_id)
    with claim_folder(layout, ignore_progress):
        if running_process(layout.broker(broker_id)) is None:
            require_free_ports(marker.settings(layout.folder), [broker_id])
            start_processes(
                launch.resolve_runtime(),
                [SandboxStartup(layout, marker, [broker_id], ignore_progress)],
                timeout,
            )
        return observe_sandbox(layout, marker)


def start_worker(
    folder: Path,
    worker_id: int,
    *,
    overrides: Mapping[str, str | None] | None = None,
    timeout: float = TIMEOUT_SECONDS,
) -> SandboxStatus:
    """Start one stopped Connect worker, and return when it is ready. Raises the errors of `start`.

    overrides: settings for the worker that apply until its next start; None removes a setting. timeout: the
    maximum time in seconds until the worker is ready.
    """
    layout, marker = _require_worker(folder, worker_id)
    with claim_folder(layout, ignore_progress):
        if running_process(layout.connect.worker(worker_id)) is None:
            settings = marker.settings(layout.folder)
            require_free_ports(settings, (), [worker_id])
            worker_startup = build_worker_startup(layout, settings, [worker_id], ignore_progress, overrides)
            start_processes(
                launch.resolve_runtime(),
                [SandboxStartup(layout, marker, (), ignore_progress, worker_startup)],
                timeout,
            )
        return observe_sandbox(layout, marker)


def issue_certificate(folder: Path, worker_id: int, file: str, *, days: int = CERTIFICATE_DAYS) -> Path:
    """Create a keystore with a new key and certificate for a Connect worker, and return the keystore's path.

    The worker does not use the keystore until its configuration refers to it. The certificate authority of
    the sandbox signs the certificate, which is valid for ``days`` days. ``file`` is the name of the keystore
    in the folder of the worker. In the worker's configuration, ``${env:WORKER_FOLDER}`` is this folder, and
    ``${env:KEYSTORE_PASSWORD}`` is the password of the keystore. Raises KdeclareError ``sandbox-missing`` or
    ``sandbox-certificates``.
    """
    layout, _ = _require_worker(folder, worker_id)
    keystore = layout.connect.worker(worker_id).folder / file
    issue_keystore(layout.connect, keystore, f"worker-{worker_id}", days)
    return keystore


def _kill_process(files: ProcessFiles) -> None:
    process = running_process(files)
    if process is not None:
        processes.send_signal(process, signal.SIGKILL)
        processes.await_exit([process], 10)


def _require_broker(folder: Path, broker_id: int) -> tuple[Layout, Marker]:
    layout = resolve_layout(folder)
    marker = read_marker(layout)
    if marker is None or broker_id not in marker.settings(layout.folder).broker_ids:
        raise _build_missing_error(
            layout, f"broker {broker_id}", f"Start a new sandbox with --brokers {broker_id} or more."
        )
    return layout, marker


def _require_worker(folder: Path, worker_id: int) -> tuple[Layout, Marker]:
    layout = resolve_layout(folder)
    marker = read_marker(layout)
    if marker is None or worker_id not in marker.settings(layout.folder).worker_ids:
        hint = f"Start the sandbox with --connect-workers {worker_id} or more."
        raise _build_missing_error(layout, f"Connect worker {worker_id}", hint)
    return layout, marker


def _build_missing_error(layout: Layout, member: str, hint: str) -> KdeclareError:
    return KdeclareError(
        error(
            "sandbox-missing",
            "Broker or worker not found",
            f"There is no sandbox with {member} in {layout.folder}.",
            hint=hint,
        )
    )


def _stop_processes(layout: Layout, patience: float = _STOP_PATIENCE_SECONDS) -> None:
    # Stop workers first: without brokers, a worker cannot leave its group, and would wait.
    worker_patience = min(patience, _WORKER_PATIENCE_SECONDS)
    records = _read_records(layout.connect.workers)
    registry = processes.read_record(layout.registry.process)
    if registry is not None:
        records.append(registry)
    processes.terminate(records, worker_patience, worker_patience)
    processes.terminate(_read_records(layout.brokers), patience, _LAST_PATIENCE_SECONDS)


def _read_records(parent: Path) -> list[processes.ProcessRecord]:
    folders = parent.iterdir() if parent.exists() else iter(())
    records = (processes.read_record(ProcessFiles(one).process) for one in folders if one.name.isdigit())
    return [one for one in records if one is not None]
