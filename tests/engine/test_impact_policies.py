"""Policies about the impact of changes: the facts, what is read for them, and what happens without them."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.plan import Plan, VerdictOutcome
from kdeclare.core.resources.changes import Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.planfile import parse_plan_file, render_plan_file
from kdeclare.engine.planning.request import DeletionLimit, PlanScope
from kdeclare.policy.cel.manifest import PolicyKind
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.interface import Action, RequestMetadata, TopicActionsPolicy, TopicImpact
from kdeclare.policy.rules import NoDeleteWithReaders, NoLossOfUnreadRecords
from kdeclare.providers.kafka.consumer_group.group import (
    CommittedOffset,
    DescribedGroup,
    GroupMember,
    GroupType,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.impact import impact_reader
from kdeclare.providers.kafka.impact.group_members import GROUP_OFFSETS_TOPIC
from kdeclare.providers.kafka.request_values import ActiveProducer, NewTopic
from kdeclare.providers.kafka.testing.groups import MemoryGroups
from tests.engine.test_policies import make_policy
from tests.engine.world import World, desired, topic

HOUR = 3_600_000
RECORD_BYTES = 1000
"""The size of each record in the in-memory cluster."""
FIRST = TopicPartition("orders", 0)
SHORT = {"retention.ms": str(24 * HOUR), "segment.ms": str(HOUR)}
DELETION = PlanScope(allow_deletes=True, allow_empty=True)
FACTS = (
    "records",
    "bytes",
    "deleted_records",
    "deleted_bytes",
    "unread_records",
    "unread_groups",
    "active_consumers",
    "active_groups",
    "active_producers",
    "last_write_ms",
)
GROUP_REQUESTS = {"list_groups", "fetch_offsets", "cluster_rights"}
IMPACT_REQUESTS = {
    *GROUP_REQUESTS,
    "describe_groups",
    "list_offsets",
    "log_dirs",
    "last_writes",
    "producers",
}
"""The requests that no plan sends without impact."""


def fill_topic(world: World, name: str) -> None:
    """Write a record per hour for 100 hours."""
    world.cluster.produce(name, 100)
    now_ms = int(time.time() * 1000)
    times = [now_ms - (100 - number) * HOUR + 60_000 for number in range(100)]
    world.cluster.set_log(TopicPartition(name, 0), times=times)


def commit(world: World, group: str, offset: int, where: TopicPartition = FIRST) -> None:
    """Commit the offset that a group reads next."""
    world.cluster.groups.alter_offsets({group: {where: CommittedOffset(offset)}})


@pytest.fixture
def world() -> World:
    """A topic with one partition and a record per hour for 100 hours, and groups at different positions."""
    world = World()
    world.apply(declare_orders())
    fill_topic(world, "orders")
    for group, offset in (("billing", 40), ("archive", 100)):
        world.cluster.add_group(group)
        commit(world, group, offset)
    return world


def declare_orders(**configs: str) -> DesiredResource:
    """Declare the topic with these configs."""
    return topic("orders", partitions=1, replicationFactor=3, configs={"segment.ms": str(HOUR), **configs})


def read_facts(world: World, scope: PlanScope, *declared: DesiredResource) -> dict[str, object]:
    """Return all facts about the only change of a plan."""
    facts: dict[str, object] = {}

    def record(request: RequestMetadata) -> None:
        facts.update({name: getattr(request.impact, name) for name in FACTS})

    world.policies = (make_policy(record),)
    plan = world.plan(*declared, scope=scope)
    assert [verdict.message for verdict in plan.verdicts] == [""]
    return facts


def make_reading_policy(*facts: str) -> ConfiguredPolicy:
    """Return a policy that reads these facts, and allows everything."""

    def read(request: RequestMetadata) -> None:
        for name in facts:
            getattr(request.impact, name)

    return make_policy(read)


def list_messages(plan: Plan) -> list[str]:
    """Return the messages of all verdicts, without those that allow the change."""
    return [verdict.message for verdict in plan.verdicts if verdict.outcome is not VerdictOutcome.ALLOW]


def count_requests(world: World, plan: Callable[[], object]) -> Mapping[str, int]:
    """Return how many requests about impact a plan sends, by method."""
    world.cluster.calls.clear()
    plan()
    return Counter(call.method for call in world.cluster.calls if call.method in IMPACT_REQUESTS)


# The facts.


def test_shorter_retention_has_upper_bounds(world: World) -> None:
    newest_ms = world.cluster.find_last_writes(["orders"])[FIRST]
    assert read_facts(world, PlanScope(), declare_orders(**SHORT)) == {
        "records": 100,
        "bytes": 100 * RECORD_BYTES,
        "deleted_records": 76,
        "deleted_bytes": 100 * RECORD_BYTES,  # the sizes of the records are not known
        "unread_records": 36,
        "unread_groups": ("billing",),
        "active_consumers": 0,
        "active_groups": (),
        "active_producers": 0,
        "last_write_ms": newest_ms,
    }


def test_deletion_has_all_facts(world: World) -> None:
    members = [GroupMember(f"m-{number}", "c", "h", partitions=(FIRST,)) for number in range(2)]
    world.cluster.set_members("archive", *members)
    now_ms = int(time.time() * 1000)
    world.cluster.set_producers(FIRST, ActiveProducer(1, now_ms), ActiveProducer(2, 0))
    facts = read_facts(world, DELETION)
    assert facts | {"last_write_ms": None} == {
        "records": 100,
        "bytes": 100 * RECORD_BYTES,
        "deleted_records": 100,
        "deleted_bytes": 100 * RECORD_BYTES,
        "unread_records": 60,
        "unread_groups": ("billing",),
        "active_consumers": 2,
        "active_groups": ("archive",),
        "active_producers": 1,
        "last_write_ms": None,
    }


def test_unread_records_are_counted_once(world: World) -> None:
    """They are records that some group has not read, not a sum over groups."""
    commit(world, "audit", 70)
    facts = read_facts(world, PlanScope(), declare_orders(**SHORT))
    assert (facts["unread_records"], facts["unread_groups"]) == (36, ("audit", "billing"))


def test_compaction_together_with_retention_can_delete_all_records(world: World) -> None:
    configs = {**SHORT, "cleanup.policy": "delete,compact"}
    facts = read_facts(world, PlanScope(), declare_orders(**configs))
    assert (facts["deleted_records"], facts["unread_records"]) == (100, 60)


def test_empty_topic_has_no_last_write(world: World) -> None:
    world.policies = ()
    world.apply(declare_orders(), topic("empty", partitions=1))
    facts = read_facts(world, DELETION, declare_orders())
    assert {name: value for name, value in facts.items() if value} == {}
    assert facts["last_write_ms"] is None


def test_new_topic_has_no_impact(world: World) -> None:
    world.policies = (make_reading_policy(*FACTS),)
    new = topic("new", partitions=1)
    assert count_requests(world, lambda: world.plan(declare_orders(), new)) == {}
    facts = read_facts(world, PlanScope(), declare_orders(), new)
    assert {name: value for name, value in facts.items() if value} == {}


def test_change_that_cannot_delete_records_has_no_loss_by_earlier_changes(world: World) -> None:
    replicas = world.cluster.topics()["orders"].partitions[0].replicas
    partition = {"topic": "orders", "partition": 0, "replicas": [*replicas[1:], replicas[0]]}
    move = desired("Reassignment", "move", partitions=[partition])
    deleted: dict[str, int] = {}

    def record(request: RequestMetadata) -> None:
        deleted[",".join(sorted(request.changed))] = request.impact.deleted_records

    world.policies = (make_policy(record),)
    world.plan(declare_orders(**SHORT), move)
    assert deleted == {"configs.retention.ms": 76, "assignments": 0}


# What is read for the facts.


def test_policy_that_reads_no_impact_sends_no_requests(world: World) -> None:
    world.policies = (make_policy(lambda request: None),)
    assert count_requests(world, lambda: world.plan(declare_orders(**SHORT))) == {}
    assert count_requests(world, lambda: world.plan(scope=DELETION)) == {}


def test_change_without_loss_needs_no_requests(world: World) -> None:
    """The facts about deleted records are known without a request, even if groups are hidden."""
    facts = ("deleted_records", "deleted_bytes", "unread_records", "unread_groups")
    world.policies = (make_reading_policy(*facts),)
    longer = declare_orders(**{"retention.ms": str(10_000 * HOUR)})
    assert count_requests(world, lambda: world.plan(longer)) == {}
    assert count_requests(world, lambda: world.plan(declare_orders(**{"compression.type": "lz4"}))) == {}


@pytest.mark.parametrize(
    ("fact", "requests"),
    [
        ("records", {"list_offsets", "log_dirs"}),
        ("bytes", {"list_offsets", "log_dirs"}),
        ("deleted_records", {"list_offsets", "log_dirs"}),
        ("deleted_bytes", {"list_offsets", "log_dirs"}),
        ("unread_records", {"list_offsets", "log_dirs", *GROUP_REQUESTS}),
        ("unread_groups", {"list_offsets", "log_dirs", *GROUP_REQUESTS}),
        ("active_consumers", GROUP_REQUESTS),
        ("active_groups", GROUP_REQUESTS),
        ("active_producers", {"producers"}),
        ("last_write_ms", {"last_writes"}),
    ],
)
def test_only_what_a_fact_needs_is_read(world: World, fact: str, requests: set[str]) -> None:
    world.policies = (make_reading_policy(fact),)
    for declared, scope in (((declare_orders(**SHORT),), PlanScope()), ((), DELETION)):
        counts = count_requests(world, lambda: world.plan(*declared, scope=scope))  # noqa: B023
        assert counts == dict.fromkeys(requests, 1)


@pytest.mark.parametrize("declared", [(declare_orders(**SHORT),), ()], ids=["shorter retention", "deletion"])
def test_policies_and_observations_share_what_is_read(
    world: World, declared: Sequence[DesiredResource]
) -> None:
    scope = PlanScope(impact=True, allow_deletes=True, allow_empty=True)
    shown = count_requests(world, lambda: world.plan(*declared, scope=scope))
    observations = world.plan(*declared, scope=scope).observations
    facts = ["deleted_records", "bytes", "unread_records", "active_consumers"]
    facts += [] if declared else ["active_producers", "last_write_ms"]
    world.policies = (make_reading_policy(*facts),)
    assert count_requests(world, lambda: world.plan(*declared, scope=scope)) == shown
    assert world.plan(*declared, scope=scope).observations == observations


@pytest.mark.parametrize("is_deletion", [True, False])
def test_similar_changes_are_read_together(world: World, is_deletion: bool) -> None:
    names = [f"t{number}" for number in range(20)]
    world.apply(declare_orders(), *(topic(name, partitions=1) for name in names))
    changed = [] if is_deletion else [topic(name, partitions=1, configs=SHORT) for name in names]
    world.policies = (make_reading_policy(*FACTS),)
    scope = PlanScope(allow_deletes=True, max_deletes=DeletionLimit.parse("100%"))
    counts = count_requests(world, lambda: world.plan(declare_orders(), *changed, scope=scope))
    # The logs are read again after the groups, because the policy reads other facts about logs first.
    twice = {"list_offsets": 2, "log_dirs": 2}
    assert counts == dict.fromkeys(IMPACT_REQUESTS - {"describe_groups"}, 1) | twice


def test_records_that_are_written_between_reads_count_as_unread(world: World) -> None:
    """A group that follows closely must not look as if it had read everything."""
    commit(world, "billing", 95)
    unread: list[int] = []

    def read_in_between(request: RequestMetadata) -> None:
        assert request.impact.deleted_records == 100
        world.cluster.produce("orders", 5)
        commit(world, "billing", 100)
        unread.append(request.impact.unread_records)

    world.policies = (make_policy(read_in_between),)
    world.plan(scope=DELETION)
    assert unread == [5]


# Facts that are unknown.

UNKNOWN = [
    ("list_offsets", "TOPIC_AUTHORIZATION_FAILED", "deleted_records", "the Describe permission on the topic"),
    ("list_offsets", "TOPIC_AUTHORIZATION_FAILED", "unread_records", "the Describe permission on the topic"),
    ("list_groups", "GROUP_AUTHORIZATION_FAILED", "unread_records", "the Describe permission on the groups"),
    ("fetch_offsets", "GROUP_AUTHORIZATION_FAILED", "unread_groups", "the Describe permission on the groups"),
    ("fetch_offsets", "GROUP_AUTHORIZATION_FAILED", "active_consumers", "Describe permission on the groups"),
    ("producers", "TOPIC_AUTHORIZATION_FAILED", "active_producers", "the Read permission on the topic"),
    ("last_writes", "TOPIC_AUTHORIZATION_FAILED", "last_write_ms", "the Describe permission on the topic"),
    ("log_dirs", "CLUSTER_AUTHORIZATION_FAILED", "bytes", "the Describe permission on the cluster"),
    ("log_dirs", "CLUSTER_AUTHORIZATION_FAILED", "deleted_bytes", "the Describe permission on the cluster"),
]


def convert_name(fact: str) -> str:
    """Return the name of a fact in rules."""
    first, *others = fact.split("_")
    return first + "".join(word.capitalize() for word in others)


@pytest.mark.parametrize(("method", "error", "fact", "right"), UNKNOWN)
def test_missing_permission_denies_and_is_named(
    world: World, method: str, error: str, fact: str, right: str
) -> None:
    world.cluster.faults.fail(Fault(error, "Not authorized."), method=method, nth=None)
    world.policies = (make_reading_policy(fact),)
    plan = world.plan(scope=DELETION)
    (message,) = list_messages(plan)
    name = f"'impact.{convert_name(fact)}' of Topic/orders"
    assert message.startswith(f"{name} is unknown, so the policy cannot be evaluated: kdeclare lacks the ")
    assert message.endswith(f"{right}.")
    assert plan.operations == ()


def test_unknown_fact_is_a_warning_if_the_policy_warns(world: World) -> None:
    fault = Fault("TOPIC_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="producers", nth=None)
    reading = make_reading_policy("active_producers").policy
    world.policies = (ConfiguredPolicy("test", reading, VerdictOutcome.WARN),)
    plan = world.plan(scope=DELETION)
    assert [verdict.outcome for verdict in plan.verdicts] == [VerdictOutcome.WARN]
    assert len(plan.operations) == 1


def explain_unknown(world: World, fact: str, *declared: DesiredResource) -> str:
    """Return why a fact is unknown."""
    world.policies = (make_reading_policy(fact),)
    (message,) = list_messages(world.plan(*declared, scope=DELETION))
    return message.partition("so the policy cannot be evaluated: ")[2]


GROUP_FACTS = ("unread_records", "unread_groups", "active_consumers", "active_groups")


@pytest.mark.parametrize("fact", GROUP_FACTS)
def test_hidden_groups_deny(world: World, fact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(world.cluster), "find_cluster_rights", lambda _: frozenset())
    assert explain_unknown(world, fact) == (
        "without the Describe permission on the cluster, kdeclare sees only the groups that it is permitted "
        "to describe."
    )


def test_hidden_groups_do_not_matter_if_nothing_is_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(world.cluster), "find_cluster_rights", lambda _: frozenset())
    shorter = declare_orders(**{"retention.ms": str(167 * HOUR)})
    facts: list[TopicImpact] = []

    def read(request: RequestMetadata) -> None:
        assert request.impact.deleted_records == request.impact.unread_records == 0
        facts.append(request.impact)

    world.policies = (make_policy(read),)
    assert list_messages(world.plan(shorter)) == []
    assert len(facts) == 1


@pytest.mark.parametrize("fact", GROUP_FACTS)
def test_share_groups_deny(world: World, fact: str) -> None:
    world.cluster.add_group("shared", GroupType.SHARE)
    assert explain_unknown(world, fact).startswith(
        "kdeclare does not know whether the group 'shared' reads the topic"
    )


@pytest.mark.parametrize("fact", GROUP_FACTS)
def test_group_that_is_rebalancing_denies(world: World, fact: str) -> None:
    world.cluster.set_members("new", GroupMember("m-1", "c", "h"))
    assert explain_unknown(world, fact).startswith(
        "kdeclare does not know whether the group 'new' reads the topic"
    )


@pytest.mark.parametrize("fact", GROUP_FACTS)
def test_groups_of_unknown_type_deny(world: World, fact: str) -> None:
    world.cluster.add_group("next", GroupType.UNKNOWN)
    assert explain_unknown(world, fact).startswith(
        "kdeclare does not know whether the group 'next' reads the topic"
    )


@pytest.mark.parametrize("fact", GROUP_FACTS)
def test_streams_groups_with_members_deny(world: World, fact: str) -> None:
    """kdeclare does not describe these groups, although brokers would report their partitions."""
    world.cluster.add_group("app", GroupType.STREAMS)
    world.cluster.set_members("app", GroupMember("m-1", "c", "h", partitions=(FIRST,)))
    assert explain_unknown(world, fact).startswith(
        "kdeclare does not know whether the group 'app' reads the topic: kdeclare cannot determine the "
        "topics of share groups, Kafka Streams groups with members, groups of an unknown type, and groups "
        "that are rebalancing or whose members have no assigned partitions"
    )


@pytest.mark.parametrize("fact", GROUP_FACTS)
def test_group_with_a_waiting_member_denies(world: World, fact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One member has partitions of another topic, and the other member may get the topic at any time."""
    where = TopicPartition("other", 0)
    world.cluster.set_members(
        "mixed", GroupMember("m-1", "c", "h", partitions=(where,)), GroupMember("m-2", "c", "h")
    )
    describe_groups = MemoryGroups.describe_groups

    def describe(groups: MemoryGroups, ids: Sequence[str]) -> Mapping[str, DescribedGroup]:
        return {
            id_: replace(found, group=replace(found.group, state="Reconciling"))
            for id_, found in describe_groups(groups, ids).items()
        }

    monkeypatch.setattr(MemoryGroups, "describe_groups", describe)
    assert explain_unknown(world, fact).startswith(
        "kdeclare does not know whether the group 'mixed' reads the topic"
    )


