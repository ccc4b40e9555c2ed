"""Answer requests about the cluster itself: ApiVersions, Metadata, DescribeCluster, DescribeQuorum."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import kafka.protocol.admin as admin
import kafka.protocol.metadata as metadata

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.client.describe_cluster import _OPERATIONS, _RELEASES, METADATA_VERSION
from kdeclare.providers.kafka.live import Broker, Topic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.testing.reads import VERSION
from tests.served.results import get_code, get_message

COMMITTED = 7
"""The offset of the metadata that every served broker has. In-memory brokers never lag behind here."""
_NO_LEADER = -1
_NO_ID = UUID(int=0)


class MetadataApis:
    """The answers of one broker about the cluster.

    ports: the port of each broker that listens.
    """

    def __init__(self, memory: MemoryCluster, broker: int, ports: Mapping[int, int]) -> None:
        self._memory, self._broker, self._ports = memory, broker, ports
        self.answers: dict[int, Callable[[Any], Any]] = {3: self._describe_topics, 60: self._describe_cluster}
        self.answers |= {55: self._describe_quorum}

    def complete_versions(self, response: Any) -> Any:
        """Add the features and the metadata offset to a response of ApiVersions."""
        feature = metadata.ApiVersionsResponse.FinalizedFeatureKey
        level = _RELEASES[VERSION]
        response.finalized_features = [
            feature(name=METADATA_VERSION, max_version_level=level, min_version_level=level)
        ]
        response.finalized_features_epoch = COMMITTED
        return response

    def list_brokers(self) -> list[Broker]:
        """Return all registered brokers, at the addresses where they are served."""
        info = self._memory.elsewhere().describe()
        return [Broker(b.id, "127.0.0.1", self._ports.get(b.id, 1), b.rack, b.fenced) for b in info.brokers]

    def _describe_topics(self, request: Any) -> Any:
        kind = metadata.MetadataResponse
        brokers = [broker for broker in self.list_brokers() if not broker.fenced]
        try:
            topics, error_code = self._list_topics(request), 0
        except Fault as fault:
            topics, error_code = [], get_code(fault)
        return kind(
            throttle_time_ms=0,
            brokers=[kind.MetadataResponseBroker(b.id, b.host, b.port, b.rack) for b in brokers],
            cluster_id=self._memory.elsewhere().describe().id,
            controller_id=min(broker.id for broker in brokers),
            topics=topics,
            error_code=error_code,
        )

    def _list_topics(self, request: Any) -> list[Any]:
        names = None if request.topics is None else [topic.name for topic in request.topics]
        if names == []:
            return []  # kafka-python itself asks only for brokers
        hidden = self._memory.hidden.intersection(names or ())
        visible = None if names is None else [name for name in names if name not in hidden]
        found = self._memory.topics(visible)
        with_rights = bool(request.include_topic_authorized_operations)
        answers = [self._build_topic(topic, with_rights) for topic in found.values()]
        answers += [_build_missing_topic(name, "TOPIC_AUTHORIZATION_FAILED") for name in sorted(hidden)]
        missing = [name for name in visible or () if name not in found]
        return answers + [_build_missing_topic(name, "UNKNOWN_TOPIC_OR_PARTITION") for name in missing]

    def _build_topic(self, topic: Topic, with_rights: bool) -> Any:
        kind = metadata.MetadataResponse.MetadataResponseTopic
        serving = {broker.id for broker in self.list_brokers() if not broker.fenced}
        return kind(
            error_code=0,
            name=topic.name,
            topic_id=UUID(topic.topic_id) if topic.topic_id else _NO_ID,
            is_internal=topic.internal,
            partitions=[
                kind.MetadataResponsePartition(
                    error_code=0,
                    partition_index=index,
                    leader_id=_NO_LEADER if partition.leader is None else partition.leader,
                    leader_epoch=0,
                    replica_nodes=list(partition.replicas),
                    isr_nodes=list(partition.isr),
                    offline_replicas=[r for r in partition.replicas if r not in serving],
                )
                for index, partition in enumerate(topic.partitions)
            ],
            authorized_operations=set(_OPERATIONS) if with_rights else _NOT_PROVIDED,
        )

    def _describe_cluster(self, request: Any) -> Any:
        kind = admin.DescribeClusterResponse
        rights: Any = _NOT_PROVIDED
        try:
            info = self._memory.describe()
            if request.include_cluster_authorized_operations:
                granted = self._memory.find_cluster_rights() or frozenset()
                rights = {code for code, name in _OPERATIONS.items() if name in granted}
        except Fault as fault:
            return kind(
                throttle_time_ms=0,
                error_code=get_code(fault),
                error_message=get_message(fault),
                cluster_id="",
                brokers=[],
                authorized_operations=rights,
            )
        brokers = [b for b in self.list_brokers() if request.include_fenced_brokers or not b.fenced]
        return kind(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            endpoint_type=1,
            cluster_id=info.id,
            controller_id=min(b.id for b in brokers),
            brokers=[
                kind.DescribeClusterBroker(
                    broker_id=b.id, host=b.host, port=b.port, rack=b.rack, is_fenced=b.fenced
                )
                for b in brokers
            ],
            authorized_operations=rights,
        )

    def _describe_quorum(self, request: Any) -> Any:
        kind = admin.DescribeQuorumResponse
        partition = kind.TopicData.PartitionData(
            partition_index=0,
            error_code=0,
            leader_id=self._broker,
            leader_epoch=1,
            high_watermark=COMMITTED + 1,
            current_voters=[],
            observers=[],
        )
        topic = kind.TopicData(topic_name="__cluster_metadata", partitions=[partition])
        return kind(error_code=0, topics=[topic], nodes=[])


_NOT_PROVIDED = {31}
"""The authorized operations of a response that does not contain them: only the sign bit is set."""


def _build_missing_topic(name: str, error: str) -> Any:
    return metadata.MetadataResponse.MetadataResponseTopic(
        error_code=get_code(Fault(error, "")),
        name=name,
        topic_id=_NO_ID,
        is_internal=False,
        partitions=[],
        authorized_operations=_NOT_PROVIDED,
    )
