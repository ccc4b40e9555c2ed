"""What can only be said of a cluster as a whole: resources about many objects, and policies."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from kdeclare.core.frozen import dataclass
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import LiveState, PlanOptions
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.core.plans.planning import PlanInputs, prepare_context
from kdeclare.core.plans.state import State
from kdeclare.core.provider.registry import CODECS, offer_snapshot, start_plan
from kdeclare.core.resources.capabilities import decode_body, find_concerned, find_live_key, is_set_like
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.engine.planning.compare import compare
from kdeclare.engine.planning.request import PlanRequest, Scope
from kdeclare.fleet.drift import found_in, parse_source
from kdeclare.fleet.findings import FindingKind, Found
from kdeclare.fleet.live_state import decode_cluster, explain_unread, find_readable

Row = Mapping[str, Any]
Labels = Mapping[ResourceId, Mapping[str, str]]
"""The labels of what is declared or owned."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What policies say of the objects of a cluster.

    open: the policies that ask for what no snapshot holds; of them there are no verdicts.
    """

    verdicts: Sequence[Verdict] = ()
    open: Sequence[str] = ()


Judge = Callable[[LiveState, Sequence[ResourceId], Labels], Judged]
"""Asks the policies of a cluster's project about these objects, given the labels of all that is known."""


@dataclass(frozen=True, slots=True)
class WholeCluster:
    """A cluster's rows of both tables.

    own, within: of its own rows, what is pending to be removed (None: nothing), and its body. Both JSON.
    """

    name: str
    own: str | None
    within: str
    declared: Sequence[Row] = field(repr=False)
    live: Sequence[Row] = field(repr=False)


@dataclass(frozen=True, slots=True)
class WholeFindings:
    """What is found in a cluster, with the labels of each resource; and what could not be told, in words."""

    found: Sequence[tuple[ResourceId, Mapping[str, str], Found]] = ()
    notices: Sequence[str] = ()


def found_in_cluster(cluster: WholeCluster, judge: Judge | None) -> WholeFindings:
    """What is found in the resources that are not alone, as a plan of the cluster has it, and by policies.

    judge: None where the project has no policies. What a selector leaves out counts for the rest, and is
    itself neither compared nor judged. Raises what decoding and diffing raise.
    """
    live = decode_cluster(
        cluster.within, ((_live_key(row), row["body"]) for row in cluster.live if row["body"] is not None)
    )
    labels = {_id(row): dict(row["labels"] or ()) for row in cluster.declared}
    found = list(_wide(cluster, labels, live))
    judged = Judged() if judge is None else judge(live, _judged_objects(cluster), labels)
    found += [
        (ResourceId.parse(verdict.resource), _against(verdict))
        for verdict in judged.verdicts
        if verdict.outcome is not VerdictOutcome.ALLOW
    ]
    with_labels = [(id_, labels.get(id_, {}), item) for id_, item in found]
    return WholeFindings(with_labels, tuple(map(_untold, judged.open)))


def _wide(cluster: WholeCluster, labels: Labels, live: LiveState) -> Iterator[tuple[ResourceId, Found]]:
    wide = {_id(row) for row in cluster.declared if row["desired"] is not None and not row["alone"]}
    if not wide:
        return
    request = _request(cluster, labels)
    not_read = _find_not_read(cluster, request)
    yield from (
        (id_, Found(FindingKind.UNREACHABLE, None, None, None, None, not_read[id_]))
        for id_ in sorted(wide & not_read.keys())
    )
    scope = replace(request.scope, targets=request.scope.targets - not_read.keys())
    request = replace(request, scope=scope)
    unread = {_live_key(row): row["error"] for row in cluster.live if row["body"] is None}
    nowhere = offer_snapshot(find_readable(cluster.within))
    hooks = start_plan(PlanInputs(request.desired, request.state, live, nowhere, PlanOptions()))
    for item in compare(request, live, prepare_context(hooks), hooks):
        if item.id not in wide or item.desired is None:
            continue
        concerned = find_concerned(item.desired, unread.keys())
        if concerned:
            yield item.id, Found(FindingKind.UNREACHABLE, None, None, None, None, unread[min(concerned)])
            continue
        for found in found_in(item.id, item.difference, item.desired, item.owned, live):
            yield item.id, found


def _find_not_read(cluster: WholeCluster, request: PlanRequest) -> Mapping[ResourceId, str]:
    """Of declared resources, those of systems that were not read, with the reason."""
    found: dict[ResourceId, str] = {}
    for item in request.desired:
        key = find_live_key(item.id, item.body, request.owned.get(str(item.id)))
        reason = explain_unread(key, cluster.within) if key is not None else None
        if reason is not None:
            found[item.id] = reason
    return found


def _request(cluster: WholeCluster, labels: Labels) -> PlanRequest:
    """All of the cluster, as what is changed elsewhere counts; what a selector leaves out is not in scope."""
    resources = [row for row in cluster.declared if not _is_element(row)]
    bodies = {_id(row): row["desired"] or row["left_out"] for row in resources}
    owned = {
        str(_id(row)): record
        for row in resources
        if row["owned"] is not None
        and (record := bind_record(_id(row).kind, json.loads(row["owned"]))) is not None
    }
    sources = {_id(row): row["source"] for row in resources}
    cleanup = json.loads(cluster.own) if cluster.own is not None else {}
    compared = frozenset(_id(row) for row in resources if row["desired"] is not None)
    return PlanRequest(
        project="",
        env="",
        cluster_name=cluster.name,
        desired=tuple(
            _desired(id_, body, labels[id_], sources[id_]) for id_, body in bodies.items() if body is not None
        ),
        state=State("", 0, "", owned, cleanup),
        scope=Scope(targets=compared),
    )


def _judged_objects(cluster: WholeCluster) -> list[ResourceId]:
    """All that people care for, but for what a selector leaves out, and what could not be read."""
    left_out = {_declared_key(row) for row in cluster.declared if not (row["desired"] or row["owned"])}
    return sorted(
        ResourceId(*key)
        for row in cluster.live
        if (key := _live_key(row)) not in left_out
        and row["body"] is not None
        and (codec := CODECS.get(key.sort)) is not None
        and codec.is_reported(key, row["body"])
    )


def _live_key(row: Row) -> LiveKey:
    return LiveKey(row["kind"], row["name"])


def _declared_key(row: Row) -> LiveKey:
    sort, key = row["live_sort"], row["live_key"]
    return LiveKey(row["kind"] if sort is None else sort, row["name"] if key is None else key)


def _is_element(row: Row) -> bool:
    """Whether it is one element of a set, of which another row has the whole."""
    return row["live_sort"] != "" and is_set_like(row["kind"])


def _id(row: Row) -> ResourceId:
    return ResourceId(row["kind"], row["name"])


def _desired(id_: ResourceId, body: str, labels: Mapping[str, str], source: str | None) -> Desired:
    return Desired(id_, decode_body(id_.kind, json.loads(body)), labels, parse_source(source))


def _against(verdict: Verdict) -> Found:
    says = "denies" if verdict.denies else "warns of"
    message = f"Policy '{verdict.policy}' {says} this: {verdict.message}"
    return Found(FindingKind.POLICY, f"policies.{verdict.policy}", None, None, None, message)


def _untold(policy: str) -> str:
    return f"Policy '{policy}' asks for what no snapshot holds; kdeclare policy check --live can tell."
