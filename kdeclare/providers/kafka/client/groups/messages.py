"""Build the requests about groups, and read the responses.

kafka-python has no classes for ConsumerGroupDescribe (KIP-848). kafka-python builds such classes from JSON
schemas, so the package `schemas` contains the schemas of this request.
"""

import struct
from collections.abc import Iterable, Mapping, Set
from typing import Any

from kafka.protocol.admin.groups import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer.group import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.protocol.metadata import FindCoordinatorRequest

from kdeclare.core.live.faults import Fault, Result
from kdeclare.providers.kafka.client import schemas
from kdeclare.providers.kafka.client.describe_cluster import list_operation_names
from kdeclare.providers.kafka.client.faults import build_fault_from_code
from kdeclare.providers.kafka.consumer_group.group import (
    CommittedOffset,
    GroupMember,
    GroupOffsets,
    GroupType,
    ListedGroup,
)
from kdeclare.providers.kafka.ids import TopicPartition

_GROUP_COORDINATOR = 0
"""The type of coordinator that manages groups (org.apache.kafka.common.requests.FindCoordinatorRequest)."""
_NAMES_ONLY = 9
"""The last version of OffsetFetch and OffsetCommit that identifies topics by name. Later versions use ids."""
_NO_EPOCH = -1
_TYPES = {type_.value: type_ for type_ in GroupType}
_GROUP_ID_NOT_FOUND, _GROUP_AUTHORIZATION_FAILED = 69, 30


