"""Connect workers on their way up: keystores, plug-ins, processes, and waiting until they can be used."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field

from kdeclare.core.frozen import dataclass
from kdeclare.java import find_java
from kdeclare.sandbox import broker_properties, health, launch, processes
from kdeclare.sandbox.connect_jars import ConnectJars, connect_jars
from kdeclare.sandbox.folder_lock import Progress
from kdeclare.sandbox.layout import ConnectFiles, Layout, write_whole
from kdeclare.sandbox.readiness import listed, not_started
from kdeclare.sandbox.security import issue, make_authority
from kdeclare.sandbox.settings import SandboxSettings
from kdeclare.sandbox.status import running_process
from kdeclare.sandbox.workers import plugins
from kdeclare.sandbox.workers.properties import worker_environment, worker_properties


def certify(java: str, files: ConnectFiles, worker_ids: Iterable[int]) -> None:
    """Make the authority and the keystores of these workers, as far as they are not there.

    Raise KdeclareError ``sandbox-certificates``.
    """
    make_authority(java, files)
    without = [i for i in worker_ids if not files.worker(i).keystore.exists()]

    def equip(worker_id: int) -> None:
        issue(java, files, files.worker(worker_id).keystore, f"worker-{worker_id}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(equip, without))


_POLL_SECONDS = 0.2
_ASK_SECONDS = 5.0


def wait(
    layout: Layout, settings: SandboxSettings, started: Sequence[int], progress: Progress, timeout: float
) -> None:
    """Return when all workers that run are healthy, and still were after the last one had joined.

    The group is formed anew whenever one joins. ``started``: those that did not run before.
    Raise KdeclareError ``sandbox-start`` when one ends or ``timeout`` seconds have passed.
    """
    began = time.monotonic()
    awaited = [i for i in settings.worker_ids if running_process(layout.connect.worker(i)) is not None]
    progress(f"starting Connect worker(s) {listed(started)}")
    seen: set[int] = set()
    while True:
        _refuse_ended(layout, awaited)
        healthy = {i for i in awaited if health.is_healthy(settings.worker_port(i), _ASK_SECONDS)}
        for worker_id in sorted((healthy - seen).intersection(started)):
            progress(f"worker {worker_id} is ready after {time.monotonic() - began:.1f} s")
        if healthy == seen == set(awaited):
            return
        seen |= healthy
        missing = [i for i in awaited if i not in healthy]
        if missing and time.monotonic() - began > timeout:
            said = f"Worker(s) {listed(missing)} were not ready within {timeout:.0f} s."
            raise not_started("Connect worker", layout.connect.worker(missing[0]), said)
        time.sleep(_POLL_SECONDS)


def _refuse_ended(layout: Layout, worker_ids: Iterable[int]) -> None:
    for worker_id in worker_ids:
        files = layout.connect.worker(worker_id)
        if running_process(files) is None:
            raise not_started("Connect worker", files, f"Worker {worker_id} ended while it was starting.")


# Three workers and three brokers have to fit into 4 GiB.
_HEAP = ("-Xms32m", "-Xmx192m")
_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"


@dataclass(frozen=True, slots=True)
class Crew:
    """The Connect workers of a sandbox that have to be started.

    ``down``: their ids. ``overrides``: settings for this life of them; None takes one out.
    """

    layout: Layout
    settings: SandboxSettings
    down: Sequence[int]
    java: str
    jars: ConnectJars
    progress: Progress
    overrides: Mapping[str, str | None] = field(default_factory=dict)

    def equip(self) -> None:
        """Make certificates and fill the plug-in folder, as far as that is still to be done.

        Raise KdeclareError ``sandbox-certificates``, ``plugin-build``, ``plugin-folder``.
        """
        files = self.layout.connect
        if any(not files.worker(i).keystore.exists() for i in self.down):
            self.progress("making certificates for Connect workers")
        certify(self.java, files, self.down)
        plugins.install(files.plugins, self.jars, self.progress)

    def spawn(self) -> Iterator[processes.Recorded]:
        """Start the workers' processes, recording each. They are not ready yet."""
        runtime = launch.Runtime(self.java, self.jars)
        shared = self.layout.connect
        for worker_id in self.down:
            files = shared.worker(worker_id)
            files.logs.mkdir(parents=True, exist_ok=True)
            write_whole(files.properties, broker_properties.render(self._properties(worker_id)))
            arguments = (*_HEAP, _MAIN, str(files.properties))
            yield launch.spawn(runtime, files, "worker", arguments, worker_environment(worker_id, shared))

    def wait(self, timeout: float) -> None:
        """Return when they can be used. Raise KdeclareError ``sandbox-start``."""
        wait(self.layout, self.settings, self.down, self.progress, timeout)

    def _properties(self, worker_id: int) -> dict[str, str]:
        shared = self.layout.connect
        usual = worker_properties(self.settings, worker_id, shared, plugins.extensions(shared.plugins))
        merged = {**usual, **self.overrides}
        return {key: value for key, value in merged.items() if value is not None}


def crew(
    layout: Layout,
    settings: SandboxSettings,
    down: Sequence[int],
    progress: Progress,
    overrides: Mapping[str, str | None] | None = None,
) -> Crew:
    """The workers with what they run on. Raise KdeclareError where Java or Connect's jars cannot be had."""
    return Crew(layout, settings, down, find_java(), connect_jars(progress), progress, overrides or {})
