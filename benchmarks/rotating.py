"""``python -m benchmarks.rotating``: measure how long it takes to rotate certificates of Connect workers."""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from benchmarks.clusters import free_port
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.connect.client.rest import open_rest_workers
from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.sandbox import SandboxSettings, SandboxStatus, issue_certificate, reset, start

_WORKERS = 3
_KEYSTORE = "listeners.https.ssl.keystore.location"
_FILES = ("even.p12", "odd.p12")
_POLL_S = 0.01
_LIMIT_S = 30.0
_WANTED_S = 1.0


def main() -> None:
    """Measure, and print the results."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as made:
        alone_s = _started(SandboxSettings(Path(made) / "brokers", port=free_port()))
        folder = Path(made) / "workers"
        try:
            begun = time.perf_counter()
            status = start(
                SandboxSettings(folder, port=free_port(), connect_workers=_WORKERS), lambda _: None
            )
            print(
                f"sandbox of three brokers: ready after {alone_s:.1f} s;"
                f" with {_WORKERS} workers after {time.perf_counter() - begun:.1f} s"
            )
            _rotate(folder, status, options.rounds)
            print(f"all processes then take {_resident_gib(status):.2f} GiB of memory")
        finally:
            reset(folder)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds",
        type=int,
        default=20,
        help="rotations to measure; one rotation before them is not measured",
    )
    return parser.parse_args()


def _started(settings: SandboxSettings) -> float:
    begun = time.perf_counter()
    try:
        start(settings, lambda _: None)
        return time.perf_counter() - begun
    finally:
        reset(settings.folder)


def _rotate(folder: Path, status: SandboxStatus, rounds: int) -> None:
    for worker in status.workers:
        for file in _FILES:
            issue_certificate(folder, worker.id, file)
    group = WorkerGroup(tuple(worker.url for worker in status.workers), ca_file=str(status.ca_file))
    workers = open_rest_workers(group, folder, lambda reference: reference)
    try:
        asked, rotated = [], []
        for number in range(rounds + 1):
            asked.append(_took(lambda: _shown(workers)))
            rotated.append(_rotation_s(workers, _FILES[number % 2]))
        bare, median = statistics.median(asked[1:]), statistics.median(rotated[1:])
        print(f"a handshake with each worker: median {bare:.3f} s")
        print(
            f"from PATCH to the last worker's new handshake, {rounds} rotations: median {median:.3f} s,"
            f" longest {max(rotated[1:]):.3f} s, {median / bare:.0f} × the handshakes alone;"
            f" target {_WANTED_S} s: {'met' if median < _WANTED_S else 'missed'}"
        )
    finally:
        workers.close()


def _rotation_s(workers: ConnectWorkers, file: str) -> float:
    before = _shown(workers)
    begun = time.perf_counter()
    workers.patch(workers.urls[0], {_KEYSTORE: f"${{env:WORKER_FOLDER}}/{file}"})
    limit = time.monotonic() + _LIMIT_S
    while _shown(workers) & before:
        if time.monotonic() > limit:
            raise RuntimeError(f"a worker still presents its old certificate after {_LIMIT_S:.0f} s")
        time.sleep(_POLL_S)
    return time.perf_counter() - begun


def _shown(workers: ConnectWorkers) -> set[str]:
    """Connect to each worker, and return the fingerprints of the certificates that the workers present."""
    found = (workers.read_served_certificate(url) for url in workers.urls)
    return {certificate.sha256 for certificate in found if certificate is not None}


def _took(what: Callable[[], object]) -> float:
    begun = time.perf_counter()
    what()
    return time.perf_counter() - begun


def _resident_gib(status: SandboxStatus) -> float:
    pids = [*(broker.pid for broker in status.brokers), *(worker.pid for worker in status.workers)]
    return sum(psutil.Process(pid).memory_info().rss for pid in pids if pid is not None) / 2**30


if __name__ == "__main__":
    main()
