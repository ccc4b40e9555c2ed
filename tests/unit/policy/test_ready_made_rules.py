"""The verdicts of each ready-made rule, its messages, and the data that it reads."""

from collections.abc import Mapping
from typing import Any

import pytest

from kdeclare.policy import rules
from kdeclare.policy.interface import RequestMetadata, TopicActionsPolicy, TopicState
from kdeclare.policy.rules.base import Rule
from tests.unit.policy.doubles import Request, State, assigned, created, deleted, modified, reads_of, verdict

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: None}


def rule(name: str, **settings: Any) -> TopicActionsPolicy:
    policy: Rule[Any] = getattr(rules, name)()
    policy.configure(settings)
    return policy


def with_configs(**configs: str) -> State:
    return State(configs={key.replace("_", "."): value for key, value in configs.items()})


def sized(partitions: int, factor: int = 3) -> State:
    return State(partitions, factor)


NAME = rule("NamePattern", pattern="[a-z]+(\\.[a-z]+)+", message="Names are team.subject.")
COUNT = rule("PartitionBounds", min=3, max=48)
FACTOR = rule("ReplicationFactorBounds", min=2, max=3)
MIN_ISR = rule("MinInsyncReplicas", min=2)
REQUIRED = rule("RequiredConfigs", configs={"retention.ms": None, "min.insync.replicas": "2"})
FORBIDDEN = rule("ForbiddenConfigs", keys=["flush.ms", "unclean.leader.election.enable"])
ALLOWED = rule("AllowedConfigs", configs={"cleanup.policy": ["compact", ["compact", "delete"]]})
ONLY = rule("AllowedConfigs", keys=["retention.ms"], configs={"compression.type": ["lz4", "zstd"]})
BOUNDED = rule(
    "BoundedConfigs",
    configs={
        "retention.ms": {"min": 3600000, "max": 604800000},
        "retention.bytes": {"min": 1},
        "local.retention.ms": {"max": 1000},
        "min.cleanable.dirty.ratio": {"max": 0.5},
    },
)
KEYED = rule("NoPartitionIncrease")
GUARDED = rule("NoDelete", labels={"tier": "gold", "keep": True})
FILLED = rule("NoDeleteWithRecords")
SPREAD = rule("MinRacks", racks=2)
BUDGET = rule("PartitionBudget", max=200, budgets={"search": 10})


def on_racks(pre: State | None, post: State, changed: frozenset[str] | None = None) -> Request:
    made = created(post, changed) if pre is None else modified(pre, post, changed)
    return Request(**{**vars(made), "racks": RACKS})


def at_least_in_sync(value: str, before: list[int], after: list[int]) -> tuple[State, State]:
    configs = {"min.insync.replicas": value}
    return assigned(before, configs=configs), assigned(after, configs=configs)


def of_team(team: str | None, total: int, request: Request) -> Request:
    labels = {} if team is None else {"team": team}
    return Request(**{**vars(request), "labels": labels, "sums": {frozenset({("team", team or "")}): total}})


