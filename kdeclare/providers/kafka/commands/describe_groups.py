"""Read groups with their members, their offsets and their lag, without changing anything."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.commands.group_changes import GroupNames
from kdeclare.providers.kafka.commands.group_views import (
    GroupDetail,
    GroupListView,
    GroupsView,
    GroupView,
    MemberView,
    OffsetView,
)
from kdeclare.providers.kafka.connection import CONNECTION, KafkaConnection
from kdeclare.providers.kafka.consumer_group.group import (
    CommittedOffset,
    DescribedGroup,
    GroupMember,
    GroupOffsets,
    GroupType,
)
from kdeclare.providers.kafka.consumer_group.missing_groups import (
    is_hidden,
    report_hidden_group,
    report_missing_group,
)
from kdeclare.providers.kafka.consumer_group.port import Groups
from kdeclare.providers.kafka.error_names import GROUP_AUTHORIZATION_FAILED
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import EARLIEST, LATEST

_Logs = Mapping[TopicPartition, tuple[int, ...]]


def list_groups(
    workspace: Workspace, states: Collection[str] = (), types: Collection[GroupType] = ()
) -> GroupListView:
    """Return the groups in these states (in lower case) and of these types.

    No states means all states, and no types means all types. Raises KdeclareError.
    """
    with workspace.open_connections({"kafka": CONNECTION}) as connections:
        listed = connections.get(KafkaConnection).cluster.groups.list_groups()
    groups = tuple(
        GroupView(group.id, group.type, group.protocol, group.state)
        for _, group in sorted(listed.items())
        if (not states or group.state.lower() in states) and (not types or group.type in types)
    )
    return GroupListView(workspace.cluster_name, groups, bool(states or types))


def describe_groups(workspace: Workspace, names: GroupNames) -> GroupsView:
    """Return groups with their members and offsets. Raises KdeclareError if a named group is missing."""
    with workspace.open_connections({"kafka": CONNECTION}) as connections:
        cluster = connections.get(KafkaConnection).cluster
        ids = names.ids or tuple(sorted(cluster.groups.list_groups()))
        described = _describe_visible_groups(cluster.groups, ids)
        missing = [id_ for id_ in names.ids if id_ not in described]
        if missing:
            raise KdeclareError(*(report_missing_group(id_, cluster.groups) for id_ in missing))
        with_offsets = [id_ for id_, found in described.items() if found.group.has_consumer_offsets]
        offsets = cluster.groups.fetch_offsets(with_offsets)
        logs = _read_logs(cluster, described.values(), offsets.values())
    details = tuple(_build_detail(described[id_], offsets.get(id_), logs) for id_ in ids if id_ in described)
    return GroupsView(workspace.cluster_name, details)


def _describe_visible_groups(groups: Groups, ids: Sequence[str]) -> Mapping[str, DescribedGroup]:
    """Return the named groups that exist.

    Raises KdeclareError if the principal is not permitted to describe one of the groups.
    """
    try:
        return groups.describe_groups(ids)
    except Fault as fault:
        hidden = [id_ for id_ in ids if is_hidden(id_, groups)]
        if fault.error != GROUP_AUTHORIZATION_FAILED or not hidden:
            raise
    raise KdeclareError(*map(report_hidden_group, hidden))


def _read_logs(
    cluster: Cluster, described: Iterable[DescribedGroup], offsets: Iterable[GroupOffsets]
) -> _Logs:
    """Return the log start and log end offsets of topics with assigned partitions or committed offsets."""
    topics = {where.topic for committed in offsets for where in committed}
    topics |= {where.topic for group in described for m in group.members or () for where in m.partitions}
    return cluster.list_offsets(sorted(topics), (EARLIEST, LATEST)) if topics else {}


def _build_detail(described: DescribedGroup, offsets: GroupOffsets | None, logs: _Logs) -> GroupDetail:
    group, members = described.group, described.members
    rows = None if offsets is None else tuple(_build_offsets(members or (), offsets, logs))
    return GroupDetail(
        group.id,
        group.type,
        group.protocol,
        group.state,
        None if members is None else tuple(_build_member(member) for member in members),
        rows,
    )


def _build_member(member: GroupMember) -> MemberView:
    return MemberView(
        member.id, member.client_id, member.host, member.instance_id, tuple(map(str, member.partitions))
    )


def _build_offsets(
    members: Iterable[GroupMember], offsets: GroupOffsets, logs: _Logs
) -> Iterable[OffsetView]:
    """Yield the partitions with a committed offset, and the partitions that are assigned to a member."""
    assigned = {where: member.id for member in members for where in member.partitions}
    for where in sorted({*offsets, *assigned}):
        committed, log = offsets.get(where), logs.get(where)
        yield OffsetView(
            where.topic,
            where.partition,
            committed.offset if committed else None,
            log[0] if log else None,
            log[1] if log else None,
            _compute_lag(committed, log),
            assigned.get(where),
            committed.metadata if committed else "",
        )


def _compute_lag(committed: CommittedOffset | None, log: tuple[int, ...] | None) -> int | None:
    return None if committed is None or log is None else log[1] - committed.offset
