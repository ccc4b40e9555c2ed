"""Versions, features and granted operations: ApiVersions, DescribeCluster, Metadata (KIP-430, KIP-584)."""

import logging
from collections.abc import Set
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest

from kdeclare.core.faults import Fault
from kdeclare.providers.kafka.client.faults import NONE, fault_for_code
from kdeclare.providers.kafka.client.freshness import api_versions
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.examination import Examination

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
"""By code (org.apache.kafka.common.acl.AclOperation)."""
_NOT_TOLD = {31}
"""The sign of the number that the set is sent as, alone."""
_TOPIC_OPERATIONS_SINCE = 8
"""The version of Metadata that can tell them."""

_log = logging.getLogger(__name__)


def examine(wire: Wire) -> Examination:
    """Ask one broker for all of it. Raises Fault where none can be reached; what is not told is left out."""
    versions = wire.versions()
    return Examination(
        versions,
        _answer(wire, api_versions(), _features) or {},
        _answer(wire, _cluster(), _on_cluster) if DescribeClusterRequest.API_KEY in versions else None,
        _answer(wire, _topics(), _on_topics)
        if versions.get(MetadataRequest.API_KEY, -1) >= _TOPIC_OPERATIONS_SINCE
        else None,
    )


def operations(codes: Set[int] | None) -> frozenset[str] | None:
    """The names of operations by their codes; None where the broker does not tell, nor kafka-python then."""
    if codes is None or codes == _NOT_TOLD:
        return None
    return frozenset(name for code, name in _OPERATIONS.items() if code in codes)


def _answer(wire: Wire, request: Any, read: Any) -> Any:
    try:
        return wire.ask_one(request, read)
    except Fault as fault:
        _log.info("not told: %s", fault)
        return None


def _cluster() -> Any:
    return DescribeClusterRequest(include_cluster_authorized_operations=True)


def _topics() -> Any:
    return MetadataRequest(
        topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )


def _features(response: ApiVersionsResponse) -> dict[str, int]:
    if response.error_code:
        raise fault_for_code(response.error_code, "", changes=False)
    return {feature.name: int(feature.max_version_level) for feature in response.finalized_features or ()}


def _on_cluster(response: Any) -> frozenset[str] | None:
    if response.error_code:
        raise fault_for_code(response.error_code, response.error_message, changes=False)
    return operations(response.authorized_operations)


def _on_topics(response: Any) -> dict[str, frozenset[str]] | None:
    found = {
        topic.name: operations(topic.authorized_operations)
        for topic in response.topics
        if topic.error_code == NONE and not topic.is_internal
    }
    told = {name: granted for name, granted in found.items() if granted is not None}
    return told if len(told) == len(found) else None