FINE: list[tuple[TopicActionsPolicy, Request]] = [
    (NAME, created(State(), topic="shop.orders")),
    (NAME, modified(sized(3), sized(4), topic="Bad")),
    (NAME, deleted(State(), topic="Bad")),
    (COUNT, created(sized(3))),
    (COUNT, created(sized(48))),
    (COUNT, modified(sized(3), sized(48))),
    (COUNT, modified(sized(100), State(100, configs={"retention.ms": "5"}))),
    (COUNT, deleted(sized(100))),
    (FACTOR, created(sized(1, 2))),
    (FACTOR, created(assigned([1, 2], [2, 3, 1]))),
    (FACTOR, modified(assigned([1]), assigned([1, 2]))),
    (FACTOR, modified(assigned([1]), assigned([2]))),
    (FACTOR, modified(assigned([1]), assigned([1], [2]))),
    (FACTOR, deleted(sized(1, 1))),
    (MIN_ISR, created(State(replication_factor=1))),
    (MIN_ISR, created(with_configs(min_insync_replicas="2"))),
    (MIN_ISR, modified(assigned([1], [2]), assigned([1], [3]))),
    (MIN_ISR, modified(*at_least_in_sync("1", [1], [2]))),
    (MIN_ISR, modified(with_configs(min_insync_replicas="3"), with_configs())),
    (REQUIRED, created(with_configs(retention_ms="1", min_insync_replicas="2"))),
    (REQUIRED, modified(with_configs(), with_configs(flush_ms="1"))),
    (REQUIRED, modified(with_configs(), with_configs(retention_ms="1"))),
    (FORBIDDEN, created(with_configs(retention_ms="1"))),
    (FORBIDDEN, modified(with_configs(flush_ms="1"), with_configs())),
    (FORBIDDEN, modified(with_configs(flush_ms="1"), with_configs(flush_ms="1", retention_ms="1"))),
    (ALLOWED, created(with_configs(retention_ms="1"))),
    (ALLOWED, created(with_configs(cleanup_policy="delete,compact"))),
    (ONLY, created(with_configs(retention_ms="1", compression_type="zstd"))),
    (ONLY, modified(with_configs(flush_ms="1"), with_configs(flush_ms="1", retention_ms="1"))),
    (BOUNDED, created(with_configs())),
    (BOUNDED, created(with_configs(retention_ms="3600000"))),
    (BOUNDED, created(with_configs(retention_ms="604800000"))),
    (BOUNDED, created(with_configs(retention_bytes="-1"))),
    (BOUNDED, created(with_configs(local_retention_ms="-2"))),
    (BOUNDED, created(with_configs(min_cleanable_dirty_ratio="0.50"))),
    (BOUNDED, modified(with_configs(retention_ms="1"), with_configs(retention_ms="1", flush_ms="1"))),
    (KEYED, modified(sized(3), sized(4))),
    (KEYED, modified(sized(3), sized(4), labels={"keyed": "false"})),
    (KEYED, modified(sized(3), State(configs={"flush.ms": "1"}), labels={"keyed": "true"})),
    (KEYED, created(sized(3), labels={"keyed": "true"})),
    (GUARDED, deleted(State(), labels={"tier": "gold"})),
    (GUARDED, modified(sized(3), sized(4), labels={"tier": "gold", "keep": "true"})),
    (FILLED, deleted(State())),
    (FILLED, modified(sized(3), sized(4), record_count=9)),
    (SPREAD, on_racks(None, assigned([1, 2], [1, 4, 3]))),
    (SPREAD, on_racks(None, sized(3, 3))),
    (SPREAD, Request(**{**vars(created(sized(3, 2))), "racks": {1: "a", 2: "b"}})),
    (SPREAD, on_racks(assigned([1, 4]), assigned([4, 1]))),
    (SPREAD, on_racks(assigned([1, 4], [1, 2]), assigned([1, 4], [3, 2]))),
    (SPREAD, on_racks(assigned([1, 4]), assigned([1, 4], [1, 2]))),
    (SPREAD, on_racks(assigned([1, 2, 3]), State(2, 3, {0: [1, 2, 3]}))),
    (SPREAD, deleted(assigned([1]))),
    (BUDGET, of_team("checkout", 200, created(State()))),
    (BUDGET, of_team(None, 999, created(State()))),
    (BUDGET, of_team("checkout", 999, modified(State(), with_configs(flush_ms="1")))),
    (BUDGET, of_team("checkout", 999, deleted(State()))),
]


@pytest.mark.parametrize(("policy", "request_"), FINE)
def test_allows(policy: TopicActionsPolicy, request_: RequestMetadata) -> None:
    assert verdict(policy, request_) is None


