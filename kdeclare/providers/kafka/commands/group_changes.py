"""The use cases of ``kdeclare group``: reset offsets, delete offsets, and delete groups.

Each function makes a plan, asks for confirmation, and runs the plan with a journal. Manifests do not declare
groups, so this module builds the plans itself.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from kdeclare.app.adhoc.results import build_result, build_result_without_plan
from kdeclare.app.apply import ApplyOptions, confirm_and_apply
from kdeclare.app.policies import open_active_policies
from kdeclare.app.recovery import recover_under_lock
from kdeclare.app.secrets import ProjectSecrets
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.plan import ClusterRef, Plan
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.name_scope import report_out_of_scope
from kdeclare.providers.kafka.commands.group_plan import (
    GroupChange,
    PlanSource,
    build_deletion,
    build_group_plan,
    find_denial,
)
from kdeclare.providers.kafka.commands.topic_selection import report_unknown_topic
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.consumer_group.arguments import AlterOffsetsArgs, LogRange, OffsetChange
from kdeclare.providers.kafka.consumer_group.collector import LiveGroup
from kdeclare.providers.kafka.consumer_group.group import KIND, GroupOffsets
from kdeclare.providers.kafka.consumer_group.missing_groups import (
    is_hidden,
    read_visible_groups,
    report_hidden_group,
    report_missing_group,
)
from kdeclare.providers.kafka.consumer_group.reset import LogOffsets, Reset, ResetTarget, compute_reset
from kdeclare.providers.kafka.consumer_group.reset_values import FileOffsets
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import EARLIEST, LATEST
from kdeclare.report.adhoc import AdhocLabels, AdhocResult, ItemSummary

TopicPartitions = Mapping[str, tuple[int, ...]]
"""The partitions of each topic. An empty tuple means all partitions."""

_LABELS = AdhocLabels(look_hint="Check the groups with 'kdeclare group describe'.")


@dataclass(frozen=True, slots=True)
class GroupNames:
    """The selected groups. If there are no ids, all consumer groups are selected."""

    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """A requested reset of committed offsets.

    topics: the partitions to reset. If empty, reset all partitions in the offsets file or, without such a
        file, all partitions with committed offsets.
    """

    groups: GroupNames
    reset: Reset
    topics: TopicPartitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OffsetDeletionRequest:
    """Committed offsets to delete.

    topics: the partitions whose offsets to delete. If there are none, delete all committed offsets.
    """

    groups: GroupNames
    topics: TopicPartitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The plan of a ``kdeclare group`` command.

    failed: for each group whose change cannot be planned, the id of its resource and the diagnostics.
    offsets: for a reset, the offsets of all partitions after the reset.
    """

    plan: Plan
    resources: tuple[ResourceId, ...]
    failed: Mapping[str, tuple[Diagnostic, ...]]
    offsets: FileOffsets = field(default_factory=dict)