@pytest.mark.parametrize("fact", GROUP_FACTS)
def test_groups_of_an_offline_partition_deny(world: World, fact: str) -> None:
    world.cluster.set_broker(4)
    world.cluster.create_topics([NewTopic(GROUP_OFFSETS_TOPIC, None, None, {0: (1,), 1: (4,)}, {})])
    world.cluster.fence(4)
    assert explain_unknown(world, fact) == (
        "groups are not visible while partitions of '__consumer_offsets' have no leader (1)."
    )


@pytest.mark.parametrize("fact", sorted(set(FACTS) - {"active_consumers", "active_groups"}))
def test_missing_partitions_in_responses_deny(
    world: World, fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker whose metadata lags responds for fewer partitions. They must not look like empty ones."""
    for method in ("list_positions", "list_producers", "find_last_writes"):
        monkeypatch.setattr(type(world.cluster), method, lambda *_, **_known: {})
    assert explain_unknown(world, fact).endswith("the brokers did not respond for every partition.")


def test_topic_without_leader_does_not_split_the_requests_of_others(world: World) -> None:
    world.cluster.set_broker(4)
    offline = topic("a-offline", assignments={0: [4]})
    others = [topic(f"t{number}", partitions=1, replicationFactor=3) for number in range(8)]
    world.apply(declare_orders(), offline, *others)
    world.cluster.fence(4)
    world.policies = (make_reading_policy("active_producers"),)
    scope = PlanScope(allow_deletes=True, allow_empty=True, max_deletes=DeletionLimit.parse("100%"))
    assert count_requests(world, lambda: world.plan(scope=scope)) == {"producers": 1}


def test_end_of_tiered_storage_can_delete_all_records(world: World) -> None:
    resource = ConfigResource(ConfigScope.TOPIC, "orders")
    world.cluster.set_overrides(resource, {"segment.ms": str(HOUR), "remote.storage.enable": "true"})
    policy = NoLossOfUnreadRecords()
    policy.configure({})
    world.policies = (make_policy(policy),)
    plan = world.plan(declare_orders(**{"remote.storage.enable": "false"}))
    assert list_messages(plan) == [
        "The change to orders would delete records that group 'billing' has not read."
    ]
    (change,) = plan.changes
    assert change.risk is Risk.DESTRUCTIVE


@pytest.mark.parametrize("fact", GROUP_FACTS)
def test_too_many_groups_deny(world: World, fact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdeclare.providers.kafka.impact.group_members.MAX_GROUPS", 1)
    assert explain_unknown(world, fact) == "the cluster has more than 1 groups."


@pytest.mark.parametrize("fact", FACTS)
def test_time_limit_denies(world: World, fact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impact_reader, "_TIME_LIMIT_S", -1.0)
    if fact in ("bytes", "deleted_bytes"):
        return  # the logs, which are also read for the size, are read before the configs
    assert "reading the cluster took too long" in explain_unknown(world, fact)


@pytest.mark.parametrize("fact", sorted(set(FACTS) - {"active_consumers", "active_groups"}))
def test_partition_without_leader_denies(world: World, fact: str) -> None:
    for broker in (1, 2, 3):
        world.cluster.fence(broker)
    assert explain_unknown(world, fact) == "partition 0 has no leader."


@pytest.mark.parametrize("declared", [(declare_orders(**SHORT),), ()], ids=["shorter retention", "deletion"])
@pytest.mark.parametrize("fact", ["bytes", "deleted_bytes"])
def test_size_with_tiered_storage_is_unknown(
    world: World, fact: str, declared: Sequence[DesiredResource]
) -> None:
    resource = ConfigResource(ConfigScope.TOPIC, "orders")
    world.cluster.set_overrides(resource, {"segment.ms": str(HOUR), "remote.storage.enable": "true"})
    assert explain_unknown(world, fact, *declared) == (
        "the topic has tiered storage, and brokers report only the size of the local log."
    )


def test_size_limit_with_tiered_storage_can_delete_all_records(world: World) -> None:
    """The size of the local part of the log must not look like the size of the topic."""
    resource = ConfigResource(ConfigScope.TOPIC, "orders")
    world.cluster.set_overrides(resource, {"segment.ms": str(HOUR), "remote.storage.enable": "true"})
    deleted: list[int] = []
    world.policies = (make_policy(lambda request: deleted.append(request.impact.deleted_records)),)
    world.plan(declare_orders(**{"retention.bytes": str(500 * RECORD_BYTES)}))
    assert deleted == [100]


def test_unreadable_default_of_brokers_denies(world: World) -> None:
    world.apply(declare_orders(**{"retention.ms": str(90 * HOUR)}))
    fault = Fault("CLUSTER_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="configs", item="BROKER/1", nth=None)
    message = explain_unknown(world, "unread_records", declare_orders())
    assert message == (
        "the brokers do not show their default of retention.ms without the DescribeConfigs permission."
    )


# Rules.


def make_rule(rule: str, *actions: Action) -> ConfiguredPolicy:
    """Return the policy of a manifest with a CEL rule."""
    kind = PolicyKind()
    spec = {"rule": rule, "message": "No.", "actions": [str(action) for action in actions or Action]}
    body, problems = kind.parse("rule", kind.spec.model_validate(spec))
    assert problems == ()
    return kind.configured(DesiredResource(ResourceId("Policy", "rule"), body))


@pytest.mark.parametrize(
    ("rule", "is_allowed"),
    [
        ("impact.unreadRecords == 0", False),
        ("impact.unreadRecords <= 36", True),
        ("impact.unreadRecords <= 35", False),
        ("impact.deletedRecords * 100 <= impact.records * 76", True),
        ("impact.deletedBytes < impact.bytes", False),
        ("impact.unreadGroups.all(group, group == 'billing')", True),
        ("size(impact.activeGroups) == impact.activeConsumers", True),
        ("impact.activeProducers == 0", True),
        ("impact.lastWriteMs == null", False),
        ("impact.lastWriteMs != null && impact.lastWriteMs > 1600000000000", True),
    ],
)
def test_rules_use_facts(world: World, rule: str, is_allowed: bool) -> None:
    world.policies = (make_rule(rule),)
    messages = list_messages(world.plan(declare_orders(**SHORT)))
    assert messages == ([] if is_allowed else ["No."])


def test_rule_names_the_reason_of_an_unknown_fact(world: World) -> None:
    fault = Fault("GROUP_AUTHORIZATION_FAILED", "Not authorized.")
    world.cluster.faults.fail(fault, method="list_groups", nth=None)
    world.policies = (make_rule("impact.unreadRecords == 0"),)
    assert list_messages(world.plan(declare_orders(**SHORT))) == [
        "'impact.unreadRecords' of Topic/orders is unknown, so the policy cannot be evaluated: kdeclare "
        "lacks the Describe permission on the groups."
    ]


@pytest.mark.parametrize(
    ("rule", "declared", "message"),
    [
        (
            NoDeleteWithReaders,
            (),
            "orders would be deleted, but group 'archive' reads it and group 'billing' has not read all of "
            "its records.",
        ),
        (
            NoLossOfUnreadRecords,
            (),
            "The change to orders would delete records that group 'billing' has not read.",
        ),
        (
            NoLossOfUnreadRecords,
            (declare_orders(**SHORT),),
            "The change to orders would delete records that group 'billing' has not read.",
        ),
        (NoDeleteWithReaders, (declare_orders(**SHORT),), None),
        (NoLossOfUnreadRecords, (declare_orders(**{"retention.ms": str(167 * HOUR)}),), None),
    ],
)
def test_ready_made_rules_name_the_groups(
    world: World,
    rule: type[TopicActionsPolicy],
    declared: Sequence[DesiredResource],
    message: str | None,
) -> None:
    world.cluster.set_members("archive", GroupMember("m-1", "c", "h", partitions=(FIRST,)))
    policy = rule()
    policy.configure({})
    world.policies = (make_policy(policy),)
    assert list_messages(world.plan(*declared, scope=DELETION)) == ([] if message is None else [message])


def test_unused_topic_may_be_deleted(world: World) -> None:
    commit(world, "billing", 100)
    policies = [NoDeleteWithReaders(), NoLossOfUnreadRecords()]
    for policy in policies:
        policy.configure({})
    world.policies = tuple(map(make_policy, policies))
    plan = world.plan(scope=DELETION)
    assert list_messages(plan) == []
    assert world.run(plan).complete


# Facts are read again before a plan is applied.


@pytest.mark.parametrize("is_saved", [True, False])
def test_apply_reads_the_facts_again(world: World, is_saved: bool) -> None:
    commit(world, "billing", 100)
    world.policies = (make_rule("impact.unreadRecords == 0"),)
    plan = world.plan(declare_orders(**SHORT), scope=PlanScope(impact=True))
    assert list_messages(plan) == []
    if is_saved:
        plan = parse_plan_file(render_plan_file(plan)[0], "x.plan").plan
    commit(world, "billing", 10)  # the group reads the records again
    result = world.run(plan)
    assert list_messages(result.plan) == ["No."]
    assert result.plan.operations == ()


def test_apply_denies_if_a_fact_has_become_unknown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(world, "billing", 100)
    world.policies = (make_rule("impact.unreadRecords == 0"),)
    plan = world.plan(declare_orders(**SHORT))
    monkeypatch.setattr(type(world.cluster), "find_cluster_rights", lambda _: frozenset())
    (message,) = list_messages(world.run(plan).plan)
    assert "without the Describe permission on the cluster" in message


def test_apply_sends_the_requests_of_the_facts(world: World) -> None:
    commit(world, "billing", 100)
    world.policies = (make_rule("impact.unreadRecords == 0"),)
    plan = world.plan(declare_orders(**SHORT), scope=PlanScope(impact=True))
    counts = count_requests(world, lambda: world.run(plan))
    assert counts == dict.fromkeys(["list_offsets", "log_dirs", *GROUP_REQUESTS], 1)