class ConsumerGroupDescribeRequest(ApiMessage, load_json=schemas):  # type: ignore[call-arg, misc]
    """The request for the members of groups that use the consumer protocol (KIP-848)."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=schemas):  # type: ignore[call-arg, misc]
    """The response with the members of groups that use the consumer protocol (KIP-848)."""


def build_coordinators_request(ids: list[str]) -> Any:
    """Build FindCoordinator. Before version 4 (KIP-699), the request contains only one group."""
    return FindCoordinatorRequest(key=ids[0], key_type=_GROUP_COORDINATOR, coordinator_keys=ids)


def read_coordinators(response: Any, ids: list[str]) -> dict[str, int | Fault]:
    """Return the broker that coordinates each group."""
    if response.coordinators:
        found = {
            item.key: (item.node_id, item.error_code, item.error_message) for item in response.coordinators
        }
    else:
        found = {ids[0]: (response.node_id, response.error_code, response.error_message)}
    return {
        id_: build_fault_from_code(code, message or f"group {id_}", changes=False) if code else node
        for id_, (node, code, message) in found.items()
    }


def build_list_request() -> Any:
    """Build ListGroups for all groups of one broker."""
    return ListGroupsRequest(states_filter=[], types_filter=[])


def read_listed_groups(response: Any) -> dict[str, ListedGroup]:
    """Return the groups that one broker coordinates. Raises Fault."""
    if response.error_code:
        raise build_fault_from_code(response.error_code, None, changes=False)
    return {
        group.group_id: ListedGroup(
            group.group_id, _parse_type(group.group_type), group.protocol_type, group.group_state or ""
        )
        for group in response.groups
    }


def _parse_type(text: str | None) -> GroupType:
    """Return the type of a group.

    Responses before version 5 of ListGroups (KIP-848) contain only classic groups.
    """
    return _TYPES.get((text or "classic").lower(), GroupType.UNKNOWN)


def build_describe_request(type_: GroupType, ids: list[str], *, with_rights: bool = False) -> Any:
    """Build the request for the members of classic groups or of consumer groups.

    with_rights: whether the response contains the operations that are granted on each group (KIP-430).
    """
    if type_ is GroupType.CLASSIC:
        return DescribeGroupsRequest(groups=ids, include_authorized_operations=with_rights)
    return ConsumerGroupDescribeRequest(group_ids=ids, include_authorized_operations=with_rights)


def read_group_rights(response: Any) -> dict[str, frozenset[str] | Fault]:
    """Return the operations that are granted on each described group. Deleted groups are omitted.

    If the broker does not allow kdeclare to describe a group, the set of operations is empty: every other
    operation that kdeclare needs would imply DESCRIBE.
    """
    results: dict[str, frozenset[str] | Fault] = {}
    for group in response.groups:
        if group.error_code == _GROUP_AUTHORIZATION_FAILED:
            results[group.group_id] = frozenset()
        elif group.error_code and group.error_code != _GROUP_ID_NOT_FOUND:
            results[group.group_id] = build_fault_from_code(
                group.error_code, f"group {group.group_id}", changes=False
            )
        elif not group.error_code:
            granted = list_operation_names(_read_bits(group.authorized_operations))
            if granted is not None:
                results[group.group_id] = granted
    return results


def _read_bits(field: Any) -> Set[int]:
    """Return the positions of the set bits of a bit field. Some responses contain the field as a number."""
    if isinstance(field, int):
        return {bit for bit in range(32) if field >> bit & 1}
    return frozenset(field)


def read_members(response: Any) -> dict[str, tuple[str, tuple[GroupMember, ...]] | Fault]:
    """Return the state and the members of each described group. The state of a deleted group is ``Dead``."""
    results: dict[str, tuple[str, tuple[GroupMember, ...]] | Fault] = {}
    for group in response.groups:
        if group.error_code == _GROUP_ID_NOT_FOUND:
            results[group.group_id] = ("Dead", ())
        elif group.error_code:
            results[group.group_id] = build_fault_from_code(
                group.error_code, f"group {group.group_id}", changes=False
            )
        else:
            results[group.group_id] = (group.group_state, tuple(map(_read_member, group.members)))
    return results


def _read_member(member: Any) -> GroupMember:
    if hasattr(member, "assignment"):
        assigned = [(item.topic_name, item.partitions) for item in member.assignment.topic_partitions]
        instance_id = member.instance_id
    else:
        assigned, instance_id = _decode_assignment(member.member_assignment), member.group_instance_id
    partitions = sorted(TopicPartition(topic, index) for topic, indexes in assigned for index in indexes)
    return GroupMember(member.member_id, member.client_id, member.client_host, instance_id, tuple(partitions))


def _decode_assignment(data: bytes | None) -> list[tuple[str, list[int]]]:
    """Return the assigned partitions by topic.

    The result is empty if the assignment is not in the format of the consumer protocol.
    """
    if not data:
        return []
    try:
        assignment = ConsumerProtocolAssignment.decode(data)
    except (struct.error, ValueError, LookupError, TypeError):
        return []
    return [(item.topic, list(item.partitions)) for item in assignment.assigned_partitions]


def build_fetch_request(ids: list[str]) -> Any:
    """Build OffsetFetch for all offsets. Before version 8 (KIP-709), the request contains only one group."""
    group_class = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(
        group_id=ids[0],
        topics=None,
        groups=[group_class(group_id=id_, topics=None) for id_ in ids],
        min_version=2,
        max_version=_NAMES_ONLY,
    )


def read_offsets(response: Any, ids: list[str]) -> dict[str, GroupOffsets | Fault]:
    """Return the committed offsets of each group."""
    if response.groups:
        return {group.group_id: _read_group_offsets(group, group.group_id) for group in response.groups}
    return {ids[0]: _read_group_offsets(response, ids[0])}


def _read_group_offsets(group: Any, id_: str) -> GroupOffsets | Fault:
    if group.error_code:
        return build_fault_from_code(group.error_code, f"group {id_}", changes=False)
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for topic in group.topics:
        for partition in topic.partitions:
            where = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                return build_fault_from_code(
                    partition.error_code, f"offset of {where} in group {id_}", changes=False
                )
            if partition.committed_offset >= 0:
                epoch = partition.committed_leader_epoch
                offsets[where] = CommittedOffset(
                    partition.committed_offset,
                    None if epoch is None or epoch < 0 else epoch,
                    partition.metadata or "",
                )
    return offsets


def build_commit_request(id_: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> Any:
    """Build OffsetCommit for a client that is not a member of the group."""
    topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
    partitions_by_topic: dict[str, list[Any]] = {}
    for where, committed in offsets.items():
        partitions_by_topic.setdefault(where.topic, []).append(
            topic_class.OffsetCommitRequestPartition(
                partition_index=where.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=(
                    _NO_EPOCH if committed.leader_epoch is None else committed.leader_epoch
                ),
                committed_metadata=committed.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=id_,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[topic_class(name=name, partitions=parts) for name, parts in partitions_by_topic.items()],
        max_version=_NAMES_ONLY,
    )


def build_offset_delete_request(id_: str, partitions: Iterable[TopicPartition]) -> Any:
    """Build OffsetDelete (KIP-496)."""
    topic_class = OffsetDeleteRequest.OffsetDeleteRequestTopic
    partitions_by_topic: dict[str, list[Any]] = {}
    for where in partitions:
        partitions_by_topic.setdefault(where.topic, []).append(
            topic_class.OffsetDeleteRequestPartition(partition_index=where.partition)
        )
    topics = [topic_class(name=name, partitions=parts) for name, parts in partitions_by_topic.items()]
    return OffsetDeleteRequest(group_id=id_, topics=topics)


def read_offset_results(response: Any, id_: str) -> dict[TopicPartition, Result]:
    """Return the result of each partition in an OffsetCommit or OffsetDelete response. Raises Fault."""
    code = getattr(response, "error_code", 0)  # only OffsetDelete has an error for the whole group
    if code:
        raise build_fault_from_code(code, f"group {id_}", changes=True)
    return {
        (where := TopicPartition(topic.name, partition.partition_index)): build_fault_from_code(
            partition.error_code, f"offset of {where} in group {id_}", changes=True
        )
        if partition.error_code
        else None
        for topic in response.topics
        for partition in topic.partitions
    }


def build_delete_request(ids: list[str]) -> Any:
    """Build DeleteGroups."""
    return DeleteGroupsRequest(groups_names=ids)


def read_delete_results(response: Any) -> dict[str, Result]:
    """Return the result for each group in a DeleteGroups response."""
    return {
        item.group_id: build_fault_from_code(item.error_code, f"group {item.group_id}", changes=True)
        if item.error_code
        else None
        for item in response.results
    }
