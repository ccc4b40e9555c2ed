"""The example as other people get it: installed with pip from its folder, in an environment of its own."""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import yaml

from tests.provider.conftest import EXAMPLE

ROOT = EXAMPLE.parents[1]
OFFLINE = ("--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check")
NOTHING: Mapping[str, str] = {}
COMMAND = """#!{python}
from kdeclare.cli.main import run
run()
"""


def install(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the environment's commands; it is made once for all processes of a test run.

    kdeclare and what it needs are taken from the environment of the tests, and nothing is fetched.
    """
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = base / "installed"
    with _locked(base / "installed.lock"):
        if not (folder / "ready").exists():
            _install(folder)
            (folder / "ready").touch()
    return folder / "env" / "bin"


def _install(folder: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "env"))
    python = folder / "env" / "bin" / "python"
    site = run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(site) / "here.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    command = python.with_name("kdeclare")
    command.write_text(COMMAND.format(python=python))
    command.chmod(0o755)
    source = folder / "source"  # setuptools builds in the folder itself
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    run(str(python), "-m", "pip", "install", *OFFLINE, str(source))
    shutil.rmtree(source)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(
    *command: str, folder: Path | None = None, code: int = 0, environ: Mapping[str, str] = NOTHING
) -> str:
    """Return what a command writes; its exit code has to be the one given."""
    # A Spark session in this process sets PYSPARK_PYTHON, whose packages are not those of the environment.
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_") and k != "PYTHONPATH"}
    variables = {**clean, "COLUMNS": "100", **environ}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=variables, timeout=300)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@dataclass(frozen=True)
class Project:
    """A project whose commands are those of the environment.

    bin: the folder of its commands. environ: variables of every command. running: the command line of a
    kdeclare that has already imported what it needs; commands with variables of their own start a new one.
    """

    bin: Path
    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    running: tuple[str, ...] = ()

    @property
    def separate(self) -> "Project":
        """The same project, with a new process for every command."""
        return replace(self, running=())

    def __call__(self, *arguments: str, code: int = 0, environ: Mapping[str, str] = NOTHING) -> str:
        """Return what ``kdeclare`` writes. code: the exit code that it must have."""
        command = self.running if self.running and not environ else (str(self.bin / "kdeclare"),)
        return run(*command, *arguments, folder=self.folder, code=code, environ={**self.environ, **environ})

    def python(self, *arguments: str) -> str:
        """Return what the environment's Python writes."""
        return run(str(self.bin / "python"), *arguments, folder=self.folder, environ=self.environ)

    def write(self, file: str, kind: str, name: str, **spec: object) -> Path:
        """Write a document into a file."""
        version = "flags.example/v1" if kind.startswith("Flag") else "kdeclare/v1"
        document = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        path = self.folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    def flag(self, name: str, rollout: int, **spec: object) -> Path:
        """Declare a flag."""
        return self.write(f"manifests/{name}.yaml", "Flag", name, rollout=rollout, **spec)

    def client(self, token: str = "${env.WEB_TOKEN}") -> Path:
        """Declare a client of a flag."""
        return self.write("manifests/web.yaml", "FlagClient", "web", flags=["dark-mode"], token=token)
