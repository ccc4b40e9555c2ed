"""What can only be said of a cluster as a whole: resources about many topics, and policies."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdeclare.fleet.bodies import snapshot_of_all
from kdeclare.fleet.comparing import found_in
from kdeclare.fleet.finding import FindingKind, Found
from kdeclare.kinds.base import Desired
from kdeclare.kinds.registry import KINDS
from kdeclare.model.ids import ResourceId
from kdeclare.model.live import Snapshot
from kdeclare.model.plan import Verdict, VerdictOutcome
from kdeclare.model.state import State
from kdeclare.planning import order
from kdeclare.planning.compare import compare
from kdeclare.planning.judging import declared_labels
from kdeclare.planning.placement import SharedLoad
from kdeclare.planning.request import PlanRequest, Scope

Judge = Callable[[str, Snapshot, Mapping[str, Mapping[str, str]]], Iterable[Verdict]]
"""Asks the policies of a cluster's project about all of its topics, given the labels of resources."""


_NOTHING = (None, None, None, None)
"""Neither a path nor an op, and nothing before and after."""


@dataclass(frozen=True, slots=True)
class WholeCluster:
    """A cluster's rows of both tables; ``within`` is the body of its own row."""

    name: str
    within: str
    declared: Sequence[Mapping[str, Any]]
    live: Sequence[Mapping[str, Any]]


def found_in_cluster(
    cluster: WholeCluster, judge: Judge | None
) -> Iterator[tuple[ResourceId, Mapping[str, str], Found]]:
    """What is found in the resources that are not alone, and by policies, with the labels of each.

    judge: None where the project has no policies. Raises what decoding and diffing raise.
    """
    read = ((row["kind"], row["name"], row["body"]) for row in cluster.live if row["body"] is not None)
    live = snapshot_of_all(cluster.within, read)
    desired = tuple(_desired(row) for row in cluster.declared if row["desired"] is not None)
    owned = {
        f"{row['kind']}/{row['name']}": json.loads(row["owned"]) for row in cluster.declared if row["owned"]
    }
    labels = {ResourceId(row["kind"], row["name"]): dict(row["labels"] or ()) for row in cluster.declared}
    yield from _wide(cluster, desired, owned, live)
    if judge is not None:
        for verdict in judge(cluster.name, live, declared_labels(desired, owned)):
            if verdict.outcome is not VerdictOutcome.ALLOW:
                resource = ResourceId.parse(verdict.resource)
                yield resource, labels.get(resource, {}), _against(verdict)


def _wide(
    cluster: WholeCluster, desired: tuple[Desired, ...], owned: Mapping[str, Any], live: Snapshot
) -> Iterator[tuple[ResourceId, Mapping[str, str], Found]]:
    wide = frozenset(
        ResourceId(row["kind"], row["name"])
        for row in cluster.declared
        if row["alone"] is False and row["desired"] is not None
    )
    if not wide:
        return
    request = PlanRequest(
        project="",
        env="",
        cluster_name=cluster.name,
        desired=desired,
        state=State("", 0, live.cluster.id, owned),
        scope=Scope(targets=wide),
    )
    by_id = {item.id: item for item in desired}
    unread = {
        f"{row['kind']}/{row['name']}": row["error"] for row in cluster.live if row["error"] is not None
    }
    for item in compare(request, live, SharedLoad(live, order.barred(desired, live))):
        subjects = (str(item.id), *(d.subject for d in item.difference.diagnostics))
        reason = next((unread[name] for name in subjects if name in unread), None)
        if reason is not None:
            yield item.id, by_id[item.id].labels, Found(FindingKind.UNREACHABLE, *_NOTHING, reason)
            continue
        for found in found_in(item.id, item.difference, item.desired, item.owned, live):
            yield item.id, by_id[item.id].labels, found


def _desired(row: Mapping[str, Any]) -> Desired:
    body = KINDS[row["kind"]].from_json(json.loads(row["desired"]))
    return Desired(ResourceId(row["kind"], row["name"]), body, dict(row["labels"] or ()))


def _against(verdict: Verdict) -> Found:
    says = "denies" if verdict.denies else "warns of"
    message = f"Policy '{verdict.policy}' {says} this: {verdict.message}"
    return Found(FindingKind.POLICY, f"policies.{verdict.policy}", None, None, None, message)
