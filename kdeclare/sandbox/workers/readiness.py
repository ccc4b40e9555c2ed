"""Waiting until Connect workers that were started can be used."""

import time
from collections.abc import Iterable, Sequence

from kdeclare.sandbox.claiming import Progress
from kdeclare.sandbox.layout import Layout
from kdeclare.sandbox.readiness import listed, not_started
from kdeclare.sandbox.settings import SandboxSettings
from kdeclare.sandbox.status import running_process
from kdeclare.sandbox.workers import asking

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
        healthy = {i for i in awaited if asking.is_healthy(settings.worker_port(i), _ASK_SECONDS)}
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
