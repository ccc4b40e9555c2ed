"""Start the schema registry of a sandbox, and wait until it responds."""

import time
from pathlib import Path

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.java import find_java
from kdeclare.sandbox import broker_properties, health, launch, processes
from kdeclare.sandbox.folder_lock import Progress
from kdeclare.sandbox.jars import KafkaJars
from kdeclare.sandbox.layout import Layout, RegistryFiles, write_atomically
from kdeclare.sandbox.readiness import build_start_error
from kdeclare.sandbox.registry.archive import APICURIO_VERSION, RUNNER, install_archive, resolve_archive
from kdeclare.sandbox.settings import HOST, SandboxSettings
from kdeclare.sandbox.status import running_process

_HEAP = ("-Xms64m", "-Xmx256m")
_POLL_SECONDS = 0.2
_ASK_SECONDS = 2.0


def build_registry_properties(settings: SandboxSettings, files: RegistryFiles) -> dict[str, str]:
    """Return the configuration properties of the schema registry."""
    return {
        "quarkus.http.host": HOST,
        "quarkus.http.port": str(settings.registry_port),
        "quarkus.management.host": HOST,
        "quarkus.management.port": str(settings.registry_management_port),
        "quarkus.log.file.enable": "true",
        "quarkus.log.file.path": _quote(str(files.server_log)),
        "quarkus.log.file.rotation.rotate-on-boot": "false",
        "quarkus.log.console.enable": "false",
        "quarkus.http.access-log.enabled": "false",
        # A database in files, so that the schemas are still there after the next start.
        "apicurio.datasource.url": f"jdbc:h2:file:{_quote(str(files.data))}",
        "apicurio.datasource.jdbc.initial-size": "1",
        "apicurio.datasource.jdbc.min-size": "1",
        "apicurio.datasource.jdbc.max-size": "20",
        # By default, subjects and versions cannot be deleted.
        "apicurio.rest.deletion.artifact.enabled": "true",
        "apicurio.rest.deletion.artifact-version.enabled": "true",
        "apicurio.rest.deletion.artifactVersion.enabled": "true",
        # By default, the list of subjects ends after 1,000 subjects.
        "apicurio.ccompat.max-subjects": "100000",
    }


def _quote(path: str) -> str:
    """Escape ``${`` in a path, so that the registry does not treat it as a placeholder."""
    return path.replace("${", "\\${")


@dataclass(frozen=True, slots=True)
class RegistryStartup:
    """The registry to start in a sandbox."""

    layout: Layout
    settings: SandboxSettings
    java: str
    archive: Path
    progress: Progress

    def prepare(self) -> None:
        """Unpack the registry into the folder of the sandbox."""
        install_archive(self.archive, self.layout.registry.app)

    def spawn(self) -> processes.ProcessRecord:
        """Start the registry without waiting until it is ready. Return its process record."""
        files = self.layout.registry
        files.logs.mkdir(parents=True, exist_ok=True)
        properties = build_registry_properties(self.settings, files)
        write_atomically(files.properties, broker_properties.render(properties))
        self.progress("starting the schema registry")
        runtime = launch.Runtime(self.java, KafkaJars(APICURIO_VERSION, ()))
        location = f"-Dquarkus.config.locations={files.properties.as_uri()}"
        return launch.spawn(runtime, files, "registry", (*_HEAP, location, "-jar", str(files.app / RUNNER)))

    def wait(self, timeout: float) -> None:
        """Wait until the registry is ready. Raises KdeclareError ``sandbox-start``.

        timeout: the maximum time in seconds.
        """
        started_at = time.monotonic()
        files = self.layout.registry
        while not health.is_registry_ready(self.settings.registry_port, _ASK_SECONDS):
            if running_process(files) is None:
                raise build_start_error("registry", files, "The schema registry exited during startup.")
            if time.monotonic() - started_at > timeout:
                message = f"The schema registry was not ready within {timeout:.0f} s."
                raise build_start_error("registry", files, message)
            time.sleep(_POLL_SECONDS)
        self.progress(f"the schema registry is ready after {time.monotonic() - started_at:.1f} s")


def build_registry_startup(layout: Layout, settings: SandboxSettings, progress: Progress) -> RegistryStartup:
    """Find Java and the archive of the schema registry. Raises KdeclareError if either is not available."""
    return RegistryStartup(layout, settings, find_java(), resolve_archive(progress), progress)
