"""The members of the team: kdeclare commands as processes of their own, and what happens to them."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kdeclare.core.exit_codes import ExitCode
from tests.soak.desired import Desired
from tests.soak.stores import ENVIRONMENT, LEASE_S, PROJECT, Store

ROOT = Path(__file__).parents[2]
HANG_S = 300.0
"""A command that takes longer hangs. Commands wait for moves, for leases, and for brokers to come back."""


class Fate(StrEnum):
    """What happens to a command."""

    NONE = "none"
    KILL = "SIGKILL"
    STOP = "SIGSTOP"  # and SIGCONT, after the lease has ended
    INTERRUPT = "SIGINT"
    TERMINATE = "SIGTERM"


_CODES = frozenset(map(int, ExitCode)) - {ExitCode.USAGE}
_SIGNAL_CODES = {Fate.KILL: {-signal.SIGKILL}, Fate.TERMINATE: {-signal.SIGTERM}}


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    step: int
    member: str
    arguments: tuple[str, ...]
    fate: Fate
    code: int
    seconds: float
    out: str
    err: str

    def __str__(self) -> str:
        words = " ".join(self.arguments)
        return (
            f"step {self.step}, {self.member}: {words} ({self.fate}) -> {self.code} in {self.seconds:.1f} s"
        )


@dataclass
class Team:
    """All members, and a record of their commands.

    last: the last commands, for reports of violations. errors: the summaries of errors that ended commands.
    violations: what a single command did wrong.
    """

    folder: Path
    bootstrap: str
    store: Store
    names: tuple[str, ...] = ("ann", "bob")
    last: deque[Finished] = field(default_factory=lambda: deque(maxlen=25))
    counts: Counter[str] = field(default_factory=Counter)
    codes: Counter[int] = field(default_factory=Counter)
    fates: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _number: int = 0

    def __post_init__(self) -> None:
        environment = {
            "bootstrapServers": self.bootstrap,
            "requestDeadline": "3s",
            "clientConfig": {"request.timeout.ms": "3000"},
            "reassignments": {"throttle": "2MiB/s", "batchSize": 4},
        }
        spec = {"manifests": ["all.yaml"], "environments": {ENVIRONMENT: environment}}
        project = {
            "apiVersion": "kdeclare/v1",
            "kind": "Project",
            "metadata": {"name": PROJECT},
            "spec": spec,
        }
        (self.folder / "temporary").mkdir(parents=True)
        for name in self.names:
            (self.folder / name).mkdir(parents=True)
            (self.folder / name / "kdeclare.yaml").write_text(json.dumps(project))

    @property
    def temporary(self) -> Path:
        """The folder for temporary files of all commands."""
        return self.folder / "temporary"

    def declare(self, member: str, desired: Desired) -> None:
        """Give a member the newest manifests."""
        desired.write(self.folder / member / "all.yaml")

    def run(
        self,
        step: int,
        member: str,
        *arguments: str,
        fate: Fate = Fate.NONE,
        after_s: float = 0.0,
        in_run: bool = False,
        is_calm: bool = False,
    ) -> Finished:
        """Run a command until it ends, and record what it did wrong.

        fate, after_s: what happens to the command, and how long after its start. in_run: whether the time
            begins when the command has shown its plan. is_calm: whether nothing is wrong with the cluster, so
            that the command must not end with an error.
        """
        with self._lock:
            self._number += 1
            base = self.folder / member / f"{self._number:05}"
        out, err = base.with_suffix(".out"), base.with_suffix(".err")
        environ = {**os.environ, **self.store.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary)}
        environ |= {"PYTHONUNBUFFERED": "1"}  # so that the plan can be seen at once
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        started = time.monotonic()
        with out.open("w") as out_file, err.open("w") as err_file:
            process = subprocess.Popen(
                [sys.executable, "-m", "kdeclare", *arguments, "--state", self.store.location],
                cwd=self.folder / member,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
            )
            happened = _play_fate(process, fate, after_s, out if in_run else None)
            hangs = False
            try:
                process.wait(HANG_S)
            except subprocess.TimeoutExpired:
                hangs = True
                process.kill()
                process.wait()
        done = Finished(
            step,
            member,
            arguments,
            happened,
            process.returncode,
            time.monotonic() - started,
            out.read_text(),
            err.read_text(),
        )
        out.unlink()
        err.unlink()
        self._record(done, hangs, is_calm)
        return done

    def _record(self, done: Finished, hangs: bool, is_calm: bool) -> None:
        problems = []
        if hangs:
            problems.append(f"hangs for more than {HANG_S:.0f} s")
        elif done.code not in _CODES | _SIGNAL_CODES.get(done.fate, set()):
            problems.append(f"exit code {done.code}")
        if "Traceback" in done.err or "internal-error" in done.err or "nternal error" in done.err:
            problems.append("an exception that no code handles")
        if is_calm and done.code == ExitCode.ERROR:
            problems.append("an error although nothing is wrong with the cluster")
        with self._lock:
            self.last.append(done)
            self.counts[" ".join(word for word in done.arguments[:2] if word.isalpha())] += 1
            self.codes[done.code] += 1
            self.fates[done.fate.value] += 1
            if done.code == ExitCode.ERROR:
                self.errors.update(re.findall(r"^error: (.*)$", done.err, re.MULTILINE)[:1])
            for problem in problems:
                self.violations.append(f"{done}: {problem}\n{done.out[-3000:]}\n{done.err[-3000:]}")


def _play_fate(process: "subprocess.Popen[bytes]", fate: Fate, after_s: float, out: Path | None) -> Fate:
    """Do what is to happen. Return what did happen: nothing, if the command ended before.

    out: the output, if the time begins with the end of the plan in it.
    """
    if fate is Fate.NONE:
        return fate
    deadline = time.monotonic() + HANG_S / 2
    while out is not None and "Summary:" not in out.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        pass
    else:
        return Fate.NONE
    process.send_signal(getattr(signal, fate.value))
    if fate is Fate.STOP:
        time.sleep(LEASE_S + 5)
        process.send_signal(signal.SIGCONT)
    return fate


def draw_fate(chance: random.Random) -> Fate:
    """Choose what happens to a command."""
    return chance.choices(list(Fate), [40, 30, 10, 10, 10])[0]
