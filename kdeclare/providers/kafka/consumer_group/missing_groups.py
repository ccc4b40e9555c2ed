"""Report groups that do not exist, or that the principal is not permitted to describe.

A principal without Describe on a group sees the group in lists only if it has Describe on the cluster
(KafkaApis.handleListGroupsRequest).
"""

from collections.abc import Sequence

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.suggestions import format_suggestion
from kdeclare.providers.kafka.consumer_group.collector import GroupsState, read_groups
from kdeclare.providers.kafka.consumer_group.group import KIND
from kdeclare.providers.kafka.consumer_group.port import Groups
from kdeclare.providers.kafka.error_names import GROUP_AUTHORIZATION_FAILED


def is_hidden(id_: str, groups: Groups) -> bool:
    """Return whether the principal is not permitted to describe a group."""
    try:
        groups.fetch_offsets([id_])
    except Fault as fault:
        return fault.error == GROUP_AUTHORIZATION_FAILED
    return False


def read_visible_groups(groups: Groups, ids: Sequence[str]) -> GroupsState:
    """Return the named groups that exist and that the principal may describe. Raises Fault."""
    try:
        return read_groups(groups, ids)
    except Fault as fault:
        if fault.error != GROUP_AUTHORIZATION_FAILED:
            raise
    return read_groups(groups, [id_ for id_ in ids if not is_hidden(id_, groups)])


def report_hidden_group(id_: str) -> Diagnostic:
    """Build the error for a group that the principal is not permitted to describe."""
    return error(
        "not-authorized",
        "Not authorized",
        f"The principal is not permitted to describe group '{id_}' ({GROUP_AUTHORIZATION_FAILED}).",
        hint=f"Grant Describe on group {id_}. A reset also requires Read, and a deletion also requires "
        "Delete.",
        resource=str(ResourceId(KIND, id_)),
    )


def report_missing_group(id_: str, groups: Groups) -> Diagnostic:
    """Build the error for a group that does not exist or that the principal cannot describe. Raises Fault."""
    if is_hidden(id_, groups):
        return report_hidden_group(id_)
    return error(
        "no-such-group",
        "No such group",
        f"There is no group '{id_}'.",
        hint=format_suggestion(id_, list(groups.list_groups())),
        resource=str(ResourceId(KIND, id_)),
    )
