"""Requests to a registry from many threads at the same time."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kdeclare.core.jsontypes import JsonObject
from kdeclare.core.live.faults import Fault
from kdeclare.providers.schema_registry.client.port import SchemaContent, SchemaType
from kdeclare.providers.schema_registry.client.rest import RestRegistry
from tests.unit.schema_registry.registry_stub import open_registry, run_registry_stub

CALLS: dict[str, Callable[[RestRegistry], object]] = {
    "change": lambda registry: registry.register("s", SchemaContent(SchemaType.AVRO, '"string"')),
    "read": lambda registry: registry.read_version("s"),
}


@pytest.fixture
def _switch_threads_often() -> Iterator[None]:
    """Let threads interrupt each other almost anywhere."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval_s)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.usefixtures("_switch_threads_often")
def test_requests_of_many_threads_do_not_disturb_each_other(kind: str) -> None:
    with run_registry_stub() as stub:
        stub.answer("POST /subjects/s/versions", 200, {"id": 1, "version": 1})
        version: JsonObject = {"subject": "s", "version": 1, "id": 1, "schema": '"string"'}
        stub.answer("GET /subjects/s/versions/latest", 200, version)
        registry = open_registry(stub.url, timeout_s=30)

        def send(_: int) -> Fault | None:
            try:
                CALLS[kind](registry)
            except Fault as fault:
                return fault
            return None

        with ThreadPoolExecutor(16) as pool:
            faults = [fault for fault in pool.map(send, range(800)) if fault is not None]
        registry.close()
    assert not faults
    assert len(stub.received) == 800
