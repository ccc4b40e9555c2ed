"""Topics and partitions: Metadata, CreateTopics, DeleteTopics, CreatePartitions, DescribeCluster."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
)
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest

from kdeclare.core.faults import Created, Fault, Outcome, Result
from kdeclare.providers.kafka.client.batches import chunks, send_batches
from kdeclare.providers.kafka.client.faults import (
    INVALID_TOPIC,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    fault_for_code,
)
from kdeclare.providers.kafka.client.freshness import Freshness, api_versions
from kdeclare.providers.kafka.client.metadata_decoder import Found, id_text, read_topics
from kdeclare.providers.kafka.client.raw import RawMetadataRequest
from kdeclare.providers.kafka.client.releases import METADATA_VERSION, release
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.live import Broker, ClusterInfo, Topic
from kdeclare.providers.kafka.port import NewPartitions, NewTopic

_NAMES_A_REQUEST = 2000
_DELETE_BY_ID = 6
"""The version of DeleteTopics that takes topic ids (KIP-516)."""

_log = logging.getLogger(__name__)


def describe(wire: Wire) -> ClusterInfo:
    """Id, brokers, release, and whether reassignments can be guarded. Raises Fault."""
    guard = wire.max_version(AlterPartitionReassignmentsRequest.API_KEY) >= 1
    if wire.max_version(DescribeClusterRequest.API_KEY) >= 0:
        request, read = _describe_cluster(), partial(_described, guard)
    else:
        request, read = _no_topics(), partial(_from_metadata, guard)
    requests = [request]
    asks = api_versions()
    if wire.max_version(asks.API_KEY) >= asks.API_VERSION:
        requests.append(asks)  # never to a broker that could not read it: it would end the connection
    answers: list[Any] = wire.ask(requests, partial(_either, read), changes=False)
    described, version = answers[0], answers[1] if len(answers) > 1 else None
    if isinstance(described, Fault):
        raise described
    if isinstance(version, Fault):
        _log.info("the cluster does not tell its release: %s", version)
        version = None
    info: ClusterInfo = described
    return replace(info, version=version)


def _either(read: Callable[[Any], ClusterInfo], response: Any) -> Any:
    return _version(response) if isinstance(response, ApiVersionsResponse) else read(response)


def _version(response: Any) -> str | None:
    if response.error_code:
        raise fault_for_code(response.error_code, "", changes=False)
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features or ()}
    return release(levels[METADATA_VERSION]) if METADATA_VERSION in levels else None


def _describe_cluster() -> Any:
    return DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)


def _no_topics() -> Any:
    return MetadataRequest(topics=MetadataRequest.NO_TOPICS, allow_auto_topic_creation=False)


def _described(guard: bool, response: Any) -> ClusterInfo:
    if response.error_code:
        raise fault_for_code(response.error_code, response.error_message, changes=False)
    brokers = (
        Broker(b.broker_id, b.host, b.port, b.rack, bool(b.is_fenced))
        for b in sorted(response.brokers, key=lambda b: int(b.broker_id))
    )
    return ClusterInfo(response.cluster_id, tuple(brokers), guard)


def _from_metadata(guard: bool, response: Any) -> ClusterInfo:
    brokers = (Broker(b.node_id, b.host, b.port, b.rack) for b in sorted(response.brokers, key=_node_id))
    return ClusterInfo(response.cluster_id or "", tuple(brokers), guard)


def _node_id(broker: Any) -> int:
    return int(broker.node_id)


def topics(wire: Wire, fresh: Freshness, names: Sequence[str] | None) -> dict[str, Topic]:
    """Topics by name, those that exist; None is all. Raises Fault."""
    parts = [None] if names is None else chunks(dict.fromkeys(names), _NAMES_A_REQUEST)
    requests = [_metadata(part) for part in parts]
    answers: list[list[Found] | Fault] = wire.ask(requests, read_topics, changes=False, nodes=fresh.nodes())
    found = {}
    for answer in answers:
        if isinstance(answer, Fault):
            raise answer
        for item in answer:
            if item.error_code == NONE:
                found[item.name] = item.topic
            elif item.error_code not in (UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC):
                raise fault_for_code(item.error_code, f"topic {item.name}", changes=False)
    return found


def hidden_topics(wire: Wire, names: Sequence[str]) -> frozenset[str]:
    """Topics that the principal may not describe. Raises Fault."""
    requests = [_metadata(part) for part in chunks(dict.fromkeys(names), _NAMES_A_REQUEST)]
    answers: list[list[Found] | Fault] = wire.ask(requests, read_topics, changes=False)
    hidden = set()
    for answer in answers:
        if isinstance(answer, Fault):
            raise answer
        hidden |= {item.name for item in answer if item.error_code == TOPIC_AUTHORIZATION_FAILED}
    return frozenset(hidden)


def _metadata(names: list[str] | None) -> Any:
    wanted = None if names is None else [RawMetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return RawMetadataRequest(
        topics=wanted,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def create_topics(wire: Wire, items: Sequence[NewTopic], validate_only: bool) -> dict[str, Outcome]:
    """CreateTopics, a result for each name. Raises Fault.

    Sent in the highest version that the broker has: from version 6 on, brokers answer a strict mutation
    quota with THROTTLING_QUOTA_EXCEEDED instead of holding the answer back (KIP-599). The price is
    that answers repeat all configs of every topic (KIP-525): 1.1 kB and 0.05 ms per topic to decode. From
    version 7 on, answers have the ids of the created topics.
    """
    ids: dict[str, str] = {}

    def read_codes(response: Any) -> Iterable[tuple[str, int, str | None]]:
        ids.update((topic.name, id_text(topic.topic_id)) for topic in response.topics)
        return _codes(response.topics)

    def request(part: list[NewTopic]) -> Any:
        return CreateTopicsRequest(
            topics=[_creatable(topic) for topic in part],
            timeout_ms=wire.request_timeout_ms,
            validate_only=validate_only,
        )

    results = send_batches(
        wire,
        items,
        key=lambda topic: topic.name,
        request=request,
        codes=read_codes,
        records=lambda topic: (
            1 + len(topic.configs) + max(topic.partitions or 0, len(topic.assignments or ()))
        ),
        validate_only=validate_only,
        has_quota=True,
    )
    if validate_only:
        return {**results}
    return {name: fault or Created(ids.get(name, "")) for name, fault in results.items()}


def _creatable(topic: NewTopic) -> Any:
    kind = CreateTopicsRequest.CreatableTopic
    return kind(
        name=topic.name,
        num_partitions=-1 if topic.partitions is None else topic.partitions,
        replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
        assignments=[
            kind.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in (topic.assignments or {}).items()
        ],
        configs=[kind.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def delete_topics(wire: Wire, targets: Mapping[str, str | None]) -> dict[str, Result]:
    """DeleteTopics by id, or by name where the id is None; a result for each name. Raises Fault.

    Brokers answer with the id alone for a topic that does not exist, or that one may not see.
    """
    by_id = any(topic_id is not None for topic_id in targets.values())
    if by_id and wire.max_version(DeleteTopicsRequest.API_KEY) < _DELETE_BY_ID:
        text = "The brokers cannot delete topics by id: that takes DeleteTopics version 6 (Kafka 2.8)."
        raise Fault("UNSUPPORTED_VERSION", text)
    names = {topic_id: name for name, topic_id in targets.items() if topic_id is not None}

    def request(part: list[str]) -> Any:
        return DeleteTopicsRequest(
            topics=[_doomed(name, targets[name]) for name in part],
            topic_names=part,  # what versions below 6 take instead
            timeout_ms=wire.request_timeout_ms,
            min_version=_DELETE_BY_ID if by_id else 0,
        )

    return send_batches(
        wire,
        list(targets),
        key=lambda name: name,
        request=request,
        codes=lambda response: (
            (names.get(id_text(topic.topic_id), topic.name), topic.error_code, topic.error_message)
            for topic in response.responses
        ),
        has_quota=True,
    )


def _doomed(name: str, topic_id: str | None) -> Any:
    kind = DeleteTopicsRequest.DeleteTopicState
    return kind(name=name) if topic_id is None else kind(name=None, topic_id=UUID(topic_id))


def create_partitions(wire: Wire, items: Sequence[NewPartitions], validate_only: bool) -> dict[str, Result]:
    """CreatePartitions, a result for each topic. Raises Fault."""

    def request(part: list[NewPartitions]) -> Any:
        return CreatePartitionsRequest(
            topics=[_growing(item) for item in part],
            timeout_ms=wire.request_timeout_ms,
            validate_only=validate_only,
        )

    return send_batches(
        wire,
        items,
        key=lambda item: item.topic,
        request=request,
        codes=lambda response: _codes(response.results),
        records=lambda item: item.total,
        validate_only=validate_only,
        has_quota=True,
    )


def _growing(item: NewPartitions) -> Any:
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    placed = None  # Kafka places; an empty list is another request, which it refuses
    if item.assignments is not None:
        placed = [kind.CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in item.assignments]
    return kind(name=item.topic, count=item.total, assignments=placed)


def _codes(results: Iterable[Any]) -> Iterable[tuple[str, int, str | None]]:
    return ((result.name, result.error_code, result.error_message) for result in results)
