"""Answer requests about groups and their offsets."""

from collections.abc import Callable, Mapping
from typing import Any

import kafka.protocol.admin as admin
import kafka.protocol.consumer as consumer
import kafka.protocol.metadata as metadata
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kdeclare.core.live.faults import Fault, Outcome
from kdeclare.providers.kafka.client.describe_cluster import _OPERATIONS
from kdeclare.providers.kafka.client.groups.messages import ConsumerGroupDescribeResponse
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset, DescribedGroup, GroupMember
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.jsontypes import untyped
from tests.served.results import get_code, get_message, send_items

_MISSING = Fault("GROUP_ID_NOT_FOUND", "")


class GroupApis:
    """The answers of one broker to requests about groups. The broker with the lowest id coordinates all.

    ports: the port of each broker.
    """

    def __init__(self, memory: MemoryCluster, broker: int, ports: Mapping[int, int]) -> None:
        self._memory, self._broker, self._ports = memory, broker, ports
        self.answers: dict[int, Callable[[Any], Any]] = {
            8: self._commit_offsets,
            9: self._fetch_offsets,
            10: self._find_coordinators,
            15: self._describe_classic_groups,
            16: self._list_groups,
            42: self._delete_groups,
            47: self._delete_offsets,
            69: self._describe_consumer_groups,
        }

    def _get_coordinator(self) -> int:
        brokers = self._memory.elsewhere().describe().brokers
        return min(broker.id for broker in brokers if not broker.fenced)

    def _find_coordinators(self, request: Any) -> Any:
        coordinator = self._get_coordinator()
        kind = metadata.FindCoordinatorResponse
        return kind(
            throttle_time_ms=0,
            coordinators=[
                kind.Coordinator(
                    key=key,
                    node_id=coordinator,
                    host="127.0.0.1",
                    port=self._ports[coordinator],
                    error_code=0,
                    error_message=None,
                )
                for key in request.coordinator_keys
            ],
        )

    def _list_groups(self, request: Any) -> Any:
        kind = admin.ListGroupsResponse
        if self._broker != self._get_coordinator():
            return kind(throttle_time_ms=0, error_code=0, groups=[])
        try:
            groups = self._memory.groups.list_groups()
        except Fault as fault:
            return kind(throttle_time_ms=0, error_code=get_code(fault), groups=[])
        return kind(
            throttle_time_ms=0,
            error_code=0,
            groups=[
                kind.ListedGroup(
                    group_id=group.id,
                    protocol_type=group.protocol,
                    group_state=group.state,
                    group_type=group.type.value.capitalize(),
                )
                for group in groups.values()
            ],
        )

    def _describe(self, ids: list[str]) -> dict[str, DescribedGroup | Fault]:
        found: dict[str, DescribedGroup | Fault] = {}
        for id_ in ids:
            try:
                found[id_] = self._memory.groups.describe_groups([id_]).get(id_, _MISSING)
            except Fault as fault:
                found[id_] = fault
        return found

    def _describe_classic_groups(self, request: Any) -> Any:
        kind = admin.DescribeGroupsResponse
        rights = set(_OPERATIONS) if request.include_authorized_operations else {31}
        groups = []
        for id_, found in self._describe(request.groups).items():
            fault = found if isinstance(found, Fault) else None
            described = None if isinstance(found, Fault) else found
            groups.append(
                kind.DescribedGroup(
                    error_code=get_code(fault),
                    error_message=get_message(fault),
                    group_id=id_,
                    group_state=described.group.state if described else "Dead",
                    protocol_type=described.group.protocol if described else "",
                    protocol_data="",
                    members=[_build_classic_member(m) for m in (described and described.members) or ()],
                    authorized_operations=rights,
                )
            )
        return kind(throttle_time_ms=0, groups=groups)

    def _describe_consumer_groups(self, request: Any) -> Any:
        kind = untyped(ConsumerGroupDescribeResponse)
        groups = []
        for id_, found in self._describe(request.group_ids).items():
            fault = found if isinstance(found, Fault) else None
            described = None if isinstance(found, Fault) else found
            groups.append(
                kind.DescribedGroup(
                    error_code=get_code(fault),
                    error_message=get_message(fault),
                    group_id=id_,
                    group_state=described.group.state if described else "Dead",
                    group_epoch=1,
                    assignment_epoch=1,
                    assignor_name="uniform",
                    members=[_build_consumer_member(m) for m in (described and described.members) or ()],
                    authorized_operations=-(2**31),
                )
            )
        return kind(throttle_time_ms=0, groups=groups)

    def _fetch_offsets(self, request: Any) -> Any:
        kind = consumer.OffsetFetchResponse.OffsetFetchResponseGroup
        topic_kind = kind.OffsetFetchResponseTopics
        groups = []
        for asked in request.groups:
            try:
                offsets, error = self._memory.groups.fetch_offsets([asked.group_id])[asked.group_id], 0
            except Fault as fault:
                offsets, error = {}, get_code(fault)
            topics = [
                topic_kind(
                    name=name,
                    partitions=[
                        topic_kind.OffsetFetchResponsePartitions(
                            partition_index=index,
                            committed_offset=committed.offset,
                            committed_leader_epoch=(
                                -1 if committed.leader_epoch is None else committed.leader_epoch
                            ),
                            metadata=committed.metadata,
                            error_code=0,
                        )
                        for index, committed in by_index.items()
                    ],
                )
                for name, by_index in _group_by_topic(offsets).items()
            ]
            groups.append(kind(group_id=asked.group_id, topics=topics, error_code=error))
        return consumer.OffsetFetchResponse(throttle_time_ms=0, groups=groups)

    def _commit_offsets(self, request: Any) -> Any:
        changes = {
            TopicPartition(topic.name, item.partition_index): CommittedOffset(
                item.committed_offset,
                None if item.committed_leader_epoch < 0 else item.committed_leader_epoch,
                item.committed_metadata or "",
            )
            for topic in request.topics
            for item in topic.partitions
        }
        kind = consumer.OffsetCommitResponse
        topic_kind = kind.OffsetCommitResponseTopic
        topics = self._alter_offsets(
            request.group_id, changes, topic_kind, topic_kind.OffsetCommitResponsePartition
        )
        return kind(throttle_time_ms=0, topics=topics)

    def _delete_offsets(self, request: Any) -> Any:
        changes: dict[TopicPartition, CommittedOffset | None] = {
            TopicPartition(topic.name, item.partition_index): None
            for topic in request.topics
            for item in topic.partitions
        }
        kind = consumer.OffsetDeleteResponse
        if request.group_id not in self._memory.elsewhere().groups.list_groups():
            return kind(error_code=get_code(_MISSING), throttle_time_ms=0, topics=[])
        topic_kind = kind.OffsetDeleteResponseTopic
        topics = self._alter_offsets(
            request.group_id, changes, topic_kind, topic_kind.OffsetDeleteResponsePartition
        )
        return kind(error_code=0, throttle_time_ms=0, topics=topics)

    def _alter_offsets(
        self, id_: str, changes: Mapping[TopicPartition, CommittedOffset | None], kind: Any, item_kind: Any
    ) -> list[Any]:
        results: Mapping[tuple[str, TopicPartition], Outcome] = send_items(
            [(id_, where) for where in changes], lambda: self._memory.groups.alter_offsets({id_: changes})
        )
        by_topic = _group_by_topic({where: result for (_, where), result in results.items()})
        return [
            kind(
                name=name,
                partitions=[
                    item_kind(partition_index=index, error_code=get_code(result))
                    for index, result in by_index.items()
                ],
            )
            for name, by_index in by_topic.items()
        ]

    def _delete_groups(self, request: Any) -> Any:
        ids = list(request.groups_names)
        results = send_items(ids, lambda: self._memory.groups.delete_groups(ids))
        kind = admin.DeleteGroupsResponse
        return kind(
            throttle_time_ms=0,
            results=[
                kind.DeletableGroupResult(group_id=id_, error_code=get_code(result))
                for id_, result in results.items()
            ],
        )


