"""Runners at an in-memory cluster."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.providers.kafka.testing import MemoryCluster
from tests.ci.memory_kdeclare import keep
from tests.ci.runner import ROOT, Runner


@pytest.fixture(scope="session")
def kdeclare() -> Iterator[str]:
    """The command line of a kdeclare that has started already."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are too long for a socket's path
        waits = Path(folder) / "socket"
        command = [sys.executable, "-m", "tests.ci.memory_kdeclare", str(waits)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout
            assert server.stdout.readline() == "ready\n"
            yield f"{sys.executable} -IS {ROOT}/tests/ci/hand_over.py {waits}"
            server.terminate()


@pytest.fixture
def runner(tmp_path: Path, kdeclare: str) -> Runner:
    """A runner with a project called ``shop`` in it."""
    made = Runner(tmp_path, kdeclare)
    keep(MemoryCluster({1: "a", 2: "b", 3: "c"}), Path(made.environ["STUB_CLUSTER"]))
    made.write(
        "kdeclare.yaml", "Project", "shop", {"environments": {"lab": {"bootstrapServers": "lab:9092"}}}
    )
    return made
