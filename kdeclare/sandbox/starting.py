"""Bringing sandboxes up, one or several at once: certificates and users first, then processes."""

import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.sandbox import broker_properties, launch, processes, readiness
from kdeclare.sandbox.folder_lock import Progress, claimed, refuse_foreign, unusable
from kdeclare.sandbox.layout import (
    Layout,
    Marker,
    SecurityFiles,
    layout_of,
    read_marker,
    write_marker,
    write_whole,
)
from kdeclare.sandbox.security import ADMIN, BROKER, READER, client_properties, issue, make_authority
from kdeclare.sandbox.settings import SandboxSettings, check, refuse_taken
from kdeclare.sandbox.status import SandboxStatus, observed, running_process
from kdeclare.sandbox.workers.crew import Crew, crew


def certify(java: str, files: SecurityFiles, progress: Progress) -> None:
    """Make the authority and the brokers' keystore, as far as they are not there.

    Raise KdeclareError ``sandbox-certificates``.
    """
    if not files.keystore.exists():
        progress("making certificates")
        make_authority(java, files)
        issue(java, files, files.keystore, BROKER)


def admit(files: SecurityFiles, settings: SandboxSettings, progress: Progress) -> None:
    """Give the reader his rights, once, and write both users' client properties.

    They are written anew at each start, for where the folder is now; the reader's says that he has his
    rights. Raise KdeclareError ``sandbox-access``.
    """
    _write(files, settings, ADMIN)
    if not files.client(READER).exists():
        progress(f"letting the user '{READER}' look at all topics")
        _grant(files, settings)
    _write(files, settings, READER)


def _write(files: SecurityFiles, settings: SandboxSettings, user: str) -> None:
    write_whole(files.client(user), broker_properties.render(client_properties(files, settings, user)))


