"""The adapter's ACL requests against a fake broker: their size, their order, and pauses between deletions."""

import random
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
    """Scans all of its bindings for each filter of a deletion, like Kafka's controller. Time is simulated.

    waiting_s: how long a request waits for the log in addition, on average. jitter: the largest deviation
    from it, as a share, which other clients cause.
    """

    def __init__(
        self, bindings: int, seconds_per_scanned: float, waiting_s: float = 0.03, jitter: float = 0.0
    ) -> None:
        self.bindings = bindings
        self.seconds_per_scanned = seconds_per_scanned
        self.waiting_s, self.jitter = waiting_s, jitter
        self.now = 1000.0
        self.random = random.Random(4)
        self.sizes: list[int] = []
        self.scans: list[float] = []
        self.begins: list[float] = []
        self.ends: list[float] = []
        self.fails = False

    @property
    def pauses(self) -> list[float]:
        return [begin - end for end, begin in zip(self.ends, self.begins[1:], strict=False)]

    @property
    def busy_share(self) -> float:
        return sum(self.scans) / (self.now - self.begins[0])

    def send_one(self, request: Any, read_response: Any, *, changes: bool) -> Any:
        self.begins.append(self.now)
        self.sizes.append(len(request.filters))
        self.scans.append(self.seconds_per_scanned * self.bindings * len(request.filters))
        self.bindings -= len(request.filters)
        self.now += self.scans[-1] + self.waiting_s * (1 + self.random.uniform(-self.jitter, self.jitter))
        self.ends.append(self.now)
        if self.fails:
            self.now = self.ends[-1] = self.begins[-1] + 30
            raise Fault("REQUEST_TIMED_OUT", "no response", FaultKind.UNKNOWN)
        return read_response(answer_deletion(request))

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def open_writer(controller: SlowController) -> AclWriter:
    return AclWriter(controller, DeletionPace(lambda: controller.now, controller.sleep))  # type: ignore[arg-type]


def delete_all(controller: SlowController, operation_size: int = 100) -> None:
    bindings = make_bindings(controller.bindings)
    writer = open_writer(controller)
    for start in range(0, len(bindings), operation_size):
        assert set(writer.delete(bindings[start : start + operation_size]).values()) == {None}


def test_deletions_grow_to_target_from_one_filter() -> None:
    """The waiting time does not count. Every eighth request shows how long it is."""
    controller = SlowController(10_000, 5e-8)
    open_writer(controller).delete(make_bindings(100))
    assert controller.sizes == [1, 2, 4, 8, 10, 10, 10, 10, 1, 10, 10, 10, 10, 4]


@pytest.mark.parametrize("seconds_per_scanned", [0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5])
def test_scan_lasts_at_most_target_or_one_filter(seconds_per_scanned: float) -> None:
    controller = SlowController(5000, seconds_per_scanned)
    delete_all(controller)
    assert max(controller.sizes) <= MAX_DELETIONS
    scans = zip(controller.sizes, controller.scans, strict=True)
    long = [size for size, scan in scans if scan > 1.5 * TARGET_S]
    # A request with two filters measures the scan time if a single filter takes longer than the target.
    assert set(long) <= {1, 2}
    assert long.count(2) <= 1 + len(controller.sizes) / 64


@pytest.mark.parametrize("jitter", [0.1, 0.3])
@pytest.mark.parametrize("seconds_per_scanned", [1e-8, 1e-7])
def test_scan_stays_near_target_beside_other_clients(seconds_per_scanned: float, jitter: float) -> None:
    controller = SlowController(10_000, seconds_per_scanned, jitter=jitter)
    delete_all(controller)
    scans = sorted(controller.scans)
    assert scans[int(len(scans) * 0.98)] <= 3 * TARGET_S
    assert len(controller.sizes) < 10_000 * max(0.1, 2 * 5000 * seconds_per_scanned / TARGET_S)


@pytest.mark.parametrize("operation_size", [1, 10, 100])
@pytest.mark.parametrize("waiting_s", [0.0, 0.003, 0.03])
@pytest.mark.parametrize("seconds_per_scanned", [1e-7, 1e-6, 1e-5, 1e-4])
def test_deletions_use_half_of_controllers_time(
    seconds_per_scanned: float, waiting_s: float, operation_size: int
) -> None:
    controller = SlowController(2000, seconds_per_scanned, waiting_s)
    delete_all(controller, operation_size)
    assert controller.busy_share <= 0.51
    if waiting_s == 0 and operation_size == 100:
        assert controller.busy_share >= 0.4


def test_size_follows_number_of_bindings() -> None:
    controller = SlowController(10_000, 1e-7)
    writer = open_writer(controller)
    writer.delete(make_bindings(1000))
    controller.bindings = 1000
    writer.delete(make_bindings(900))
    before, after = controller.sizes[100:150], controller.sizes[-20:]
    assert max(before) <= 6
    assert max(after) == MAX_DELETIONS


def test_one_slow_response_is_soon_forgotten() -> None:
    controller = SlowController(10_000, 1e-8)
    writer = open_writer(controller)
    writer.delete(make_bindings(2000))
    assert max(controller.sizes) == MAX_DELETIONS
    controller.fails = True
    writer.delete(make_bindings(1 + controller.sizes[-2]))
    controller.fails = False
    sent = len(controller.sizes)
    writer.delete(make_bindings(2000))
    assert min(controller.sizes[sent : sent + 4]) < 20
    assert MAX_DELETIONS in controller.sizes[sent:]


def test_pause_follows_deletion_without_response() -> None:
    """The controller may still execute a request that it does not answer in time."""
    controller = SlowController(1000, 1e-7)
    writer = open_writer(controller)
    controller.fails = True
    with pytest.raises(Fault):
        writer.delete(make_bindings(1))
    controller.fails = False
    writer.delete(make_bindings(1))
    assert controller.pauses == [5.0]


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