DENIED: list[tuple[TopicActionsPolicy, Request, str]] = [
    (
        NAME,
        created(State(), topic="x"),
        "The name 'x' does not match the pattern [a-z]+(\\.[a-z]+)+. Names are team.subject.",
    ),
    (COUNT, created(sized(2)), "orders would have 2 partitions; it must have at least 3."),
    (COUNT, created(sized(1_200)), "orders would have 1,200 partitions; it may have at most 48."),
    (COUNT, modified(sized(100), sized(120)), "orders would have 120 partitions; it may have at most 48."),
    (FACTOR, created(sized(1, 1)), "orders would have a replication factor of 1; it must be at least 2."),
    (
        FACTOR,
        modified(assigned([1], [2]), assigned([1, 2, 3, 4], [2, 3, 4, 1])),
        "orders would have a replication factor of 4; it may be at most 3.",
    ),
    (
        FACTOR,
        created(assigned([1], [1, 2], [1, 2, 3, 4], [2])),
        "Partitions 0 and 3 of orders would have 1 replica; they must have at least 2. "
        "Partition 2 of orders would have 4 replicas; it may have at most 3.",
    ),
    (
        MIN_ISR,
        created(with_configs(min_insync_replicas="3")),
        "orders would have min.insync.replicas=3 with a replication factor of 3; it must be lower.",
    ),
    (
        MIN_ISR,
        modified(*at_least_in_sync("2", [1, 2, 3], [1, 2])),
        "orders would have min.insync.replicas=2 with a replication factor of 2; it must be lower.",
    ),
    (
        MIN_ISR,
        modified(with_configs(), with_configs(min_insync_replicas="1")),
        "orders would have min.insync.replicas=1; it must be at least 2.",
    ),
    (
        MIN_ISR,
        created(with_configs(min_insync_replicas="two")),
        "orders would have min.insync.replicas=two; it must be a number.",
    ),
    (
        REQUIRED,
        created(with_configs(min_insync_replicas="1")),
        "orders would not set retention.ms; it must be set. "
        "orders would have min.insync.replicas=1; it must be 2.",
    ),
    (
        REQUIRED,
        modified(with_configs(retention_ms="1", min_insync_replicas="2"), with_configs(retention_ms="1")),
        "orders would not set min.insync.replicas; it must be set to 2.",
    ),
    (
        FORBIDDEN,
        created(with_configs(flush_ms="1", retention_ms="1")),
        "orders would have flush.ms=1; this config must not be set.",
    ),
    (
        FORBIDDEN,
        modified(with_configs(flush_ms="1"), with_configs(flush_ms="2")),
        "orders would have flush.ms=2; this config must not be set.",
    ),
    (
        ALLOWED,
        created(with_configs(cleanup_policy="delete")),
        "orders would have cleanup.policy=delete; it must be compact or compact,delete.",
    ),
    (
        ONLY,
        created(with_configs(compression_type="gzip", flush_ms="1")),
        "orders would have compression.type=gzip; it must be lz4 or zstd. "
        "orders would have flush.ms=1; only compression.type and retention.ms may be set.",
    ),
    (
        BOUNDED,
        created(with_configs(retention_ms="-1")),
        "orders would have retention.ms=-1 (no limit); it must be at most 604800000.",
    ),
    (
        BOUNDED,
        created(with_configs(local_retention_ms="-1", min_cleanable_dirty_ratio="0.51", retention_bytes="0")),
        "orders would have retention.bytes=0; it must be at least 1. "
        "orders would have local.retention.ms=-1 (no limit); it must be at most 1000. "
        "orders would have min.cleanable.dirty.ratio=0.51; it must be at most 0.5.",
    ),
    (
        BOUNDED,
        created(with_configs(retention_ms="nan", min_cleanable_dirty_ratio="a lot")),
        "orders would have retention.ms=nan; it must be a number. "
        "orders would have min.cleanable.dirty.ratio=a lot; it must be a number.",
    ),
    (
        KEYED,
        modified(sized(12), sized(24), labels={"keyed": "true", "team": "a"}),
        "orders has 12 partitions and would have 24; topics labeled keyed=true must keep their partition "
        "count, because keys would go to other partitions.",
    ),
    (
        GUARDED,
        deleted(State(), labels={"tier": "gold", "keep": "true", "team": "a"}),
        "orders would be deleted; topics labeled keep=true, tier=gold must not be deleted.",
    ),
    (rule("NoDelete"), deleted(State()), "orders would be deleted; topics must not be deleted."),
    (
        FILLED,
        deleted(State(), record_count=1_234),
        "orders would be deleted and has up to 1,234 records; only topics without records may be deleted.",
    ),
    (
        SPREAD,
        on_racks(None, assigned([1, 4], [1, 2], [5, 3], [5])),
        "Partition 3 of orders would have replicas on 0 racks; at least 2 are required. "
        "Partitions 0 and 2 of orders would have replicas on 1 rack; at least 2 are required.",
    ),
    (
        SPREAD,
        on_racks(assigned([1, 4], [1, 2]), assigned([1, 4], [1, 5])),
        "Partition 1 of orders would have replicas on 1 rack; at least 2 are required.",
    ),
    (
        SPREAD,
        on_racks(assigned([1, 4]), assigned([1, 4], [1, 4])),
        "Partition 1 of orders would have replicas on 1 rack; at least 2 are required.",
    ),
    (
        SPREAD,
        on_racks(None, sized(3, 1)),
        "orders would have a replication factor of 1; its replicas must be on at least 2 racks.",
    ),
    (
        SPREAD,
        Request(**{**vars(created(sized(3, 3))), "racks": {1: "a", 2: "a", 3: None}}),
        "The brokers of the cluster are on 1 rack, but the replicas of orders must be on at least 2.",
    ),
    (
        SPREAD,
        on_racks(None, sized(3, 2)),
        "orders would have a replication factor of 2, and 1 broker has no rack, so Kafka may place it on "
        "fewer "
        "than 2 racks. Set 'assignments'.",
    ),
    (
        KEYED,
        modified(sized(3), sized(4), labels_before={"keyed": "true"}),
        "orders has 3 partitions and would have 4; topics labeled keyed=true must keep their partition "
        "count, because keys would go to other partitions.",
    ),
    (
        BUDGET,
        of_team("checkout", 201, created(State())),
        "The topics labeled team=checkout would have 201 partitions with orders; their budget is 200.",
    ),
    (
        BUDGET,
        of_team("search", 11, modified(sized(3), sized(4))),
        "The topics labeled team=search would have 11 partitions with orders; their budget is 10.",
    ),
]


