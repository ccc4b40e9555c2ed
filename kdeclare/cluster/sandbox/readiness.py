"""Waiting until brokers that were started can be used."""

import time
from collections.abc import Callable
from pathlib import Path

from kdeclare.cluster.sandbox import metadata
from kdeclare.cluster.sandbox.layout import BrokerFiles, Layout, Marker
from kdeclare.cluster.sandbox.settings import HOST
from kdeclare.cluster.sandbox.status import running_process
from kdeclare.model.diagnostics import KdeclareError, error

_POLL_SECONDS = 0.2
_ASK_SECONDS = 2.0
_LOG_LINES = 12


def wait(layout: Layout, marker: Marker, progress: Callable[[str], None], timeout: float) -> None:
    """Return when every broker that runs says that all of those are unfenced.

    Raise KdeclareError ``sandbox-start`` when one ends or ``timeout`` seconds have passed.
    """
    settings = marker.settings(layout.folder)
    awaited = frozenset(i for i in settings.broker_ids if running_process(layout, i) is not None)
    waiting = set(awaited)
    began = time.monotonic()
    progress(f"starting broker(s) {_listed(awaited)}")
    while waiting:
        for broker_id in sorted(waiting):
            if running_process(layout, broker_id) is None:
                raise _failed(layout.broker(broker_id), f"Broker {broker_id} ended while it was starting.")
            view = metadata.ask(HOST, settings.broker_port(broker_id), _ASK_SECONDS)
            if view and view.cluster_id == marker.cluster_id and awaited <= view.broker_ids:
                waiting.remove(broker_id)
                progress(f"broker {broker_id} is ready after {time.monotonic() - began:.1f} s")
        if waiting and time.monotonic() - began > timeout:
            late = f"Broker(s) {_listed(waiting)} were not ready within {timeout:.0f} s."
            raise _failed(layout.broker(min(waiting)), late)
        time.sleep(_POLL_SECONDS if waiting else 0)


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a log that may be large or not be there; without the frames of Java's traces."""
    try:
        with path.open("rb") as content:
            content.seek(max(0, path.stat().st_size - 64 * 1024))
            lines = content.read().decode("utf-8", "replace").splitlines()
            return [line for line in lines if not line.startswith("\tat ")][-count:]
    except OSError:
        return []


def _listed(broker_ids: set[int] | frozenset[int]) -> str:
    return ", ".join(map(str, sorted(broker_ids)))


def _failed(files: BrokerFiles, summary: str) -> KdeclareError:
    # The console has what kept the JVM itself from running; normally it is empty.
    lines = last_lines(files.server_log, _LOG_LINES) + last_lines(files.console_log, _LOG_LINES)
    said = "".join(f"\n  {line}" for line in lines)
    return KdeclareError(
        error(
            "sandbox-start",
            "A broker did not start",
            f"{summary} Its last words:{said}" if said else f"{summary} It has logged nothing.",
            hint=f"The whole log is {files.server_log}. If its data is damaged: kdeclare sandbox reset.",
        )
    )
