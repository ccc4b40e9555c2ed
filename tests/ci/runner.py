"""A GitHub or GitLab runner: a checkout, an environment, and the steps run in it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
STEPS = ROOT / "ci" / "steps"

Ran = subprocess.CompletedProcess[str]


@dataclass
class Runner:
    """folder: of all files. environ: what the workflow sets, over nearly nothing else.

    kdeclare: the command line of kdeclare.
    """

    folder: Path
    kdeclare: str
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.checkout = self.folder / "checkout"
        self.service = self.folder / "service"
        for made in (self.checkout / "manifests", self.service, self.folder / "bin", self.folder / "tmp"):
            made.mkdir(parents=True)
        self.program("kdeclare", self.kdeclare)
        # the interpreter itself, because the first python on the path may be a version manager's script
        (self.folder / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
        for stub in ("gh", "curl"):
            self.program(stub, f"{sys.executable} -S -m tests.ci.{stub}_stub")
        self.remote = self.folder / "remote.git"
        subprocess.run(["git", "init", "--quiet", "--bare", str(self.remote)], check=True)
        self.environ |= {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "STUB_SERVICE": str(self.service),
            "STUB_CLUSTER": str(self.folder / "cluster.pickle"),
            "KDECLARE_STATE_BRANCH": "kdeclare-state",
            "KDECLARE_STATE_REMOTE": str(self.remote),
        }

    def program(self, name: str, line: str) -> None:
        """Add a program to the runner's path."""
        file = self.folder / "bin" / name
        file.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        file.chmod(0o755)

    def run(self, step: str, *arguments: str, **more: str) -> Ran:
        """Run one of the steps, from the top of the checkout."""
        return subprocess.run(
            [str(STEPS / step), *arguments],
            env=self.environ | more,
            cwd=self.checkout,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def run_ok(self, step: str, *arguments: str, **more: str) -> Ran:
        """Run a step that must succeed."""
        ran = self.run(step, *arguments, **more)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran

    def topic(self, name: str, **spec: Any) -> None:
        """Declare a topic."""
        self.write(f"manifests/{name}.yaml", "Topic", name, {"partitions": 1} | spec)

    def write(self, file: str, kind: str, name: str, spec: dict[str, Any]) -> None:
        """Write a document."""
        document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        (self.checkout / file).write_text(yaml.safe_dump(document))

    def switch_machine(self) -> None:
        """Simulate another machine, which has only the checkout."""
        shutil.rmtree(self.out, ignore_errors=True)

    @property
    def out(self) -> Path:
        """The folder of the steps' output."""
        return self.checkout / self.environ.get("KDECLARE_OUT", ".kdeclare")

    @property
    def service_data(self) -> dict[str, Any]:
        """The data of the service."""
        found: dict[str, Any] = json.loads((self.service / "knows.json").read_text())
        return found

    def update_service(self, **facts: Any) -> None:
        """Change the data of the service."""
        file = self.service / "knows.json"
        knows = self.service_data if file.exists() else {}
        file.write_text(json.dumps(knows | facts))

    @property
    def requests(self) -> str:
        """Return all command lines of ``gh`` and ``curl``."""
        file = self.service / "asked.jsonl"
        return file.read_text() if file.exists() else ""

    @property
    def exit_code(self) -> int:
        """Return the result of the job."""
        return self.run("conclude.sh").returncode
