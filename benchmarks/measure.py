"""Running a process, and what it cost."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """One process, from its start to its end: seconds by the clock and of its own CPU, and peak memory."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def run(arguments: Sequence[str], folder: Path, expected: int = 0) -> Cost:
    """Run ``python -m ARGUMENTS`` in a folder. Raises RuntimeError unless it exits as ``expected``."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with tempfile.TemporaryFile("w+") as output:
        begun = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait again
        if process.returncode != expected:
            output.seek(0)
            shown = output.read()[-2000:]
            raise RuntimeError(f"{' '.join(arguments)} exited with {process.returncode}:\n{shown}")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, kilobytes / 1024)
