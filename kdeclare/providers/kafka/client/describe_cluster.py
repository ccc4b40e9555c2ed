"""Describe a cluster: brokers, release, API versions, features and permissions (KIP-430, KIP-584).

The release is derived from the finalized feature ``metadata.version`` (KIP-778). Brokers can run a newer
release, because the feature level is raised manually after all brokers are upgraded.
"""

import logging
from collections.abc import Callable, Set
from dataclasses import replace
from functools import partial
from typing import Any

from kafka.protocol.admin.cluster import DescribeClusterRequest
from kafka.protocol.admin.topics import AlterPartitionReassignmentsRequest
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.client.faults import NONE, build_fault_from_code
from kdeclare.providers.kafka.client.freshness import build_api_versions_request
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.live import Broker, ClusterInfo
from kdeclare.providers.kafka.port import Examination

METADATA_VERSION = "metadata.version"

_RELEASES = {
    "3.3": 4,
    "3.4": 8,
    "3.5": 9,
    "3.6": 12,
    "3.7": 15,
    "3.8": 20,
    "3.9": 21,
    "4.0": 22,
    "4.1": 26,
    "4.2": 28,
    "4.3": 30,
}
"""The first ``metadata.version`` level of each release.

Source: org.apache.kafka.server.common.MetadataVersion of Kafka 4.3.1.
"""
_UNKNOWN_LEVEL = 31
_OPERATIONS = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
}
"""ACL operations by code (org.apache.kafka.common.acl.AclOperation)."""
_NOT_PROVIDED = {31}
"""The value that means "not provided": only the sign bit of the 32-bit integer is set."""
_TOPIC_OPERATIONS_MIN_VERSION = 8
"""The first Metadata version whose response contains authorized operations of topics."""

_log = logging.getLogger(__name__)


def describe_cluster(wire: Wire) -> ClusterInfo:
    """Return the cluster id, brokers and release, and whether brokers support the replication factor guard.

    Raises Fault.
    """
    has_guard = wire.get_max_version(AlterPartitionReassignmentsRequest.API_KEY) >= 1
    if wire.get_max_version(DescribeClusterRequest.API_KEY) >= 0:
        request, read_info = _build_cluster_request(), partial(_read_cluster_info, has_guard)
    else:
        request, read_info = _build_metadata_request(), partial(_read_metadata_info, has_guard)
    requests = [request]
    features_request = build_api_versions_request()
    if wire.get_max_version(features_request.API_KEY) >= features_request.API_VERSION:
        requests.append(features_request)  # a broker that cannot parse the request would close the connection
    answers: list[Any] = wire.ask(requests, partial(_read_release_or_info, read_info), changes=False)
    cluster_info, version = answers[0], answers[1] if len(answers) > 1 else None
    if isinstance(cluster_info, Fault):
        raise cluster_info
    if isinstance(version, Fault):
        _log.info("cannot determine the Kafka release of the cluster: %s", version)
        version = None
    info: ClusterInfo = cluster_info
    return replace(info, version=version)


def _read_release_or_info(read_info: Callable[[Any], ClusterInfo], response: Any) -> Any:
    return _read_release(response) if isinstance(response, ApiVersionsResponse) else read_info(response)


def _read_release(response: Any) -> str | None:
    if response.error_code:
        raise build_fault_from_code(response.error_code, "", changes=False)
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features or ()}
    return find_release(levels[METADATA_VERSION]) if METADATA_VERSION in levels else None


def _build_cluster_request() -> Any:
    return DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)


def _build_metadata_request() -> Any:
    return MetadataRequest(topics=MetadataRequest.NO_TOPICS, allow_auto_topic_creation=False)


def _read_cluster_info(has_guard: bool, response: Any) -> ClusterInfo:
    if response.error_code:
        raise build_fault_from_code(response.error_code, response.error_message, changes=False)
    brokers = (
        Broker(b.broker_id, b.host, b.port, b.rack, bool(b.is_fenced))
        for b in sorted(response.brokers, key=lambda b: int(b.broker_id))
    )
    return ClusterInfo(response.cluster_id, tuple(brokers), has_guard)


def _read_metadata_info(has_guard: bool, response: Any) -> ClusterInfo:
    brokers = (Broker(b.node_id, b.host, b.port, b.rack) for b in sorted(response.brokers, key=_get_node_id))
    return ClusterInfo(response.cluster_id or "", tuple(brokers), has_guard)


def _get_node_id(broker: Any) -> int:
    return int(broker.node_id)


def examine_broker(wire: Wire) -> Examination:
    """Return the API versions, features and permissions that one broker reports.

    Raises Fault if no broker responds.
    """
    versions = wire.versions()
    return Examination(
        versions,
        _send_or_none(wire, build_api_versions_request(), _read_features) or {},
        _send_or_none(wire, _build_cluster_rights_request(), read_cluster_rights)
        if DescribeClusterRequest.API_KEY in versions
        else None,
        _send_or_none(wire, _build_topic_rights_request(), _read_topic_rights)
        if versions.get(MetadataRequest.API_KEY, -1) >= _TOPIC_OPERATIONS_MIN_VERSION
        else None,
    )


def list_operation_names(codes: Set[int] | None) -> frozenset[str] | None:
    """Convert codes of ACL operations to names. Return None if the broker did not provide the codes."""
    if codes is None or codes == _NOT_PROVIDED:
        return None
    return frozenset(name for code, name in _OPERATIONS.items() if code in codes)


def _send_or_none(wire: Wire, request: Any, read_response: Any) -> Any:
    try:
        return wire.send_one(request, read_response)
    except Fault as fault:
        _log.info("the broker does not report its permissions or features: %s", fault)
        return None


def _build_cluster_rights_request() -> Any:
    return DescribeClusterRequest(include_cluster_authorized_operations=True)


def _build_topic_rights_request() -> Any:
    return MetadataRequest(
        topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )


def _read_features(response: ApiVersionsResponse) -> dict[str, int]:
    if response.error_code:
        raise build_fault_from_code(response.error_code, "", changes=False)
    return {feature.name: int(feature.max_version_level) for feature in response.finalized_features or ()}


def read_cluster_rights(response: Any) -> frozenset[str] | None:
    """Return the authorized operations in a DescribeCluster response; None if it does not contain them."""
    if response.error_code:
        raise build_fault_from_code(response.error_code, response.error_message, changes=False)
    return list_operation_names(response.authorized_operations)


def _read_topic_rights(response: Any) -> dict[str, frozenset[str]] | None:
    operations_by_topic = {
        topic.name: list_operation_names(topic.authorized_operations)
        for topic in response.topics
        if topic.error_code == NONE and not topic.is_internal
    }
    granted_by_topic = {name: granted for name, granted in operations_by_topic.items() if granted is not None}
    return granted_by_topic if len(granted_by_topic) == len(operations_by_topic) else None


def find_release(level: int) -> str:
    """Return the release of a ``metadata.version`` level. For an unknown level, return the level itself."""
    releases = [name for name, first in _RELEASES.items() if first <= level < _UNKNOWN_LEVEL]
    return releases[-1] if releases else f"{METADATA_VERSION} {level}"
