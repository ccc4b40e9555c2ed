"""What can only be said of a cluster as a whole: resources about many objects, and policies."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from kdeclare.core.frozen import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import LiveState, PlanOptions
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.core.plans.planning import PlanInputs, prepare_context
from kdeclare.core.plans.state import State
from kdeclare.core.provider.registry import CODECS, KINDS, offer_snapshot, start_plan
from kdeclare.core.resources.capabilities import decode_body, find_concerned, find_live_key, is_set_like
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.policy_subjects import ListedForPolicies
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

    def find_desired(self, kind: str) -> Mapping[str, Desired]:
        """Return the declared resources of a kind by name, also those that a selector leaves out."""
        return {item.id.name: item for item in _list_desired(row for row in self.rows if row["kind"] == kind)}

    def find_owned(self, kind: str) -> Mapping[str, OwnedRecord]:
        """Return the records of ownership of a kind by the names of resources."""
        found = _list_owned(row for row in self.rows if row["kind"] == kind)
        return {id_.name: record for id_, record in found}


NOTHING_KNOWN = KnownResources()


Judge = Callable[[LiveState, Sequence[ResourceId], Labels, KnownResources], Judged]
"""Asks the policies of a cluster's project about these objects, given the labels of all that is known.

Objects that are declared or owned have the names of their resources, the others their keys.
"""


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
    found = list(_wide(cluster, live))
    judged = Judged()
    if judge is not None:
        judged = judge(live, _judged_objects(cluster, live), labels, _known(cluster))
    found += [
        (ResourceId.parse(verdict.resource), _against(verdict))
        for verdict in judged.verdicts
        if verdict.outcome is not VerdictOutcome.ALLOW
    ]
    with_labels = [(id_, labels.get(id_, {}), item) for id_, item in found]
    return WholeFindings(with_labels, (*map(_untold, judged.open), *map(_unread, judged.unread)))


def _wide(cluster: WholeCluster, live: LiveState) -> Iterator[tuple[ResourceId, Found]]:
    wide = {_id(row) for row in cluster.declared if row["desired"] is not None and not row["alone"]}
    if not wide:
        return
    request = _request(cluster)
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


def _request(cluster: WholeCluster) -> PlanRequest:
    """All of the cluster, as what is changed elsewhere counts; what a selector leaves out is not in scope."""
    resources = _list_resources(cluster)
    cleanup = json.loads(cluster.own) if cluster.own is not None else {}
    return PlanRequest(
        project="",
        env="",
        cluster_name=cluster.name,
        desired=tuple(_list_desired(resources)),
        state=State("", 0, "", {str(id_): record for id_, record in _list_owned(resources)}, cleanup),
        scope=Scope(targets=frozenset(_id(row) for row in resources if row["desired"] is not None)),
    )


def _list_resources(cluster: WholeCluster) -> list[Row]:
    return [row for row in cluster.declared if not _is_element(row)]


def _list_desired(rows: Iterable[Row]) -> Iterator[Desired]:
    """What is declared, also what a selector leaves out."""
    for row in rows:
        body = row["desired"] or row["left_out"]
        if body is not None:
            id_ = _id(row)
            stated = decode_body(id_.kind, json.loads(body))
            yield Desired(id_, stated, dict(row["labels"] or ()), parse_source(row["source"]))


def _list_owned(rows: Iterable[Row]) -> Iterator[tuple[ResourceId, OwnedRecord]]:
    for row in rows:
        record = bind_record(row["kind"], json.loads(row["owned"])) if row["owned"] is not None else None
        if record is not None:
            yield _id(row), record


def _known(cluster: WholeCluster) -> KnownResources:
    unread = frozenset(
        sort for sort in CODECS if explain_unread(LiveKey(sort, ""), cluster.within) is not None
    )
    return KnownResources(_list_resources(cluster), unread)


def _judged_objects(cluster: WholeCluster, live: LiveState) -> list[ResourceId]:
    """What policies are asked about, under the names of resources where objects are declared or owned.

    All that `policy check --live` asks about, but for what a selector leaves out, and what was not read.
    """
    known = {_declared_key(row): row for row in cluster.declared}
    left_out = {_declared_key(row) for row in cluster.declared if not (row["desired"] or row["owned"])}
    listed: dict[str, Collection[str] | None] = {}
    found: set[ResourceId] = set()
    for row in cluster.live:
        key, body = _live_key(row), row["body"]
        if body is None or key in left_out:
            continue
        if key.sort not in listed:
            listed[key.sort] = _list_judged(key.sort, live)
        if _is_judged(key, body, listed[key.sort], key in known):
            own = known.get(key)
            found.add(_id(own) if own is not None and own["kind"] == key.sort else ResourceId(*key))
    return sorted(found)


def _list_judged(kind: str, live: LiveState) -> Collection[str] | None:
    """The keys of the objects that policies judge, declared or not; None of a kind that cannot list them."""
    known = KINDS.get(kind)
    try:
        return frozenset(known.list_live(live)) if isinstance(known, ListedForPolicies) else None
    except Fault:
        return None


def _is_judged(key: LiveKey, body: str, listed: Collection[str] | None, is_known: bool) -> bool:
    if listed is not None:
        return key.key in listed
    codec = CODECS.get(key.sort)
    return codec is not None and (is_known or codec.is_reported(key, body))


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


def _against(verdict: Verdict) -> Found:
    says = "denies" if verdict.denies else "warns of"
    message = f"Policy '{verdict.policy}' {says} this: {verdict.message}"
    return Found(FindingKind.POLICY, f"policies.{verdict.policy}", None, None, None, message)


def _untold(policy: str) -> str:
    return f"Policy '{policy}' asks for what no snapshot holds; kdeclare policy check --live can tell."


def _unread(policy: str) -> str:
    return f"Policy '{policy}' was not asked: nothing was read of what it is about."
