"""Connect workers on their way up: what they need is made, then their processes are started."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kdeclare.java import find_java
from kdeclare.sandbox import config, launch, processes
from kdeclare.sandbox.claiming import Progress
from kdeclare.sandbox.connect_jars import ConnectJars, connect_jars
from kdeclare.sandbox.layout import Layout, write_whole
from kdeclare.sandbox.settings import SandboxSettings
from kdeclare.sandbox.workers import plugins, readiness
from kdeclare.sandbox.workers.keystores import certify
from kdeclare.sandbox.workers.properties import worker_environment, worker_properties

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
            write_whole(files.properties, config.render(self._properties(worker_id)))
            arguments = (*_HEAP, _MAIN, str(files.properties))
            yield launch.spawn(runtime, files, "worker", arguments, worker_environment(worker_id, shared))

    def wait(self, timeout: float) -> None:
        """Return when they can be used. Raise KdeclareError ``sandbox-start``."""
        readiness.wait(self.layout, self.settings, self.down, self.progress, timeout)

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
