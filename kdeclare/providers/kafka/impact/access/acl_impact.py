"""Observe which members of groups lose permissions to read."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.acl.authorization import AccessRequest, decide_access
from kdeclare.providers.kafka.acl.binding import (
    ALL,
    ANY_PRINCIPAL,
    GROUP,
    TOPIC,
    Binding,
    PatternIndex,
)
from kdeclare.providers.kafka.acl.collector import AclState
from kdeclare.providers.kafka.acl.operations import is_acl_creation, is_acl_operation, list_bindings
from kdeclare.providers.kafka.consumer_group.group import GroupMember
from kdeclare.providers.kafka.impact.access.affected_clients import (
    build_lost_access,
    build_no_lost_access,
    build_other_lost_access,
    build_unknown_members,
    report_invisible_groups,
)
from kdeclare.providers.kafka.impact.group_members import GroupMembers
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader

_READ = "READ"
_MAX_NAMED_GROUPS = 5


@dataclass(frozen=True, slots=True)
class AclChanges:
    """The bindings that a plan deletes and creates, by resource."""

    deleted: Mapping[ResourceId, Sequence[Binding]]
    created: Mapping[ResourceId, Sequence[Binding]]

    def apply(self, bindings: Iterable[Binding]) -> frozenset[Binding]:
        """Return the bindings that exist after the plan is applied. bindings: the current bindings."""
        deleted = {binding for each in self.deleted.values() for binding in each}
        created = {binding for each in self.created.values() for binding in each}
        return (frozenset(bindings) - deleted) | created

    def list_revocations(self) -> Mapping[ResourceId, Sequence[Binding]]:
        """Return the deleted grants and the new denials that can affect consumers, by resource."""
        revocations: dict[ResourceId, list[Binding]] = defaultdict(list)
        for changed, is_allow in ((self.deleted, True), (self.created, False)):
            for resource, bindings in changed.items():
                for binding in bindings:
                    if binding.is_allow is is_allow and _is_about_reading(binding):
                        revocations[resource].append(binding)
        return revocations


def find_acl_changes(operations: Sequence[Operation]) -> AclChanges:
    """Return the bindings that operations delete and create."""
    deleted: dict[ResourceId, list[Binding]] = defaultdict(list)
    created: dict[ResourceId, list[Binding]] = defaultdict(list)
    for op in operations:
        if is_acl_operation(op):
            changed = created if is_acl_creation(op) else deleted
            changed[op.resource] += list_bindings(op)
    return AclChanges(deleted, created)


def _is_about_reading(binding: Binding) -> bool:
    return binding.resource_type in (TOPIC, GROUP) and binding.operation in (ALL, _READ)


def observe_revocations(
    reader: ImpactReader, live: AclState | None, changes: AclChanges
) -> Iterator[Observation]:
    """Yield observations about group members that may lose a permission to read.

    Reads the groups only if the plan takes away a permission to read.

    Brokers do not report the principals of members. Therefore, a member is reported if any principal loses a
    permission that the member needs. live: the bindings of the principals that lose permissions.
    """
    revocations = changes.list_revocations()
    if not revocations or live is None:
        return
    members = reader.read_members()
    if not isinstance(members, GroupMembers):
        for resource in revocations:
            what = "which members of groups need these permissions"
            yield build_unknown_members(str(resource), what, members)
        return
    can_lose = _build_comparison(live, changes)
    for resource, bindings in revocations.items():
        yield from _observe_resource(str(resource), bindings, members, can_lose)
        yield from report_invisible_groups(str(resource), members)


_Comparison = Callable[[str, str, str, str], bool]
"""A function that returns whether a principal loses the permission to read an object.

Its arguments are the principal, the type and the name of the object, and the IP address of the client.
"""


def _build_comparison(live: AclState, changes: AclChanges) -> _Comparison:
    before = frozenset(live.bindings)
    after = changes.apply(before)
    own_before, own_after = _group_by_principal(before), _group_by_principal(after)

    def can_lose(principal: str, resource_type: str, name: str, address: str) -> bool:
        request = AccessRequest(principal, _READ, resource_type, name, address)

        def is_allowed(own: Mapping[str, list[Binding]]) -> bool:
            bindings = [*own.get(principal, ()), *own.get(ANY_PRINCIPAL, ())]
            return decide_access(bindings, request).is_allowed

        return is_allowed(own_before) and not is_allowed(own_after)

    return can_lose


def _group_by_principal(bindings: Iterable[Binding]) -> Mapping[str, list[Binding]]:
    by_principal: dict[str, list[Binding]] = defaultdict(list)
    for binding in bindings:
        by_principal[binding.principal].append(binding)
    return by_principal


def _observe_resource(
    resource: str, bindings: Sequence[Binding], members: GroupMembers, can_lose: _Comparison
) -> Iterator[Observation]:
    find_losers = _build_search(bindings, can_lose)
    losses: dict[str, _GroupLoss] = defaultdict(_GroupLoss)
    for group, member in members.list_members():
        address = member.address
        objects = [(GROUP, group), *((TOPIC, name) for name in _list_topics(member))]
        lost = {item: losers for item in objects if (losers := find_losers(*item, address))}
        if lost:
            losses[group].add(lost)
    ranked = sorted(losses.items(), key=lambda item: (-item[1].members, item[0]))
    for group, loss in ranked[:_MAX_NAMED_GROUPS]:
        yield build_lost_access(
            resource, group, loss.members, loss.topics, sorted(loss.principals), own=loss.is_own
        )
    if len(ranked) > _MAX_NAMED_GROUPS:
        yield build_other_lost_access(resource, len(ranked) - _MAX_NAMED_GROUPS)
    if not ranked:
        yield build_no_lost_access(resource)


def _build_search(
    bindings: Sequence[Binding], can_lose: _Comparison
) -> Callable[[str, str, str], Sequence[str]]:
    """Return a function that finds the principals that lose the permission to read a topic or group.

    Its arguments are the type and the name of the object, and the IP address of the client. Members of large
    groups often read the same topics, so results are cached.
    """
    own_bindings = sorted(_group_by_principal(bindings).items())
    indexes = {principal: PatternIndex(own) for principal, own in own_bindings}

    @cache
    def find_losers(kind: str, name: str, address: str) -> Sequence[str]:
        return [
            principal
            for principal, index in indexes.items()
            if index.matches(kind, name) and can_lose(principal, kind, name, address)
        ]

    return find_losers


class _GroupLoss:
    """The access that members of one group may lose.

    is_own: whether they may lose access to the group itself.
    """

    def __init__(self) -> None:
        self.members = 0
        self.topics: set[str] = set()
        self.principals: set[str] = set()
        self.is_own = False

    def add(self, lost: Mapping[tuple[str, str], Sequence[str]]) -> None:
        """Add a group member. lost: the principals that lose access, by type and name of the object."""
        self.members += 1
        for (kind, name), principals in lost.items():
            self.principals.update(principals)
            self.is_own |= kind == GROUP
            if kind == TOPIC:
                self.topics.add(name)


def _list_topics(member: GroupMember) -> list[str]:
    return sorted({where.topic for where in member.partitions})