@dataclass
class _PlanDraft:
    """The changes, errors and warnings from which a plan is built."""

    changes: list[GroupChange] = field(default_factory=list)
    failed: dict[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    offsets: dict[str, Mapping[TopicPartition, int]] = field(default_factory=dict)


BuildDraft = Callable[[Cluster], "tuple[_PlanDraft, Mapping[str, LiveGroup]]"]


def plan_reset(workspace: Workspace, request: ResetRequest) -> GroupPlan:
    """Plan a reset without changing anything. Raises KdeclareError."""
    with workspace.open_connections() as connections:
        return _build_plan(workspace, connections, lambda cluster: _draft_reset(cluster, request))


def plan_offset_deletion(workspace: Workspace, request: OffsetDeletionRequest) -> GroupPlan:
    """Plan the deletion of offsets without changing anything. Raises KdeclareError."""
    with workspace.open_connections() as connections:
        return _build_plan(workspace, connections, lambda cluster: _draft_offset_deletion(cluster, request))


def plan_deletion(workspace: Workspace, names: GroupNames) -> GroupPlan:
    """Plan the deletion of groups without changing anything. Raises KdeclareError."""
    with workspace.open_connections() as connections:
        return _build_plan(workspace, connections, lambda cluster: _draft_deletion(cluster, names))


def reset_offsets(
    workspace: Workspace, request: ResetRequest, apply_options: ApplyOptions
) -> AdhocResult | None:
    """Reset offsets. Return None if the user declined. Raises KdeclareError."""
    return _run(workspace, lambda cluster: _draft_reset(cluster, request), apply_options)


def delete_offsets(
    workspace: Workspace, request: OffsetDeletionRequest, apply_options: ApplyOptions
) -> AdhocResult | None:
    """Delete committed offsets. Return None if the user declined. Raises KdeclareError."""
    return _run(workspace, lambda cluster: _draft_offset_deletion(cluster, request), apply_options)


def delete_groups(workspace: Workspace, names: GroupNames, apply_options: ApplyOptions) -> AdhocResult | None:
    """Delete groups. Return None if the user declined. Raises KdeclareError."""
    return _run(workspace, lambda cluster: _draft_deletion(cluster, names), apply_options)


def _run(workspace: Workspace, build_draft: BuildDraft, apply_options: ApplyOptions) -> AdhocResult | None:
    with (
        open_active_policies(workspace, overrides=apply_options.overrides) as active_policies,
        workspace.open_connections() as connections,
        workspace.store.lock(apply_options.command, apply_options.progress),
    ):
        notices = (
            *active_policies.diagnostics,
            *recover_under_lock(
                workspace, connections, apply_options.command, progress=apply_options.progress
            ),
        )
        planned = _build_plan(workspace, connections, build_draft)
        if not planned.plan.changes and planned.failed:
            return build_result_without_plan(planned.failed, {})
        notices = (*notices, *(problem for problems in planned.failed.values() for problem in problems))
        secrets = ProjectSecrets(workspace.project, workspace.environ)
        run = confirm_and_apply(
            workspace, connections, planned.plan, secrets, apply_options, active_policies, notices
        )
        if run is None:
            return None
        result = build_result(run, planned.resources, planned.failed, {}, None, _summarize_nothing)
        return AdhocResult(run, result.items, planned.failed, beforehand=notices, words=_LABELS)


def _summarize_nothing(resource: ResourceId, live: LiveState) -> ItemSummary | None:
    return None


def _build_plan(workspace: Workspace, connections: Connections, build_draft: BuildDraft) -> GroupPlan:
    cluster = connections.get(KafkaConnection).cluster
    project = workspace.project
    draft, live = build_draft(cluster)
    resources = [*(change.resource for change in draft.changes), *map(_parse_resource, draft.failed)]
    forbidden = [id_ for id_ in resources if not project.scope.permits(id_)]
    if forbidden:
        raise KdeclareError(report_out_of_scope(None, forbidden, project.scope))
    source = PlanSource(
        project.name,
        project.environment.name,
        ClusterRef(cluster.describe().id, workspace.cluster_name),
        workspace.store.read(),
    )
    plan = build_group_plan(source, draft.changes, live, draft.diagnostics)
    return GroupPlan(plan, tuple(change.resource for change in draft.changes), draft.failed, draft.offsets)


def _parse_resource(text: str) -> ResourceId:
    return ResourceId(KIND, text.partition("/")[2])


def _read_selected(cluster: Cluster, names: GroupNames) -> tuple[tuple[str, ...], Mapping[str, LiveGroup]]:
    """Return the ids of the selected groups, and the selected groups that exist, by id."""
    ids = names.ids
    if not ids:
        listed = cluster.groups.list_groups()
        ids = tuple(sorted(id_ for id_, group in listed.items() if group.has_consumer_offsets))
    return ids, read_visible_groups(cluster.groups, ids).groups


def _draft_deletion(cluster: Cluster, names: GroupNames) -> tuple[_PlanDraft, Mapping[str, LiveGroup]]:
    ids, live = _read_selected(cluster, names)
    draft = _PlanDraft()
    for id_ in ids:
        found = live.get(id_)
        denial = find_denial(found.group) if found else None
        if found is None:
            draft.failed[str(ResourceId(KIND, id_))] = (report_missing_group(id_, cluster.groups),)
        else:
            args = None if denial else build_deletion(found)
            draft.changes.append(GroupChange(id_, args, denial, Action.DELETE))
    return draft, live


def _draft_offset_deletion(
    cluster: Cluster, request: OffsetDeletionRequest
) -> tuple[_PlanDraft, Mapping[str, LiveGroup]]:
    ids, live = _read_selected(cluster, request.groups)
    counts = {name: len(topic.partitions) for name, topic in cluster.topics(sorted(request.topics)).items()}
    draft = _PlanDraft()
    for id_ in ids:
        found = live.get(id_)
        problems = tuple(_find_unknown_partitions(id_, request.topics, counts, cluster))
        if found is None:
            draft.failed[str(ResourceId(KIND, id_))] = (report_missing_group(id_, cluster.groups),)
        elif (denial := find_denial(found.group)) is not None:
            draft.changes.append(GroupChange(id_, denial=denial))
        elif problems:
            draft.failed[str(ResourceId(KIND, id_))] = problems
        else:
            selected = _list_partitions(request.topics, counts) if request.topics else sorted(found.offsets)
            committed = {where: found.offsets[where] for where in selected if where in found.offsets}
            args = AlterOffsetsArgs(
                id_, {str(where): OffsetChange(None, offset) for where, offset in committed.items()}
            )
            draft.changes.append(GroupChange(id_, args if committed else None))
    return draft, live


def _draft_reset(cluster: Cluster, request: ResetRequest) -> tuple[_PlanDraft, Mapping[str, LiveGroup]]:
    ids, live = _read_selected(cluster, request.groups)
    partitions = {id_: _select_topics(id_, request, live[id_].offsets if id_ in live else {}) for id_ in ids}
    logs = _read_logs(cluster, {topic for topics in partitions.values() for topic in topics}, request.reset)
    counts: dict[str, int] = {}
    for where in logs:
        counts[where.topic] = counts.get(where.topic, 0) + 1
    draft = _PlanDraft()
    for id_ in ids:
        found = live.get(id_)
        denial = find_denial(found.group) if found else None
        problems = tuple(_find_unknown_partitions(id_, partitions[id_], counts, cluster))
        if found is None and is_hidden(id_, cluster.groups):
            draft.failed[str(ResourceId(KIND, id_))] = (report_hidden_group(id_),)
        elif denial is not None:
            draft.changes.append(GroupChange(id_, denial=denial))
        elif problems:
            draft.failed[str(ResourceId(KIND, id_))] = problems
        else:
            _add_reset(draft, id_, request, _list_partitions(partitions[id_], counts), found, logs)
    return draft, live


def _add_reset(
    draft: _PlanDraft,
    id_: str,
    request: ResetRequest,
    partitions: Iterable[TopicPartition],
    found: LiveGroup | None,
    logs: Mapping[TopicPartition, LogOffsets],
) -> None:
    result = compute_reset(id_, request.reset, partitions, found.offsets if found else {}, logs)
    errors = tuple(d for d in result.diagnostics if d.is_error)
    if errors:
        draft.failed[str(ResourceId(KIND, id_))] = errors
        return
    draft.diagnostics += result.diagnostics
    draft.offsets[id_] = result.offsets
    if found is None:
        draft.diagnostics.append(_warn_new_group(id_))
    changes = {str(where): change for where, change in sorted(result.changes.items())}
    draft.changes.append(GroupChange(id_, AlterOffsetsArgs(id_, changes) if changes else None))


def _select_topics(id_: str, request: ResetRequest, committed: GroupOffsets) -> TopicPartitions:
    if request.topics:
        return request.topics
    if request.reset.target is ResetTarget.FILE:
        offsets = request.reset.offsets
        return _group_by_topic(offsets.get(id_) or offsets.get("", {}))
    return _group_by_topic(committed)


def _group_by_topic(partitions: Iterable[TopicPartition]) -> TopicPartitions:
    topics: dict[str, tuple[int, ...]] = {}
    for where in sorted(partitions):
        topics[where.topic] = (*topics.get(where.topic, ()), where.partition)
    return topics


def _read_logs(cluster: Cluster, topics: Iterable[str], reset: Reset) -> Mapping[TopicPartition, LogOffsets]:
    """Return the log offsets of all partitions of the topics that exist."""
    names = sorted(topics)
    if not names:
        return {}
    times = [EARLIEST, LATEST, *([] if reset.time_ms is None else [reset.time_ms])]
    logs: dict[TopicPartition, LogOffsets] = {}
    for where, (start, end, *at_time) in cluster.list_offsets(names, times).items():
        offset = at_time[0] if at_time and at_time[0] >= 0 else None
        logs[where] = LogOffsets(LogRange(start, max(start, end)), offset)
    return logs


def _list_partitions(topics: TopicPartitions, counts: Mapping[str, int]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, number)
        for topic, numbers in topics.items()
        for number in numbers or range(counts[topic])
    ]


def _find_unknown_partitions(
    id_: str, topics: TopicPartitions, counts: Mapping[str, int], cluster: Cluster
) -> Iterable[Diagnostic]:
    resource = str(ResourceId(KIND, id_))
    for topic, numbers in topics.items():
        if topic not in counts:
            problem = report_unknown_topic(topic, cluster.topics())
            yield error(problem.code, "No such topic", problem.detail, hint=problem.hint, resource=resource)
            continue
        for number in numbers:
            if number >= counts[topic]:
                yield error(
                    "no-such-partition",
                    "No such partition",
                    f"Topic '{topic}' has no partition {number}. Its last partition is {counts[topic] - 1}.",
                    resource=resource,
                )


def _warn_new_group(id_: str) -> Diagnostic:
    return warning(
        "new-group",
        "Group does not exist",
        f"There is no group '{id_}'. The reset creates the group.",
        hint="Check the id of the group, and list the groups with 'kdeclare group list'.",
        resource=str(ResourceId(KIND, id_)),
    )