def _build_classic_member(member: GroupMember) -> Any:
    topic_kind = ConsumerProtocolAssignment.TopicPartition
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            topic_kind(topic=name, partitions=list(by_index))
            for name, by_index in _group_by_topic(dict.fromkeys(member.partitions)).items()
        ],
        user_data=b"",
    )
    return admin.DescribeGroupsResponse.DescribedGroup.DescribedGroupMember(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.host,
        member_metadata=b"",
        member_assignment=assignment.encode(version=1),
    )


def _build_consumer_member(member: GroupMember) -> Any:
    kind = untyped(ConsumerGroupDescribeResponse).DescribedGroup.Member
    assignment = kind.Assignment(
        topic_partitions=[
            kind.Assignment.TopicPartitions(topic_name=name, partitions=list(by_index))
            for name, by_index in _group_by_topic(dict.fromkeys(member.partitions)).items()
        ]
    )
    return kind(
        member_id=member.id,
        instance_id=member.instance_id,
        member_epoch=1,
        client_id=member.client_id,
        client_host=member.host,
        subscribed_topic_names=[],
        assignment=assignment,
        target_assignment=assignment,
    )


def _group_by_topic(items: Mapping[TopicPartition, Any]) -> dict[str, dict[int, Any]]:
    by_topic: dict[str, dict[int, Any]] = {}
    for (topic, index), item in items.items():
        by_topic.setdefault(topic, {})[index] = item
    return by_topic
