"""The adapter's ACL requests against a fake broker: their size, their order, and pauses between deletions."""

from itertools import pairwise
from typing import Any

import pytest
from kafka.protocol.admin import CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.client.access.acls import AclWriter
from kdeclare.providers.kafka.client.access.deletion_pace import MAX_DELETIONS, TARGET_S, DeletionPace
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


class SlowController:
    """Scans all of its bindings for each filter of a deletion, like Kafka's controller. Time is simulated."""

    def __init__(self, bindings: int, seconds_per_scanned: float, seconds_per_request: float = 0.001) -> None:
        self.bindings = bindings
        self.seconds_per_scanned = seconds_per_scanned
        self.seconds_per_request = seconds_per_request
        self.now = 1000.0
        self.requests: list[tuple[int, float, float]] = []
        self.fails = False

    @property
    def sizes(self) -> list[int]:
        return [size for size, _, _ in self.requests]

    @property
    def durations(self) -> list[float]:
        return [end - begin for _, begin, end in self.requests]

    @property
    def pauses(self) -> list[float]:
        return [later[1] - earlier[2] for earlier, later in pairwise(self.requests)]

    def send_one(self, request: Any, read_response: Any, *, changes: bool) -> Any:
        begin = self.now
        self.now += self.seconds_per_request
        self.now += self.seconds_per_scanned * self.bindings * len(request.filters)
        self.bindings -= len(request.filters)
        self.requests.append((len(request.filters), begin, self.now))
        if self.fails:
            raise Fault("REQUEST_TIMED_OUT", "no response", FaultKind.UNKNOWN)
        return read_response(answer_deletion(request))

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def open_writer(controller: SlowController) -> AclWriter:
    return AclWriter(controller, DeletionPace(lambda: controller.now, controller.sleep))  # type: ignore[arg-type]


def delete_all(controller: SlowController, operations: int = 1) -> None:
    bindings = make_bindings(controller.bindings)
    size = len(bindings) // operations
    writer = open_writer(controller)
    for start in range(0, len(bindings), size):
        assert set(writer.delete(bindings[start : start + size]).values()) == {None}


def test_deletions_grow_to_their_target_duration() -> None:
    """The first request is small, because the cost of a filter is unknown."""
    controller = SlowController(300, 0.000_003)
    delete_all(controller)
    assert controller.sizes[:6] == [1, 2, 4, 8, 9, 10]
    assert sum(controller.sizes) == 300
    assert max(controller.sizes) <= MAX_DELETIONS
    assert max(controller.durations) <= TARGET_S


@pytest.mark.parametrize("seconds_per_scanned", [0, 1e-8, 1e-7, 1e-6, 1e-5])
def test_deletions_last_at_most_target_or_one_filter(seconds_per_scanned: float) -> None:
    controller = SlowController(2000, seconds_per_scanned)
    delete_all(controller)
    for size, begin, end in controller.requests:
        assert size == 1 or end - begin <= 1.1 * TARGET_S


@pytest.mark.parametrize("operations", [1, 20, 500])
@pytest.mark.parametrize("seconds_per_scanned", [1e-7, 1e-6, 1e-4])
def test_deletions_leave_controller_half_of_its_time(seconds_per_scanned: float, operations: int) -> None:
    """The pauses are between all requests, also between those of different operations."""
    controller = SlowController(2000, seconds_per_scanned)
    delete_all(controller, operations)
    assert len(controller.pauses) == len(controller.requests) - 1
    for pause, duration in zip(controller.pauses, controller.durations, strict=False):
        assert pause == pytest.approx(duration)


def test_slow_response_shrinks_next_deletion() -> None:
    controller = SlowController(10_000, 1e-8)
    writer = open_writer(controller)
    writer.delete(make_bindings(500))
    fast = len(controller.requests)
    controller.seconds_per_scanned = 1e-6
    writer.delete(make_bindings(200))
    assert controller.sizes[fast] > 40
    assert set(controller.sizes[fast + 1 :]) == {1}


def test_small_deletion_does_not_reduce_next_size() -> None:
    controller = SlowController(1000, 1e-7)
    writer = open_writer(controller)
    writer.delete(make_bindings(300))
    largest = max(controller.sizes)
    writer.delete(make_bindings(1))
    writer.delete(make_bindings(largest))
    assert controller.sizes[-2:] == [1, largest]


def test_pause_follows_deletion_without_response() -> None:
    """The controller may still execute a request that it does not answer in time."""
    controller = SlowController(1000, 1e-4)
    writer = open_writer(controller)
    controller.fails = True
    with pytest.raises(Fault):
        writer.delete(make_bindings(1))
    controller.fails = False
    writer.delete(make_bindings(1))
    assert controller.pauses == [pytest.approx(controller.durations[0])]


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
