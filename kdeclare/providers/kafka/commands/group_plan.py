"""Build the plans of ``kdeclare group reset-offsets`` and ``kdeclare group delete``."""

from collections.abc import Mapping, Sequence

from kdeclare.core.diagnostics import Diagnostic, denied, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.operations.operation_type import with_inverse
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.plan import ClusterRef, Plan, PlanBase, Summary
from kdeclare.core.plans.state import State
from kdeclare.core.resources.changes import Action, Change, Reason, Risk, find_highest_risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.planning.compared_request import validate_cluster_id
from kdeclare.engine.planning.prune_denied import find_resource_action
from kdeclare.providers.kafka.consumer_group.arguments import DeleteGroupArgs
from kdeclare.providers.kafka.consumer_group.collector import GroupsState, LiveGroup
from kdeclare.providers.kafka.consumer_group.group import KIND, GroupType, ListedGroup
from kdeclare.providers.kafka.consumer_group.operations import (
    STOP_HINT,
    AlterOffsets,
    DeleteGroup,
    GroupOperationType,
)

_RISKS = {Action.DELETE: Risk.DESTRUCTIVE}
_OTHER_TOOLS = {
    GroupType.SHARE: "Use Kafka's kafka-share-groups for share groups.",
    GroupType.STREAMS: "Use Kafka's kafka-streams-groups for streams groups.",
}
_ALTER, _DELETE = AlterOffsets(), DeleteGroup()


@dataclass(frozen=True, slots=True)
class PlanSource:
    """The project, the environment, the cluster, and the state for which a plan is made."""

    project: str
    env: str
    cluster: ClusterRef
    state: State | None


@dataclass(frozen=True, slots=True)
class GroupChange:
    """The change to one group.

    args: the arguments of the operation, or None if the group is unchanged or the change is denied.
    denial: the reason why the change is denied, or None if it is permitted.
    action: the action that the plan shows if the change is denied.
    """

    group: str
    args: Arguments | None = None
    denial: Diagnostic | None = None
    action: Action = Action.UPDATE

    @property
    def resource(self) -> ResourceId:
        """The id of the group in plans."""
        return ResourceId(KIND, self.group)


def find_denial(group: ListedGroup | None) -> Diagnostic | None:
    """Return why the offsets of a group cannot be reset, for example because it has active members.

    Return None if they can be reset.
    """
    if group is None:
        return None
    resource = str(ResourceId(KIND, group.id))
    if not group.has_consumer_offsets:
        name = f"{group.protocol} group" if group.type is GroupType.CLASSIC else f"{group.type} group"
        return denied(
            "not-a-consumer-group",
            "Not a consumer group",
            f"Group '{group.id}' is a {name}, so kdeclare does not change its offsets.",
            hint=_OTHER_TOOLS.get(group.type, "Use the tools of the system that the group belongs to."),
            resource=resource,
        )
    if group.is_active:
        return denied(
            "group-active",
            "Group is active",
            f"Group '{group.id}' has members (state {group.state}), so its offsets cannot be changed.",
            hint=STOP_HINT,
            resource=resource,
        )
    return None


def build_deletion(live: LiveGroup) -> DeleteGroupArgs:
    """Return the arguments for deleting a group. They include its offsets, which a rollback restores."""
    return DeleteGroupArgs(
        live.group.id, {str(where): offset for where, offset in sorted(live.offsets.items())}
    )


def build_group_plan(
    source: PlanSource,
    changes: Sequence[GroupChange],
    live: Mapping[str, LiveGroup],
    diagnostics: Sequence[Diagnostic],
) -> Plan:
    """Build the plan. Raises KdeclareError if the state belongs to a different cluster."""
    if source.state is not None:
        validate_cluster_id(source.state.cluster_id, source.cluster.id, source.cluster.name)
    operations = [_build_operation(change, live) for change in changes if change.args is not None]
    shown = [_build_change(op) for op in operations]
    shown += [_build_blocked_change(change) for change in changes if change.denial is not None]
    counts = {action: sum(c.action is action for c in shown if not c.blocked) for action in Action}
    denials = [change.denial for change in changes if change.denial is not None]
    return Plan(
        project=source.project,
        env=source.env,
        cluster=source.cluster,
        base=PlanBase(
            source.state.lineage if source.state else None, source.state.serial if source.state else 0
        ),
        summary=Summary(
            create=counts[Action.CREATE],
            update=counts[Action.UPDATE],
            delete=counts[Action.DELETE],
            unchanged=len(changes) - len(shown),
            blocked=len(denials),
        ),
        changes=tuple(shown),
        operations=tuple(operations),
        diagnostics=sort_diagnostics([*diagnostics, *denials]),
    )


def _build_operation(change: GroupChange, live: Mapping[str, LiveGroup]) -> Operation:
    assert change.args is not None
    operation_type: GroupOperationType = _DELETE if isinstance(change.args, DeleteGroupArgs) else _ALTER
    draft = Operation(
        f"{operation_type.name}:{change.resource}", operation_type.name, change.resource, change.args, {}
    )
    view = operation_type.compute_view(draft, LiveState(GroupsState(live)))
    return with_inverse(
        operation_type, Operation(draft.id, draft.verb, draft.resource, draft.args, dict(view))
    )


def _build_change(op: Operation) -> Change:
    operation_type: GroupOperationType = _DELETE if op.verb == _DELETE.name else _ALTER
    action, fields = find_resource_action([op]), operation_type.fields(op)
    risk = find_highest_risk(fields, minimum=_RISKS.get(action, Risk.DISRUPTIVE))
    return Change(op.resource, action, Reason.ASKED, risk, fields)


def _build_blocked_change(change: GroupChange) -> Change:
    assert change.denial is not None
    risk = _RISKS.get(change.action, Risk.DISRUPTIVE)
    return Change(change.resource, change.action, Reason.ASKED, risk, blocked=change.denial.code)
