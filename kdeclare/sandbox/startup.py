"""Start one or several sandboxes: create sandboxes that do not exist, and start their processes."""

import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.sandbox import broker_properties, launch, processes, readiness
from kdeclare.sandbox.certificates import create_authority, issue_keystore
from kdeclare.sandbox.folder_lock import Progress, build_folder_error, claim_folder, require_empty_folder
from kdeclare.sandbox.layout import (
    Layout,
    Marker,
    SecurityFiles,
    read_marker,
    resolve_layout,
    write_atomically,
    write_marker,
)
from kdeclare.sandbox.registry.registry_startup import RegistryStartup, build_registry_startup
from kdeclare.sandbox.security import (
    ADMIN,
    BROKER,
    READER,
    WORKER,
    build_client_properties,
)
from kdeclare.sandbox.settings import SandboxSettings, require_free_ports, validate_settings
from kdeclare.sandbox.status import SandboxStatus, observe_sandbox, running_process
from kdeclare.sandbox.workers.properties import GROUP
from kdeclare.sandbox.workers.worker_startup import WorkerStartup, build_worker_startup


def create_broker_certificates(files: SecurityFiles, progress: Progress) -> None:
    """Create the certificate authority and the keystore of the brokers, if they do not exist.

    Raises KdeclareError ``sandbox-certificates``.
    """
    if not files.keystore.exists():
        progress("creating certificates")
        create_authority(files)
        issue_keystore(files, files.keystore, BROKER)


def grant_access(files: SecurityFiles, settings: SandboxSettings, progress: Progress) -> None:
    """Write the client properties of all users, and grant permissions to ``reader`` and the Connect workers.

    The client properties are written at each start, with the current path of the folder. Permissions are
    granted only once: if the client properties of a user exist, the user already has its permissions.
    Raises KdeclareError ``sandbox-access``.
    """
    _write_client_properties(files, settings, ADMIN)
    if not files.client(READER).exists():
        progress(f"granting user '{READER}' permission to describe all topics")
        _grant(files, settings, READER, *_READER_ACLS)
    _write_client_properties(files, settings, READER)
    if not settings.connect_workers:
        return
    if not files.client(WORKER).exists():
        progress(f"granting user '{WORKER}' the permissions of Connect workers")
        _grant(files, settings, WORKER, *_WORKER_ACLS)
    _write_client_properties(files, settings, WORKER)


def _write_client_properties(files: SecurityFiles, settings: SandboxSettings, user: str) -> None:
    write_atomically(
        files.client(user), broker_properties.render(build_client_properties(files, settings, user))
    )


# The reader may describe topics, the cluster and configs, which is enough for plans.
_READER_ACLS = ("--operation", "Describe", "--operation", "DescribeConfigs", "--topic", "*", "--cluster")

# Workers store their data in the topics connect-configs, connect-offsets and connect-status. Their group is
# connect, and the groups of sinks are connect-NAME. Everything else has to be granted, such as the topics of
# connectors.
_WORKER_ACLS = (
    *("--operation", "All", "--topic", f"{GROUP}-", "--group", GROUP),
    *("--resource-pattern-type", "prefixed"),
)


def _grant(files: SecurityFiles, settings: SandboxSettings, user: str, *arguments: str) -> None:
    """Grant permissions to a user with Kafka's ACL tool. Raises KdeclareError."""
    completed = launch.run_kafka_tool(
        "org.apache.kafka.tools.AclCommand",
        *("--bootstrap-server", settings.bootstrap, "--command-config", str(files.client(ADMIN))),
        *("--add", "--force", "--allow-principal", f"User:{user}", *arguments),
    )
    if completed.returncode != 0:
        output = (completed.stderr or completed.stdout).strip()
        raise KdeclareError(
            error(
                "sandbox-access",
                "Permissions could not be granted",
                f"Kafka's ACL tool exited with code {completed.returncode}:\n{output}",
                hint="Check the brokers' logs. Run kdeclare sandbox status to find them.",
            )
        )


TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class SandboxStartup:
    """A sandbox to start.

    down: the ids of the brokers to start. workers: the workers to start, if any. registry: the schema
        registry to start, if any.
    """

    layout: Layout
    marker: Marker
    down: Sequence[int]
    progress: Progress
    workers: WorkerStartup | None = None
    registry: RegistryStartup | None = None

    @property
    def settings(self) -> SandboxSettings:
        """The settings of the sandbox."""
        return self.marker.settings(self.layout.folder)


