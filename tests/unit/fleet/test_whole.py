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
from kdeclare.fleet.findings import Finding, FindingKind, FindingSeverity
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.topic.record import TopicRecord
from tests.connections import connections_to
from tests.engine.world import Secrets, desired, nothing, sealed, topic
from tests.jsontypes import Json
from tests.unit.fleet.wholes import (
    GOLD,
    A,
    B,
    RandomCluster,
    build_cluster_tables,
    make_cluster,
    make_state,
    start_move,
)


def plan_cluster(
    cluster: MemoryCluster,
    declared: Sequence[DesiredResource],
    state: State | None = None,
    selector: Mapping[str, str] | None = None,
) -> Plan:
    scope = PlanScope(selector=selector or {}, preflight=False)
    request = PlanRequest("shop", "d", "eu-1", sealed(declared, state), state, scope)
    return build_plan(request, connections_to(cluster), Secrets(), nothing)


def find_changes(
    cluster: MemoryCluster, declared: Sequence[DesiredResource], **more: Any
) -> dict[str, list[tuple[str, str | None, Any, Any]]]:
    """Return finding, path, before and after, by resource."""
    by_resource: dict[str, list[tuple[str, str | None, Any, Any]]] = {}
    for id_, _, item in find_in_cluster(build_cluster_tables(cluster, declared, **more), None).found:
        by_resource.setdefault(str(id_), []).append(
            (str(item.finding), item.path, _parse_data(item.before), _parse_data(item.after))
        )
    return by_resource


def _parse_data(text: str | None) -> Json:
    return None if text is None else json.loads(text)


def make_drain(name: str, *topics: str, off: int, **labels: str) -> DesiredResource:
    return desired("Reassignment", name, labels, topics=list(topics), drain=[off])


def make_targets(
    name: str, labels: Mapping[str, str] | None = None, **partitions: list[int]
) -> DesiredResource:
    """Partitions by ``topic_number``."""
    listed = [
        {"topic": text.rpartition("_")[0], "partition": int(text.rpartition("_")[2]), "replicas": replicas}
        for text, replicas in partitions.items()
    ]
    return desired("Reassignment", name, labels, partitions=listed)


def test_cluster_pass_finds_nothing_without_drift() -> None:
    cluster = make_cluster(orders=[(1, 2), (2, 3)])
    placed = {"partitions": 2, "replicationFactor": 2, "placement": {"strategy": "cross-rack"}}
    declared = [make_drain("off-4", "/.*/", off=4), topic("orders", **placed)]
    assert find_changes(cluster, declared) == {}


def test_drain_findings_are_listed_per_partition() -> None:
    cluster = make_cluster(orders=[(4, 2), (2, 3)])
    assert find_changes(cluster, [make_drain("off-4", "/.*/", off=4)]) == {
        "Reassignment/off-4": [("pending", "replicas.orders-0", [4, 2], [1, 2])]
    }


def test_targets_may_name_partitions_created_by_same_plan() -> None:
    cluster = make_cluster(orders=[(1, 2)])
    declared = [topic("orders", partitions=2), make_targets("r", orders_1=[1, 2])]
    assert find_changes(cluster, declared) == {}, "an apply of the topic comes first, as a plan says"
    assert not plan_cluster(cluster, declared).has_errors
    (alone,) = find_changes(cluster, declared[1:]).values()
    assert alone == [("pending", None, None, None)]


def test_own_move_is_waited_for() -> None:
    cluster = make_cluster(orders=[(1, 2)])
    start_move(cluster, "orders-0", (1, 3))
    declared = [make_targets("r", orders_0=[1, 4])]
    told = find_in_cluster(build_cluster_tables(cluster, declared), None).found
    assert [item.message for _, _, item in told] == ["orders-0 is already being moved to brokers [1, 3]."]
    told = find_in_cluster(build_cluster_tables(cluster, declared, state=make_state("orders-0")), None).found
    assert [item.message for _, _, item in told] == ["Declared, but not applied yet."]


def test_drain_outside_selector_still_excludes_its_broker() -> None:
    cluster = make_cluster(orders=[(1, 2)], other=[(2, 3)] * 4)
    placed = {"placement": {"strategy": "cross-rack"}, "partitions": 3, "replicationFactor": 3}
    declared = [topic("orders", labels=A, **placed), make_drain("off-1", "/.*/", off=1, **B)]
    (items,) = find_changes(cluster, declared, selector=A).values()
    assigned = {path: after for _, path, _, after in items if path and path.startswith("assignments")}
    assert assigned
    planned = plan_cluster(cluster, declared, selector=A).changes
    assert assigned == {f.path: f.after for c in planned for f in c.fields if f.path in assigned}


def test_resources_outside_selector_are_not_compared() -> None:
    cluster = make_cluster(orders=[(4, 2)])
    declared = [make_drain("off-4", "/.*/", off=4, **B), make_drain("off-3", "/.*/", off=3, **A)]
    assert find_changes(cluster, declared, selector=A) == {}
    assert list(find_changes(cluster, declared, selector=B)) == ["Reassignment/off-4"]


