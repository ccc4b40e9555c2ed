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


def topic(labels: Mapping[str, str] | None = None, **spec: Any) -> DesiredResource:
    kind = KINDS["Topic"]
    body, _ = kind.parse("t", kind.spec.model_validate(spec))
    return DesiredResource(ResourceId("Topic", "t"), body, labels or {})


def rule(text: str, actions: list[str] | None = None) -> ConfiguredPolicy:
    kind = PolicyKind()
    spec = kind.spec.model_validate({"rule": text, "actions": actions or BOTH})
    body, problems = kind.parse("rule", spec)
    assert not problems, problems
    return kind.configured(DesiredResource(ResourceId("Policy", "rule"), body))


class Asks(TopicActionsPolicy):
    """A policy that denies requests for which its function is false."""

    def __init__(self, ask: Callable[[RequestMetadata], object]) -> None:
        self._ask = ask

    def validate(self, request: RequestMetadata) -> None:
        if not self._ask(request):
            raise PolicyViolation("No.")


def certain(policy: ConfiguredPolicy, *declared: DesiredResource) -> list[str]:
    return [v.outcome for v in find_static_verdicts([policy], declared).certain]


def if_created(policy: ConfiguredPolicy, *declared: DesiredResource) -> list[str]:
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
def test_what_holds_whatever_the_cluster_has_is_said_for_certain(text: str, spec: dict[str, Any]) -> None:
    declared = topic(**spec)
    assert certain(rule(text), declared) == [VerdictOutcome.DENY]
    assert if_created(rule(text), declared) == []


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
def test_what_depends_on_what_is_there_is_said_of_a_creation_only(text: str, spec: dict[str, Any]) -> None:
    declared = topic(**spec)
    assert certain(rule(text), declared) == []
    assert if_created(rule(text), declared) == [VerdictOutcome.DENY]


@pytest.mark.parametrize(
    "text",
    ["post.partitions > 1000", "post.replicationFactor > 1000", "principal == 'User:nobody'"],
)
def test_what_only_a_cluster_knows_is_left_to_the_plan(text: str) -> None:
    found = find_static_verdicts([rule(text)], [topic()])
    assert (found.certain, found.created) == ((), ())
    assert check_declared([rule(text)], [topic()]).open == (("rule", "Topic/t"),)


def test_a_policy_about_creations_only_is_asked_about_a_creation() -> None:
    never = ConfiguredPolicy("never", Asks(lambda _: False), actions=frozenset({Action.CREATE}))
    assert certain(never, topic()) == []
    assert if_created(never, topic()) == [VerdictOutcome.DENY]


def test_a_policy_about_deletions_has_nothing_to_say_of_manifests() -> None:
    never = ConfiguredPolicy("never", Asks(lambda _: False), actions=frozenset({Action.DELETE}))
    found = find_static_verdicts([never], [topic()])
    assert (found.certain, found.created) == ((), ())
    assert check_declared([never], [topic()]).verdicts == ()


def test_even_a_policy_that_catches_everything_does_not_hide_what_is_not_known() -> None:
    def careless(request: RequestMetadata) -> bool:
        try:
            return request.record_count >= 0 and request.principal is None
        except Exception:  # noqa: BLE001  as somebody will write it
            return False

    assert certain(ConfiguredPolicy("careless", Asks(careless)), topic()) == []


def bare(denies: bool) -> ConfiguredPolicy:
    """A policy that catches every exception, and still returns a verdict."""

    def ask(request: RequestMetadata) -> bool:
        try:
            return bool(request.racks) and False
        except:  # noqa: E722  as somebody will write it
            return not denies

    return ConfiguredPolicy("bare", Asks(ask))


@pytest.mark.parametrize("denies", [False, True])
def test_not_even_a_policy_that_catches_what_nobody_should(denies: bool) -> None:
    found = find_static_verdicts([bare(denies)], [topic()])
    assert (found.certain, found.created) == ((), ())
    checked = check_declared([bare(denies), rule("'team' in labels")], [topic()])
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
def test_whatever_is_not_known_is_withheld_for_good(read: Callable[[RequestMetadata], object]) -> None:
    known = []

    def ask(request: RequestMetadata) -> bool:
        try:
            known.append(read(request))
        except:  # noqa: E722  as somebody will write it
            return False
        return True

    assert certain(ConfiguredPolicy("careless", Asks(ask)), topic()) == []
    assert len(known) <= 1  # for the creation