@pytest.mark.parametrize(("policy", "request_", "message"), DENIED)
def test_denies(policy: TopicActionsPolicy, request_: RequestMetadata, message: str) -> None:
    assert verdict(policy, request_) == message


@pytest.mark.parametrize(
    ("policy", "request_", "expected"),
    [
        (NAME, created(State()), set()),
        (COUNT, modified(sized(3), sized(4)), {"post.num_partitions"}),
        (COUNT, modified(assigned([1]), assigned([2])), set()),
        (FACTOR, modified(sized(3), sized(4)), set()),
        (FACTOR, created(sized(3)), {"post.replicas_assignments", "post.replication_factor"}),
        (FACTOR, created(assigned([1])), {"post.replicas_assignments"}),
        (MIN_ISR, created(State()), {"post.configs"}),
        (MIN_ISR, modified(with_configs(), with_configs(flush_ms="1")), set()),
        (REQUIRED, modified(with_configs(), with_configs(flush_ms="1")), set()),
        (FORBIDDEN, modified(with_configs(), with_configs(retention_ms="1")), set()),
        (BOUNDED, modified(with_configs(), with_configs(retention_ms="1")), {"post.configs"}),
        (KEYED, modified(with_configs(), with_configs(flush_ms="1")), set()),
        (KEYED, modified(sized(3), sized(4)), {"labels", "labels_before"}),
        (
            KEYED,
            modified(sized(3), sized(4), labels={"keyed": "true"}),
            {"labels", "pre.num_partitions", "post.num_partitions"},
        ),
        (GUARDED, modified(sized(3), sized(4)), set()),
        (rule("NoDelete"), deleted(State()), set()),
        (FILLED, modified(sized(3), sized(4)), set()),
        (FILLED, created(State()), set()),
        (FILLED, deleted(State()), {"record_count"}),
        (SPREAD, on_racks(with_configs(), with_configs(flush_ms="1")), set()),
        (SPREAD, on_racks(None, sized(3, 1)), {"post.replicas_assignments", "post.replication_factor"}),
        (BUDGET, modified(with_configs(), with_configs(flush_ms="1")), set()),
        (BUDGET, created(State()), {"labels"}),
        (rule("PartitionBudget", budgets={"a": 1}), of_team("b", 9, created(State())), {"labels"}),
        (BUDGET, of_team("b", 9, created(State())), {"labels", "partitions_of"}),
    ],
)
def test_reads_no_more_than_it_needs(
    policy: TopicActionsPolicy, request_: Request, expected: set[str]
) -> None:
    assert reads_of(policy, request_) == expected


def test_a_few_partitions_are_named_and_the_rest_counted() -> None:
    many: Mapping[int, list[int]] = {n: [1] for n in range(40)} | {40: [1, 2]}
    state: TopicState = State(41, 1, many)
    said = verdict(FACTOR, Request(**{**vars(created(sized(41, 1))), "post_request_state": state}))
    assert said is not None
    assert said.startswith("Partitions 0, 1, 2, 3, 4, 5, 6, 7 and 32 more of orders would have 1 replica;")
