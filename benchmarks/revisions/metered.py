"""``python metered.py FILE COMMAND…``: run a command, and write the cost of the command to FILE.

The cost includes child processes. The command is forked from this process, so its peak memory cannot be less
than the memory of this process. To keep this memory small, the script uses only the standard library.
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run the command, and exit with its exit code."""
    # A Java process can outlive its parent. After this call, such a process becomes a child of this process.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    begun = time.perf_counter()
    code = subprocess.call(sys.argv[2:], stdin=subprocess.DEVNULL)
    wall_s = time.perf_counter() - begun
    _wait_for_orphans()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    cost = {"wall_s": wall_s, "cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": kilobytes / 1024}
    Path(sys.argv[1]).write_text(json.dumps(cost))
    sys.exit(code)


def _wait_for_orphans() -> None:
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
