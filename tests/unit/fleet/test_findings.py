"""The findings of one resource by example: each kind of finding, and cases without one."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError, SourcePosition
from kdeclare.core.parts import LiveState
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, narrow
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.core.secrets.secret_refs import Referenced, SecretRef
from kdeclare.fleet.drift import collect_findings, find_drift
from kdeclare.fleet.findings import Finding, FindingKind
from kdeclare.fleet.in_process_audit import audit_rows, proves_no_drift
from kdeclare.fleet.row_builder import Row, build_declared_cluster_row, build_declared_row, build_unread_row
from kdeclare.fleet.rows import CLUSTER
from kdeclare.providers.kafka.broker_config import CLUSTER_DEFAULT, BrokerConfigRecord
from kdeclare.providers.kafka.fleet.facts import compute_topic_facts
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import (
    Broker,
    ClusterInfo,
    ConfigEntry,
    ConfigSource,
    KafkaState,
    Move,
    Partition,
    Topic,
)
from kdeclare.providers.kafka.topic.record import TopicRecord
from tests.jsontypes import Json
from tests.unit.fleet.fleets import (
    NO_PLACEMENT,
    applied,
    broker_row,
    cluster_row,
    desired,
    origin,
    own_entry,
    topic_row,
)

INFO = ClusterInfo("id", tuple(Broker(n, "h", 9092) for n in (1, 2, 3)))
TOPIC = ConfigResource(ConfigScope.TOPIC, "t")
BROKER = ConfigResource(ConfigScope.BROKER, "1")
HOUR: dict[str, Any] = {"partitions": 1, "configs": {"retention.ms": 3600000}}
STATIC_SECRET = ConfigEntry(None, ConfigSource.STATIC, sensitive=True)
TOKEN = Referenced("hunter2", "${env.TOKEN}")
"""The value behind a reference, which must not be shown anywhere."""


def live_topic(
    configs: Mapping[str, str | None] | None = None,
    replicas: tuple[tuple[int, ...], ...] = ((1, 2),),
    *,
    name: str = "t",
    internal: bool = False,
    moves: Mapping[TopicPartition, Move] | None = None,
) -> Row:
    entries = {key: own_entry(TOPIC, key, value) for key, value in (configs or {}).items()}
    topic = Topic(name, "uuid", tuple(Partition(r) for r in replicas), internal)
    return topic_row(origin("eu"), topic, entries, moves or {})


def live_broker(name: str, entries: Mapping[str, ConfigEntry]) -> Row:
    return broker_row(origin("eu"), name, entries)


def of(
    item: DesiredResource | ResourceId, live: Row | None, owned: OwnedRecord | None = None
) -> list[Finding]:
    """Return the findings, and check that the facts agree."""
    id_ = item.id if isinstance(item, DesiredResource) else item
    row = build_declared_row("eu", item if isinstance(item, DesiredResource) else None, id_, owned)
    cluster = cluster_row(origin("eu"), INFO, "4.1")["body"]
    seen = live or {"body": None, "error": None}
    bodies = row["desired"], row["owned"], seen["body"]
    manifest = row["labels"].items(), row["source"]
    result = list(find_drift(id_.kind, id_.name, *bodies, seen["error"], cluster, *manifest))
    assert live is None or not (proves_no_drift(row, live) and result)
    return result


def short(findings: list[Finding]) -> list[tuple[str, str | None, str | None, Json, Json]]:
    """Return findings without messages, with decoded values."""
    return [
        (str(f.finding), f.path, f.op, f.before and json.loads(f.before), f.after and json.loads(f.after))
        for f in findings
    ]


def test_what_is_as_declared_is_no_finding() -> None:
    item = desired("Topic", "t", **HOUR)
    assert of(item, live_topic({"retention.ms": "3600000"}), applied(item)) == []


def test_what_is_as_declared_is_none_whatever_was_last_applied() -> None:
    item = desired("Topic", "t", **HOUR)
    before = applied(desired("Topic", "t", partitions=4, configs={"retention.ms": 1}))
    assert of(item, live_topic({"retention.ms": "3600000"}), before) == []


def test_changed_is_what_differs_from_what_was_applied_and_from_what_is_declared() -> None:
    item = desired("Topic", "t", **HOUR)
    (only,) = of(item, live_topic({"retention.ms": "5"}), applied(item))
    assert only == Finding(
        FindingKind.CHANGED,
        "configs.retention.ms",
        "SET",
        '"5"',
        '"3600000"',
        "It was changed outside kdeclare since it was last applied.",
    )


def test_only_the_fields_that_were_changed_outside_are_changed() -> None:
    configs = {"retention.ms": 1, "cleanup.policy": {"append": ["compact"]}, "flush.ms": None}
    before = desired("Topic", "t", partitions=1, replicationFactor=2, configs=configs)
    item = desired("Topic", "t", partitions=2, replicationFactor=3, configs={**configs, "retention.ms": 2})
    live = live_topic({"retention.ms": "1", "cleanup.policy": "delete", "flush.ms": "9"}, ((1,),))
    assert short(of(item, live, applied(before))) == [
        ("pending", "partitions", "change", 1, 2),
        ("changed", "replicationFactor", "change", 1, 3),
        ("changed", "configs.cleanup.policy", "APPEND", ["delete"], ["delete", "compact"]),
        ("changed", "configs.flush.ms", "DELETE", "9", None),
        ("pending", "configs.retention.ms", "SET", "1", "2"),
    ]


def test_assignments_that_somebody_moved_are_changed_one_by_one() -> None:
    item = desired("Topic", "t", assignments={0: [1, 2], 1: [2, 3]})
    live = live_topic({}, ((1, 2), (3, 1)))
    assert short(of(item, live, applied(item))) == [("changed", "assignments.1", "change", [3, 1], [2, 3])]
    assert short(of(item, live)) == [("pending", "assignments.1", "change", [3, 1], [2, 3])]


def test_pending_is_a_topic_that_was_never_created() -> None:
    after = {"partitions": 1, "configs.retention.ms": "3600000"}
    assert short(of(desired("Topic", "t", **HOUR), None)) == [("pending", None, "create", None, after)]


def test_pending_is_what_is_owned_and_declared_no_longer_within_a_topic() -> None:
    before = applied(desired("Topic", "t", configs={"retention.ms": 1, "flush.ms": 9}))
    live = live_topic({"retention.ms": "1", "flush.ms": "9"})
    assert short(of(desired("Topic", "t", configs={"retention.ms": 1}), live, before)) == [
        ("pending", "configs.flush.ms", "DELETE", "9", None)
    ]


def test_missing_is_what_is_owned_and_gone() -> None:
    item = desired("Topic", "t", **HOUR)
    after = {"partitions": 1, "configs.retention.ms": "3600000"}
    assert short(of(item, None, applied(item))) == [("missing", None, "create", None, after)]
    assert short(of(item.id, None, applied(item))) == [("missing", None, "forget", None, None)]


def test_orphaned_is_what_is_owned_and_there_and_declared_no_longer() -> None:
    item = desired("Topic", "t", **HOUR)
    assert short(of(item.id, live_topic(), applied(item))) == [("orphaned", None, "delete", None, None)]
    kept = desired("Topic", "t", **HOUR, lifecycle={"preventDestroy": True})
    (only,) = of(kept.id, live_topic(), applied(kept))
    assert (only.finding, only.op) == (FindingKind.ORPHANED, "delete")
    assert "preventDestroy was true" in only.message
    broker = desired("BrokerConfig", "1", configs={"log.cleaner.threads": 2})
    assert short(of(broker.id, live_broker("1", {}), applied(broker))) == [
        ("orphaned", None, "delete", None, None)
    ]


def test_unmanaged_is_a_topic_of_people_and_nothing_else() -> None:
    cluster = cluster_row(origin("eu"), INFO, None)["body"]

    def alone(kind: str, row: Row, cluster: str | None = cluster) -> list[Finding]:
        return list(find_drift(kind, row["name"], None, None, row["body"], row["error"], cluster))

    assert short(alone("Topic", live_topic())) == [("unmanaged", None, None, None, None)]
    assert alone("Topic", live_topic(internal=True)) == []
    assert alone("BrokerConfig", live_broker("1", {})) == []
    assert alone("Topic", live_topic(), None) == []
    assert alone("Topic", build_unread_row(origin("eu"), "Topic", "t", "timed out")) == []


def test_an_internal_topic_that_is_declared_is_compared() -> None:
    item = desired("Topic", "t", configs={"retention.ms": 1})
    assert [f.finding for f in of(item, live_topic(internal=True))] == [FindingKind.PENDING]


def test_unmanaged_is_a_key_that_is_neither_declared_nor_owned() -> None:
    item = desired("Topic", "t", **HOUR)
    live = live_topic({"retention.ms": "3600000", "cleanup.policy": "compact, delete", "flush.ms": "09"})
    assert short(of(item, live, applied(item))) == [
        ("unmanaged", "configs.cleanup.policy", None, ["compact", " delete"], None),
        ("unmanaged", "configs.flush.ms", None, "9", None),
    ]
    strict = desired("Topic", "t", **HOUR, unmanagedConfigs="remove")
    assert [f.op for f in of(strict, live, applied(strict))] == ["DELETE", "DELETE"]
    assert {f.finding for f in of(strict, live, applied(strict))} == {"changed"}, (
        "they came after it was applied"
    )
    assert {f.finding for f in of(strict, live, None)} == {"pending"}


def test_an_unmanaged_value_that_is_sensitive_is_not_shown() -> None:
    item = desired("BrokerConfig", "1", configs={})
    live = live_broker("1", {"ssl.key.password": own_entry(BROKER, "ssl.key.password", None)})
    assert short(of(item, live)) == [("unmanaged", "configs.ssl.key.password", None, "(sensitive)", None)]


@pytest.mark.parametrize(
    ("kind", "name", "live"), [("Topic", "t", live_topic()), ("BrokerConfig", "1", live_broker("1", {}))]
)
def test_a_key_that_may_not_exist_is_told_as_such(kind: str, name: str, live: Row) -> None:
    """`kdeclare plan` reads such a key from the cluster; live rows contain only keys that are set."""
    item = desired(kind, name, configs={"log.cleaner.threadzz": 2, "retention.millis": {"append": ["x"]}})
    told = "The key is in neither the catalog nor this audit's data. Run kdeclare plan to check it."
    pending = [*of(item, None)] if kind == "Topic" else [*of(item, live)]
    assert {f.message for f in pending} == {f"It is declared but not applied yet. {told}"}
    assert all(f.message.endswith(told) for f in of(item, live))
    changed, _ = of(item, live, bind_record(kind, {"configs": {"log.cleaner.threadzz": {"value": "2"}}}))
    assert changed.message == "It was changed outside kdeclare since it was last applied."


def test_a_key_that_is_set_exists() -> None:
    item = desired("Topic", "t", configs={"owner.of.plugin": 2})
    (pending,) = of(item, live_topic({"owner.of.plugin": "1"}), TopicRecord())
    assert pending.message == "It is declared but not applied yet."


@pytest.mark.parametrize("adopt", [False, True])
@pytest.mark.parametrize(
    ("kind", "name", "live"),
    [
        ("Topic", "t", live_topic({"retention.ms": "5"})),
        ("BrokerConfig", "1", live_broker("1", {"num.io.threads": own_entry(BROKER, "num.io.threads", "8")})),
    ],
)
def test_audit_says_what_would_have_to_be_adopted(kind: str, name: str, live: Row, adopt: bool) -> None:
    configs = {"retention.ms": 1} if kind == "Topic" else {"num.io.threads": 9, "log.cleaner.threads": 2}
    item = desired(kind, name, configs=configs, lifecycle={"adopt": adopt})
    told = {f.path: f.message for f in of(item, live)}
    if kind == "BrokerConfig":
        assert told.pop("configs.log.cleaner.threads") == "It is declared but not applied yet."
    (message,) = told.values()
    assert message.startswith("It exists but was never applied by this project")
    assert ("--adopt" in message) is not adopt


def test_fewer_partitions_than_there_are_block_a_topic() -> None:
    item = desired("Topic", "t", partitions=1, configs={"retention.ms": 1})
    live = live_topic({"retention.ms": "1"}, ((1, 2), (2, 3)))
    (changed,) = of(item, live, applied(item))
    assert short([changed]) == [("changed", "partitions", None, 2, 1)]
    assert changed.message == (
        "Topic 't' has 2 partitions, but the manifest declares 1. Kafka cannot remove partitions. "
        "The manifest (topics.yaml:3:1) must be changed: declare 2 or more, or create another topic and copy "
        "the records."
    )
    assert short(of(item, live)) == [("pending", "partitions", None, 2, 1)]
    both = of(item, live_topic({"retention.ms": "5"}, ((1, 2), (2, 3))))
    assert [f.path for f in both] == ["partitions", "configs.retention.ms"]
    assert both[0].message == both[1].message


@pytest.mark.parametrize(
    ("labels", "owner"),
    [
        ({"team": "checkout", "tier": "gold"}, "The manifest of team checkout (m/a.yaml:4:18)"),
        ({"tier": "gold", "app": "x"}, "The manifest labeled app=x, tier=gold (m/a.yaml:4:18)"),
        ({}, "The manifest (m/a.yaml:4:18)"),
    ],
)
def test_an_impossible_declaration_names_the_owner_and_what_has_to_change(
    labels: dict[str, str], owner: str
) -> None:
    item = replace(
        desired("Topic", "t", partitions=1), labels=labels, source=SourcePosition("m/a.yaml", 4, 18)
    )
    (fewer,) = of(item, live_topic({}, ((1, 2), (2, 3))))
    assert f"{owner} must be changed: declare 2 or more, or create another topic" in fewer.message
    (unknown,) = of(replace(item, body=desired("Topic", "t", assignments={0: [9]}).body), None)
    assert (
        "name the broker ids [9], which do not exist in the cluster. "
        f"{owner} cannot be applied as it is: use the ids of existing brokers" in unknown.message
    )


def test_a_broker_that_is_not_registered_is_pending_or_missing() -> None:
    item = desired("BrokerConfig", "9", configs={"log.cleaner.threads": 2})
    (pending,) = of(item, None)
    assert short([pending]) == [("pending", None, None, None, None)]
    assert "Broker 9 is not registered" in pending.message
    assert short(of(item, None, applied(desired("BrokerConfig", "1")))) == [
        ("missing", None, None, None, None)
    ]
    assert short(of(item.id, None, BrokerConfigRecord())) == [("missing", None, "forget", None, None)]


def test_a_move_is_no_drift_and_blocks_what_is_in_its_way() -> None:
    moves = {TopicPartition("t", 0): Move((3, 1, 2), (3,), (1,))}
    live = live_topic({}, ((3, 1, 2),), moves=moves)
    item = desired("Topic", "t", replicationFactor=2)
    target = Topic("t", "uuid", (Partition((3, 2)),))
    assert live["has"] == compute_topic_facts(target, {}, {}).has, "what it is on its way to counts"
    assert of(item, live, applied(item)) == []
    (blocked,) = of(desired("Topic", "t", replicationFactor=1), live)
    assert short([blocked]) == [("pending", "replicationFactor", "change", 2, 1)]
    assert "being reassigned right now" in blocked.message


def test_unreachable_is_a_resource_that_somebody_cares_for() -> None:
    item = desired("Topic", "t", **HOUR)
    row = build_unread_row(origin("eu"), "Topic", "t", "TOPIC_AUTHORIZATION_FAILED")
    expected = [Finding(FindingKind.UNREACHABLE, None, None, None, None, "TOPIC_AUTHORIZATION_FAILED")]
    assert of(item, row) == expected
    assert of(item.id, row, applied(item)) == expected


@pytest.mark.parametrize(
    ("name", "wish", "live", "expected"),
    [
        ("unset", {"subtract": ["delete"]}, None, [("SUBTRACT", None, [])]),
        ("unset", {"subtract": ["compact"]}, None, []),
        ("set", {"subtract": ["compact"]}, "delete", []),
        ("set", {"append": ["compact"]}, " compact,delete", []),
        ("set", ["compact", "delete"], "delete, compact", []),
        ("set", [], " ", [("SUBTRACT", [" "], [])]),
    ],
)
def test_lists_are_compared_by_element(name: str, wish: Any, live: str | None, expected: list[Any]) -> None:
    item = desired("Topic", "t", configs={"cleanup.policy": wish})
    result = of(item, live_topic({} if live is None else {"cleanup.policy": live}))
    assert [(f[2], f[3], f[4]) for f in short(result)] == expected


def test_elements_that_brokers_add_to_an_unset_list_are_kept_in_the_row() -> None:
    item = desired("Topic", "t", configs={"cleanup.policy": {"subtract": ["compact"]}})
    entries = {
        "cleanup.policy": ConfigEntry(
            "compact", ConfigSource.STATIC, own_entry(TOPIC, "cleanup.policy", "").type
        )
    }
    row = topic_row(origin("eu"), Topic("t", "uuid", (Partition((1,)),)), entries, {})
    assert short(of(item, row)) == [("pending", "configs.cleanup.policy", "SUBTRACT", None, ["delete"])]


def test_of_the_cluster_default_an_unset_list_is_not_known() -> None:
    item = desired("BrokerConfig", CLUSTER_DEFAULT, configs={"log.cleanup.policy": {"subtract": ["compact"]}})
    assert [f.op for f in of(item, live_broker(CLUSTER_DEFAULT, {}))] == ["SUBTRACT"]


def test_an_own_element_that_is_not_declared_any_more_goes() -> None:
    before = applied(desired("Topic", "t", configs={"cleanup.policy": {"append": ["compact", "delete"]}}))
    item = desired("Topic", "t", configs={"cleanup.policy": {"append": ["delete"]}})
    live = live_topic({"cleanup.policy": "compact,delete"})
    assert [f.op for f in of(item, live, before)] == ["SUBTRACT"]
    assert of(item, live) == []


class TestSecrets:
    """A row contains only the hash of a secret, and a finding does not show it."""

    key = "listener.name.internal.ssl.keystore.password"

    def test_of_a_known_key(self) -> None:
        item = desired("BrokerConfig", "1", configs={self.key: TOKEN})
        row = build_declared_row("eu", item, item.id, applied(item))
        assert "hunter2" not in str(row)
        live = live_broker("1", {self.key: own_entry(BROKER, self.key, None)})
        assert of(item, live, applied(item)) == []
        other = applied(desired("BrokerConfig", "1", configs={self.key: "other"}))
        assert short(of(item, live, other)) == [
            ("pending", f"configs.{self.key}", "SET", "(sensitive)", "(sensitive)")
        ]
        assert short(of(item, live_broker("1", {}), applied(item))) == [
            ("changed", f"configs.{self.key}", "SET", None, "(sensitive)")
        ]

    @pytest.mark.parametrize(
        ("shown", "expected"),
        [
            ("hunter2", []),
            ("else", [("pending", "configs.plugin.token", "SET", "else", "(sensitive)")]),
            (None, [("pending", "configs.plugin.token", "SET", "(sensitive)", "(sensitive)")]),
        ],
    )
    @pytest.mark.parametrize("value", [TOKEN, "hunter2", ["hunter2"]])
    def test_of_a_key_that_only_the_cluster_knows(
        self, value: Any, shown: str | None, expected: list[Any]
    ) -> None:
        item = desired("BrokerConfig", "1", configs={"plugin.token": value})
        row = build_declared_row("eu", item, item.id, None)
        assert "hunter2" not in str(row)
        assert (row["need"], row["always"]) == ([], True), "a quick hash would give it away"
        live = live_broker("1", {"plugin.token": own_entry(BROKER, "plugin.token", shown)})
        assert short(of(item, live)) == expected

    @pytest.mark.parametrize("entries", [{}, {"plugin.token": STATIC_SECRET}])
    def test_what_the_cluster_holds_secret_without_an_override(
        self, entries: Mapping[str, ConfigEntry]
    ) -> None:
        """Static values are not read, so the value of a key that is not set dynamically is unknown."""
        item = desired("BrokerConfig", "1", configs={"plugin.token": "hunter2"})
        assert short(of(item, live_broker("1", entries))) == [
            ("pending", "configs.plugin.token", "SET", None, "(sensitive)")
        ]
        assert isinstance(narrow(applied(item), BrokerConfigRecord).configs["plugin.token"], SecretRef)
        set_as_applied = {"plugin.token": own_entry(BROKER, "plugin.token", None)}
        assert of(item, live_broker("1", set_as_applied), applied(item)) == []

    def test_a_topic_has_no_such_keys(self) -> None:
        """Kafka rejects unknown keys, so a key that it accepts is not a secret one."""
        item = desired("Topic", "t", configs={"plugin.size": "5"})
        assert json.loads(build_declared_row("eu", item, item.id, None)["desired"])["configs"] == {
            "plugin.size": "5"
        }
        assert of(item, live_topic({"plugin.size": "5"})) == []

    def test_a_value_that_kafka_gave_away_is_not_kept(self) -> None:
        live = live_broker(
            "1", {"x": ConfigEntry("hunter2", ConfigSource.BROKER, sensitive=True, beneath="hunter2")}
        )
        assert "hunter2" not in str(live)


def test_the_cluster_keeps_what_it_refuses_to_delete() -> None:
    before = applied(desired("BrokerConfig", CLUSTER_DEFAULT, configs={"min.insync.replicas": 1}))
    entity = ConfigResource(ConfigScope.BROKER, "")
    live = live_broker(
        CLUSTER_DEFAULT, {"min.insync.replicas": own_entry(entity, "min.insync.replicas", "1")}
    )
    assert of(desired("BrokerConfig", CLUSTER_DEFAULT), live, before) == []


def test_a_reassignment_is_pending_where_its_whole_cluster_is_compared() -> None:
    item = desired("Reassignment", "r", partitions=[{"topic": "t", "partition": 0, "replicas": [2, 3]}])
    live = KafkaState(INFO, {"t": Topic("t", "uuid", (Partition((1, 2)),))})
    difference = KINDS["Reassignment"].diff(item.id, item, LiveState(live), None, NO_PLACEMENT)
    assert short(list(collect_findings(item.id, difference, item, None, LiveState(live)))) == [
        ("pending", "replicas.t-0", "change", [1, 2], [2, 3])
    ]
    nowhere = KafkaState(INFO)
    difference = KINDS["Reassignment"].diff(item.id, item, LiveState(nowhere), None, NO_PLACEMENT)
    (blocked,) = collect_findings(item.id, difference, item, None, LiveState(nowhere))
    assert (blocked.finding, blocked.path, blocked.op) == (FindingKind.PENDING, None, None)
    assert "Partition t-0 does not exist in the cluster" in blocked.message


def _audit(declared: list[Row], live: list[Row]) -> list[tuple[str, str, str, str]]:
    return [(i["cluster"], i["kind"], i["name"], i["finding"]) for i in audit_rows(declared, live)]


def test_an_audit_goes_through_both_tables() -> None:
    item = desired("Topic", "t", **HOUR)
    declared = [build_declared_cluster_row("eu", {}), build_declared_row("eu", item, item.id, None)]
    live = [cluster_row(origin("eu"), INFO, None), live_topic(), live_topic(name="u")]
    assert _audit(declared, live) == [("eu", "Topic", "t", "pending"), ("eu", "Topic", "u", "unmanaged")]
    assert _audit([build_declared_cluster_row("eu", {})], live[:1]) == []
    assert _audit([], []) == []


def test_of_a_cluster_that_is_not_known_nothing_else_is_found() -> None:
    item = desired("Topic", "t", **HOUR)
    unreachable = ("eu", CLUSTER, "eu", "unreachable")
    mine = [build_declared_cluster_row("eu", {}), build_declared_row("eu", item, item.id, None)]
    assert _audit(mine, [build_unread_row(origin("eu", None), CLUSTER, "eu", "timed out")]) == [unreachable]
    assert _audit(mine, []) == [unreachable]
    there = [cluster_row(origin("eu"), INFO, None), live_topic(name="u")]
    assert _audit([build_declared_cluster_row("eu", {}, "no such folder")], there) == [unreachable]
    assert _audit([], there) == []


def test_both_reasons_are_told() -> None:
    declared = [build_declared_cluster_row("eu", {}, "No such folder.")]
    live = [build_unread_row(origin("eu", None), CLUSTER, "eu", "It timed out.")]
    assert [i["message"] for i in audit_rows(declared, live)] == ["It timed out. No such folder."]


def test_a_state_of_another_cluster_is_told_and_nothing_else() -> None:
    item = desired("Topic", "t", **HOUR)
    own = build_declared_cluster_row("eu", {}, cluster_id="lab-id")
    declared = [own, build_declared_row("eu", item, item.id, TopicRecord())]
    found = list(audit_rows(declared, [cluster_row(origin("eu"), INFO, None)]))
    assert [i["message"] for i in found] == ["The state belongs to cluster lab-id, but this is cluster id."]


def test_what_needs_its_whole_cluster_is_left_out() -> None:
    placed = desired("Topic", "t", partitions=1, replicationFactor=2, placement={"strategy": "cross-rack"})
    moved = desired("Reassignment", "r", topics=["/.*/"], drain=[1])
    declared = [
        build_declared_cluster_row("eu", {}),
        *(build_declared_row("eu", i, i.id, None) for i in (placed, moved)),
    ]
    live = [cluster_row(origin("eu"), INFO, None), live_topic()]
    assert _audit(declared, live) == []
    assert not any(proves_no_drift(row, live[1]) for row in declared[2:])


@pytest.mark.parametrize("side", ["declared", "live"])
def test_a_resource_that_is_there_twice_is_an_error(side: str) -> None:
    item = desired("Topic", "t", **HOUR)
    declared, live = [build_declared_row("eu", item, item.id, None)], [live_topic()]
    rows = declared if side == "declared" else live
    rows *= 2
    with pytest.raises(KdeclareError) as problem:
        list(audit_rows(declared, live))
    (wrong,) = problem.value.diagnostics
    assert (wrong.code, f"in the {side} table" in wrong.detail) == ("duplicate-resource", True)


@pytest.mark.parametrize("retention", ["1", "5"])
def test_topic_that_was_recreated_is_a_finding_whatever_else_is_found(retention: str) -> None:
    item = desired("Topic", "t", configs={"retention.ms": 1})
    live = live_topic({"retention.ms": retention})
    before = replace(narrow(applied(item), TopicRecord), topicId="older")
    first, *more = of(item, live, before)
    assert short([first]) == [("changed", "topicId", None, "older", "uuid")]
    assert "deleted and re-created outside kdeclare" in first.message
    assert [f.path for f in more] == ([] if retention == "1" else ["configs.retention.ms"])
    assert all("--adopt" in f.message for f in more)
    (orphan,) = of(item.id, live, before)
    assert "Another topic has its name and is kept" in orphan.message
    assert of(item, live_topic({"retention.ms": "1"}), replace(before, topicId="uuid")) == []
