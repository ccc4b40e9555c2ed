"""The verdicts of each ready-made rule, its messages, and the data that it reads."""

from collections.abc import Mapping
from typing import Any

import pytest

from kdeclare.policy import rules
from kdeclare.policy.interface import KnownImpact, RequestMetadata, TopicActionsPolicy, TopicState
from kdeclare.policy.rules.base import Rule
from tests.unit.policy.doubles import (
    Request,
    State,
    find_violation,
    make_assigned_state,
    make_creation,
    make_deletion,
    make_modification,
    record_reads,
)

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: None}


def make_rule(name: str, **settings: Any) -> TopicActionsPolicy:
    policy: Rule[Any] = getattr(rules, name)()
    policy.configure(settings)
    return policy


def make_state_with_configs(**configs: str) -> State:
    return State(configs={key.replace("_", "."): value for key, value in configs.items()})


def make_state(partitions: int, factor: int = 3) -> State:
    return State(partitions, factor)


NAME = make_rule("NamePattern", pattern="[a-z]+(\\.[a-z]+)+", message="Names are team.subject.")
COUNT = make_rule("PartitionBounds", min=3, max=48)
FACTOR = make_rule("ReplicationFactorBounds", min=2, max=3)
MIN_ISR = make_rule("MinInsyncReplicas", min=2)
REQUIRED = make_rule("RequiredConfigs", configs={"retention.ms": None, "min.insync.replicas": "2"})
FORBIDDEN = make_rule("ForbiddenConfigs", keys=["flush.ms", "unclean.leader.election.enable"])
ALLOWED = make_rule("AllowedConfigs", configs={"cleanup.policy": ["compact", ["compact", "delete"]]})
ONLY = make_rule("AllowedConfigs", keys=["retention.ms"], configs={"compression.type": ["lz4", "zstd"]})
BOUNDED = make_rule(
    "BoundedConfigs",
    configs={
        "retention.ms": {"min": 3600000, "max": 604800000},
        "retention.bytes": {"min": 1},
        "local.retention.ms": {"max": 1000},
        "min.cleanable.dirty.ratio": {"max": 0.5},
    },
)
KEYED = make_rule("NoPartitionIncrease")
GUARDED = make_rule("NoDelete", labels={"tier": "gold", "keep": True})
FILLED = make_rule("NoDeleteWithRecords")
COMPACTED = make_rule("NoCompactedPartitionIncrease")
READ = make_rule("NoDeleteWithReaders")
UNREAD = make_rule("NoLossOfUnreadRecords")
SPREAD = make_rule("MinRacks", racks=2)
BUDGET = make_rule("PartitionBudget", max=200, budgets={"search": 10})


def make_request_with_racks(pre: State | None, post: State, changed: frozenset[str] | None = None) -> Request:
    made = make_creation(post, changed) if pre is None else make_modification(pre, post, changed)
    return Request(**{**vars(made), "racks": RACKS})


def make_states_with_min_insync(value: str, before: list[int], after: list[int]) -> tuple[State, State]:
    configs = {"min.insync.replicas": value}
    return make_assigned_state(before, configs=configs), make_assigned_state(after, configs=configs)


def make_request_of_team(team: str | None, total: int, request: Request) -> Request:
    labels = {} if team is None else {"team": team}
    return Request(**{**vars(request), "labels": labels, "sums": {frozenset({("team", team or "")}): total}})


