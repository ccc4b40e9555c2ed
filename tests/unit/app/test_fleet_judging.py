"""Policies judge the contents of a snapshot; missing data is reported, not invented."""

from collections.abc import Mapping, Sequence

import pytest

from kdeclare.app.fleet.audit_policies import evaluate_objects
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.resources.ids import ResourceId
from kdeclare.fleet.cluster_pass import ClusterEvaluation
from kdeclare.fleet.live_state import decode_cluster
from kdeclare.fleet.tables.row_builder import read_live_rows
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicActionsPolicy
from kdeclare.policy.resource_checks import CheckResult, check_live
from kdeclare.policy.subjects import PolicyContext
from kdeclare.providers.kafka.consumer_group.group import GroupMember
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.unit.fleet.wholes import NOW

TOPICS = [ResourceId("Topic", name) for name in ("clicks", "orders")]
LABELS = {ResourceId("Topic", name): {"team": "a"} for name in ("orders", "clicks", "other")}
MODIFIES = frozenset({Action.MODIFY})


class PartitionLimit(TopicActionsPolicy):
    """Allow at most two partitions."""

    def validate(self, request: RequestMetadata) -> None:
        state = request.post_request_state
        if state is not None and state.num_partitions > 2:
            raise PolicyViolation("too tall")


class LabelBudget(TopicActionsPolicy):
    """Allow four partitions with the label."""

    def validate(self, request: RequestMetadata) -> None:
        count = request.partitions_of({"team": "a"})
        if count > 4:
            raise PolicyViolation(f"{count} in all")


class DenyRecords(TopicActionsPolicy):
    """Deny topics with records."""

    def validate(self, request: RequestMetadata) -> None:
        if request.record_count:
            raise PolicyViolation("not empty")


class CatchAllDenyRecords(TopicActionsPolicy):
    """Deny topics with records, whatever exception is raised."""

    def validate(self, request: RequestMetadata) -> None:
        try:
            assert request.record_count == 0
        except Exception:  # noqa: BLE001
            raise PolicyViolation("how should I know") from None


class OnlyPrincipal(TopicActionsPolicy):
    """Allow a single principal."""

    def validate(self, request: RequestMetadata) -> None:
        if request.principal != "User:ci":
            raise PolicyViolation("not by you")


class ReadImpact(TopicActionsPolicy):
    """Deny topics with consumers. The fact about deleted records needs no cluster."""

    def __init__(self, *, reads_consumers: bool = True) -> None:
        self._reads_consumers = reads_consumers

    def validate(self, request: RequestMetadata) -> None:
        assert request.impact.deleted_records == request.impact.unread_records == 0
        if self._reads_consumers and request.impact.active_consumers:
            raise PolicyViolation("in use")


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster(cluster_id="id-1")
    for name, partitions in {"orders": 3, "clicks": 1, "other": 2}.items():
        made.create_topics([NewTopic(name, partitions, 1, None, {})])
    made.principal = "User:ci"
    return made


@pytest.fixture
def live_state(cluster: MemoryCluster) -> LiveState:
    itself, *rows = read_live_rows(connections_to(cluster), "eu-1", {}, NOW)
    objects = [(LiveKey(row["kind"], row["name"]), row["body"]) for row in rows]
    return decode_cluster(itself["body"], objects)


def configure_policies(*policies: TopicActionsPolicy, **more: object) -> tuple[ConfiguredPolicy, ...]:
    made: Mapping[str, object] = {"outcome": VerdictOutcome.DENY, **more}
    return tuple(ConfiguredPolicy(type(p).__name__, p, **made) for p in policies)  # type: ignore[arg-type]


def list_objections(said: ClusterEvaluation | CheckResult) -> list[tuple[str, str, str]]:
    found: Sequence[tuple[str, str, str]] = [
        (v.policy, v.resource, v.message) for v in said.verdicts if v.outcome is not VerdictOutcome.ALLOW
    ]
    return list(found)


def test_evaluate_objects_agrees_with_live_check(cluster: MemoryCluster, live_state: LiveState) -> None:
    policies = configure_policies(PartitionLimit(), LabelBudget())
    said = evaluate_objects(policies, live_state, TOPICS, LABELS)
    context = PolicyContext(connections_to(cluster), labels=LABELS)
    checked = check_live(policies, TOPICS, context, lambda done: None)
    assert list(said.verdicts) == list(checked.verdicts)
    assert list_objections(said) == [
        ("LabelBudget", "Topic/clicks", "6 in all"),
        ("PartitionLimit", "Topic/orders", "too tall"),
        ("LabelBudget", "Topic/orders", "6 in all"),
    ], "what is not judged counts"
    assert list(said.open) == []


@pytest.mark.parametrize("curious", [DenyRecords(), CatchAllDenyRecords(), OnlyPrincipal(), ReadImpact()])
def test_evaluate_objects_skips_policy_that_needs_missing_data(
    live_state: LiveState, curious: TopicActionsPolicy
) -> None:
    said = evaluate_objects(
        (*configure_policies(curious, actions=MODIFIES), *configure_policies(PartitionLimit())),
        live_state,
        TOPICS,
        LABELS,
    )
    assert list(said.open) == [type(curious).__name__]
    assert list_objections(said) == [("PartitionLimit", "Topic/orders", "too tall")]


def test_evaluate_objects_assumes_no_records_for_creation(live_state: LiveState) -> None:
    assert evaluate_objects(configure_policies(DenyRecords()), live_state, TOPICS, LABELS).open == []


def test_evaluate_objects_knows_that_nothing_is_deleted(live_state: LiveState) -> None:
    policies = configure_policies(ReadImpact(reads_consumers=False), actions=MODIFIES)
    assert evaluate_objects(policies, live_state, TOPICS, LABELS).open == []


def test_live_check_reads_impact(cluster: MemoryCluster) -> None:
    policies = configure_policies(ReadImpact(), actions=MODIFIES)
    context = PolicyContext(connections_to(cluster), labels=LABELS)
    assert list_objections(check_live(policies, TOPICS, context, lambda done: None)) == []
    cluster.set_members("g", GroupMember("m", "c", "h", partitions=(TopicPartition("orders", 0),)))
    context = PolicyContext(connections_to(cluster), labels=LABELS)
    checked = check_live(policies, TOPICS, context, lambda done: None)
    assert list_objections(checked) == [("ReadImpact", "Topic/orders", "in use")]


def test_evaluate_objects_without_policies_has_no_verdicts(live_state: LiveState) -> None:
    assert list_objections(evaluate_objects((), live_state, TOPICS, LABELS)) == []
