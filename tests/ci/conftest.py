"""Runners with an in-memory cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.providers.kafka.testing import MemoryCluster
from tests.ci.memory_kdeclare import save_cluster
from tests.ci.runner import Runner
from tests.waiting import run_server


@pytest.fixture(scope="session")
def kdeclare() -> Iterator[str]:
    """Provide the command line of a kdeclare that is already running."""
    with run_server("tests.ci.memory_kdeclare") as line:
        yield line


@pytest.fixture
def runner(tmp_path: Path, kdeclare: str) -> Runner:
    """Provide a runner with the project ``shop``."""
    made = Runner(tmp_path, kdeclare)
    save_cluster(MemoryCluster({1: "a", 2: "b", 3: "c"}), Path(made.environ["STUB_CLUSTER"]))
    made.write(
        "kdeclare.yaml", "Project", "shop", {"environments": {"lab": {"bootstrapServers": "lab:9092"}}}
    )
    return made
