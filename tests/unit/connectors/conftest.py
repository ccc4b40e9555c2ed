"""The command line in a project with one Connect cluster."""

from collections.abc import Mapping
from typing import Any

import pytest

from kdeclare.providers.connect import connection
from kdeclare.providers.connect.testing import MemoryConnectCluster
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.conftest import kdeclare as kdeclare

ENVIRONMENTS = {"lab": {"bootstrapServers": "lab:9092", "connect": {"eu": {"urls": ["https://lab:8083"]}}}}


@pytest.fixture
def connect(kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch) -> MemoryConnectCluster:
    """The Connect cluster of the project. Waiting takes no time."""
    cluster = MemoryConnectCluster(lag=0)
    monkeypatch.setattr(connection, "open_cluster", lambda *_: cluster)
    kdeclare.hurry()
    write_project(kdeclare)
    return cluster


def write_project(kdeclare: CommandLine, **more: Any) -> None:
    """Write the project file. more: further fields."""
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=ENVIRONMENTS, **more)


def write_sink(kdeclare: CommandLine, config: Mapping[str, Any] | None = None, **more: Any) -> None:
    """Declare a sink. config: further keys of its config."""
    whole_config = {"topics": "orders", "file": "out.txt", **(config or {})}
    spec = {"class": "FileStreamSink", "tasksMax": 1, "config": whole_config, **more}
    kdeclare.write("manifests/sink.yaml", "Connector", "sink", **spec)
