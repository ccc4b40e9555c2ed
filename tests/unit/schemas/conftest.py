"""The command line in a project with one schema registry."""

from typing import Any

import pytest

from kdeclare.providers.schema_registry.client import rest
from kdeclare.providers.schema_registry.testing import MemoryRegistry
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.conftest import kdeclare as kdeclare

ENVIRONMENTS = {
    "lab": {"bootstrapServers": "lab:9092", "registries": {"main": {"urls": ["https://lab:8081"]}}}
}


@pytest.fixture
def registry(kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch) -> MemoryRegistry:
    """The registry of the project. Waiting takes no time."""
    registry = MemoryRegistry()
    monkeypatch.setattr(rest, "open_rest_registry", lambda *_: registry)
    kdeclare.hurry()
    write_project(kdeclare)
    return registry


def write_project(kdeclare: CommandLine, **more: Any) -> None:
    """Write the project file. more: further fields."""
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=ENVIRONMENTS, **more)


def write_schema(kdeclare: CommandLine, schema: Any, name: str = "order", **more: Any) -> None:
    """Declare a schema."""
    kdeclare.write(f"manifests/{name}.yaml", "Schema", name, schema=schema, **more)