def start(
    settings: SandboxSettings, progress: Progress, *, timeout: float = TIMEOUT_SECONDS
) -> SandboxStatus:
    """Start a sandbox, and return when all its processes are ready.

    If the sandbox does not exist, it is created. Processes that are already running are not restarted. The
    settings of an existing sandbox cannot change, except that workers and a schema registry can be added. If
    the start fails or is interrupted, the started processes are killed.

    timeout: the maximum time in seconds until all brokers are ready. The same limit then applies again to the
        workers, and to the schema registry.

    Raises KdeclareError ``sandbox-settings``, ``sandbox-differs``, ``sandbox-folder``,
    ``sandbox-unreadable``, ``sandbox-format``, ``sandbox-certificates``, ``sandbox-access``,
    ``sandbox-start``, ``port-taken``, or an error of Java, the jars or the worker plug-in.
    """
    return start_all([settings], progress, timeout=timeout)[0]


def start_all(
    all_settings: Sequence[SandboxSettings], progress: Progress, *, timeout: float = TIMEOUT_SECONDS
) -> tuple[SandboxStatus, ...]:
    """Start several sandboxes in parallel, and return their statuses in the order of ``all_settings``.

    All sandboxes are checked before the first sandbox is created. If one sandbox cannot be started, all
    processes that this call has started are killed. For the timeout and the errors, see `start`.
    """
    with ExitStack() as stack:
        claimed_layouts = [_claim_layout(stack, settings, progress) for settings in all_settings]
        markers = [_resolve_marker(layout, settings) for layout, settings in claimed_layouts]
        statuses = [
            observe_sandbox(layout, m) if m else None
            for (layout, _), m in zip(claimed_layouts, markers, strict=True)
        ]
        if all(status is not None and status.ready for status in statuses):
            return tuple(status for status in statuses if status is not None)
        stopped_ids = [_list_stopped(layout, settings) for layout, settings in claimed_layouts]
        for (layout, settings), (broker_ids, worker_ids) in zip(claimed_layouts, stopped_ids, strict=True):
            registry = _needs_registry(layout, settings)
            require_free_ports(settings, broker_ids, worker_ids, registry=registry)
        runtime = launch.resolve_runtime(progress)
        startups = []
        for (layout, settings), marker, (broker_ids, worker_ids) in zip(
            claimed_layouts, markers, stopped_ids, strict=True
        ):
            sandbox_progress = progress if len(all_settings) == 1 else _prefix_progress(layout, progress)
            worker_startup = (
                build_worker_startup(layout, settings, worker_ids, sandbox_progress) if worker_ids else None
            )
            registry_startup = (
                build_registry_startup(layout, settings, sandbox_progress)
                if _needs_registry(layout, settings)
                else None
            )
            if marker is None or not marker.formatted:
                marker = _create_sandbox(runtime, layout, settings, sandbox_progress)
            write_marker(layout, marker)  # workers or a registry may have been added
            startups.append(
                SandboxStartup(layout, marker, broker_ids, sandbox_progress, worker_startup, registry_startup)
            )
        start_processes(runtime, startups, timeout)
        return tuple(observe_sandbox(one.layout, one.marker) for one in startups)


def start_processes(runtime: launch.Runtime, startups: Sequence[SandboxStartup], timeout: float) -> None:
    """Start processes, and return when they are ready. On failure, kill the started processes."""
    records: list[processes.ProcessRecord] = []
    layout = startups[0].layout
    worker_startups = [one.workers for one in startups if one.workers is not None]
    registry_startups = [one.registry for one in startups if one.registry is not None]
    try:
        for registry_startup in registry_startups:  # first, because it takes longest and needs no brokers
            layout = registry_startup.layout
            registry_startup.prepare()
            records.append(registry_startup.spawn())
        for worker_startup in worker_startups:
            layout = worker_startup.layout
            worker_startup.prepare()
        secure_startups = [one for one in startups if one.settings.secure]
        for startup in secure_startups:
            layout = startup.layout
            create_broker_certificates(layout.security, startup.progress)
        for startup in startups:
            layout = startup.layout
            for broker_id in startup.down:
                records.append(launch.spawn_broker(runtime, layout, startup.settings, broker_id))
        readiness.await_brokers(
            [readiness.StartedSandbox(r.layout, r.marker, r.down, r.progress) for r in startups], timeout
        )
        for startup in secure_startups:
            layout = startup.layout
            grant_access(layout.security, startup.settings, startup.progress)
        for worker_startup in worker_startups:
            layout = worker_startup.layout
            for record in worker_startup.spawn():
                records.append(record)  # one by one, so that they can be killed if the next start fails
        for worker_startup in worker_startups:
            worker_startup.wait(timeout)
        for registry_startup in registry_startups:
            registry_startup.wait(timeout)
    except BaseException as problem:
        for record in records:
            processes.send_signal(record, signal.SIGKILL)
        processes.await_exit(records, 10)
        if isinstance(problem, OSError):
            raise build_folder_error(layout, str(problem.strerror or problem)) from problem
        raise


