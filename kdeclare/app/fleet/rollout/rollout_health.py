"""Wait until clusters are healthy before the next wave of a rollout."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import monotonic

from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.core.diagnostics import KdeclareError, summarize_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.progress import Progress
from kdeclare.core.provider.provider_queries import find_health_checks
from kdeclare.core.secrets.child_environ import build_child_environ
from kdeclare.manifests.fleet.rollout import RolloutHealth

_POLL_S = 2.0
_MAX_OUTPUT = 300


@dataclass(frozen=True, slots=True)
class HealthGate:
    """Checks the clusters of a rollout between waves.

    folder: the folder of the fleet file, in which the command runs.
    stop: an event that ends the wait.
    """

    locator: ClusterLocator
    health: RolloutHealth
    folder: Path
    environ: Mapping[str, str]
    max_concurrent: int
    stop: Event
    progress: Progress

    def wait(self, wave: int, names: Sequence[str], is_stopped: Callable[[], bool]) -> str | None:
        """Wait until the clusters are healthy. Return the problems that remain after the time limit.

        wave: the number of the wave that is about to begin.
        names: the clusters of this wave and of the previous wave.
        is_stopped: returns whether a user has stopped the rollout, which ends the wait.
        """
        if self.health.is_empty:
            return None
        deadline = monotonic() + self.health.timeout_s
        while True:
            problems = self._find_problems(wave, names)
            if not problems or self.stop.is_set() or is_stopped():
                return None
            if monotonic() >= deadline:
                return "; ".join(problems)
            self.progress(f"Waiting: {problems[0]}", 0, 0)
            self.stop.wait(min(_POLL_S, max(0.0, deadline - monotonic())))

    def _find_problems(self, wave: int, names: Sequence[str]) -> list[str]:
        problems: list[str] = []
        if self.health.limits:
            with ThreadPoolExecutor(max(1, min(self.max_concurrent, len(names)))) as pool:
                problems += [text for found in pool.map(self._check_cluster, names) for text in found]
        if not problems and self.health.command:
            problem = self._run_command(wave, names)
            problems += [problem] if problem else []
        return problems

    def _check_cluster(self, name: str) -> list[str]:
        try:
            with self.locator.workspace(name).open_connections() as connections:
                checks = find_health_checks()
                counts = {check: checks[check].count(connections) for check in self.health.limits}
        except KdeclareError as problem:
            return [f"{name}: {summarize_diagnostics(problem.diagnostics)}"]
        except Fault as fault:
            return [f"{name}: {fault}"]
        return [
            f"{name}: {checks[check].format(counts[check])} (allowed: {limit:,})"
            for check, limit in self.health.limits.items()
            if counts[check] > limit
        ]

    def _run_command(self, wave: int, names: Sequence[str]) -> str | None:
        """Run the health command of the fleet file. Return why it failed; None if it succeeded."""
        environ = build_child_environ(self.environ) | {
            "KDECLARE_WAVE": str(wave),
            "KDECLARE_CLUSTERS": " ".join(names),
        }
        program = self.health.command[0]
        try:
            ran = subprocess.run(
                self.health.command,
                cwd=self.folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=self.health.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{program} did not end within {self.health.timeout_s:g} s"
        except OSError as cause:
            return f"{program} cannot be run: {os.strerror(cause.errno) if cause.errno else cause}"
        if ran.returncode == 0:
            return None
        lines = ran.stdout.decode("utf-8", "replace").strip().splitlines()
        output = f": {lines[-1][:_MAX_OUTPUT]}" if lines else ""
        return f"{program} failed with exit code {ran.returncode}{output}"
