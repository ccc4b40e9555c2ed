"""Observe which clients get lower quotas. Only clients that brokers report are included."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation
from kdeclare.core.resources.changes import Change, Risk
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.client_quota.operations import AlterQuotaArgs
from kdeclare.providers.kafka.client_quota.spec import LIMIT_FIELD_PREFIX
from kdeclare.providers.kafka.consumer_group.group import GroupMember
from kdeclare.providers.kafka.impact.access.affected_clients import (
    build_limited_clients,
    build_unknown_clients,
    build_unknown_members,
    report_invisible_groups,
)
from kdeclare.providers.kafka.impact.group_members import GroupMembers
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader

_KIND = "ClientQuota"
_MEMBER_LIMITS = frozenset({"consumer_byte_rate", "request_percentage", "connection_creation_rate"})
"""The quota keys that limit consumers. Brokers report the client ids of consumers, but not of producers."""


@dataclass(frozen=True, slots=True)
class LoweredQuota:
    """A quota in which a plan lowers limits or sets new limits.

    limits: the keys of the lowered and new limits.
    """

    resource: str
    entity: QuotaEntity
    limits: frozenset[str]

    @property
    def names(self) -> Mapping[EntityType, str | None]:
        """The entity name for each entity type of the quota. None is the default entity."""
        return dict(self.entity.parts)

    @property
    def only_user(self) -> str | None:
        """The user, if the quota applies to all clients of one user; otherwise None."""
        names = self.names
        return names.get(EntityType.USER) if names.get(EntityType.CLIENT_ID) is None else None


def find_lowered_quotas(operations: Sequence[Operation], changes: Sequence[Change]) -> list[LoweredQuota]:
    """Return the quotas that the plan lowers."""
    entities = {op.resource: op.args.quota_entity for op in operations if isinstance(op.args, AlterQuotaArgs)}
    return [
        LoweredQuota(str(change.id), entities[change.id], limits)
        for change in changes
        if change.id.kind == _KIND and change.id in entities and (limits := _list_lowered(change))
    ]


def _list_lowered(change: Change) -> frozenset[str]:
    return frozenset(
        field.path.removeprefix(LIMIT_FIELD_PREFIX)
        for field in change.fields
        if field.risk is not Risk.SAFE and field.after is not None
    )


def observe_quotas(reader: ImpactReader, quotas: Sequence[LoweredQuota]) -> Iterator[Observation]:
    """Yield observations about group members with lower quotas, and about clients that brokers do not report.

    Quotas that apply to all clients of a user are left out, because brokers do not report the users of
    clients. Reads the groups only if a quota applies to a client id or an IP address, and limits consumers.
    """
    for quota in quotas:
        client_id, ip = quota.names.get(EntityType.CLIENT_ID), quota.names.get(EntityType.IP)
        if client_id is not None:
            yield from _observe_clients(reader, quota, f"client id '{client_id}'")
        elif ip is not None:
            yield from _observe_clients(reader, quota, f"IP address '{ip}'")
        elif quota.only_user is None:
            clients = "which clients are subject to this default, that is, have no more specific limit"
            yield build_unknown_clients(quota.resource, clients)


def _observe_clients(reader: ImpactReader, quota: LoweredQuota, clients: str) -> Iterator[Observation]:
    if quota.limits.isdisjoint(_MEMBER_LIMITS):
        yield build_unknown_clients(quota.resource, f"which producers use {clients}")
        return
    members = reader.read_members()
    if not isinstance(members, GroupMembers):
        yield build_unknown_members(quota.resource, f"which members of groups use {clients}", members)
        return
    counts = Counter(group for group, member in members.list_members() if _is_limited(quota, member))
    yield build_limited_clients(quota.resource, clients, counts, quota.names.get(EntityType.USER))
    yield from report_invisible_groups(quota.resource, members)


def _is_limited(quota: LoweredQuota, member: GroupMember) -> bool:
    ip = quota.names.get(EntityType.IP)
    if ip is not None:
        return member.address == ip
    return member.client_id == quota.names.get(EntityType.CLIENT_ID)