def _claim_layout(
    stack: ExitStack, settings: SandboxSettings, progress: Progress
) -> tuple[Layout, SandboxSettings]:
    layout = resolve_layout(settings.folder)
    settings = replace(settings, folder=layout.folder)
    validate_settings(settings)
    stack.enter_context(claim_folder(layout, progress))
    return layout, settings


def _resolve_marker(layout: Layout, settings: SandboxSettings) -> Marker | None:
    """Return the marker file's content after adding workers or a registry; None if there is no sandbox.

    Raises KdeclareError ``sandbox-differs`` if any other setting differs, or if workers or the registry would
    be removed.
    """
    marker = read_marker(layout)
    if marker is None:
        require_empty_folder(layout)
        return None
    merged_marker = replace(
        marker,
        connect_workers=max(marker.connect_workers, settings.connect_workers),
        registry=marker.registry or settings.registry,
    )
    if merged_marker.settings(layout.folder) != settings:
        raise _build_mismatch_error(marker, settings)
    return merged_marker


def _list_stopped(layout: Layout, settings: SandboxSettings) -> tuple[list[int], list[int]]:
    """Return the ids of the brokers and workers that are not running."""
    brokers = [i for i in settings.broker_ids if running_process(layout.broker(i)) is None]
    workers = [i for i in settings.worker_ids if running_process(layout.connect.worker(i)) is None]
    return brokers, workers


def _needs_registry(layout: Layout, settings: SandboxSettings) -> bool:
    """Whether the sandbox has a schema registry that is not running."""
    return settings.registry and running_process(layout.registry) is None


def _prefix_progress(layout: Layout, progress: Progress) -> Progress:
    return lambda text: progress(f"{layout.folder.name}: {text}")


def _create_sandbox(
    runtime: launch.Runtime, layout: Layout, settings: SandboxSettings, progress: Progress
) -> Marker:
    progress(f"creating the data folders of {settings.brokers} broker(s), Kafka {runtime.jars.version}")
    marker = Marker(
        brokers=settings.brokers,
        racks=settings.racks,
        port=settings.port,
        cluster_id=launch.generate_id(),
        kafka=runtime.jars.version,
        formatted=False,
        log_dirs=settings.log_dirs,
        connect_workers=settings.connect_workers,
        secure=settings.secure,
        registry=settings.registry,
    )
    try:
        write_marker(layout, marker)
        launch.format_storage(runtime, layout, settings, marker.cluster_id)
        marker = replace(marker, formatted=True)
        write_marker(layout, marker)
    except OSError as problem:
        raise build_folder_error(layout, str(problem.strerror or problem)) from problem
    return marker


def _build_mismatch_error(marker: Marker, settings: SandboxSettings) -> KdeclareError:
    def format_settings(described: Marker | SandboxSettings) -> str:
        log_dirs_text = f", {described.log_dirs} log directories per broker" if described.log_dirs > 1 else ""
        workers_text = f", {described.connect_workers} Connect worker(s)" if described.connect_workers else ""
        secure_text = ", secure" if described.secure else ""
        registry_text = ", a schema registry" if described.registry else ""
        return (
            f"{described.brokers} broker(s) on {described.racks} rack(s), port "
            f"{described.port}{log_dirs_text}{workers_text}{secure_text}{registry_text}"
        )

    return KdeclareError(
        error(
            "sandbox-differs",
            "Sandbox has different settings",
            f"The sandbox in {settings.folder} was created with {format_settings(marker)}, "
            f"not {format_settings(settings)}.",
            hint="Start it with its existing settings, or run kdeclare sandbox reset to delete it first.",
        )
    )
