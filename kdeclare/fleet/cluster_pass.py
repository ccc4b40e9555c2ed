"""The second pass of an audit, which processes all resources of a cluster together.

This pass evaluates policies, compares resources whose differences depend on other resources, and lists the
unused objects.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import LiveState, PlanOptions
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.core.plans.plan_hooks import PlanInputs, prepare_context
from kdeclare.core.plans.state import State
from kdeclare.core.policies.policy_subjects import ListedForPolicies
from kdeclare.core.provider.provider_queries import build_snapshot_connections, start_plan
from kdeclare.core.provider.registry import CODECS, KINDS
from kdeclare.core.resources.fleet_capabilities import (
    decode_body,
    find_concerned,
    find_live_key,
    is_set_like,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.engine.planning.comparison import compare_resources
from kdeclare.engine.planning.ignored_fields import leave_out_ignored_fields
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.fleet.drift import build_unreachable_finding, collect_findings, parse_source
from kdeclare.fleet.findings import Finding, FindingKind, FindingSeverity
from kdeclare.fleet.live_state import decode_cluster, explain_unread, list_readable_codecs
from kdeclare.fleet.tables.rows import get_declared_live_key
from kdeclare.fleet.unused import find_unused, format_unchecked_notices

Row = Mapping[str, Any]
LabelsByResource = Mapping[ResourceId, Mapping[str, str]]
"""The labels of each declared or owned resource."""


@dataclass(frozen=True, slots=True)
class ClusterEvaluation:
    """The verdicts of policies about the live objects of a cluster.

    open: the policies that were not evaluated because snapshots do not contain the required data.
    unread: the policies that were not evaluated because the objects that they check were not read.
    """

    verdicts: Sequence[Verdict] = ()
    open: Sequence[str] = ()
    unread: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class KnownResources:
    """The declared and owned resources of a cluster, and the types of live objects that were not read.

    rows: the rows of the cluster in the table `DECLARED`. A resource that is a set of live objects has one
        row. The rows of a kind are decoded only if a policy checks the kind, because there can be very many
        rows.
    unread: the types of live objects that were not read.
    """

    rows: Sequence[Row] = field(default=(), repr=False)
    unread: frozenset[str] = frozenset()

    def find_desired(self, kind: str) -> Mapping[str, DesiredResource]:
        """Return the declared resources of a kind by name, including resources that the selector excludes."""
        return {item.id.name: item for item in _list_desired(row for row in self.rows if row["kind"] == kind)}

    def find_owned(self, kind: str) -> Mapping[str, OwnedRecord]:
        """Return the ownership records of a kind, by resource name."""
        owned = _list_owned(row for row in self.rows if row["kind"] == kind)
        return {id_.name: record for id_, record in owned}


NO_KNOWN_RESOURCES = KnownResources()


ClusterEvaluator = Callable[
    [LiveState, Sequence[ResourceId], LabelsByResource, KnownResources], ClusterEvaluation
]
"""A function that evaluates the policies of a project for live objects of a cluster.

