"""The adapter's ACL requests against a fake broker: their size, their order, and pauses between deletions."""

from collections.abc import Sequence
from typing import Any

import pytest
from kafka.protocol.admin import CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.client.access.acls import AclWriter
from tests.fake_broker import fake_broker

DESCRIBE, CREATE, DELETE = 29, 30, 31
VERSIONS = {DESCRIBE: 3, CREATE: 3, DELETE: 3}
ORDERS = parse_binding("ALLOW User:a READ topic:orders from *")


def make_bindings(count: int) -> list[Binding]:
    return [ORDERS._replace(name=f"t{n}") for n in range(count)]


def answer_creation(request: Any) -> Any:
    kind = CreateAclsResponse.AclCreationResult
    return CreateAclsResponse(
        throttle_time_ms=0,
        results=[
            kind(error_code=31 if item.resource_name == "t7" else 0, error_message="needs ALTER")
            for item in request.creations
        ],
    )


def answer_deletion(request: Any) -> Any:
    kind = DeleteAclsResponse.DeleteAclsFilterResult
    return DeleteAclsResponse(
        throttle_time_ms=0,
        filter_results=[kind(error_code=0, error_message=None, matching_acls=[]) for _ in request.filters],
    )


def test_creations_are_split_and_keep_result_of_each_binding() -> None:
    """P-ACL-12."""
    bindings = make_bindings(1200)
    with fake_broker({CREATE: answer_creation}, VERSIONS) as broker:
        cluster = connect(broker.bootstrap, {})
        try:
            results = cluster.create_acls(bindings)
        finally:
            cluster.close()
    assert [len(request.creations) for request in broker.list_requests(CREATE)] == [500, 500, 200]
    assert list(results) == bindings
    refused = {binding.name: result for binding, result in results.items() if isinstance(result, Fault)}
    assert {name: (fault.error, fault.kind) for name, fault in refused.items()} == {
        "t7": ("CLUSTER_AUTHORIZATION_FAILED", FaultKind.REFUSED)
    }


class SlowWire:
    """Answers each deletion after a time that depends on the number of its filters."""

    def __init__(self, seconds_per_filter: float) -> None:
        self.seconds_per_filter = seconds_per_filter
        self.now = 0.0
        self.busy = 0.0
        self.sizes: list[int] = []

    def send_one(self, request: Any, read_response: Any, *, changes: bool) -> Any:
        self.sizes.append(len(request.filters))
        taken = len(request.filters) * self.seconds_per_filter
        self.now += taken
        self.busy += taken
        return read_response(answer_deletion(request))

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def delete(wire: SlowWire, bindings: Sequence[Binding]) -> None:
    writer = AclWriter(wire, lambda: wire.now, wire.sleep)  # type: ignore[arg-type]
    assert set(writer.delete(bindings).values()) == {None}


def test_deletions_grow_until_they_take_long() -> None:
    wire = SlowWire(0.001)
    delete(wire, make_bindings(300))
    assert wire.sizes == [5, 10, 20, 40, 40, 40, 40, 40, 40, 25]


@pytest.mark.parametrize("seconds", [0.002, 0.03, 0.3])
def test_deletions_leave_controller_half_of_its_time(seconds: float) -> None:
    wire = SlowWire(seconds)
    delete(wire, make_bindings(300))
    assert sum(wire.sizes) == 300
    assert wire.busy <= 0.55 * wire.now
    assert all(size * seconds <= max(0.2, seconds) for size in wire.sizes[3:])


def test_unknown_codes_of_later_releases_round_trip() -> None:
    resource = DescribeAclsResponse.DescribeAclsResource
    acl = resource.AclDescription

    def answer(_: Any) -> Any:
        described = acl(principal="User:a", host="*", operation=16, permission_type=3)
        return DescribeAclsResponse(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            resources=[resource(resource_type=8, resource_name="x", pattern_type=3, acls=[described])],
        )

    with fake_broker({DESCRIBE: answer, DELETE: answer_deletion}, VERSIONS) as broker:
        cluster = connect(broker.bootstrap, {})
        try:
            (binding,) = cluster.acls()
            assert str(binding) == "ALLOW User:a operation-16 resource-8:x from *"
            assert cluster.delete_acls([parse_binding(str(binding))]) == {binding: None}
        finally:
            cluster.close()
    (sent,) = broker.list_requests(DELETE)
    assert (sent.filters[0].operation, sent.filters[0].resource_type_filter) == (16, 8)
