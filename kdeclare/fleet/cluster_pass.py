"""What can only be said of a cluster as a whole: resources about many objects, and policies."""

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
from kdeclare.core.provider.registry import CODECS, KINDS, build_snapshot_connections, start_plan
from kdeclare.core.resources.fleet_capabilities import (
    decode_body,
    find_concerned,
    find_live_key,
    is_set_like,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.policy_subjects import ListedForPolicies
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.engine.planning.comparison import compare_resources
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.fleet.drift import collect_findings, parse_source
from kdeclare.fleet.findings import Finding, FindingKind
from kdeclare.fleet.live_state import decode_cluster, explain_unread, list_readable_codecs

Row = Mapping[str, Any]
LabelsByResource = Mapping[ResourceId, Mapping[str, str]]
"""The labels of what is declared or owned."""


@dataclass(frozen=True, slots=True)
class ClusterEvaluation:
    """What policies say of the objects of a cluster.

    open: the policies that ask for what no snapshot holds; of them there are no verdicts. unread: those about
    objects of which nothing was read.
    """

    verdicts: Sequence[Verdict] = ()
    open: Sequence[str] = ()
    unread: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class KnownResources:
    """What is declared and owned in a cluster, and of which kinds nothing was read.

    rows: of the table of what is declared, without elements of sets. There can be very many, so that bodies
    are decoded when a policy is about their kind.
    """

    rows: Sequence[Row] = field(default=(), repr=False)
    unread: frozenset[str] = frozenset()

    def find_desired(self, kind: str) -> Mapping[str, DesiredResource]:
        """Return the declared resources of a kind by name, also those that a selector leaves out."""
        return {item.id.name: item for item in _list_desired(row for row in self.rows if row["kind"] == kind)}

    def find_owned(self, kind: str) -> Mapping[str, OwnedRecord]:
        """Return the records of ownership of a kind by the names of resources."""
        owned = _list_owned(row for row in self.rows if row["kind"] == kind)
        return {id_.name: record for id_, record in owned}


NO_KNOWN_RESOURCES = KnownResources()


ClusterEvaluator = Callable[
    [LiveState, Sequence[ResourceId], LabelsByResource, KnownResources], ClusterEvaluation
]
"""Asks the policies of a cluster's project about these objects, given the labels of all that is known.

Objects that are declared or owned have the names of their resources, the others their keys.
"""


@dataclass(frozen=True, slots=True)
class ClusterTables:
    """A cluster's rows of both tables.

    own, within: of its own rows, what is pending to be removed (None: nothing), and its body. Both JSON.
    """

    name: str
    own: str | None
    within: str
    declared: Sequence[Row] = field(repr=False)
    live: Sequence[Row] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClusterFindings:
    """What is found in a cluster, with the labels of each resource; and what could not be told, in words."""

    found: Sequence[tuple[ResourceId, Mapping[str, str], Finding]] = ()
    notices: Sequence[str] = ()


def find_in_cluster(cluster: ClusterTables, evaluator: ClusterEvaluator | None) -> ClusterFindings:
    """What is found in the resources that are not alone, as a plan of the cluster has it, and by policies.

    evaluator: None where the project has no policies. What a selector leaves out counts for the rest, and is
    itself neither compared nor judged. Raises what decoding and diffing raise.
    """
    live = decode_cluster(
        cluster.within, ((_get_live_key(row), row["body"]) for row in cluster.live if row["body"] is not None)
    )
    labels = {_get_resource_id(row): dict(row["labels"] or ()) for row in cluster.declared}
    findings = list(_find_in_interdependent(cluster, live))
    evaluation = ClusterEvaluation()
    if evaluator is not None:
        evaluation = evaluator(
            live, _list_evaluated_objects(cluster, live), labels, _build_known_resources(cluster)
        )
    findings += [
        (ResourceId.parse(verdict.resource), _build_policy_finding(verdict))
        for verdict in evaluation.verdicts
        if verdict.outcome is not VerdictOutcome.ALLOW
    ]
    labeled_findings = [(id_, labels.get(id_, {}), item) for id_, item in findings]
    return ClusterFindings(
        labeled_findings,
        (*map(_format_open_notice, evaluation.open), *map(_format_unread_notice, evaluation.unread)),
    )


def _find_in_interdependent(cluster: ClusterTables, live: LiveState) -> Iterator[tuple[ResourceId, Finding]]:
    interdependent = {
        _get_resource_id(row) for row in cluster.declared if row["desired"] is not None and not row["alone"]
    }
    if not interdependent:
        return
    request = _build_request(cluster)
    unread_systems = _find_unread_systems(cluster, request)
    yield from (
        (id_, Finding(FindingKind.UNREACHABLE, None, None, None, None, unread_systems[id_]))
        for id_ in sorted(interdependent & unread_systems.keys())
    )
    scope = replace(request.scope, targets=request.scope.targets - unread_systems.keys())
    request = replace(request, scope=scope)
    unread_objects = {_get_live_key(row): row["error"] for row in cluster.live if row["body"] is None}
    offline_connections = build_snapshot_connections(list_readable_codecs(cluster.within))
    hooks = start_plan(PlanInputs(request.desired, request.state, live, offline_connections, PlanOptions()))
    for item in compare_resources(request, live, prepare_context(hooks), hooks):
        if item.id not in interdependent or item.desired is None:
            continue
        unread_keys = find_concerned(item.desired, unread_objects.keys())
        if unread_keys:
            yield (
                item.id,
                Finding(FindingKind.UNREACHABLE, None, None, None, None, unread_objects[min(unread_keys)]),
            )
            continue
        for finding in collect_findings(item.id, item.difference, item.desired, item.owned, live):
            yield item.id, finding


def _find_unread_systems(cluster: ClusterTables, request: PlanRequest) -> Mapping[ResourceId, str]:
    """Of declared resources, those of systems that were not read, with the reason."""
    reasons: dict[ResourceId, str] = {}
    for item in request.desired:
        key = find_live_key(item.id, item.body, request.owned.get(str(item.id)))
        reason = explain_unread(key, cluster.within) if key is not None else None
        if reason is not None:
            reasons[item.id] = reason
    return reasons


def _build_request(cluster: ClusterTables) -> PlanRequest:
    """All of the cluster, as what is changed elsewhere counts; what a selector leaves out is not in scope."""
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
    """What is declared, also what a selector leaves out."""
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
    """What policies are asked about, under the names of resources where objects are declared or owned.

    All that `policy check --live` asks about, but for what a selector leaves out, and what was not read.
    """
    rows_by_key = {_get_declared_key(row): row for row in cluster.declared}
    excluded_keys = {
        _get_declared_key(row) for row in cluster.declared if not (row["desired"] or row["owned"])
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
    """The keys of the objects that policies judge, declared or not; None of a kind that cannot list them."""
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


def _get_declared_key(row: Row) -> LiveKey:
    sort, key = row["live_sort"], row["live_key"]
    return LiveKey(row["kind"] if sort is None else sort, row["name"] if key is None else key)


def _is_element(row: Row) -> bool:
    """Whether it is one element of a set, of which another row has the whole."""
    return row["live_sort"] != "" and is_set_like(row["kind"])


def _get_resource_id(row: Row) -> ResourceId:
    return ResourceId(row["kind"], row["name"])


def _build_policy_finding(verdict: Verdict) -> Finding:
    verb = "denies" if verdict.is_denial else "warns of"
    message = f"Policy '{verdict.policy}' {verb} this: {verdict.message}"
    return Finding(FindingKind.POLICY, f"policies.{verdict.policy}", None, None, None, message)


def _format_open_notice(policy: str) -> str:
    return f"Policy '{policy}' asks for what no snapshot holds; kdeclare policy check --live can tell."


def _format_unread_notice(policy: str) -> str:
    return f"Policy '{policy}' was not asked: nothing was read of what it is about."