FINE: list[tuple[TopicActionsPolicy, Request]] = [
    (NAME, make_creation(State(), topic="shop.orders")),
    (NAME, make_modification(make_state(3), make_state(4), topic="Bad")),
    (NAME, make_deletion(State(), topic="Bad")),
    (COUNT, make_creation(make_state(3))),
    (COUNT, make_creation(make_state(48))),
    (COUNT, make_modification(make_state(3), make_state(48))),
    (COUNT, make_modification(make_state(100), State(100, configs={"retention.ms": "5"}))),
    (COUNT, make_deletion(make_state(100))),
    (FACTOR, make_creation(make_state(1, 2))),
    (FACTOR, make_creation(make_assigned_state([1, 2], [2, 3, 1]))),
    (FACTOR, make_modification(make_assigned_state([1]), make_assigned_state([1, 2]))),
    (FACTOR, make_modification(make_assigned_state([1]), make_assigned_state([2]))),
    (FACTOR, make_modification(make_assigned_state([1]), make_assigned_state([1], [2]))),
    (FACTOR, make_deletion(make_state(1, 1))),
    (MIN_ISR, make_creation(State(replication_factor=1))),
    (MIN_ISR, make_creation(make_state_with_configs(min_insync_replicas="2"))),
    (MIN_ISR, make_modification(make_assigned_state([1], [2]), make_assigned_state([1], [3]))),
    (MIN_ISR, make_modification(*make_states_with_min_insync("1", [1], [2]))),
    (MIN_ISR, make_modification(make_state_with_configs(min_insync_replicas="3"), make_state_with_configs())),
    (REQUIRED, make_creation(make_state_with_configs(retention_ms="1", min_insync_replicas="2"))),
    (REQUIRED, make_modification(make_state_with_configs(), make_state_with_configs(flush_ms="1"))),
    (REQUIRED, make_modification(make_state_with_configs(), make_state_with_configs(retention_ms="1"))),
    (FORBIDDEN, make_creation(make_state_with_configs(retention_ms="1"))),
    (FORBIDDEN, make_modification(make_state_with_configs(flush_ms="1"), make_state_with_configs())),
    (
        FORBIDDEN,
        make_modification(
            make_state_with_configs(flush_ms="1"), make_state_with_configs(flush_ms="1", retention_ms="1")
        ),
    ),
    (ALLOWED, make_creation(make_state_with_configs(retention_ms="1"))),
    (ALLOWED, make_creation(make_state_with_configs(cleanup_policy="delete,compact"))),
    (ONLY, make_creation(make_state_with_configs(retention_ms="1", compression_type="zstd"))),
    (
        ONLY,
        make_modification(
            make_state_with_configs(flush_ms="1"), make_state_with_configs(flush_ms="1", retention_ms="1")
        ),
    ),
    (BOUNDED, make_creation(make_state_with_configs())),
    (BOUNDED, make_creation(make_state_with_configs(retention_ms="3600000"))),
    (BOUNDED, make_creation(make_state_with_configs(retention_ms="604800000"))),
    (BOUNDED, make_creation(make_state_with_configs(retention_bytes="-1"))),
    (BOUNDED, make_creation(make_state_with_configs(local_retention_ms="-2"))),
    (BOUNDED, make_creation(make_state_with_configs(min_cleanable_dirty_ratio="0.50"))),
    (
        BOUNDED,
        make_modification(
            make_state_with_configs(retention_ms="1"), make_state_with_configs(retention_ms="1", flush_ms="1")
        ),
    ),
    (KEYED, make_modification(make_state(3), make_state(4))),
    (KEYED, make_modification(make_state(3), make_state(4), labels={"keyed": "false"})),
    (KEYED, make_modification(make_state(3), State(configs={"flush.ms": "1"}), labels={"keyed": "true"})),
    (KEYED, make_creation(make_state(3), labels={"keyed": "true"})),
    (GUARDED, make_deletion(State(), labels={"tier": "gold"})),
    (GUARDED, make_modification(make_state(3), make_state(4), labels={"tier": "gold", "keep": "true"})),
    (FILLED, make_deletion(State())),
    (FILLED, make_modification(make_state(3), make_state(4), record_count=9)),
    (SPREAD, make_request_with_racks(None, make_assigned_state([1, 2], [1, 4, 3]))),
    (SPREAD, make_request_with_racks(None, make_state(3, 3))),
    (SPREAD, Request(**{**vars(make_creation(make_state(3, 2))), "racks": {1: "a", 2: "b"}})),
    (SPREAD, make_request_with_racks(make_assigned_state([1, 4]), make_assigned_state([4, 1]))),
    (
        SPREAD,
        make_request_with_racks(make_assigned_state([1, 4], [1, 2]), make_assigned_state([1, 4], [3, 2])),
    ),
    (SPREAD, make_request_with_racks(make_assigned_state([1, 4]), make_assigned_state([1, 4], [1, 2]))),
    (SPREAD, make_request_with_racks(make_assigned_state([1, 2, 3]), State(2, 3, {0: [1, 2, 3]}))),
    (SPREAD, make_deletion(make_assigned_state([1]))),
    (BUDGET, make_request_of_team("checkout", 200, make_creation(State()))),
    (BUDGET, make_request_of_team(None, 999, make_creation(State()))),
    (
        BUDGET,
        make_request_of_team(
            "checkout", 999, make_modification(State(), make_state_with_configs(flush_ms="1"))
        ),
    ),
    (BUDGET, make_request_of_team("checkout", 999, make_deletion(State()))),
]


