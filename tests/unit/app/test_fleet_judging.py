"""Policies judge the contents of a snapshot; missing data is reported, not invented."""

from collections.abc import Mapping, Sequence

import pytest

from kdeclare.app.fleet.audit import evaluate_objects
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.resources.ids import ResourceId
from kdeclare.fleet.cluster_pass import ClusterEvaluation
from kdeclare.fleet.live_state import decode_cluster
from kdeclare.fleet.row_builder import read_live_rows
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicActionsPolicy
from kdeclare.policy.resource_checks import check_live
from kdeclare.policy.subjects import PolicyContext
from kdeclare.providers.kafka.port import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.unit.fleet.wholes import NOW

TOPICS = [ResourceId("Topic", name) for name in ("clicks", "orders")]
LABELS = {ResourceId("Topic", name): {"team": "a"} for name in ("orders", "clicks", "other")}
MODIFIES = frozenset({Action.MODIFY})


class Tall(TopicActionsPolicy):
    """Allow at most two partitions."""

    def validate(self, request: RequestMetadata) -> None:
        state = request.post_request_state
        if state is not None and state.num_partitions > 2:
            raise PolicyViolation("too tall")


class Budget(TopicActionsPolicy):
    """Allow four partitions with the label."""

    def validate(self, request: RequestMetadata) -> None:
        count = request.partitions_of({"team": "a"})
        if count > 4:
            raise PolicyViolation(f"{count} in all")


class Empty(TopicActionsPolicy):
    """Deny topics with records."""

    def validate(self, request: RequestMetadata) -> None:
        if request.record_count:
            raise PolicyViolation("not empty")


class Careless(TopicActionsPolicy):
    """Deny topics with records, whatever exception is raised."""

    def validate(self, request: RequestMetadata) -> None:
        try:
            assert request.record_count == 0
        except Exception:  # noqa: BLE001
            raise PolicyViolation("how should I know") from None


class Mine(TopicActionsPolicy):
    """Allow a single principal."""

    def validate(self, request: RequestMetadata) -> None:
        if request.principal != "User:ci":
            raise PolicyViolation("not by you")


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster(cluster_id="id-1")
    for name, partitions in {"orders": 3, "clicks": 1, "other": 2}.items():
        made.create_topics([NewTopic(name, partitions, 1, None, {})])
    made.principal = "User:ci"
    return made


@pytest.fixture
def live(cluster: MemoryCluster) -> LiveState:
    itself, *rows = read_live_rows(connections_to(cluster), "eu-1", {}, NOW)
    objects = [(LiveKey(row["kind"], row["name"]), row["body"]) for row in rows]
    return decode_cluster(itself["body"], objects)


def of(*policies: TopicActionsPolicy, **more: object) -> tuple[ConfiguredPolicy, ...]:
    made: Mapping[str, object] = {"outcome": VerdictOutcome.DENY, **more}
    return tuple(ConfiguredPolicy(type(p).__name__, p, **made) for p in policies)  # type: ignore[arg-type]


def objections(said: ClusterEvaluation) -> list[tuple[str, str, str]]:
    found: Sequence[tuple[str, str, str]] = [
        (v.policy, v.resource, v.message) for v in said.verdicts if v.outcome is not VerdictOutcome.ALLOW
    ]
    return list(found)


def test_it_says_what_a_check_of_the_cluster_says(cluster: MemoryCluster, live: LiveState) -> None:
    policies = of(Tall(), Budget())
    said = evaluate_objects(policies, live, TOPICS, LABELS)
    context = PolicyContext(connections_to(cluster), labels=LABELS)
    checked = check_live(policies, TOPICS, context, lambda done: None)
    assert list(said.verdicts) == list(checked.verdicts)
    assert objections(said) == [
        ("Budget", "Topic/clicks", "6 in all"),
        ("Tall", "Topic/orders", "too tall"),
        ("Budget", "Topic/orders", "6 in all"),
    ], "what is not judged counts"
    assert list(said.open) == []


@pytest.mark.parametrize("curious", [Empty(), Careless(), Mine()])
def test_what_no_snapshot_holds_is_open_and_the_others_are_told(
    live: LiveState, curious: TopicActionsPolicy
) -> None:
    said = evaluate_objects((*of(curious, actions=MODIFIES), *of(Tall())), live, TOPICS, LABELS)
    assert list(said.open) == [type(curious).__name__]
    assert objections(said) == [("Tall", "Topic/orders", "too tall")]


def test_there_are_no_records_in_what_would_be_created(live: LiveState) -> None:
    assert evaluate_objects(of(Empty()), live, TOPICS, LABELS).open == []


def test_no_policies(live: LiveState) -> None:
    assert objections(evaluate_objects((), live, TOPICS, LABELS)) == []
