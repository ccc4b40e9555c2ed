"""Observe which ACLs, quotas and resources still name the topics and users that a plan deletes."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.footprint import Access
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation
from kdeclare.core.resources.changes import Change
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.plan_capabilities import list_mentions
from kdeclare.core.units import format_names
from kdeclare.providers.kafka.acl.binding import LITERAL, TOPIC, Binding
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.client_quota.operations import AlterQuotaArgs
from kdeclare.providers.kafka.error_names import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
from kdeclare.providers.kafka.impact import wording
from kdeclare.providers.kafka.impact.access.acl_impact import AclChanges, find_acl_changes
from kdeclare.providers.kafka.impact.access.affected_clients import (
    build_references,
    build_remaining_access,
    build_unknown_clients,
)
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader
from kdeclare.providers.kafka.scram_user.collector import ScramState
from kdeclare.providers.kafka.scram_user.diff import find_mechanism

_TOPIC_KIND, _USER_KIND = "Topic", "ScramUser"


@dataclass(frozen=True, slots=True)
class UserChanges:
    """The users whose credentials a plan deletes or changes.

    deleted: the users that have no credentials after the plan. changed: all users that can no longer log in
        as before.
    """

    deleted: tuple[str, ...]
    changed: tuple[str, ...]


def find_user_changes(changes: Sequence[Change], live: ScramState | None) -> UserChanges:
    """Return the users whose existing credentials a plan deletes or changes."""
    deleted: list[str] = []
    changed: list[str] = []
    for change in changes:
        fields = [field for field in change.fields if field.before is not None]
        if change.id.kind != _USER_KIND or not fields:
            continue
        user = change.id.name
        changed.append(user)
        gone = {find_mechanism(field) for field in fields if field.after is None}
        new = any(field.after is not None for field in change.fields)
        if live is not None and not new and live.of(user).keys() <= gone:
            deleted.append(user)
    return UserChanges(tuple(deleted), tuple(changed))


def observe_unknown_users(users: Mapping[str, str]) -> Iterator[Observation]:
    """Yield an observation that brokers do not report which clients are connected as the given users.

    users: the affected user of each changed resource. If there are no users, nothing is yielded.
    """
    names = sorted(set(users.values()))
    if names:
        shown = f"user '{names[0]}'" if len(names) == 1 else f"these users: {format_names(names)}"
        yield build_unknown_clients(min(users), f"which clients are connected as {shown}")


def observe_remaining_access(
    reader: ImpactReader, topics: Sequence[str], users: Sequence[str], plan: "PlannedAccess"
) -> Iterator[Observation]:
    """Yield observations about ACLs and quotas that still name deleted topics and users after the plan.

    Reads ACLs only if a topic or a user is deleted, and quotas only if a user is deleted. If the ACLs or the
    quotas cannot be read, a single observation for the whole plan says so.
    """
    if not topics and not users:
        return
    first = f"{_TOPIC_KIND}/{topics[0]}" if topics else f"{_USER_KIND}/{users[0]}"
    bindings = _read_bindings(reader, topics, users)
    if isinstance(bindings, Fault):
        yield wording.build_unknown(first, None, "which ACLs still name deleted topics or users", bindings)
        bindings = frozenset()
    remaining = plan.acls.apply(bindings)
    yield from _observe_topics(topics, remaining)
    if not users:
        return
    quotas = _read_quotas(reader)
    if isinstance(quotas, Fault):
        is_denied = quotas.error == CLUSTER_AUTHORIZATION_FAILED
        reason = "kdeclare lacks the DescribeConfigs permission on the cluster" if is_denied else quotas
        yield wording.build_unknown(
            f"{_USER_KIND}/{users[0]}", None, "which quotas still name deleted users", reason
        )
        quotas = frozenset()
    yield from _observe_users(users, remaining, quotas - plan.deleted_quotas)


@dataclass(frozen=True, slots=True)
class PlannedAccess:
    """The changes that a plan makes to ACLs, and the quotas that it deletes.

    deleted_quotas: the quota entities whose limits are all deleted.
    """

    acls: AclChanges
    deleted_quotas: frozenset[QuotaEntity]


def find_planned_access(operations: Sequence[Operation]) -> PlannedAccess:
    """Return the changes to ACLs, and the deletions of quotas, that the operations of a plan make."""
    deleted = (
        op.args.quota_entity
        for op in operations
        if isinstance(op.args, AlterQuotaArgs) and op.args.whole and op.args.ops[0].op == "DELETE"
    )
    return PlannedAccess(find_acl_changes(operations), frozenset(deleted))


def _read_bindings(
    reader: ImpactReader, topics: Sequence[str], users: Sequence[str]
) -> frozenset[Binding] | Fault:
    principals = None if topics else [f"User:{user}" for user in users]
    bindings = reader.attempt(lambda cluster: cluster.acls(principals))
    if isinstance(bindings, Fault) and bindings.error == SECURITY_DISABLED:
        return frozenset()
    return bindings


def _read_quotas(reader: ImpactReader) -> frozenset[QuotaEntity] | Fault:
    limits = reader.attempt(lambda cluster: cluster.quotas())
    return limits if isinstance(limits, Fault) else frozenset(limits)


def _observe_topics(topics: Sequence[str], bindings: Collection[Binding]) -> Iterator[Observation]:
    by_topic: dict[str, list[Binding]] = defaultdict(list)
    for binding in bindings:
        if binding.resource_type == TOPIC and binding.pattern == LITERAL:
            by_topic[binding.name].append(binding)
    for topic in topics:
        own = by_topic.get(topic, ())
        if own:
            principals = sorted({binding.principal for binding in own})
            yield build_remaining_access(
                f"{_TOPIC_KIND}/{topic}", "topic", principals, bindings=len(own), quotas=0
            )


def _observe_users(
    users: Sequence[str], bindings: Collection[Binding], quotas: Collection[QuotaEntity]
) -> Iterator[Observation]:
    bindings_of = Counter(binding.principal for binding in bindings)
    quotas_of = Counter(dict(entity.parts).get(EntityType.USER) for entity in quotas)
    for user in users:
        counts = bindings_of[f"User:{user}"], quotas_of[user]
        if any(counts):
            yield build_remaining_access(
                f"{_USER_KIND}/{user}", "user", (), bindings=counts[0], quotas=counts[1]
            )


def observe_references(topics: Sequence[str], desired: Sequence[DesiredResource]) -> Iterator[Observation]:
    """Yield observations about declared resources that refer to deleted topics, such as connectors."""
    if not topics:
        return
    references: dict[str, list[str]] = defaultdict(list)
    for item in desired:
        for entry in list_mentions(item):
            if entry.sort == _TOPIC_KIND and entry.access is Access.MENTIONS and isinstance(entry.key, str):
                references[entry.key].append(str(item.id))
    for topic in topics:
        if references.get(topic):
            yield build_references(f"{_TOPIC_KIND}/{topic}", sorted(references[topic]))