@pytest.mark.parametrize(("policy", "request_"), FINE)
def test_rule_allows_request(policy: TopicActionsPolicy, request_: RequestMetadata) -> None:
    assert find_violation(policy, request_) is None


DENIED: list[tuple[TopicActionsPolicy, Request, str]] = [
    (
        NAME,
        make_creation(State(), topic="x"),
        "The name 'x' does not match the pattern [a-z]+(\\.[a-z]+)+. Names are team.subject.",
    ),
    (COUNT, make_creation(make_state(2)), "orders would have 2 partitions; it must have at least 3."),
    (COUNT, make_creation(make_state(1_200)), "orders would have 1,200 partitions; it may have at most 48."),
    (
        COUNT,
        make_modification(make_state(100), make_state(120)),
        "orders would have 120 partitions; it may have at most 48.",
    ),
    (
        FACTOR,
        make_creation(make_state(1, 1)),
        "orders would have a replication factor of 1; it must be at least 2.",
    ),
    (
        FACTOR,
        make_modification(make_assigned_state([1], [2]), make_assigned_state([1, 2, 3, 4], [2, 3, 4, 1])),
        "orders would have a replication factor of 4; it may be at most 3.",
    ),
    (
        FACTOR,
        make_creation(make_assigned_state([1], [1, 2], [1, 2, 3, 4], [2])),
        "Partitions 0 and 3 of orders would have 1 replica; they must have at least 2. "
        "Partition 2 of orders would have 4 replicas; it may have at most 3.",
    ),
    (
        MIN_ISR,
        make_creation(make_state_with_configs(min_insync_replicas="3")),
        "orders would have min.insync.replicas=3 with a replication factor of 3; it must be lower.",
    ),
    (
        MIN_ISR,
        make_modification(*make_states_with_min_insync("2", [1, 2, 3], [1, 2])),
        "orders would have min.insync.replicas=2 with a replication factor of 2; it must be lower.",
    ),
    (
        MIN_ISR,
        make_modification(make_state_with_configs(), make_state_with_configs(min_insync_replicas="1")),
        "orders would have min.insync.replicas=1; it must be at least 2.",
    ),
    (
        MIN_ISR,
        make_creation(make_state_with_configs(min_insync_replicas="two")),
        "orders would have min.insync.replicas=two; it must be a number.",
    ),
    (
        REQUIRED,
        make_creation(make_state_with_configs(min_insync_replicas="1")),
        "orders would not set retention.ms; it must be set. "
        "orders would have min.insync.replicas=1; it must be 2.",
    ),
    (
        REQUIRED,
        make_modification(
            make_state_with_configs(retention_ms="1", min_insync_replicas="2"),
            make_state_with_configs(retention_ms="1"),
        ),
        "orders would not set min.insync.replicas; it must be set to 2.",
    ),
    (
        FORBIDDEN,
        make_creation(make_state_with_configs(flush_ms="1", retention_ms="1")),
        "orders would have flush.ms=1; this config must not be set.",
    ),
    (
        FORBIDDEN,
        make_modification(make_state_with_configs(flush_ms="1"), make_state_with_configs(flush_ms="2")),
        "orders would have flush.ms=2; this config must not be set.",
    ),
    (
        ALLOWED,
        make_creation(make_state_with_configs(cleanup_policy="delete")),
        "orders would have cleanup.policy=delete; it must be compact or compact,delete.",
    ),
    (
        ONLY,
        make_creation(make_state_with_configs(compression_type="gzip", flush_ms="1")),
        "orders would have compression.type=gzip; it must be lz4 or zstd. "
        "orders would have flush.ms=1; only compression.type and retention.ms may be set.",
    ),
    (
        BOUNDED,
        make_creation(make_state_with_configs(retention_ms="-1")),
        "orders would have retention.ms=-1 (no limit); it must be at most 604800000.",
    ),
    (
        BOUNDED,
        make_creation(
            make_state_with_configs(
                local_retention_ms="-1", min_cleanable_dirty_ratio="0.51", retention_bytes="0"
            )
        ),
        "orders would have retention.bytes=0; it must be at least 1. "
        "orders would have local.retention.ms=-1 (no limit); it must be at most 1000. "
        "orders would have min.cleanable.dirty.ratio=0.51; it must be at most 0.5.",
    ),
    (
        BOUNDED,
        make_creation(make_state_with_configs(retention_ms="nan", min_cleanable_dirty_ratio="a lot")),
        "orders would have retention.ms=nan; it must be a number. "
        "orders would have min.cleanable.dirty.ratio=a lot; it must be a number.",
    ),
    (
        MIN_ISR,
        make_creation(make_state_with_configs(min_insync_replicas="9" * 400)),
        f"orders would have min.insync.replicas={'9' * 59}…; it must be a number.",
    ),
    (
        KEYED,
        make_modification(make_state(12), make_state(24), labels={"keyed": "true", "team": "a"}),
        "orders has 12 partitions and would have 24; topics labeled keyed=true must keep their partition "
        "count, because keys would go to other partitions.",
    ),
    (
        GUARDED,
        make_deletion(State(), labels={"tier": "gold", "keep": "true", "team": "a"}),
        "orders would be deleted; topics labeled keep=true, tier=gold must not be deleted.",
    ),
    (make_rule("NoDelete"), make_deletion(State()), "orders would be deleted; topics must not be deleted."),
    (
        FILLED,
        make_deletion(State(), record_count=1_234),
        "orders would be deleted, but has up to 1,234 records; only topics without records may be deleted.",
    ),
    (
        SPREAD,
        make_request_with_racks(None, make_assigned_state([1, 4], [1, 2], [5, 3], [5])),
        "Partition 3 of orders would have replicas on 0 racks; at least 2 are required. "
        "Partitions 0 and 2 of orders would have replicas on 1 rack; at least 2 are required.",
    ),
    (
        SPREAD,
        make_request_with_racks(make_assigned_state([1, 4], [1, 2]), make_assigned_state([1, 4], [1, 5])),
        "Partition 1 of orders would have replicas on 1 rack; at least 2 are required.",
    ),
    (
        SPREAD,
        make_request_with_racks(make_assigned_state([1, 4]), make_assigned_state([1, 4], [1, 4])),
        "Partition 1 of orders would have replicas on 1 rack; at least 2 are required.",
    ),
    (
        SPREAD,
        make_request_with_racks(None, make_state(3, 1)),
        "orders would have a replication factor of 1; its replicas must be on at least 2 racks.",
    ),
    (
        SPREAD,
        Request(**{**vars(make_creation(make_state(3, 3))), "racks": {1: "a", 2: "a", 3: None}}),
        "The brokers of the cluster are on 1 rack, but the replicas of orders must be on at least 2.",
    ),
    (
        SPREAD,
        make_request_with_racks(None, make_state(3, 2)),
        "orders would have a replication factor of 2, and 1 broker has no rack, so Kafka may place its "
        "replicas on fewer than 2 racks. Set 'assignments'.",
    ),
    (
        KEYED,
        make_modification(make_state(3), make_state(4), labels_before={"keyed": "true"}),
        "orders has 3 partitions and would have 4; topics labeled keyed=true must keep their partition "
        "count, because keys would go to other partitions.",
    ),
    (
        COMPACTED,
        make_modification(State(3, configs={"cleanup.policy": "delete,compact"}), State(6)),
        "orders has 3 partitions and would have 6; compacted topics must keep their partition count, because "
        "old records of a key could stay in its former partition forever.",
    ),
    (
        READ,
        make_deletion(State(), impact=KnownImpact(active_groups=("a",))),
        "orders would be deleted, but group 'a' reads it.",
    ),
    (
        READ,
        make_deletion(State(), impact=KnownImpact(active_groups=("a", "b"), unread_groups=("b", "c", "d"))),
        "orders would be deleted, but groups 'a' and 'b' read it and groups 'b', 'c' and 'd' have not read "
        "all of its records.",
    ),
    (
        UNREAD,
        make_deletion(State(), impact=KnownImpact(unread_groups=("a", "b"))),
        "The change to orders would delete records that groups 'a' and 'b' have not read.",
    ),
    (
        BUDGET,
        make_request_of_team("checkout", 201, make_creation(State())),
        "Including orders, topics labeled team=checkout would have 201 partitions; their budget is 200.",
    ),
    (
        BUDGET,
        make_request_of_team("search", 11, make_modification(make_state(3), make_state(4))),
        "Including orders, topics labeled team=search would have 11 partitions; their budget is 10.",
    ),
]