def test_unread_topic_makes_its_reassignment_unreachable() -> None:
    cluster = make_cluster(orders=[(4, 2)], other=[(1, 2)])
    declared = [make_drain("all", "/.*/", off=4), make_drain("one", "other", off=4)]
    told = find_in_cluster(build_cluster_tables(cluster, declared, errors={"orders": "not you"}), None).found
    assert [(str(id_), str(item.finding), item.message) for id_, _, item in told] == [
        ("Reassignment/all", "unreachable", "not you")
    ]


def test_findings_carry_labels() -> None:
    cluster = make_cluster(orders=[(4, 2)])
    told = find_in_cluster(
        build_cluster_tables(cluster, [make_drain("off-4", "/.*/", off=4, **A)]), None
    ).found
    assert [labels for _, labels, _ in told] == [A]


class RecordingEvaluator:
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


def test_policies_evaluate_objects_within_selector() -> None:
    cluster = make_cluster(mine=[(1,)], theirs=[(1,)], old=[(1,)], stray=[(1,)])
    declared = [topic("mine", labels=A), topic("theirs", labels=B), topic("new", labels=B)]
    state = make_state(owned={"Topic/old": TopicRecord(labels=B), "Topic/theirs": TopicRecord(labels=A)})
    asked = RecordingEvaluator()
    find_in_cluster(build_cluster_tables(cluster, declared, state=state, selector=A), asked)
    assert asked.topics == ["Topic/mine", "Topic/stray"]
    labels = {"mine": A, "theirs": B, "new": B, "old": B}
    assert asked.labels == labels, "rules about others count them"
    find_in_cluster(build_cluster_tables(cluster, declared, state=state), asked)
    assert asked.topics == ["Topic/mine", "Topic/old", "Topic/stray", "Topic/theirs"]
    assert asked.labels == labels


def test_verdicts_become_findings_and_open_policies_notices() -> None:
    cluster = make_cluster(mine=[(1,)])
    verdicts = [
        Verdict("a", "Topic/mine", VerdictOutcome.ALLOW),
        Verdict("b", "Topic/mine", VerdictOutcome.DENY, "too tall"),
        Verdict("c", "Topic/mine", VerdictOutcome.WARN, "too small"),
    ]
    told = find_in_cluster(
        build_cluster_tables(cluster, [topic("mine", labels=A)]), RecordingEvaluator(*verdicts, open_=["d"])
    )
    assert told == ClusterFindings(
        [
            (
                ResourceId("Topic", "mine"),
                A,
                _make_policy_finding("b", "Policy 'b' denies this resource: too tall"),
            ),
            (
                ResourceId("Topic", "mine"),
                A,
                _make_policy_finding("c", "Policy 'c' warns about this resource: too small"),
            ),
        ],
        (
            "Policy 'd' needs data that snapshots do not contain. "
            "Run 'kdeclare policy check --live' to evaluate it.",
        ),
    )


def test_impossible_declaration_affects_its_resource_only() -> None:
    """The message names the owner and the required change, and the rest of the cluster is compared."""
    cluster = make_cluster(few=[(1, 2), (2, 3)], more=[(1,)])
    placed = {"replicationFactor": 2, "placement": {"strategy": "cross-rack"}}
    fewer = replace(topic("few", labels=A, partitions=1, **placed), source=SourcePosition("m/a.yaml", 4, 18))
    result = find_in_cluster(
        build_cluster_tables(cluster, [fewer, topic("more", partitions=3, labels=B, **placed)]), None
    )
    messages = {str(id_): item.message for id_, _, item in result.found if item.path == "partitions"}
    assert messages["Topic/few"] == (
        "Topic 'few' has 2 partitions, but the manifest declares 1. Kafka cannot remove partitions. "
        "The manifest of team a (m/a.yaml:4:18) must be changed: declare at least 2 partitions, or create "
        "another topic and copy the records to that topic."
    )
    assert messages["Topic/more"].startswith("Exists, but has never been applied by this project")


def _make_policy_finding(name: str, message: str) -> Finding:
    severity = FindingSeverity.MEDIUM if "denies" in message else FindingSeverity.LOW
    return Finding(FindingKind.POLICY, f"policies.{name}", None, None, None, message, severity)


@settings(max_examples=3 * settings().max_examples)
@given(st.integers(0, 2**32), st.sampled_from([{}, A, GOLD]))
def test_cluster_pass_equals_plan_for_random_clusters(seed: int, selector: Mapping[str, str]) -> None:
    made = RandomCluster(Random(seed))
    told = find_changes(made.cluster, made.declared, state=made.state, selector=selector)
    planned = plan_cluster(made.cluster, made.declared, made.state, selector)
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
    shown = {
        id_: [item[1:] for item in items if not _is_blocked_finding(*item)] for id_, items in told.items()
    }
    assert {id_: items for id_, items in shown.items() if items} == expected
    stuck = {id_ for id_, items in told.items() if any(_is_blocked_finding(*item) for item in items)}
    assert stuck <= {d.resource for d in planned.diagnostics if d.is_blocking}


def _is_blocked_finding(finding: str, path: str | None, before: Json, after: Json) -> bool:
    """Findings for the diagnostics of a plan: a blocked resource, or a declaration of fewer partitions."""
    return (path, before, after) == (None, None, None) or (path == "partitions" and before > after)
