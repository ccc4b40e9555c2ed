"""Run fuzzers: ``python -m tests.fuzzing TARGET --minutes 10``, or ``all`` instead of a target."""

import argparse
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.fuzzing.target import check_input
from tests.fuzzing.targets import TARGET_NAMES, load_target

_ALL = "all"
_STATUS = re.compile(r"^#(\d+)\s.*cov: (\d+) ft: (\d+) corp: (\d+)")


def main() -> int:
    """Run the fuzzer of one target, or check one input. Return 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description="Fuzz what kdeclare reads.")
    parser.add_argument("target", choices=(*TARGET_NAMES, _ALL))
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to run at most")
    parser.add_argument(
        "--quiet-minutes", type=float, default=5.0, help="stop after this CPU time without new coverage"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(".fuzz"), help="where corpus and findings are kept"
    )
    parser.add_argument("--input", type=Path, help="check only this input")
    options = parser.parse_args()
    names = TARGET_NAMES if options.target == _ALL else (options.target,)
    if options.input is not None:
        findings = [check_input(load_target(name), options.input.read_bytes()) for name in names]
        print("\n".join(finding.details for finding in findings if finding) or "no finding")
        return 1 if any(findings) else 0
    codes = [
        _run(name, options.folder / name, options.minutes * 60, options.quiet_minutes * 60) for name in names
    ]
    return max(codes)


def _run(name: str, folder: Path, seconds: float, quiet_s: float) -> int:
    """Run the fuzzer in a process, and show when coverage grows.

    quiet_s: CPU time of the fuzzer, because a fuzzer that waits for a busy processor finds nothing either.
    """
    command = [sys.executable, "-m", "tests.fuzzing.campaign", name, str(folder), str(int(seconds))]
    started = time.monotonic()
    used_s = grown_s = 0.0
    executions = edges = 0
    is_quiet = False
    findings: list[str] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stderr is not None
        for line in process.stderr:
            passed_s = time.monotonic() - started
            with suppress(psutil.Error):  # the process has ended
                used_s = sum(psutil.Process(process.pid).cpu_times()[:2])
            status = _STATUS.match(line)
            if line.startswith("FINDING "):
                findings.append(line.removeprefix("FINDING ").strip())
                print(f"{passed_s:7.0f} s  finding: {findings[-1]}", flush=True)
            elif status is not None:
                executions = int(status[1])
                if int(status[2]) > edges:
                    edges, grown_s = int(status[2]), used_s
                    print(f"{passed_s:7.0f} s  {executions:9} executions  {edges} edges", flush=True)
            elif "ERROR" in line or "Traceback" in line or line.startswith("stat::number_of_executed"):
                print(line.rstrip(), flush=True)
            if used_s - grown_s > quiet_s:
                print(f"no new coverage in {quiet_s / 60:.0f} minutes of CPU time", flush=True)
                process.terminate()
                is_quiet = True
                break
    if process.returncode and not is_quiet:  # for example, libFuzzer's own time limit
        findings.append(f"the process ended with exit code {process.returncode}")
        print(findings[-1], flush=True)
    print(f"{name}: {executions} executions, {edges} edges, {len(findings)} findings, in {folder}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
