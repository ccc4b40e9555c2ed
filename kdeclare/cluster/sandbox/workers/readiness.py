"""Waiting until Connect workers that were started can be used."""

import time

from kdeclare.cluster.sandbox.claiming import Progress
from kdeclare.cluster.sandbox.layout import Layout
from kdeclare.cluster.sandbox.readiness import not_started
from kdeclare.cluster.sandbox.settings import SandboxSettings
from kdeclare.cluster.sandbox.status import running_process
from kdeclare.cluster.sandbox.workers import asking

_POLL_SECONDS = 0.2
_ASK_SECONDS = 5.0


def wait(layout: Layout, settings: SandboxSettings, progress: Progress, timeout: float) -> None:
    """Return when every worker that runs is healthy and reaches the leader of the group.

    That has to hold for all of them in one pass: the group is formed anew whenever one joins. Raise
    KdeclareError ``sandbox-start`` when one ends or ``timeout`` seconds have passed.
    """
    began = time.monotonic()
    awaited = [i for i in settings.worker_ids if running_process(layout.connect.worker(i)) is not None]
    progress(f"starting Connect worker(s) {_listed(awaited)}")
    told: set[int] = set()
    while True:
        missing = [i for i in awaited if not _is_ready(layout, settings, i)]
        for worker_id in sorted(set(awaited) - set(missing) - told):
            progress(f"worker {worker_id} is ready after {time.monotonic() - began:.1f} s")
            told.add(worker_id)
        if not missing:
            return
        if time.monotonic() - began > timeout:
            said = f"Worker(s) {_listed(missing)} were not ready within {timeout:.0f} s."
            raise not_started("Connect worker", layout.connect.worker(missing[0]), said)
        time.sleep(_POLL_SECONDS)


def _is_ready(layout: Layout, settings: SandboxSettings, worker_id: int) -> bool:
    files = layout.connect.worker(worker_id)
    if running_process(files) is None:
        raise not_started("Connect worker", files, f"Worker {worker_id} ended while it was starting.")
    port = settings.worker_port(worker_id)
    return asking.is_healthy(port, _ASK_SECONDS) and asking.reaches_leader(port, _ASK_SECONDS)


def _listed(worker_ids: list[int]) -> str:
    return ", ".join(map(str, worker_ids))
