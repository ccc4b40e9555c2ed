"""Policies are evaluated for manifests without a cluster, and for the existing topics of a cluster."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.policy.cel.manifest import PolicyKind
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicActionsPolicy
from kdeclare.policy.resource_checks import check_declared, check_live, find_static_verdicts
from kdeclare.policy.subjects import PolicyContext
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to

BOTH = ["CREATE", "MODIFY"]
COMPACTED = {"cleanup.policy": {"append": ["compact"]}}


def make_topic(labels: Mapping[str, str] | None = None, **spec: Any) -> DesiredResource:
    kind = KINDS["Topic"]
    body, _ = kind.parse("t", kind.spec.model_validate(spec))
    return DesiredResource(ResourceId("Topic", "t"), body, labels or {})


def make_rule(text: str, actions: list[str] | None = None) -> ConfiguredPolicy:
    kind = PolicyKind()
    spec = kind.spec.model_validate({"rule": text, "actions": actions or BOTH})
    body, problems = kind.parse("rule", spec)
    assert not problems, problems
    return kind.configured(DesiredResource(ResourceId("Policy", "rule"), body))


class PredicatePolicy(TopicActionsPolicy):
    """A policy that denies requests for which its function is false."""

    def __init__(self, ask: Callable[[RequestMetadata], object]) -> None:
        self._ask = ask

    def validate(self, request: RequestMetadata) -> None:
        if not self._ask(request):
            raise PolicyViolation("No.")


def find_certain_outcomes(policy: ConfiguredPolicy, *declared: DesiredResource) -> list[str]:
    return [v.outcome for v in find_static_verdicts([policy], declared).certain]


def find_creation_outcomes(policy: ConfiguredPolicy, *declared: DesiredResource) -> list[str]:
    return [v.outcome for v in find_static_verdicts([policy], declared).created]


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("post.partitions <= 48", {"partitions": 100}),
        ("post.replicationFactor >= 3", {"replicationFactor": 2}),
        ("post.replicationFactor >= 3", {"assignments": {0: [1, 2]}}),
        ("post.assignments.all(p, size(post.assignments[p]) > 2)", {"assignments": {0: [1, 2]}}),
        ("post.configs['retention.ms'] != '5'", {"configs": {"retention.ms": 5}}),
        ("'retention.ms' in post.configs", {"configs": {"retention.ms": None}}),
        ("'team' in labels", {}),
        ("topic.startsWith('a')", {}),
    ],
)
def test_static_verdict_is_certain_if_independent_of_cluster(text: str, spec: dict[str, Any]) -> None:
    declared = make_topic(**spec)
    assert find_certain_outcomes(make_rule(text), declared) == [VerdictOutcome.DENY]
    assert find_creation_outcomes(make_rule(text), declared) == []


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("'retention.ms' in post.configs", {"partitions": 1}),
        ("size(post.configs) > 0", {"partitions": 1}),
        ("action != 'CREATE'", {}),
        ("pre != null", {}),
        ("size(changed) > 3", {"partitions": 1}),
        (
            "post.configs['cleanup.policy'] == 'compact'",
            {"configs": {"cleanup.policy": {"append": ["compact"]}}},
        ),
    ],
)
def test_static_verdict_depends_on_creation(text: str, spec: dict[str, Any]) -> None:
    declared = make_topic(**spec)
    assert find_certain_outcomes(make_rule(text), declared) == []
    assert find_creation_outcomes(make_rule(text), declared) == [VerdictOutcome.DENY]


@pytest.mark.parametrize(
    "text",
    ["post.partitions > 1000", "post.replicationFactor > 1000", "principal == 'User:nobody'"],
)
def test_static_check_leaves_cluster_fields_to_plan(text: str) -> None:
    found = find_static_verdicts([make_rule(text)], [make_topic()])
    assert (found.certain, found.created) == ((), ())
    assert check_declared([make_rule(text)], [make_topic()]).open == (("rule", "Topic/t"),)


def test_policy_for_creations_gets_only_creation_verdict() -> None:
    never = ConfiguredPolicy("never", PredicatePolicy(lambda _: False), actions=frozenset({Action.CREATE}))
    assert find_certain_outcomes(never, make_topic()) == []
    assert find_creation_outcomes(never, make_topic()) == [VerdictOutcome.DENY]


def test_policy_for_deletions_gives_no_static_verdict() -> None:
    never = ConfiguredPolicy("never", PredicatePolicy(lambda _: False), actions=frozenset({Action.DELETE}))
    found = find_static_verdicts([never], [make_topic()])
    assert (found.certain, found.created) == ((), ())
    assert check_declared([never], [make_topic()]).verdicts == ()


def test_unknown_field_gives_no_verdict_if_policy_catches_exception() -> None:
    def ask_and_catch(request: RequestMetadata) -> bool:
        try:
            return request.record_count >= 0 and request.principal is None
        except Exception:  # noqa: BLE001  as somebody will write it
            return False

    assert (
        find_certain_outcomes(ConfiguredPolicy("careless", PredicatePolicy(ask_and_catch)), make_topic())
        == []
    )


def make_bare_except_policy(denies: bool) -> ConfiguredPolicy:
    """A policy that catches every exception, and still returns a verdict."""

    def ask(request: RequestMetadata) -> bool:
        try:
            return bool(request.racks) and False
        except:  # noqa: E722  as somebody will write it
            return not denies

    return ConfiguredPolicy("bare", PredicatePolicy(ask))


@pytest.mark.parametrize("denies", [False, True])
def test_unknown_field_gives_no_verdict_after_bare_except(denies: bool) -> None:
    found = find_static_verdicts([make_bare_except_policy(denies)], [make_topic()])
    assert (found.certain, found.created) == ((), ())
    checked = check_declared([make_bare_except_policy(denies), make_rule("'team' in labels")], [make_topic()])
    assert checked.open == (("bare", "Topic/t"),)
    assert [v.policy for v in checked.verdicts] == ["rule"]


@pytest.mark.parametrize(
    "read",
    [
        lambda r: r.action,
        lambda r: r.labels_before,
        lambda r: r.changed,
        lambda r: r.post_request_state.num_partitions,
        lambda r: r.post_request_state.replication_factor,
        lambda r: r.post_request_state.replicas_assignments,
        lambda r: "retention.ms" in r.post_request_state.configs,
        lambda r: len(r.post_request_state.configs),
        lambda r: r.partitions_of({}),
    ],
)
def test_unknown_fields_stay_unavailable_after_first_read(read: Callable[[RequestMetadata], object]) -> None:
    known = []

    def ask(request: RequestMetadata) -> bool:
        try:
            known.append(read(request))
        except:  # noqa: E722  as somebody will write it
            return False
        return True

    assert find_certain_outcomes(ConfiguredPolicy("careless", PredicatePolicy(ask)), make_topic()) == []
    assert len(known) <= 1  # for the creation


def test_static_check_leaves_replicas_of_placement_to_plan() -> None:
    placed = make_topic(partitions=2, replicationFactor=2, placement={"strategy": "balanced-leaders"})
    text = "size(post.assignments) == 0"
    assert check_declared([make_rule(text)], [placed]).open == (("rule", "Topic/t"),)
    assert check_declared([make_rule(text)], [make_topic(partitions=2)]).open == ()
    assert find_certain_outcomes(make_rule("post.replicationFactor > 2"), placed) == [VerdictOutcome.DENY]


def test_static_check_policy_cannot_modify_request_of_next() -> None:
    def spoil(request: Any) -> bool:
        post = request.post_request_state
        for mapping in (request.labels, post.configs, post.replicas_assignments):
            mapping.clear()
        return True

    spoiler = ConfiguredPolicy("spoil", PredicatePolicy(spoil))
    rules = [make_rule("'team' in labels && size(post.configs) == 1 && size(post.assignments) == 1")]
    declared = make_topic({"team": "blue"}, assignments={0: [1]}, configs={"retention.ms": 5})
    verdicts = check_declared([spoiler, *rules, spoiler, *rules], [declared]).verdicts
    assert [v.outcome for v in verdicts] == [VerdictOutcome.ALLOW] * 4


def test_check_declared_passes_manifests_as_creations() -> None:
    declared = make_topic(partitions=1, configs={**COMPACTED, "retention.ms": None})
    seen = []

    def record_request(request: RequestMetadata) -> bool:
        post = request.post_request_state
        assert post is not None
        seen.append(
            (request.action, request.pre_request_state, dict(post.configs), post.replicas_assignments)
        )
        return True

    checked = check_declared([ConfiguredPolicy("look", PredicatePolicy(record_request))], [declared])
    assert [v.outcome for v in checked.verdicts] == [VerdictOutcome.ALLOW]
    assert seen == [(Action.CREATE, None, {"cleanup.policy": "delete,compact"}, {})]


@pytest.fixture
def cluster() -> MemoryCluster:
    from tests.beds import MemoryBed

    bed = MemoryBed(MemoryCluster())
    bed.create({0: (1, 2), 1: (2, 3)}, name="a", configs={"retention.ms": "5"})
    bed.create({0: (1,)}, name="b")
    return bed.memory


def check_cluster(cluster: MemoryCluster, *policies: ConfiguredPolicy) -> dict[str, str]:
    names = sorted(cluster.topics())
    told: list[int] = []
    topics = [ResourceId("Topic", name) for name in names]
    labels = {topics[0]: {"team": "blue"}}
    context = PolicyContext(connections_to(cluster), labels=labels)
    found = check_live(policies, topics, context, told.append)
    assert told == [1, 2]
    return {v.resource: v.outcome for v in found.verdicts}


@pytest.mark.parametrize(
    ("text", "actions", "expected"),
    [
        ("post.replicationFactor >= 2", BOTH, {"Topic/a": "allow", "Topic/b": "deny"}),
        ("post.replicationFactor >= 2", ["MODIFY"], {"Topic/a": "allow", "Topic/b": "deny"}),
        ("'retention.ms' in post.configs", BOTH, {"Topic/a": "allow", "Topic/b": "deny"}),
        ("'team' in labels", BOTH, {"Topic/a": "allow", "Topic/b": "deny"}),
        ("pre.partitions == post.partitions", ["MODIFY"], {"Topic/a": "allow", "Topic/b": "allow"}),
        ("false", ["DELETE"], {}),
    ],
)
def test_check_live_evaluates_existing_topics(
    cluster: MemoryCluster, text: str, actions: list[str], expected: dict[str, str]
) -> None:
    assert check_cluster(cluster, make_rule(text, actions)) == expected


def test_check_live_reads_record_counts_in_one_request(cluster: MemoryCluster) -> None:
    before = len(cluster.calls)
    empty = ConfiguredPolicy(
        "empty", PredicatePolicy(lambda r: r.record_count == 0), actions=frozenset({Action.MODIFY})
    )
    assert check_cluster(cluster, empty) == {"Topic/a": "allow", "Topic/b": "allow"}
    asked = [call.items for call in cluster.calls[before:] if call.method == "record_counts"]
    assert asked == [("a", "b")]


def test_check_live_policy_cannot_modify_request_of_next(cluster: MemoryCluster) -> None:
    def spoil(request: Any) -> bool:
        post = request.post_request_state
        for mapping in (request.labels, request.racks, post.configs, post.replicas_assignments):
            mapping.clear()
        return True

    def is_unmodified(request: Any) -> bool:
        post = request.post_request_state
        return request.topic == "b" or all(
            [request.labels, request.racks, post.configs, post.replicas_assignments]
        )

    found = check_cluster(
        cluster,
        ConfiguredPolicy("spoil", PredicatePolicy(spoil)),
        ConfiguredPolicy("whole", PredicatePolicy(is_unmodified)),
    )
    assert found == {"Topic/a": "allow", "Topic/b": "allow"}


def test_check_live_passes_on_cluster_fault(cluster: MemoryCluster) -> None:
    names = sorted(cluster.topics())
    cluster.faults.fail(Fault("NETWORK_EXCEPTION", "gone", FaultKind.UNKNOWN), method="configs")
    topics = [ResourceId("Topic", name) for name in names]
    with pytest.raises(Fault, match="gone"):
        check_live(
            [make_rule("'retention.ms' in post.configs")],
            topics,
            PolicyContext(connections_to(cluster)),
            lambda done: None,
        )
