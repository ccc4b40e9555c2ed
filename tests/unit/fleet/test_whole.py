"""The findings of a whole cluster match a plan of that cluster."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.plan import Plan, Verdict, VerdictOutcome
from kdeclare.core.plans.state import State
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.fleet_capabilities import (
    is_self_contained,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.fleet.cluster_pass import (
    ClusterEvaluation,
    ClusterFindings,
    KnownResources,
    LabelsByResource,
    find_in_cluster,
)
from kdeclare.fleet.findings import Finding, FindingKind
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.topic.record import TopicRecord
from tests.connections import connections_to
from tests.engine.world import Secrets, desired, nothing, sealed, topic
from tests.jsontypes import Json
from tests.unit.fleet.wholes import GOLD, A, B, RandomCluster, cluster_of, move, state_with, whole


def plan_of(
    cluster: MemoryCluster,
    declared: Sequence[DesiredResource],
    state: State | None = None,
    selector: Mapping[str, str] | None = None,
) -> Plan:
    scope = PlanScope(selector=selector or {}, preflight=False)
    request = PlanRequest("shop", "d", "eu-1", sealed(declared, state), state, scope)
    return build_plan(request, connections_to(cluster), Secrets(), nothing)


def found(
    cluster: MemoryCluster, declared: Sequence[DesiredResource], **more: Any
) -> dict[str, list[tuple[str, str | None, Any, Any]]]:
    """Return finding, path, before and after, by resource."""
    by_resource: dict[str, list[tuple[str, str | None, Any, Any]]] = {}
    for id_, _, item in find_in_cluster(whole(cluster, declared, **more), None).found:
        by_resource.setdefault(str(id_), []).append(
            (str(item.finding), item.path, _data(item.before), _data(item.after))
        )
    return by_resource


def _data(text: str | None) -> Json:
    return None if text is None else json.loads(text)


def drain(name: str, *topics: str, off: int, **labels: str) -> DesiredResource:
    return desired("Reassignment", name, labels, topics=list(topics), drain=[off])


def targets(name: str, labels: Mapping[str, str] | None = None, **partitions: list[int]) -> DesiredResource:
    """Partitions by ``topic_number``."""
    listed = [
        {"topic": text.rpartition("_")[0], "partition": int(text.rpartition("_")[2]), "replicas": replicas}
        for text, replicas in partitions.items()
    ]
    return desired("Reassignment", name, labels, partitions=listed)


def test_nothing_where_all_is_in_order() -> None:
    cluster = cluster_of(orders=[(1, 2), (2, 3)])
    placed = {"partitions": 2, "replicationFactor": 2, "placement": {"strategy": "cross-rack"}}
    declared = [drain("off-4", "/.*/", off=4), topic("orders", **placed)]
    assert found(cluster, declared) == {}


def test_a_drain_is_told_partition_by_partition() -> None:
    cluster = cluster_of(orders=[(4, 2), (2, 3)])
    assert found(cluster, [drain("off-4", "/.*/", off=4)]) == {
        "Reassignment/off-4": [("pending", "replicas.orders-0", [4, 2], [1, 2])]
    }


def test_partitions_that_the_same_plan_creates() -> None:
    cluster = cluster_of(orders=[(1, 2)])
    declared = [topic("orders", partitions=2), targets("r", orders_1=[1, 2])]
    assert found(cluster, declared) == {}, "an apply of the topic comes first, as a plan says"
    assert not plan_of(cluster, declared).has_errors
    (alone,) = found(cluster, declared[1:]).values()
    assert alone == [("pending", None, None, None)]


def test_a_move_of_ones_own_is_waited_for() -> None:
    cluster = cluster_of(orders=[(1, 2)])
    move(cluster, "orders-0", (1, 3))
    declared = [targets("r", orders_0=[1, 4])]
    told = find_in_cluster(whole(cluster, declared), None).found
    assert [item.message for _, _, item in told] == ["orders-0 is already being moved to [1, 3]."]
    told = find_in_cluster(whole(cluster, declared, state=state_with("orders-0")), None).found
    assert [item.message for _, _, item in told] == ["It is declared but not applied yet."]


def test_a_drain_that_a_selector_leaves_out_bars_its_broker() -> None:
    cluster = cluster_of(orders=[(1, 2)], other=[(2, 3)] * 4)
    placed = {"placement": {"strategy": "cross-rack"}, "partitions": 3, "replicationFactor": 3}
    declared = [topic("orders", labels=A, **placed), drain("off-1", "/.*/", off=1, **B)]
    (items,) = found(cluster, declared, selector=A).values()
    assigned = {path: after for _, path, _, after in items if path and path.startswith("assignments")}
    assert assigned
    planned = plan_of(cluster, declared, selector=A).changes
    assert assigned == {f.path: f.after for c in planned for f in c.fields if f.path in assigned}


def test_what_is_left_out_is_not_compared() -> None:
    cluster = cluster_of(orders=[(4, 2)])
    declared = [drain("off-4", "/.*/", off=4, **B), drain("off-3", "/.*/", off=3, **A)]
    assert found(cluster, declared, selector=A) == {}
    assert list(found(cluster, declared, selector=B)) == ["Reassignment/off-4"]


def test_a_topic_that_could_not_be_read() -> None:
    cluster = cluster_of(orders=[(4, 2)], other=[(1, 2)])
    declared = [drain("all", "/.*/", off=4), drain("one", "other", off=4)]
    told = find_in_cluster(whole(cluster, declared, errors={"orders": "not you"}), None).found
    assert [(str(id_), str(item.finding), item.message) for id_, _, item in told] == [
        ("Reassignment/all", "unreachable", "not you")
    ]


def test_labels_come_along() -> None:
    cluster = cluster_of(orders=[(4, 2)])
    told = find_in_cluster(whole(cluster, [drain("off-4", "/.*/", off=4, **A)]), None).found
    assert [labels for _, labels, _ in told] == [A]


class Asked:
    """An evaluator that records its arguments and returns given results."""

    def __init__(self, *verdicts: Verdict, open_: Sequence[str] = ()) -> None:
        self.answer = ClusterEvaluation(verdicts, open_)
        self.topics: list[str] = []
        self.labels: Mapping[str, Mapping[str, str]] = {}

    def __call__(
        self, live: LiveState, objects: Sequence[ResourceId], labels: LabelsByResource, known: KnownResources
    ) -> ClusterEvaluation:
        self.topics, self.labels = list(map(str, objects)), {item.name: labels[item] for item in labels}
        return self.answer


def test_policies_are_asked_about_all_but_what_a_selector_leaves_out() -> None:
    cluster = cluster_of(mine=[(1,)], theirs=[(1,)], old=[(1,)], stray=[(1,)])
    declared = [topic("mine", labels=A), topic("theirs", labels=B), topic("new", labels=B)]
    state = state_with(owned={"Topic/old": TopicRecord(labels=B), "Topic/theirs": TopicRecord(labels=A)})
    asked = Asked()
    find_in_cluster(whole(cluster, declared, state=state, selector=A), asked)
    assert asked.topics == ["Topic/mine", "Topic/stray"]
    labels = {"mine": A, "theirs": B, "new": B, "old": B}
    assert asked.labels == labels, "rules about others count them"
    find_in_cluster(whole(cluster, declared, state=state), asked)
    assert asked.topics == ["Topic/mine", "Topic/old", "Topic/stray", "Topic/theirs"]
    assert asked.labels == labels


def test_verdicts_are_findings_and_what_is_open_is_a_notice() -> None:
    cluster = cluster_of(mine=[(1,)])
    verdicts = [
        Verdict("a", "Topic/mine", VerdictOutcome.ALLOW),
        Verdict("b", "Topic/mine", VerdictOutcome.DENY, "too tall"),
        Verdict("c", "Topic/mine", VerdictOutcome.WARN, "too small"),
    ]
    told = find_in_cluster(whole(cluster, [topic("mine", labels=A)]), Asked(*verdicts, open_=["d"]))
    assert told == ClusterFindings(
        [
            (ResourceId("Topic", "mine"), A, _policy("b", "Policy 'b' denies this: too tall")),
            (ResourceId("Topic", "mine"), A, _policy("c", "Policy 'c' warns about this: too small")),
        ],
        (
            "Policy 'd' needs data that snapshots do not contain. "
            "Run 'kdeclare policy check --live' to evaluate it.",
        ),
    )


def test_an_impossible_declaration_is_a_finding_of_its_resource_alone() -> None:
    """The message names the owner and the required change, and the rest of the cluster is compared."""
    cluster = cluster_of(few=[(1, 2), (2, 3)], more=[(1,)])
    placed = {"replicationFactor": 2, "placement": {"strategy": "cross-rack"}}
    fewer = replace(topic("few", labels=A, partitions=1, **placed), source=SourcePosition("m/a.yaml", 4, 18))
    result = find_in_cluster(whole(cluster, [fewer, topic("more", partitions=3, labels=B, **placed)]), None)
    messages = {str(id_): item.message for id_, _, item in result.found if item.path == "partitions"}
    assert messages["Topic/few"] == (
        "Topic 'few' has 2 partitions, but the manifest declares 1. Kafka cannot remove partitions. "
        "The manifest of team a (m/a.yaml:4:18) must be changed: declare 2 or more, or create another topic "
        "and copy the records."
    )
    assert messages["Topic/more"].startswith("It exists but was never applied by this project")


def _policy(name: str, message: str) -> Finding:
    return Finding(FindingKind.POLICY, f"policies.{name}", None, None, None, message)


@settings(max_examples=3 * settings().max_examples)
@given(st.integers(0, 2**32), st.sampled_from([{}, A, GOLD]))
def test_any_cluster_is_compared_as_a_plan_compares_it(seed: int, selector: Mapping[str, str]) -> None:
    made = RandomCluster(Random(seed))
    told = found(made.cluster, made.declared, state=made.state, selector=selector)
    planned = plan_of(made.cluster, made.declared, made.state, selector)
    bodies = {item.id: item.body for item in made.declared}
    expected: dict[str, list[tuple[str | None, Any, Any]]] = {}
    for change in planned.changes:
        body = bodies.get(change.id)
        if body is None or is_self_contained(DesiredResource(change.id, body)):
            continue
        if change.action is Action.CREATE:
            expected[str(change.id)] = [(None, None, {f.path: f.after for f in change.fields})]
        elif change.fields:
            expected[str(change.id)] = [(f.path, f.before, f.after) for f in change.fields]
    shown = {id_: [item[1:] for item in items if not _cannot_be(*item)] for id_, items in told.items()}
    assert {id_: items for id_, items in shown.items() if items} == expected
    stuck = {id_ for id_, items in told.items() if any(_cannot_be(*item) for item in items)}
    assert stuck <= {d.resource for d in planned.diagnostics if d.is_blocking}


def _cannot_be(finding: str, path: str | None, before: Json, after: Json) -> bool:
    """Findings for the diagnostics of a plan: a blocked resource, or a declaration of fewer partitions."""
    return (path, before, after) == (None, None, None) or (path == "partitions" and before > after)
