"""The Kafka release that a cluster reports."""

from collections.abc import Callable
from typing import Any

import pytest
from kafka.protocol.admin import DescribeClusterResponse
from kafka.protocol.metadata import ApiVersionsResponse

from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.client.describe_cluster import find_release
from kdeclare.providers.kafka.live import ClusterInfo
from tests.fake_broker import Answer, FakeBroker, fake_broker

API_VERSIONS, DESCRIBE_CLUSTER = 18, 60


def make_cluster_response(request: Any) -> Any:
    kind = DescribeClusterResponse
    return kind(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        endpoint_type=1,
        cluster_id="fake",
        controller_id=1,
        brokers=[],
    )


def describe_cluster(answer: Callable[[FakeBroker], Answer], versions: dict[int, int]) -> ClusterInfo:
    """Describe a broker that sends this ApiVersions response after it is connected."""
    with fake_broker({DESCRIBE_CLUSTER: make_cluster_response}, versions) as broker:
        cluster = connect(broker.bootstrap, {})
        broker._answers[API_VERSIONS] = answer(broker)
        try:
            return cluster.describe()
        finally:
            cluster.close()


def make_features_responder(**levels: int) -> Callable[[FakeBroker], Answer]:
    def make_answer(broker: FakeBroker) -> Answer:
        def respond(request: Any) -> Any:
            response = broker.api_versions(request)
            kind = ApiVersionsResponse.FinalizedFeatureKey
            response.finalized_features = [
                kind(name=name.replace("_", "."), min_version_level=1, max_version_level=level)
                for name, level in levels.items()
            ]
            return response

        return respond

    return make_answer


@pytest.mark.parametrize("versions", [{}, {DESCRIBE_CLUSTER: -1}])
@pytest.mark.parametrize(
    ("answer", "version"),
    [
        (make_features_responder(metadata_version=27, kraft_version=1), "4.1"),
        (make_features_responder(metadata_version=99), "metadata.version 99"),
        (make_features_responder(kraft_version=1), None),
    ],
)
def test_describe_cluster_finds_version(
    versions: dict[int, int], answer: Callable[[FakeBroker], Answer], version: str | None
) -> None:
    found = describe_cluster(answer, versions)
    assert (found.id, found.version) == ("fake", version)


def test_describe_cluster_does_not_request_version_of_old_broker() -> None:
    with fake_broker({DESCRIBE_CLUSTER: make_cluster_response}, {API_VERSIONS: 2}) as broker:
        cluster = connect(broker.bootstrap, {})
        asked = len(broker.list_requests(API_VERSIONS))
        found = cluster.describe()
        cluster.close()
        assert len(broker.list_requests(API_VERSIONS)) == asked
    assert (found.id, found.version) == ("fake", None)


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (3, "metadata.version 3"),
        (4, "3.3"),
        (7, "3.3"),
        (8, "3.4"),
        (11, "3.5"),
        (14, "3.6"),
        (19, "3.7"),
        (20, "3.8"),
        (21, "3.9"),
        (22, "4.0"),
        (25, "4.0"),
        (27, "4.1"),
        (29, "4.2"),
        (30, "4.3"),
        (31, "metadata.version 31"),
    ],
)
def test_find_release_returns_name_for_level(level: int, name: str) -> None:
    assert find_release(level) == name
