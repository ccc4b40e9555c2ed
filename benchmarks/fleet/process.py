"""Run each method of diffing a fleet in a separate process, to measure the costs separately."""

import gc
import multiprocessing
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

_GC_THRESHOLD = 200_000
"""The threshold for automatic garbage collection in the measured process."""
_SAMPLE_S = 0.25
_MB = 2**20


@dataclass(frozen=True, slots=True)
class Cost:
    """One run: wall-clock seconds, and the peak of resident memory (MB).

    own: the memory of the process itself.
    jvm: the memory of the Java process of Spark's driver.
    rest: the memory of all tasks and executors of the process. Shared pages count in each process.
    """

    wall_s: float
    own_mb: float
    jvm_mb: float
    rest_mb: float


Way = Callable[[Path, Path], Cost]
"""A function that compares the tables in one folder, and replaces another folder with the findings."""


@contextmanager
def opened(way: str, *arguments: str, unmanaged_keys: bool) -> Iterator[Way]:
    """Start a process for a method (``spark``, ``loop``, ``duckdb``). Yield a function that calls the method.

    unmanaged_keys: whether to find unmanaged keys as well.
    """
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawned) as pool:
        pid = pool.submit(_open, way, arguments, unmanaged_keys).result()
        try:
            yield partial(_measured, pool, pid)
        finally:
            pool.submit(_close).result()


_stack = ExitStack()
_run: Callable[[Path, Path], None]


def _open(way: str, arguments: tuple[str, ...], unmanaged_keys: bool) -> int:
    global _run
    from benchmarks.fleet import duckdb_way, loop_way, spark_way

    gc.set_threshold(_GC_THRESHOLD)
    openers = {"duckdb": duckdb_way.opened, "loop": loop_way.opened, "spark": spark_way.opened}
    _run = _stack.enter_context(openers[way](*arguments, unmanaged_keys=unmanaged_keys))
    return psutil.Process().pid


def _close() -> None:
    _stack.close()


def _timed(data: Path, out: Path) -> float:
    begun = time.perf_counter()
    _run(data, out)
    return time.perf_counter() - begun


def _measured(pool: ProcessPoolExecutor, pid: int, data: Path, out: Path) -> Cost:
    shutil.rmtree(out, ignore_errors=True)
    with measure_peaks(pid) as peaks:
        wall_s = pool.submit(_timed, data, out).result()
    return Cost(wall_s, peaks["own"], peaks["jvm"], peaks["rest"])


@contextmanager
def measure_peaks(pid: int) -> Iterator[Mapping[str, float]]:
    """Measure the peak memory of a process and of its children while the block runs, in MB.

    The keys are ``own``, ``jvm`` and ``rest``, as in `Cost`.
    """
    peaks = {"own": 0.0, "jvm": 0.0, "rest": 0.0}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_SAMPLE_S):
            for name, value in _resident(psutil.Process(pid)).items():
                peaks[name] = max(peaks[name], value)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        ended.set()
        watcher.join()


def _resident(process: psutil.Process) -> Mapping[str, float]:
    found = {"own": process.memory_info().rss / _MB, "jvm": 0.0, "rest": 0.0}
    drivers = {child.pid for child in process.children() if _name(child) == "java"}
    for child in process.children(recursive=True):
        try:
            found["jvm" if child.pid in drivers else "rest"] += child.memory_info().rss / _MB
        except psutil.NoSuchProcess:
            continue
    return found


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""
