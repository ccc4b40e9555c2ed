"""Start Connect workers: create keystores, install plug-ins, start processes, and wait for readiness."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.java import find_java
from kdeclare.sandbox import broker_properties, health, launch, processes
from kdeclare.sandbox.certificates import create_authority, issue_keystore
from kdeclare.sandbox.connect_jars import ConnectJars, resolve_connect_jars
from kdeclare.sandbox.folder_lock import Progress
from kdeclare.sandbox.layout import ConnectFiles, Layout, write_atomically
from kdeclare.sandbox.readiness import build_start_error, format_ids
from kdeclare.sandbox.settings import SandboxSettings
from kdeclare.sandbox.status import running_process
from kdeclare.sandbox.workers import plugins
from kdeclare.sandbox.workers.properties import build_worker_environment, build_worker_properties


def create_worker_certificates(files: ConnectFiles, worker_ids: Iterable[int]) -> None:
    """Create the certificate authority, and a keystore for each of these workers, if they do not exist.

    Raises KdeclareError ``sandbox-certificates``.
    """
    create_authority(files)
    for worker_id in worker_ids:
        if not files.worker(worker_id).keystore.exists():
            issue_keystore(files, files.worker(worker_id).keystore, f"worker-{worker_id}")


_POLL_SECONDS = 0.2
_ASK_SECONDS = 5.0


def await_workers(
    layout: Layout, settings: SandboxSettings, started_ids: Sequence[int], progress: Progress, timeout: float
) -> None:
    """Wait until two consecutive checks find all running workers healthy.

    A single check is not enough, because the group rebalances when a worker joins. started_ids: the ids of
    the workers that were not running before. Raises KdeclareError ``sandbox-start`` if a worker ends, or if
    the wait takes longer than ``timeout`` seconds.
    """
    started_at = time.monotonic()
    running_ids = [i for i in settings.worker_ids if running_process(layout.connect.worker(i)) is not None]
    progress(f"starting Connect worker(s) {format_ids(started_ids)}")
    ready_ids: set[int] = set()
    while True:
        _require_running(layout, running_ids)
        healthy_ids = {i for i in running_ids if health.is_healthy(settings.get_worker_port(i), _ASK_SECONDS)}
        for worker_id in sorted((healthy_ids - ready_ids).intersection(started_ids)):
            progress(f"worker {worker_id} is ready after {time.monotonic() - started_at:.1f} s")
        if healthy_ids == ready_ids == set(running_ids):
            return
        ready_ids |= healthy_ids
        unready_ids = [i for i in running_ids if i not in healthy_ids]
        if unready_ids and time.monotonic() - started_at > timeout:
            message = f"Worker(s) {format_ids(unready_ids)} were not ready within {timeout:.0f} s."
            raise build_start_error("Connect worker", layout.connect.worker(unready_ids[0]), message)
        time.sleep(_POLL_SECONDS)


def _require_running(layout: Layout, worker_ids: Iterable[int]) -> None:
    for worker_id in worker_ids:
        files = layout.connect.worker(worker_id)
        if running_process(files) is None:
            raise build_start_error("Connect worker", files, f"Worker {worker_id} exited during startup.")


# Three workers and three brokers must fit into 4 GiB of memory.
_HEAP = ("-Xms32m", "-Xmx192m")
_MAIN_CLASS = "org.apache.kafka.connect.cli.ConnectDistributed"


@dataclass(frozen=True, slots=True)
class WorkerStartup:
    """The Connect workers to start in a sandbox.

    down: the ids of the workers to start. overrides: settings for these workers that apply until their next
    start; None removes a setting.
    """

    layout: Layout
    settings: SandboxSettings
    down: Sequence[int]
    java: str
    jars: ConnectJars
    progress: Progress
    overrides: Mapping[str, str | None] = field(default_factory=dict)

    def prepare(self) -> None:
        """Create the missing keystores of workers, and copy plug-ins into the plug-in folder.

        Raises KdeclareError ``sandbox-certificates``, ``plugin-build`` or ``plugin-folder``.
        """
        files = self.layout.connect
        if any(not files.worker(i).keystore.exists() for i in self.down):
            self.progress("creating certificates for Connect workers")
        create_worker_certificates(files, self.down)
        plugins.install(files.plugins, self.jars, self.progress)

    def spawn(self) -> Iterator[processes.ProcessRecord]:
        """Start the workers without waiting until they are ready, and yield their process records."""
        runtime = launch.Runtime(self.java, self.jars)
        connect_files = self.layout.connect
        for worker_id in self.down:
            files = connect_files.worker(worker_id)
            files.logs.mkdir(parents=True, exist_ok=True)
            write_atomically(files.properties, broker_properties.render(self._build_properties(worker_id)))
            arguments = (*_HEAP, _MAIN_CLASS, str(files.properties))
            yield launch.spawn(
                runtime, files, "worker", arguments, build_worker_environment(worker_id, connect_files)
            )

    def wait(self, timeout: float) -> None:
        """Wait until the workers are ready. Raises KdeclareError ``sandbox-start``.

        timeout: the maximum time in seconds.
        """
        await_workers(self.layout, self.settings, self.down, self.progress, timeout)

    def _build_properties(self, worker_id: int) -> dict[str, str]:
        connect_files = self.layout.connect
        default_properties = build_worker_properties(
            self.settings,
            worker_id,
            connect_files,
            plugins.find_extensions(connect_files.plugins),
            self.layout.security,
        )
        merged = {**default_properties, **self.overrides}
        return {key: value for key, value in merged.items() if value is not None}


def build_worker_startup(
    layout: Layout,
    settings: SandboxSettings,
    worker_ids: Sequence[int],
    progress: Progress,
    overrides: Mapping[str, str | None] | None = None,
) -> WorkerStartup:
    """Find Java and the jars for workers. Raises KdeclareError if Java or the jars are not available."""
    return WorkerStartup(
        layout, settings, worker_ids, find_java(), resolve_connect_jars(progress), progress, overrides or {}
    )
