"""A client asks for permission immediately before each request that changes something, and only then."""

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from kafka.protocol.admin import CreateAclsResponse

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.live.faults import Outcome
from kdeclare.core.operations.send_permit import check_send_permit, get_send_check, require_permit
from kdeclare.core.parts import Connections
from kdeclare.core.resources.object_system import ObjectSystem, SystemObjects
from kdeclare.core.resources.objects import ObjectWrite
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel
from tests.fake_broker import fake_broker
from tests.unit.schema_registry.registry_stub import open_registry, run_registry_stub

CREATE_ACLS = 30


class _Permit:
    """Allows a number of requests, and refuses all further ones."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.checks = 0

    def __call__(self) -> None:
        self.checks += 1
        if self.checks > self.allowed:
            raise KdeclareError(error("lease-ended", "The lease on the state ended", "Too late."))


def test_requests_are_allowed_outside_of_runs() -> None:
    check_send_permit()


def test_permit_applies_inside_of_block() -> None:
    permit = _Permit(0)
    with require_permit(permit), pytest.raises(KdeclareError):
        check_send_permit()
    check_send_permit()
    assert permit.checks == 1


def test_permits_of_threads_are_independent() -> None:
    other_checks: list[Callable[[], None]] = []
    with require_permit(_Permit(0)):
        thread = threading.Thread(target=lambda: other_checks.append(get_send_check()))
        thread.start()
        thread.join()
        other_checks[0]()


def test_client_of_brokers_asks_before_each_request_and_each_repetition() -> None:
    """1,200 bindings need three requests. The first request is answered with a retriable error."""
    answers = itertools.chain([41], itertools.repeat(0))  # NOT_CONTROLLER

    def answer(request: Any) -> Any:
        code = next(answers)
        kind = CreateAclsResponse.AclCreationResult
        results = [kind(error_code=code, error_message=None) for _ in request.creations]
        return CreateAclsResponse(throttle_time_ms=0, results=results)

    orders = parse_binding("ALLOW User:a READ topic:orders from *")
    bindings = [orders._replace(name=f"t{number}") for number in range(1200)]
    for allowed in (0, 1, 2):
        with fake_broker({CREATE_ACLS: answer}, {CREATE_ACLS: 3}) as broker:
            cluster = connect(broker.bootstrap, {})
            try:
                with require_permit(_Permit(allowed)), pytest.raises(KdeclareError, match="Too late"):
                    cluster.create_acls(bindings)
            finally:
                cluster.close()
        assert len(broker.list_requests(CREATE_ACLS)) == allowed


def test_client_of_http_endpoints_asks_before_each_change() -> None:
    with run_registry_stub() as stub:
        registry = open_registry(stub.url, attempts=3)
        stub.answer("GET /subjects", 200, [])
        with require_permit(_Permit(0)):
            registry.list_subjects()
            with pytest.raises(KdeclareError, match="Too late"):
                registry.set_level("orders", CompatibilityLevel.NONE)
        assert all(request.startswith("GET") for request in stub.requests)
        registry.close()


class _Objects:
    """A system that counts its writes."""

    writes = 0

    def read(self) -> SystemObjects:
        return SystemObjects({})

    def write(self, writes: Sequence[ObjectWrite], *, validate_only: bool) -> Sequence[Outcome]:
        self.writes += 1
        return [None for _ in writes]


def test_systems_of_other_providers_are_asked_for() -> None:
    objects = _Objects()
    system = ObjectSystem("objects", _Objects, SystemObjects)
    with require_permit(_Permit(1)):
        system.write(Connections(objects), [], validate_only=True)
        system.write(Connections(objects), [], validate_only=False)
        with pytest.raises(KdeclareError, match="Too late"):
            system.write(Connections(objects), [], validate_only=False)
    assert objects.writes == 2
