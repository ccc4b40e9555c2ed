"""Read the groups of a cluster and their members, which determine the impact of many changes."""

from collections.abc import Iterator, Mapping

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.consumer_group.group import (
    DescribedGroup,
    GroupMember,
    GroupType,
    ListedGroup,
)
from kdeclare.providers.kafka.error_names import TOPIC_AUTHORIZATION_FAILED
from kdeclare.providers.kafka.port import Cluster

MAX_GROUPS = 5_000
"""The largest number of groups that are read."""

GROUP_OFFSETS_TOPIC = "__consumer_offsets"
_DESCRIBE = "DESCRIBE"
_DESCRIBED_TYPES = (GroupType.CLASSIC, GroupType.CONSUMER)
"""The types of groups whose members kdeclare can read."""


class UnknownGroupsError(Exception):
    """Raised if the groups of a cluster cannot be determined. The message is the reason, without a period."""


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """The groups of a cluster, and the members of groups that have members.

    listed: all visible groups, by id. described: the groups with members, by id.
    is_complete: whether the principal is known to see all groups.
    """

    listed: Mapping[str, ListedGroup]
    described: Mapping[str, DescribedGroup]
    is_complete: bool

    @property
    def unknown(self) -> tuple[str, ...]:
        """The ids of groups that have members, but whose members cannot be read, such as share groups."""
        return tuple(
            sorted(
                id_
                for id_, group in self.listed.items()
                if group.is_active and (id_ not in self.described or self.described[id_].members is None)
            )
        )

    def list_members(self) -> Iterator[tuple[str, GroupMember]]:
        """Yield each known member with the id of its group."""
        for id_, group in sorted(self.described.items()):
            for member in group.members or ():
                yield id_, member


def read_group_members(cluster: Cluster) -> GroupMembers:
    """Read all groups, and the members of groups that have members. Raises Fault, and UnknownGroupsError."""
    listed = cluster.groups.list_groups()
    described_ids = {id_ for id_, group in listed.items() if group.type in _DESCRIBED_TYPES}
    if len(described_ids) > MAX_GROUPS:
        raise UnknownGroupsError(f"the cluster has more than {MAX_GROUPS:,} groups")
    _require_online_groups(cluster)
    rights = cluster.find_cluster_rights()
    active_ids = sorted(id_ for id_ in described_ids if listed[id_].is_active)
    described = cluster.groups.describe_groups(active_ids) if active_ids else {}
    return GroupMembers(listed, described, rights is not None and _DESCRIBE in rights)


def _require_online_groups(cluster: Cluster) -> None:
    """Raise UnknownGroupsError if a list of all groups would be incomplete.

    Each broker lists only the groups that it coordinates, so groups are missing while a partition of
    ``__consumer_offsets`` has no leader.
    """
    try:
        topic = cluster.topics([GROUP_OFFSETS_TOPIC]).get(GROUP_OFFSETS_TOPIC)
    except Fault as fault:
        if fault.error != TOPIC_AUTHORIZATION_FAILED:
            raise
        return  # most principals lack permission to describe internal topics
    offline = sum(partition.leader is None for partition in topic.partitions) if topic is not None else 0
    if offline:
        raise UnknownGroupsError(
            f"groups are not visible while partitions of '{GROUP_OFFSETS_TOPIC}' have no leader ({offline})"
        )