def _grant(files: SecurityFiles, settings: SandboxSettings) -> None:
    """What a plan has to read: topics and the cluster with their configs. Nothing that changes anything."""
    done = launch.run_kafka_tool(
        "org.apache.kafka.tools.AclCommand",
        *("--bootstrap-server", settings.bootstrap, "--command-config", str(files.client(ADMIN))),
        *("--add", "--force", "--allow-principal", f"User:{READER}"),
        *("--operation", "Describe", "--operation", "DescribeConfigs", "--topic", "*", "--cluster"),
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise KdeclareError(
            error(
                "sandbox-access",
                "The rights of the sandbox's users could not be granted",
                f"Kafka's tool for ACLs ended with {done.returncode}:\n{said}",
                hint="Look at the brokers' logs: kdeclare sandbox status names them.",
            )
        )


TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Rising:
    """A sandbox on its way up. ``down``: its brokers that have to be started; ``crew``: its workers."""

    layout: Layout
    marker: Marker
    down: Sequence[int]
    progress: Progress
    crew: Crew | None = None

    @property
    def settings(self) -> SandboxSettings:
        """What it consists of."""
        return self.marker.settings(self.layout.folder)


def start(
    settings: SandboxSettings, progress: Progress, *, timeout: float = TIMEOUT_SECONDS
) -> SandboxStatus:
    """Bring the sandbox up and return when all its brokers and Connect workers can be used.

    Makes it if the folder holds none, starts what is not running, and does nothing if all runs. A
    sandbox that is there can get more workers, but in nothing else become another one.
    When it fails, also by an interrupt, the processes that it started are gone. ``timeout``: seconds
    until all brokers have to be ready, and then all workers. Raise KdeclareError ``sandbox-settings``,
    ``sandbox-differs``, ``sandbox-folder``, ``sandbox-unreadable``, ``sandbox-format``,
    ``sandbox-certificates``, ``sandbox-access``, ``sandbox-start``, ``port-taken``, or what
    Java, the jars and the worker plug-in raise.
    """
    return start_all([settings], progress, timeout=timeout)[0]


def start_all(
    several: Sequence[SandboxSettings], progress: Progress, *, timeout: float = TIMEOUT_SECONDS
) -> tuple[SandboxStatus, ...]:
    """Bring sandboxes up side by side, as ``start`` does one; their settings and status in the same order.

    What can be refused is refused before anything of any of them is made. It either brings up all of
    them or none that was down.
    """
    with ExitStack() as stack:
        wanted = [_claimed(stack, settings, progress) for settings in several]
        markers = [_checked(layout, settings) for layout, settings in wanted]
        now = [observed(layout, m) if m else None for (layout, _), m in zip(wanted, markers, strict=True)]
        if all(status is not None and status.ready for status in now):
            return tuple(status for status in now if status is not None)
        down = [_down(layout, settings) for layout, settings in wanted]
        for (_, settings), (broker_ids, worker_ids) in zip(wanted, down, strict=True):
            refuse_taken(settings, broker_ids, worker_ids)
        kafka = launch.runtime(progress)
        rising = []
        for (layout, settings), marker, (broker_ids, worker_ids) in zip(wanted, markers, down, strict=True):
            told = progress if len(several) == 1 else _named(layout, progress)
            workers = crew(layout, settings, worker_ids, told) if worker_ids else None
            if marker is None or not marker.formatted:
                marker = _make(kafka, layout, settings, told)
            write_marker(layout, marker)  # there may be more workers now
            rising.append(Rising(layout, marker, broker_ids, told, workers))
        bring_up(kafka, rising, timeout)
        return tuple(observed(one.layout, one.marker) for one in rising)


def bring_up(kafka: launch.Runtime, rising: Sequence[Rising], timeout: float) -> None:
    """Start what is down and return when it can be used; when that fails, none of it runs."""
    started: list[processes.Recorded] = []
    layout = rising[0].layout
    crews = [one.crew for one in rising if one.crew is not None]
    try:
        for workers in crews:
            layout = workers.layout
            workers.equip()
        guarded = [one for one in rising if one.settings.secure]
        for one in guarded:
            layout = one.layout
            certify(kafka.java, layout.security, one.progress)
        for one in rising:
            layout = one.layout
            for broker_id in one.down:
                started.append(launch.spawn_broker(kafka, layout, one.settings, broker_id))
        readiness.wait([readiness.Awaited(r.layout, r.marker, r.down, r.progress) for r in rising], timeout)
        for one in guarded:
            layout = one.layout
            admit(layout.security, one.settings, one.progress)
        for workers in crews:
            layout = workers.layout
            for process in workers.spawn():
                started.append(process)  # one by one, to know them if the next one fails
        for workers in crews:
            workers.wait(timeout)
    except BaseException as problem:
        for process in started:
            processes.send(process, signal.SIGKILL)
        processes.wait_gone(started, 10)
        if isinstance(problem, OSError):
            raise unusable(layout, str(problem.strerror or problem)) from problem
        raise


def _claimed(
    stack: ExitStack, settings: SandboxSettings, progress: Progress
) -> tuple[Layout, SandboxSettings]:
    layout = layout_of(settings.folder)
    settings = replace(settings, folder=layout.folder)
    check(settings)
    stack.enter_context(claimed(layout, progress))
    return layout, settings


def _checked(layout: Layout, settings: SandboxSettings) -> Marker | None:
    """The marker as it has to become: all that can change is that there are more workers."""
    marker = read_marker(layout)
    if marker is None:
        refuse_foreign(layout)
        return None
    grown = replace(marker, connect_workers=max(marker.connect_workers, settings.connect_workers))
    if grown.settings(layout.folder) != settings:
        raise _differs(marker, settings)
    return grown


def _down(layout: Layout, settings: SandboxSettings) -> tuple[list[int], list[int]]:
    """The brokers and the workers that do not run."""
    brokers = [i for i in settings.broker_ids if running_process(layout.broker(i)) is None]
    workers = [i for i in settings.worker_ids if running_process(layout.connect.worker(i)) is None]
    return brokers, workers


def _named(layout: Layout, progress: Progress) -> Progress:
    return lambda text: progress(f"{layout.folder.name}: {text}")


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
        connect_workers=settings.connect_workers,
        secure=settings.secure,
    )
    try:
        write_marker(layout, marker)
        launch.format_storage(kafka, layout, settings, marker.cluster_id)
        marker = replace(marker, formatted=True)
        write_marker(layout, marker)
    except OSError as problem:
        raise unusable(layout, str(problem.strerror or problem)) from problem
    return marker


def _differs(marker: Marker, settings: SandboxSettings) -> KdeclareError:
    def text(made: Marker | SandboxSettings) -> str:
        folders = f", {made.log_dirs} log directories a broker" if made.log_dirs > 1 else ""
        workers = f", {made.connect_workers} Connect worker(s)" if made.connect_workers else ""
        guard = ", secure" if made.secure else ""
        return f"{made.brokers} broker(s) on {made.racks} rack(s), port {made.port}{folders}{workers}{guard}"

    return KdeclareError(
        error(
            "sandbox-differs",
            "The sandbox has other settings",
            f"The sandbox in {settings.folder} was made with {text(marker)}, not {text(settings)}.",
            hint="Start it with its own settings, or remove it and its data first: kdeclare sandbox reset.",
        )
    )