An object that a resource declares or owns has the id of that resource. The id of any other object consists of
its type and key.
"""


@dataclass(frozen=True, slots=True)
class ClusterTables:
    """The rows of one cluster in the tables `DECLARED` and `LIVE`.

    own: the pending cleanup of the cluster as JSON; None if no cleanup is pending.
    within: the cluster-level live state as JSON, see `fleet.live_state`.
    declared: the rows of the declared and owned resources.
    live: the rows of the live objects.
    """

    name: str
    own: str | None
    within: str
    declared: Sequence[Row] = field(repr=False)
    live: Sequence[Row] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClusterFindings:
    """The findings of the second pass of an audit in one cluster.

    found: the findings, each with its resource and the labels of the resource.
    notices: messages about policies that could not be evaluated, and about objects whose usage is unknown.
    """

    found: Sequence[tuple[ResourceId, Mapping[str, str], Finding]] = ()
    notices: Sequence[str] = ()


def find_in_cluster(cluster: ClusterTables, evaluator: ClusterEvaluator | None) -> ClusterFindings:
    """Evaluate policies, find unused objects, and compare resources that depend on other resources.

    Resources that the selector excludes are not evaluated or compared. Exceptions that occur while objects
    are decoded or compared are not caught.

    evaluator: evaluates the policies of the project; None if the project has no policies.
    """
    labels = {_get_resource_id(row): dict(row["labels"] or ()) for row in cluster.declared}
    sources = {_get_resource_id(row): row["source"] for row in cluster.declared}
    findings = list(find_unused(cluster.within, cluster.declared))
    evaluation = ClusterEvaluation()
    if evaluator is not None or any(map(_is_interdependent, cluster.declared)):
        live = decode_cluster(
            cluster.within,
            ((_get_live_key(row), row["body"]) for row in cluster.live if row["body"] is not None),
        )
        findings += _find_in_interdependent(cluster, live)
        if evaluator is not None:
            evaluation = evaluator(
                live, _list_evaluated_objects(cluster, live), labels, _build_known_resources(cluster)
            )
    findings += [
        (id_, _build_policy_finding(verdict, sources.get(id_)))
        for id_, verdict in ((ResourceId.parse(item.resource), item) for item in evaluation.verdicts)
        if verdict.outcome is not VerdictOutcome.ALLOW
    ]
    labeled_findings = [(id_, labels.get(id_, {}), item) for id_, item in findings]
    return ClusterFindings(
        labeled_findings,
        (
            *map(_format_open_notice, evaluation.open),
            *map(_format_unread_notice, evaluation.unread),
            *format_unchecked_notices(cluster.within),
        ),
    )


def _find_in_interdependent(cluster: ClusterTables, live: LiveState) -> Iterator[tuple[ResourceId, Finding]]:
    sources = {_get_resource_id(row): row["source"] for row in cluster.declared if _is_interdependent(row)}
    interdependent = sources.keys()
    if not interdependent:
        return
    request = _build_request(cluster)
    unread_systems = _find_unread_systems(cluster, request)
    yield from (
        (id_, build_unreachable_finding(unread_systems[id_], sources[id_]))
        for id_ in sorted(interdependent & unread_systems.keys())
    )
    scope = replace(request.scope, targets=request.scope.targets - unread_systems.keys())
    request = leave_out_ignored_fields(replace(request, scope=scope), live)
    unread_objects = {_get_live_key(row): row["error"] for row in cluster.live if row["body"] is None}
    offline_connections = build_snapshot_connections(list_readable_codecs(cluster.within))
    hooks = start_plan(PlanInputs(request.desired, request.state, live, offline_connections, PlanOptions()))
    for item in compare_resources(request, live, prepare_context(hooks), hooks):
        if item.id not in interdependent or item.desired is None:
            continue
        unread_keys = find_concerned(item.desired, unread_objects.keys())
        if unread_keys:
            yield item.id, build_unreachable_finding(unread_objects[min(unread_keys)], sources[item.id])
            continue
        for finding in collect_findings(item.id, item.difference, item.desired, item.owned, live):
            yield item.id, finding


def _is_interdependent(row: Row) -> bool:
    return row["desired"] is not None and not row["alone"]


def _find_unread_systems(cluster: ClusterTables, request: PlanRequest) -> Mapping[ResourceId, str]:
    """Return the declared resources whose systems were not read, each with the reason."""
    reasons: dict[ResourceId, str] = {}
    for item in request.desired:
        key = find_live_key(item.id, item.body, request.owned.get(str(item.id)))
        reason = explain_unread(key, cluster.within) if key is not None else None
        if reason is not None:
            reasons[item.id] = reason
    return reasons


def _build_request(cluster: ClusterTables) -> PlanRequest:
    """Return a plan request with all declared resources. Only the selected resources are in its scope."""
    resources = _list_resources(cluster)
    cleanup = json.loads(cluster.own) if cluster.own is not None else {}
    return PlanRequest(
        project="",
        env="",
        cluster_name=cluster.name,
        desired=tuple(_list_desired(resources)),
        state=State("", 0, "", {str(id_): record for id_, record in _list_owned(resources)}, cleanup),
        scope=PlanScope(
            targets=frozenset(_get_resource_id(row) for row in resources if row["desired"] is not None)
        ),
    )


def _list_resources(cluster: ClusterTables) -> list[Row]:
    return [row for row in cluster.declared if not _is_element(row)]


def _list_desired(rows: Iterable[Row]) -> Iterator[DesiredResource]:
    for row in rows:
        body = row["desired"] or row["left_out"]
        if body is not None:
            id_ = _get_resource_id(row)
            spec = decode_body(id_.kind, json.loads(body))
            yield DesiredResource(id_, spec, dict(row["labels"] or ()), parse_source(row["source"]))


def _list_owned(rows: Iterable[Row]) -> Iterator[tuple[ResourceId, OwnedRecord]]:
    for row in rows:
        record = bind_record(row["kind"], json.loads(row["owned"])) if row["owned"] is not None else None
        if record is not None:
            yield _get_resource_id(row), record


def _build_known_resources(cluster: ClusterTables) -> KnownResources:
    unread_kinds = frozenset(
        sort for sort in CODECS if explain_unread(LiveKey(sort, ""), cluster.within) is not None
    )
    return KnownResources(_list_resources(cluster), unread_kinds)


def _list_evaluated_objects(cluster: ClusterTables, live: LiveState) -> list[ResourceId]:
    """Return the ids of the objects that policies check.

    ``kdeclare policy check --live`` checks the same objects. Objects that the selector excludes and objects
    that were not read are omitted. If a resource declares or owns an object, the object has the id of the
    resource.
    """
    rows_by_key = {get_declared_live_key(row): row for row in cluster.declared}
    excluded_keys = {
        get_declared_live_key(row) for row in cluster.declared if not (row["desired"] or row["owned"])
    }
    listed_keys: dict[str, Collection[str] | None] = {}
    object_ids: set[ResourceId] = set()
    for row in cluster.live:
        key, body = _get_live_key(row), row["body"]
        if body is None or key in excluded_keys:
            continue
        if key.sort not in listed_keys:
            listed_keys[key.sort] = _list_policy_keys(key.sort, live)
        if _is_evaluated(key, body, listed_keys[key.sort], key in rows_by_key):
            declared_row = rows_by_key.get(key)
            object_ids.add(
                _get_resource_id(declared_row)
                if declared_row is not None and declared_row["kind"] == key.sort
                else ResourceId(*key)
            )
    return sorted(object_ids)


def _list_policy_keys(kind: str, live: LiveState) -> Collection[str] | None:
    """Return the keys of the live objects that policies check; None if the kind cannot list its objects."""
    registered_kind = KINDS.get(kind)
    try:
        return (
            frozenset(registered_kind.list_live(live))
            if isinstance(registered_kind, ListedForPolicies)
            else None
        )
    except Fault:
        return None


def _is_evaluated(key: LiveKey, body: str, listed_keys: Collection[str] | None, is_known: bool) -> bool:
    if listed_keys is not None:
        return key.key in listed_keys
    codec = CODECS.get(key.sort)
    return codec is not None and (is_known or codec.is_reported(key, body))


def _get_live_key(row: Row) -> LiveKey:
    return LiveKey(row["kind"], row["name"])


def _is_element(row: Row) -> bool:
    """Whether the row represents only a part of a resource.

    The part is one live object of a resource that consists of several, or a group of unmanaged objects that
    would be deleted when the resource is applied.
    """
    return is_set_like(row["kind"]) and (row["live_sort"] != "" or row["live_key"] != "")


def _get_resource_id(row: Row) -> ResourceId:
    return ResourceId(row["kind"], row["name"])


def _build_policy_finding(verdict: Verdict, source: str | None) -> Finding:
    verb = "denies" if verdict.is_denial else "warns about"
    message = f"Policy '{verdict.policy}' {verb} this resource: {verdict.message}"
    severity = FindingSeverity.MEDIUM if verdict.is_denial else FindingSeverity.LOW
    path = f"policies.{verdict.policy}"
    return Finding(FindingKind.POLICY, path, None, None, None, message, severity, source)


def _format_open_notice(policy: str) -> str:
    return (
        f"Policy '{policy}' needs data that snapshots do not contain. "
        f"Run 'kdeclare policy check --live' to evaluate it."
    )


def _format_unread_notice(policy: str) -> str:
    return f"Policy '{policy}' was not evaluated, because the objects that it checks were not read."
