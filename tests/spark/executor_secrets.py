"""Run an audit on a standalone Spark cluster, and search the files of its executors for secrets.

The secrets of a fleet are of two types: those that its files contain, and values of variables. Executors need
the files, so the former are in Spark's temporary folder during the audit. The latter must never be in a file.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.spark.programs import run_program
from tests.spark.standalone import StandaloneSpark

_FLEET_FILES = ("fleet.zip", "fleet.yaml", "kdeclare.yaml", "state.json")
_WATCHED = """
import json, os, sys, threading
from pathlib import Path
from kdeclare.cli.main import main

folder, written, variables, *line = sys.argv[1:]
variables = [value.encode() for value in json.loads(variables)]
seen, leaked, over = set(), set(), threading.Event()

def watch():
    while not over.wait(0.2):
        # Not Path.rglob, which fails if a folder is removed meanwhile.
        for path in [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]:
            try:
                if not path.is_file():
                    continue
                data = path.read_bytes()
                if written.encode() in data:
                    seen.add((str(path), oct(path.stat().st_mode & 0o777)))
                if any(value in data for value in variables):
                    leaked.add(str(path))
            except OSError:
                pass

thread = threading.Thread(target=watch)
thread.start()
try:
    code = main(line)
finally:
    over.set()
    thread.join()
print(json.dumps([code, sorted(seen), sorted(leaked)]), file=sys.stderr)
"""


@dataclass(frozen=True)
class Audited:
    """How an audit ended: its exit code, and what it printed."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class ExecutorSearch:
    """Searches the files of executors.

    written: a secret that is in a file of the fleet. values: secret values of variables, or parts of them.
    environ: the variables of the audit, besides those of Spark.
    """

    spark: StandaloneSpark
    written: str
    values: Sequence[str]
    environ: Mapping[str, str] = field(repr=False)

    def audit(self, folder: Path, fleet: Path, out: str, *arguments: str) -> Audited:
        """Audit a fleet on executors, in a process of its own that runs in the folder.

        Checks that the files of the fleet reach the executors, that no file contains the value of the
        variable, and that nothing remains.
        """
        line = ["fleet", "audit", str(fleet), "--out", out, "--master", self.spark.master]
        line += ["--shared-folders", *arguments]
        watched = (str(self.spark.local), self.written, json.dumps(self.values))
        done = run_program(folder, _WATCHED, {**self.environ, **self.spark.environ}, *watched, *line)
        said, _, last = done.stderr.rstrip().rpartition("\n")
        assert last.startswith("["), done.stderr
        assert "0o600" in last or "0o644" in last, "the files are in Spark's temporary folder while it runs"
        assert self.wait_until_cleaned() == []
        code, _, leaked = json.loads(last)
        assert leaked == []
        return Audited(code, done.stdout, said)

    def wait_until_cleaned(self) -> Sequence[str]:
        """Return the files that remain after the worker had time to clean up a finished application."""
        deadline = time.monotonic() + 120
        while (found := self._find_files()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def _find_files(self) -> Sequence[str]:
        """Return the files of executors that contain a secret or belong to the fleet."""
        secrets = [secret.encode() for secret in (self.written, *self.values)]
        return [
            path
            for path, data in self.spark.files_left().items()
            if any(secret in data for secret in secrets) or Path(path).name in _FLEET_FILES
        ]