@pytest.mark.parametrize(("policy", "request_", "message"), DENIED)
def test_rule_denies_request_with_message(
    policy: TopicActionsPolicy, request_: RequestMetadata, message: str
) -> None:
    assert find_violation(policy, request_) == message


@pytest.mark.parametrize(
    ("policy", "request_", "expected"),
    [
        (NAME, make_creation(State()), set()),
        (COUNT, make_modification(make_state(3), make_state(4)), {"post.num_partitions"}),
        (COUNT, make_modification(make_assigned_state([1]), make_assigned_state([2])), set()),
        (FACTOR, make_modification(make_state(3), make_state(4)), set()),
        (FACTOR, make_creation(make_state(3)), {"post.replicas_assignments", "post.replication_factor"}),
        (FACTOR, make_creation(make_assigned_state([1])), {"post.replicas_assignments"}),
        (MIN_ISR, make_creation(State()), {"post.configs"}),
        (MIN_ISR, make_modification(make_state_with_configs(), make_state_with_configs(flush_ms="1")), set()),
        (
            REQUIRED,
            make_modification(make_state_with_configs(), make_state_with_configs(flush_ms="1")),
            set(),
        ),
        (
            FORBIDDEN,
            make_modification(make_state_with_configs(), make_state_with_configs(retention_ms="1")),
            set(),
        ),
        (
            BOUNDED,
            make_modification(make_state_with_configs(), make_state_with_configs(retention_ms="1")),
            {"post.configs"},
        ),
        (KEYED, make_modification(make_state_with_configs(), make_state_with_configs(flush_ms="1")), set()),
        (KEYED, make_modification(make_state(3), make_state(4)), {"labels", "labels_before"}),
        (
            KEYED,
            make_modification(make_state(3), make_state(4), labels={"keyed": "true"}),
            {"labels", "pre.num_partitions", "post.num_partitions"},
        ),
        (GUARDED, make_modification(make_state(3), make_state(4)), set()),
        (make_rule("NoDelete"), make_deletion(State()), set()),
        (FILLED, make_modification(make_state(3), make_state(4)), set()),
        (FILLED, make_creation(State()), set()),
        (FILLED, make_deletion(State()), {"record_count"}),
        (COMPACTED, make_deletion(State()), set()),
        (COMPACTED, make_modification(State(), make_state_with_configs(flush_ms="1")), set()),
        (COMPACTED, make_modification(make_state(3), make_state(4)), {"pre.configs", "post.configs"}),
        (READ, make_modification(make_state(3), make_state(4)), set()),
        (READ, make_deletion(State()), {"impact"}),
        (UNREAD, make_deletion(State()), {"impact"}),
        (
            SPREAD,
            make_request_with_racks(make_state_with_configs(), make_state_with_configs(flush_ms="1")),
            set(),
        ),
        (
            SPREAD,
            make_request_with_racks(None, make_state(3, 1)),
            {"post.replicas_assignments", "post.replication_factor"},
        ),
        (BUDGET, make_modification(make_state_with_configs(), make_state_with_configs(flush_ms="1")), set()),
        (BUDGET, make_creation(State()), {"labels"}),
        (
            make_rule("PartitionBudget", budgets={"a": 1}),
            make_request_of_team("b", 9, make_creation(State())),
            {"labels"},
        ),
        (BUDGET, make_request_of_team("b", 9, make_creation(State())), {"labels", "partitions_of"}),
    ],
)
def test_rule_reads_only_required_fields(
    policy: TopicActionsPolicy, request_: Request, expected: set[str]
) -> None:
    assert record_reads(policy, request_) == expected


def test_rule_message_names_some_partitions_and_counts_rest() -> None:
    many: Mapping[int, list[int]] = {n: [1] for n in range(40)} | {40: [1, 2]}
    state: TopicState = State(41, 1, many)
    said = find_violation(
        FACTOR, Request(**{**vars(make_creation(make_state(41, 1))), "post_request_state": state})
    )
    assert said is not None
    assert said.startswith("Partitions 0, 1, 2, 3, 4, 5, 6, 7 and 32 more of orders would have 1 replica;")
