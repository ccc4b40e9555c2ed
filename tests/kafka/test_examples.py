"""The scripts of the examples succeed, and fail if a check fails."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.commands import run_here
from tests.conftest import free_port, free_ports_of_clusters
from tests.kafka.java import KafkaTools
from tests.kafka.tool_server import serve_tools
from tests.startup_cache import path_with, spark_variables
from tests.waiting import run_server

if TYPE_CHECKING:
    from kdeclare.sandbox import SandboxStatus

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/run.sh"))

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)


def has_own_brokers(example: Path) -> bool:
    """Return whether an example starts its own brokers."""
    return "sandbox start" in (example / "run.sh").read_text()


def run_script(script: Path, folder: Path, programs: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script with ``kdeclare`` from ``programs``; temporary files go below ``folder``."""
    path = path_with(programs, PROGRAMS)
    environ = {k: v for k, v in os.environ.items() if not k.startswith("KDECLARE_")}
    return subprocess.run(
        ["bash", str(script)],
        env=environ | spark_variables() | {"PATH": path, "TMPDIR": str(folder)} | more,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


THIS_PYTHON = f'exec {sys.executable} "$@"'


def write_programs(folder: Path, commands: str, python: str = THIS_PYTHON) -> Path:
    """Create a folder with a ``kdeclare`` of a few shell commands, and with this Python."""
    programs = folder / "programs"
    programs.mkdir()
    for name, script in {"kdeclare": commands, "python": python}.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    return programs


@pytest.fixture(scope="module")
def programs_with_kdeclare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Provide a folder with a running ``kdeclare``. The demo and the tutorial run the real one."""
    with run_server() as line:
        yield write_programs(tmp_path_factory.mktemp("started"), f'exec {line} "$@"')


@pytest.fixture(scope="module")
def programs_with_tools(
    programs_with_kdeclare: Path, tools: KafkaTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Provide the same, with running tools of Kafka. Scripts must run one tool at a time."""
    with serve_tools(tools) as line:
        kdeclare = f'exec {programs_with_kdeclare / "kdeclare"} "$@"'
        python = f'if [ "$1" = - ]; then shift; exec {line} "$@"; fi; {THIS_PYTHON}'
        yield write_programs(tmp_path_factory.mktemp("tools"), kdeclare, python)


def list_files(folder: Path) -> list[Path]:
    """Return all files, except Python's compiled files."""
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


def import_manifests(bootstrap: str) -> str:
    """Return everything in a cluster except records, as text."""
    ran = run_here(ROOT, "import", "--include-declared", "--bootstrap-server", bootstrap)
    assert ran.code == 0, ran
    return ran.out


def test_examples_are_found() -> None:
    assert len(EXAMPLES) >= 5


@each_example
def test_example_has_readme_script_and_project(example: Path) -> None:
    readme = (example / "README.md").read_text()
    assert readme.startswith("# ")
    assert "./run.sh" in readme
    assert os.access(example / "run.sh", os.X_OK)
    project = (example / "kdeclare.yaml").read_text()
    assert re.search(rf"^metadata: {{name: {example.name}}}$", project, re.MULTILINE)
    script = (example / "run.sh").read_text()
    own_ports = [port for port in (29092, 39092) if str(port) in script]
    port = own_ports[0] if "sandbox start" in script else 19092
    assert f"bootstrapServers: 127.0.0.1:{port}" in project, "the address of a sandbox as it is started"


@pytest.mark.kafka
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, id=path.name, marks=[pytest.mark.thorough] * has_own_brokers(path))
        for path in EXAMPLES
    ],
)
def test_example_succeeds_and_cleans_up(
    request: pytest.FixtureRequest, example: Path, programs_with_kdeclare: Path, tmp_path: Path
) -> None:
    # An example that starts its own brokers must not use others: no broker responds at this address.
    is_apart = has_own_brokers(example)
    bootstrap = "127.0.0.1:1" if is_apart else request.getfixturevalue("sandbox").bootstrap
    programs = programs_with_kdeclare if is_apart else request.getfixturevalue("programs_with_tools")
    cluster, files = None if is_apart else import_manifests(bootstrap), list_files(example)
    own = {
        "KDECLARE_FLEET_PORT": str(free_ports_of_clusters(3)),
        "KDECLARE_CONNECT_PORT": str(free_port(1, workers=2)),
        "KDECLARE_ACCESS_PORT": str(free_port(1, secure=True)),
        "KDECLARE_PIPELINE_PORT": str(free_port(1, workers=1, secure=True, registry=True)),
    }
    done = run_script(example / "run.sh", tmp_path, programs, KDECLARE_BOOTSTRAP=bootstrap, **own)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("The example succeeded.\n")
    if cluster is not None:
        assert import_manifests(bootstrap) == cluster
    assert list_files(example) == files
    assert list(tmp_path.iterdir()) == []


@pytest.mark.kafka
@pytest.mark.thorough
def test_example_succeeds_after_aborted_run(
    sandbox: "SandboxStatus", programs_with_kdeclare: Path, tmp_path: Path
) -> None:
    from kdeclare.sandbox import run_kafka_tool

    left = ("--create", "--topic", "adopting.mails", "--partitions", "5", "--bootstrap-server")
    made = run_kafka_tool("org.apache.kafka.tools.TopicCommand", *left, sandbox.bootstrap)
    assert made.returncode == 0, made.stderr
    script = ROOT / "examples" / "adopting" / "run.sh"
    done = run_script(script, tmp_path, programs_with_kdeclare, KDECLARE_BOOTSTRAP=sandbox.bootstrap)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@each_example
def test_example_fails_if_output_is_missing(example: Path, tmp_path: Path) -> None:
    # Kafka's own tools (`python -`) are silent, too: each would wait a minute for a missing cluster
    silent = write_programs(tmp_path, "exit 0", f'[ "$1" = - ] || {THIS_PYTHON}')
    done = run_script(example / "run.sh", tmp_path, silent)
    assert done.returncode == 1
    assert "FAILED: " in done.stderr


def test_example_without_cluster_prints_a_hint(tmp_path: Path) -> None:
    done = run_script(
        ROOT / "examples" / "adopting" / "run.sh", tmp_path, PROGRAMS, KDECLARE_BOOTSTRAP="127.0.0.1:1"
    )
    assert done.returncode == 1
    assert "FAILED: no cluster responds at 127.0.0.1:1" in done.stderr
    assert "kdeclare sandbox start" in done.stderr
    assert list(tmp_path.iterdir()) == []
