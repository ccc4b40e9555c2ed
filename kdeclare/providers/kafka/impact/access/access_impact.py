"""Observe the impact of a plan on the access of clients: quotas, permissions and credentials."""

from collections.abc import Iterator, Sequence

from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.live_references import find_deleted_names
from kdeclare.core.plans.observation import Observation
from kdeclare.core.resources.changes import Change
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.kafka.acl.collector import AclState
from kdeclare.providers.kafka.impact.access.acl_impact import observe_revocations
from kdeclare.providers.kafka.impact.access.quota_impact import find_lowered_quotas, observe_quotas
from kdeclare.providers.kafka.impact.access.remaining_access import (
    find_planned_access,
    find_user_changes,
    observe_references,
    observe_remaining_access,
    observe_unknown_users,
)
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader
from kdeclare.providers.kafka.scram_user.collector import ScramState


def observe_access(
    reader: ImpactReader,
    live: LiveState,
    desired: Sequence[DesiredResource],
    operations: Sequence[Operation],
    changes: Sequence[Change],
) -> Iterator[Observation]:
    """Yield observations about lost access, lower quotas, and references to deleted topics and users.

    Nothing is read unless a quota is lowered, a permission to read is taken away, or a topic or a user is
    deleted. desired: the declared resources of the project, which can refer to deleted topics.
    """
    quotas = find_lowered_quotas(operations, changes)
    planned = find_planned_access(operations)
    users = find_user_changes(changes, live.find(ScramState))
    topics = find_deleted_names(changes, "Topic")
    yield from observe_quotas(reader, quotas)
    yield from observe_revocations(reader, live.find(AclState), planned.acls)
    yield from observe_remaining_access(reader, topics, users.deleted, planned)
    yield from observe_references(topics, desired)
    affected_users = {f"ScramUser/{user}": user for user in users.changed}
    affected_users |= {quota.resource: user for quota in quotas if (user := quota.only_user) is not None}
    yield from observe_unknown_users(affected_users)
