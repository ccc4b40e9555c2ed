"""What can only be said of a cluster as a whole: resources about many topics, and policies."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kdeclare.core.capabilities import decode_body
from kdeclare.core.ids import ResourceId
from kdeclare.core.kind import Desired
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.plan import Verdict, VerdictOutcome
from kdeclare.core.planning import PlanInputs, prepare_context
from kdeclare.core.registry import start_plan
from kdeclare.core.state import State
from kdeclare.engine.planning.compare import compare
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.fleet.bodies import snapshot_of_all
from kdeclare.fleet.comparing import found_in, parse_source
from kdeclare.fleet.finding import FindingKind, Found
from kdeclare.providers.kafka.ids import is_topic
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.reassignment.leftovers import Leftovers
from kdeclare.providers.kafka.reassignment.placement_constraints import find_arrangements

Row = Mapping[str, Any]
Labels = Mapping[ResourceId, Mapping[str, str]]
"""The labels of what is declared or owned."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What policies say of the topics of a cluster.

    open: the policies that ask for what no snapshot holds; of them there are no verdicts.
    """

    verdicts: Sequence[Verdict] = ()
    open: Sequence[str] = ()


Judge = Callable[[KafkaState, Sequence[ResourceId], Mapping[str, Mapping[str, str]]], Judged]
"""Asks the policies of a cluster's project about these topics, given the labels of all, by name."""


@dataclass(frozen=True, slots=True)
class WholeCluster:
    """A cluster's rows of both tables.

    own, within: of its own rows, what kdeclare has begun to move (None: nothing), and its body. Both JSON.
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
    read = ((row["kind"], row["name"], row["body"]) for row in cluster.live if row["body"] is not None)
    live = snapshot_of_all(cluster.within, read)
    labels = {_id(row): dict(row["labels"] or ()) for row in cluster.declared}
    found = list(_wide(cluster, labels, live))
    judged = Judged()
    if judge is not None:
        of_topics = {id_.name: mine for id_, mine in labels.items() if is_topic(id_)}
        judged = judge(live, _judged_topics(cluster, live), of_topics)
    found += [
        (ResourceId.parse(verdict.resource), _against(verdict))
        for verdict in judged.verdicts
        if verdict.outcome is not VerdictOutcome.ALLOW
    ]
    with_labels = [(id_, labels.get(id_, {}), item) for id_, item in found]
    return WholeFindings(with_labels, tuple(map(_untold, judged.open)))


def _wide(cluster: WholeCluster, labels: Labels, live: KafkaState) -> Iterator[tuple[ResourceId, Found]]:
    wide = {_id(row) for row in cluster.declared if row["desired"] is not None and not row["alone"]}
    if not wide:
        return
    request = _request(cluster, labels, live)
    unread = {row["name"]: row["error"] for row in cluster.live if row["body"] is None and is_topic(_id(row))}
    seen = LiveState(live)
    hooks = start_plan(PlanInputs(request.desired, request.state, seen, Connections(), PlanOptions()))
    for item in compare(request, seen, prepare_context(hooks), hooks):
        if item.id not in wide or item.desired is None:
            continue
        about = find_arrangements(item.desired, unread)
        reason = next((unread[topic] for topic in sorted(about) if topic in unread), None)
        if reason is not None:
            yield item.id, Found(FindingKind.UNREACHABLE, None, None, None, None, reason)
            continue
        for found in found_in(item.id, item.difference, item.desired, item.owned, live):
            yield item.id, found


def _request(cluster: WholeCluster, labels: Labels, live: KafkaState) -> PlanRequest:
    """All of the cluster, as what is changed elsewhere counts; what a selector leaves out is not in scope."""
    bodies = {_id(row): row["desired"] or row["left_out"] for row in cluster.declared}
    owned = {str(_id(row)): json.loads(row["owned"]) for row in cluster.declared if row["owned"] is not None}
    sources = {_id(row): row["source"] for row in cluster.declared}
    moves = json.loads(cluster.own) if cluster.own is not None else ()
    compared = frozenset(_id(row) for row in cluster.declared if row["desired"] is not None)
    return PlanRequest(
        project="",
        env="",
        cluster_name=cluster.name,
        desired=tuple(
            _desired(id_, body, labels[id_], sources[id_]) for id_, body in bodies.items() if body is not None
        ),
        state=State("", 0, live.cluster.id, owned, Leftovers(moves=tuple(moves)).write_to({})),
        scope=PlanScope(targets=compared),
    )


def _judged_topics(cluster: WholeCluster, live: KafkaState) -> list[ResourceId]:
    """All but internal ones and those that a selector leaves out."""
    left_out = {_id(row) for row in cluster.declared if row["desired"] is None and row["owned"] is None}
    topics = (ResourceId("Topic", topic.name) for topic in live.topics.values() if not topic.internal)
    return sorted(id_ for id_ in topics if id_ not in left_out)


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
