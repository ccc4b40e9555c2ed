"""Run Java for a sandbox: format the storage, start brokers, and run Kafka's command-line tools."""

import base64
import os
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.child_environ import build_child_environ
from kdeclare.java import find_java
from kdeclare.sandbox import broker_properties, processes, security
from kdeclare.sandbox.jars import KafkaJars, Progress, ignore_progress, kafka_jars
from kdeclare.sandbox.layout import Layout, ProcessFiles, write_atomically
from kdeclare.sandbox.settings import SandboxSettings

# Kafka's environment variable for heap options. If it is set, brokers use these options. Sandboxes with many
# topics need a larger heap.
HEAP_VARIABLE = "KAFKA_HEAP_OPTS"

# In short runs on few cores, the second JIT compiler and a concurrent garbage collector cost more time than
# they save.
_FAST_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData")
_BROKER_HEAP = ("-Xms64m", "-Xmx384m")
_SERVER_JVM = ("-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true")
_HERE = Path(__file__).parent
_FORMAT_TIMEOUT_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Runtime:
    """Java and the jars that are needed to run Kafka. java: the path of the ``java`` command."""

    java: str
    jars: KafkaJars

    def environment(self) -> dict[str, str]:
        """Return the environment for Java. CLASSPATH contains the jars, so that command lines stay short."""
        return {**build_child_environ(os.environ), "CLASSPATH": self.jars.classpath}


def resolve_runtime(progress: Progress = ignore_progress) -> Runtime:
    """Find Java and the jars of Kafka. Raises KdeclareError if Java or the jars are not available."""
    java = find_java()
    return Runtime(java, kafka_jars(progress))


def generate_id() -> str:
    """Return a random id in Kafka's format: 22 characters of URL-safe base64, not starting with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def write_broker_properties(layout: Layout, settings: SandboxSettings, broker_id: int) -> None:
    """Write the ``server.properties`` of a broker, with the current path of the sandbox folder."""
    files = layout.broker(broker_id)
    files.logs.mkdir(parents=True, exist_ok=True)
    properties = broker_properties.broker_properties(settings, broker_id, *files.log_dirs(settings.log_dirs))
    if settings.secure:
        properties |= security.broker_properties(layout.security)
    write_atomically(files.properties, broker_properties.render(properties))


def format_storage(runtime: Runtime, layout: Layout, settings: SandboxSettings, cluster_id: str) -> None:
    """Format the data folders of all brokers. Raises KdeclareError ``sandbox-format``.

    Kafka's storage tool runs only for the first broker, because starting a JVM for each broker would be slow.
    The formatted folders are copied for the other brokers. Only the node id and the directory id differ.
    """
    shutil.rmtree(layout.brokers, ignore_errors=True)
    for broker_id in settings.broker_ids:
        write_broker_properties(layout, settings, broker_id)
    first_broker = layout.broker(1)
    command = [runtime.java, *_FAST_START, *_build_tool_options(), "kafka.tools.StorageTool", "format"]
    command += ["--cluster-id", cluster_id, "--config", str(first_broker.properties)]
    if settings.secure:
        command += security.build_format_arguments()
    try:
        completed = subprocess.run(
            command,
            env=runtime.environment(),
            capture_output=True,
            text=True,
            timeout=_FORMAT_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise _build_format_error(layout, f"did not finish within {_FORMAT_TIMEOUT_SECONDS} s.") from problem
    if completed.returncode != 0:
        output = (completed.stderr or completed.stdout).strip()
        raise _build_format_error(layout, f"exited with code {completed.returncode}:\n{output}")
    for broker_id in settings.broker_ids[1:]:
        broker_log_dirs = layout.broker(broker_id).log_dirs(settings.log_dirs)
        for template_dir, log_dir in zip(
            first_broker.log_dirs(settings.log_dirs), broker_log_dirs, strict=True
        ):
            shutil.copytree(template_dir, log_dir)
            template_text = (template_dir / "meta.properties").read_text("latin-1")
            (log_dir / "meta.properties").write_text(
                render_meta_properties(template_text, broker_id, generate_id()), "latin-1"
            )


def render_meta_properties(template: str, node_id: int, directory_id: str) -> str:
    """Render the ``meta.properties`` of a node. template: the ``meta.properties`` of another node."""
    node_values = {"node.id": str(node_id), "directory.id": directory_id}
    lines = (line.partition("=") for line in template.splitlines())
    return "".join(f"{key}{sep}{node_values.get(key, value)}\n" for key, sep, value in lines)


def spawn_broker(
    runtime: Runtime, layout: Layout, settings: SandboxSettings, broker_id: int
) -> processes.ProcessRecord:
    """Start a broker without waiting until it is ready. Save and return its process record."""
    write_broker_properties(layout, settings, broker_id)
    files = layout.broker(broker_id)
    return spawn(
        runtime, files, "broker", (*_get_heap_options(os.environ), "kafka.Kafka", str(files.properties))
    )


def spawn(
    runtime: Runtime,
    files: ProcessFiles,
    role: str,
    arguments: Iterable[str],
    environment: Mapping[str, str] | None = None,
) -> processes.ProcessRecord:
    """Start the JVM of a broker or worker. Save and return its process record.

    The folder for logs must exist. role: ``broker`` or ``worker``. arguments: the heap options, the main
    class and its arguments. environment: additional environment variables.
    """
    marker_option = f"-Dkdeclare.sandbox.{role}={files.folder}"
    command = [
        runtime.java,
        marker_option,
        f"-Dkdeclare.logs={files.logs}",
        *_build_logging_options("log4j2-server.properties"),
    ]
    command += [*_FAST_START, *_SERVER_JVM, *arguments]
    # Each start writes a new log. The log of the previous start is kept, to show why the server ended.
    for log_file in (files.server_log, files.console_log):
        if log_file.exists():
            log_file.replace(log_file.with_suffix(".previous.log"))
    record = processes.spawn(
        command, {**runtime.environment(), **(environment or {})}, files.console_log, marker_option
    )
    processes.write_record(record, files.process)
    return record


def resolve_kafka_classpath(progress: Progress = ignore_progress) -> str:
    """Return the class path of the Kafka version that sandboxes use. It includes the command-line tools."""
    return kafka_jars(progress).classpath


def run_kafka_tool(main_class: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command-line tool of Kafka, and return its exit code and its output as text.

    main_class: for example ``org.apache.kafka.tools.TopicCommand`` or ``kafka.admin.ConfigCommand``.
    """
    runtime = resolve_runtime()
    command = [runtime.java, *_FAST_START, *_build_tool_options(), main_class, *arguments]
    return subprocess.run(command, env=runtime.environment(), capture_output=True, text=True, check=False)


def _build_format_error(layout: Layout, outcome: str) -> KdeclareError:
    return KdeclareError(
        error(
            "sandbox-format",
            "Data folders could not be created",
            f"Kafka's storage tool {outcome}",
            hint=f"Check that {layout.folder} is writable and has free space.",
        )
    )


def _get_heap_options(environment: Mapping[str, str]) -> tuple[str, ...]:
    heap_options = environment.get(HEAP_VARIABLE)
    return tuple(shlex.split(heap_options)) if heap_options else _BROKER_HEAP


def _build_tool_options() -> tuple[str, ...]:
    return ("-Xmx256m", *_build_logging_options("log4j2-tool.properties"))


def _build_logging_options(file: str) -> tuple[str, ...]:
    return (f"-Dlog4j2.configurationFile={(_HERE / file).as_uri()}",)
