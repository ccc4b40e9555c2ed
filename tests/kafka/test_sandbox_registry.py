"""A secure sandbox with a real schema registry, which is added to a broker together with a worker."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.live.faults import Fault
from kdeclare.http.target import HttpTarget
from kdeclare.providers.schema_registry.client import port
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaRegistry
from kdeclare.providers.schema_registry.client.rest import open_rest_registry
from kdeclare.sandbox import SandboxSettings
from tests.conftest import free_port
from tests.registries import ID, build_record

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxSettings]:
    """Settings of a sandbox that is deleted at the end. Its name needs escaping."""
    folder = tmp_path_factory.mktemp("registry") / "a sänd=box ${x}"
    yield SandboxSettings(folder, 1, 1, free_port(1, 1, secure=True, registry=True), secure=True)
    kafka_sandbox.reset(folder)


def open_registry(folder: Path) -> SchemaRegistry:
    """Connect to the registry of a sandbox."""
    registry = kafka_sandbox.status(folder).registry
    assert registry is not None
    return open_rest_registry(HttpTarget((registry.url,)))


@pytest.mark.thorough
def test_registry_is_added_to_existing_sandbox_and_keeps_schemas(settings: SandboxSettings) -> None:
    started = kafka_sandbox.start(settings, print)
    assert started.ready
    assert started.registry is None
    broker = started.brokers[0].pid

    reports: list[str] = []
    settings = replace(settings, connect_workers=1, registry=True)
    started = kafka_sandbox.start(settings, reports.append)
    assert started.ready
    assert started.registry is not None
    assert len(started.workers) == 1
    assert started.brokers[0].pid == broker
    assert any(report.startswith("the schema registry is ready after") for report in reports)
    registry = open_registry(settings.folder)
    first = registry.register("orders-value", build_record(ID))
    registry.set_level("orders-value", CompatibilityLevel.FULL)

    stopped = kafka_sandbox.stop(settings.folder)
    assert stopped.registry is not None
    assert not stopped.running
    with pytest.raises(Fault) as raised:
        registry.read_version("orders-value")
    assert raised.value.error in (port.UNREACHABLE, port.LOST)

    started = kafka_sandbox.start(settings, print)
    assert started.ready
    found = open_registry(settings.folder).find_version("orders-value", build_record(ID))
    assert found is not None
    assert found.id == first.id
    level = open_registry(settings.folder).read_level("orders-value")
    assert level.own is CompatibilityLevel.FULL

    kafka_sandbox.reset(settings.folder)
    assert not settings.folder.exists()
