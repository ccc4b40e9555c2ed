"""Read groups with their committed offsets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Collector
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.consumer_group.group import GroupOffsets, ListedGroup
from kdeclare.providers.kafka.consumer_group.port import Groups


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """The groups that a plan needs."""

    groups: frozenset[str] = frozenset()

    def merge(self, others: Sequence["GroupSelection"]) -> "GroupSelection":
        """See `Selection`."""
        return GroupSelection(self.groups.union(*(other.groups for other in others)))


@dataclass(frozen=True, slots=True)
class LiveGroup:
    """One group with its committed offsets."""

    group: ListedGroup
    offsets: GroupOffsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupsState:
    """The selected groups that exist, by id."""

    groups: Mapping[str, LiveGroup] = field(default_factory=dict)


def read_groups(groups: Groups, ids: Iterable[str]) -> GroupsState:
    """Return the named groups that exist, with their offsets. Raises Fault."""
    listed = groups.list_groups()
    found = [id_ for id_ in dict.fromkeys(ids) if id_ in listed]
    offsets = groups.fetch_offsets([id_ for id_ in found if listed[id_].has_consumer_offsets])
    return GroupsState({id_: LiveGroup(listed[id_], offsets.get(id_, {})) for id_ in found})


def _collect(connections: Connections, selection: GroupSelection) -> GroupsState:
    return read_groups(connections.get(KafkaConnection).cluster.groups, sorted(selection.groups))


GROUPS = Collector(GroupSelection, _collect)
"""The collector of groups. Coordinators show a change as soon as they acknowledge it."""
