"""Run a process and measure its cost."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one process: wall-clock seconds, CPU seconds (without children), peak memory, stdout."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    output: str = ""


def environment(cache: Path, tree: Path = Path(__file__).parents[1]) -> Mapping[str, str]:
    """Return environment variables for running the code in ``tree`` with the compiled files in ``cache``."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(cache)}


def run(arguments: Sequence[str], folder: Path, env: Mapping[str, str], expected: int = 0) -> Cost:
    """Run ``python -m ARGUMENTS`` in a folder. Raises RuntimeError for an unexpected exit code."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        begun = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)  # Popen must not wait again
        output.seek(0)
        errors.seek(0)
        said = output.read()
        if process.returncode != expected:
            shown = f"{said[-2000:]}\n{errors.read()[-2000:]}"
            raise RuntimeError(f"{' '.join(arguments)} exited with {process.returncode}:\n{shown}")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, kilobytes / 1024, said)


def report(what: str, cost: Cost) -> Cost:
    """Print a cost to stderr, and return it."""
    print(f"{cost.wall_s:7.2f} s {cost.cpu_s:7.2f} s of CPU {cost.peak_mb:5.0f} MB  {what}", file=sys.stderr)
    return cost
