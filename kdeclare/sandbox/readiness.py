"""Wait until the brokers of a sandbox are ready."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.sandbox import health
from kdeclare.sandbox.layout import Layout, Marker, ProcessFiles
from kdeclare.sandbox.settings import HOST
from kdeclare.sandbox.status import running_process

_POLL_SECONDS = 0.2
_ASK_SECONDS = 2.0
_LOG_LINES = 12


@dataclass(frozen=True, slots=True)
class StartedSandbox:
    """A sandbox whose brokers must become ready. started: the ids of the brokers that were just started."""

    layout: Layout
    marker: Marker
    started: Sequence[int]
    progress: Callable[[str], None]


def await_brokers(sandboxes: Sequence[StartedSandbox], timeout: float) -> None:
    """Wait until all running brokers of each sandbox are ready.

    The brokers of a sandbox are ready when each of them reports that all of them are unfenced.

    Raises KdeclareError ``sandbox-start`` if a broker ends, or if the wait takes longer than ``timeout``
    seconds.
    """
    started_at = time.monotonic()
    pending_sandboxes = [_PendingBrokers(one, started_at) for one in sandboxes]
    for sandbox in sandboxes:
        if sandbox.started:
            sandbox.progress(f"starting broker(s) {format_ids(sandbox.started)}")
    while True:
        for pending in pending_sandboxes:
            pending.ask()
        unready_sandboxes = [one for one in pending_sandboxes if one.missing]
        if not unready_sandboxes:
            return
        if time.monotonic() - started_at > timeout:
            message = (
                f"Broker(s) {format_ids(unready_sandboxes[0].missing)} were not ready within {timeout:.0f} s."
            )
            raise build_start_error(
                "broker",
                unready_sandboxes[0].sandbox.layout.broker(min(unready_sandboxes[0].missing)),
                message,
            )
        time.sleep(_POLL_SECONDS)


class _PendingBrokers:
    """The brokers of one sandbox that are not ready yet."""

    def __init__(self, sandbox: StartedSandbox, started_at: float) -> None:
        self.sandbox = sandbox
        self._settings = sandbox.marker.settings(sandbox.layout.folder)
        broker_ids = (
            i for i in self._settings.broker_ids if running_process(sandbox.layout.broker(i)) is not None
        )
        self.awaited = frozenset(broker_ids)
        self.missing = set(self.awaited)
        self._started_at = started_at

    def ask(self) -> None:
        """Send one request to each broker that is not ready. Raises KdeclareError if a broker has ended."""
        sandbox = self.sandbox
        for broker_id in sorted(self.missing):
            files = sandbox.layout.broker(broker_id)
            if running_process(files) is None:
                raise build_start_error("broker", files, f"Broker {broker_id} exited during startup.")
            view = health.ask(HOST, self._settings.get_unauthenticated_port(broker_id), _ASK_SECONDS)
            if view and view.cluster_id == sandbox.marker.cluster_id and self.awaited <= view.broker_ids:
                self.missing.remove(broker_id)
                self._report_ready(broker_id)

    def _report_ready(self, broker_id: int) -> None:
        if broker_id in self.sandbox.started:
            elapsed_s = time.monotonic() - self._started_at
            self.sandbox.progress(f"broker {broker_id} is ready after {elapsed_s:.1f} s")


def read_last_lines(path: Path, count: int) -> list[str]:
    """Return the last ``count`` lines of a log without Java stack frames; empty if the log does not exist."""
    try:
        with path.open("rb") as content:
            content.seek(max(0, path.stat().st_size - 64 * 1024))
            lines = content.read().decode("utf-8", "replace").splitlines()
            return [line for line in lines if not line.startswith("\tat ")][-count:]
    except OSError:
        return []


def build_start_error(process_kind: str, files: ProcessFiles, summary: str) -> KdeclareError:
    """Build the error ``sandbox-start`` for a broker or worker, with the last lines of the logs."""
    # The console log is empty unless the JVM failed.
    lines = read_last_lines(files.server_log, _LOG_LINES) + read_last_lines(files.console_log, _LOG_LINES)
    log_text = "".join(f"\n  {line}" for line in lines)
    return KdeclareError(
        error(
            "sandbox-start",
            "Sandbox process did not start",
            f"{summary} Last lines of the {process_kind}'s log:{log_text}"
            if log_text
            else f"{summary} The {process_kind}'s log is empty.",
            hint=f"See the log in {files.server_log}. If the data is damaged, run kdeclare sandbox reset."
            if log_text
            else "Start the sandbox again. If the data is damaged, run kdeclare sandbox reset.",
        )
    )


def format_ids(ids: Iterable[int]) -> str:
    """Format the ids of brokers or workers for a message, separated by commas."""
    return ", ".join(map(str, sorted(ids)))