def test_of_a_placement_only_the_cluster_tells_the_replicas() -> None:
    placed = topic(partitions=2, replicationFactor=2, placement={"strategy": "balanced-leaders"})
    text = "size(post.assignments) == 0"
    assert check_declared([rule(text)], [placed]).open == (("rule", "Topic/t"),)
    assert check_declared([rule(text)], [topic(partitions=2)]).open == ()
    assert certain(rule("post.replicationFactor > 2"), placed) == [VerdictOutcome.DENY]


def test_a_policy_cannot_change_what_the_next_one_is_shown() -> None:
    def spoil(request: Any) -> bool:
        post = request.post_request_state
        for mapping in (request.labels, post.configs, post.replicas_assignments):
            mapping.clear()
        return True

    spoiler = ConfiguredPolicy("spoil", Asks(spoil))
    rules = [rule("'team' in labels && size(post.configs) == 1 && size(post.assignments) == 1")]
    declared = topic({"team": "blue"}, assignments={0: [1]}, configs={"retention.ms": 5})
    verdicts = check_declared([spoiler, *rules, spoiler, *rules], [declared]).verdicts
    assert [v.outcome for v in verdicts] == [VerdictOutcome.ALLOW] * 4


def test_manifests_are_checked_as_creations() -> None:
    declared = topic(partitions=1, configs={**COMPACTED, "retention.ms": None})
    seen = []

    def look(request: RequestMetadata) -> bool:
        post = request.post_request_state
        assert post is not None
        seen.append(
            (request.action, request.pre_request_state, dict(post.configs), post.replicas_assignments)
        )
        return True

    checked = check_declared([ConfiguredPolicy("look", Asks(look))], [declared])
    assert [v.outcome for v in checked.verdicts] == [VerdictOutcome.ALLOW]
    assert seen == [(Action.CREATE, None, {"cleanup.policy": "delete,compact"}, {})]


@pytest.fixture
def cluster() -> MemoryCluster:
    from tests.beds import MemoryBed

    bed = MemoryBed(MemoryCluster())
    bed.create({0: (1, 2), 1: (2, 3)}, name="a", configs={"retention.ms": "5"})
    bed.create({0: (1,)}, name="b")
    return bed.memory


def live(cluster: MemoryCluster, *policies: ConfiguredPolicy) -> dict[str, str]:
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
def test_a_cluster_is_judged_as_it_is(
    cluster: MemoryCluster, text: str, actions: list[str], expected: dict[str, str]
) -> None:
    assert live(cluster, rule(text, actions)) == expected


def test_the_records_of_all_topics_are_read_in_one_request(cluster: MemoryCluster) -> None:
    before = len(cluster.calls)
    empty = ConfiguredPolicy("empty", Asks(lambda r: r.record_count == 0), actions=frozenset({Action.MODIFY}))
    assert live(cluster, empty) == {"Topic/a": "allow", "Topic/b": "allow"}
    asked = [call.items for call in cluster.calls[before:] if call.method == "record_counts"]
    assert asked == [("a", "b")]


def test_a_policy_cannot_change_what_the_next_one_sees_of_a_cluster(cluster: MemoryCluster) -> None:
    def spoil(request: Any) -> bool:
        post = request.post_request_state
        for mapping in (request.labels, request.racks, post.configs, post.replicas_assignments):
            mapping.clear()
        return True

    def whole(request: Any) -> bool:
        post = request.post_request_state
        return request.topic == "b" or all(
            [request.labels, request.racks, post.configs, post.replicas_assignments]
        )

    found = live(cluster, ConfiguredPolicy("spoil", Asks(spoil)), ConfiguredPolicy("whole", Asks(whole)))
    assert found == {"Topic/a": "allow", "Topic/b": "allow"}


def test_a_cluster_that_does_not_answer_is_no_verdict(cluster: MemoryCluster) -> None:
    names = sorted(cluster.topics())
    cluster.faults.fail(Fault("NETWORK_EXCEPTION", "gone", FaultKind.UNKNOWN), method="configs")
    topics = [ResourceId("Topic", name) for name in names]
    with pytest.raises(Fault, match="gone"):
        check_live(
            [rule("'retention.ms' in post.configs")],
            topics,
            PolicyContext(connections_to(cluster)),
            lambda done: None,
        )
