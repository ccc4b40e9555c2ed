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

    log_s: how long a request that deletes something also waits for the log. delay_s: the longest additional
    wait, for the requests of other clients.
    """

    def __init__(
        self, bindings: int, seconds_per_scanned: float, log_s: float = 0.03, delay_s: float = 0.0
    ) -> None:
        self.bindings = bindings
        self.seconds_per_scanned = seconds_per_scanned
        self.log_s, self.delay_s = log_s, delay_s
        self.now = 1000.0
        self.random = random.Random(4)
        self.existing = set(make_names(bindings))
        self.sizes: list[int] = []
        self.measured: list[int] = []
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
        names = {item.resource_name_filter for item in request.filters}
        matched = self.existing & names
        self.begins.append(self.now)
        (self.sizes if matched else self.measured).append(len(request.filters))
        self.scans.append(self.seconds_per_scanned * self.bindings * len(request.filters))
        self.bindings -= len(matched)
        self.existing -= names
        self.now += self.scans[-1] + self.random.uniform(0, self.delay_s) + (self.log_s if matched else 0)
        self.ends.append(self.now)
        if self.fails:
            self.now = self.ends[-1] = self.begins[-1] + 30
            raise Fault("REQUEST_TIMED_OUT", "no response", FaultKind.UNKNOWN)
        return read_response(answer_deletion(request))

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def make_names(count: int) -> list[str]:
    return [binding.name for binding in make_bindings(count)]


def open_writer(controller: SlowController) -> AclWriter:
    return AclWriter(controller, DeletionPace(lambda: controller.now, controller.sleep))  # type: ignore[arg-type]


def delete_all(controller: SlowController, operation_size: int = 100) -> None:
    bindings = make_bindings(controller.bindings)
    writer = open_writer(controller)
    for start in range(0, len(bindings), operation_size):
        assert set(writer.delete(bindings[start : start + operation_size]).values()) == {None}
    assert not controller.existing


def test_deletions_grow_to_target_from_one_filter() -> None:
    """The wait for the log does not count: a deletion that is sent again shows the scan time."""
    controller = SlowController(10_000, TARGET_S / 100_000)
    bindings = make_bindings(100)
    open_writer(controller).delete(bindings)
    assert controller.sizes[:8] == [1, 2, 4, 8, 11, 10, 10, 10]
    assert controller.measured == [1, 2, 4, 8, 11]
    assert sum(controller.sizes) == 100


def test_small_deletions_are_sent_only_once() -> None:
    controller = SlowController(1000, 1e-7)
    writer = open_writer(controller)
    for binding in make_bindings(100):
        writer.delete([binding])
    assert controller.sizes == [1] * 100
    assert controller.measured == []


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0, 0.004, 0.03])
@pytest.mark.parametrize("seconds_per_scanned", [0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5])
def test_scan_exceeds_target_by_at_most_one_filter(seconds_per_scanned: float, delay_s: float) -> None:
    controller = SlowController(5000, seconds_per_scanned, delay_s=delay_s)
    delete_all(controller)
    assert max(controller.sizes) <= MAX_DELETIONS
    assert len(controller.measured) < 8 + len(controller.sizes) / 4
    assert max(controller.scans) <= TARGET_S + 5000 * seconds_per_scanned


def test_number_of_requests_is_near_optimum() -> None:
    controller = SlowController(5000, 1e-7)
    delete_all(controller)
    optimum = sum(5000 - n for n in range(5000)) * 1e-7 / TARGET_S
    assert len(controller.sizes) < 2 * optimum


@pytest.mark.slow
@pytest.mark.parametrize("operation_size", [1, 10, 100])
@pytest.mark.parametrize("log_s", [0.0, 0.003, 0.03])
@pytest.mark.parametrize("seconds_per_scanned", [1e-7, 1e-6, 1e-5, 1e-4])
def test_deletions_use_half_of_controllers_time(
    seconds_per_scanned: float, log_s: float, operation_size: int
) -> None:
    controller = SlowController(2000, seconds_per_scanned, log_s)
    delete_all(controller, operation_size)
    assert controller.busy_share <= 0.51
    if log_s == 0:
        assert controller.busy_share >= 0.45


def test_size_follows_number_of_bindings() -> None:
    controller = SlowController(10_000, TARGET_S / 50_000)
    bindings = make_bindings(10_000)
    writer = open_writer(controller)
    writer.delete(bindings[:1000])
    assert max(controller.sizes) <= 6
    sent = len(controller.sizes)
    controller.bindings -= 8000  # another client deletes them
    writer.delete(bindings[1000:2000])
    assert max(controller.sizes[sent:]) > 25
    sent = len(controller.sizes)
    controller.bindings += 10_000
    writer.delete(bindings[2000:3000])
    assert max(controller.sizes[-50:]) <= 6


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


def test_refused_deletion_is_not_sent_again() -> None:
    sent: list[Any] = []

    def refuse(request: Any) -> Any:
        sent.append(request)
        kind = DeleteAclsResponse.DeleteAclsFilterResult
        refused = kind(error_code=31, error_message="no", matching_acls=[])
        return DeleteAclsResponse(throttle_time_ms=0, filter_results=[refused] * len(request.filters))

    with fake_broker({DELETE: refuse}, VERSIONS) as broker:
        cluster = connect(broker.bootstrap, {})
        try:
            results = cluster.delete_acls(make_bindings(30))
        finally:
            cluster.close()
    assert {fault.error for fault in results.values() if isinstance(fault, Fault)} == {
        "CLUSTER_AUTHORIZATION_FAILED"
    }
    assert sum(len(request.filters) for request in sent) == 30


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
