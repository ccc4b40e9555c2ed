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
from kdeclare.fleet.findings import Finding, FindingKind, FindingSeverity
from kdeclare.fleet.in_process_audit import audit_rows, proves_no_drift
from kdeclare.fleet.tables.row_builder import (
    Row,
    build_declared_cluster_row,
    build_declared_row,
    build_unread_row,
)
from kdeclare.fleet.tables.rows import CLUSTER
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
    make_broker_row,
    make_cluster_row,
    make_desired,
    make_origin,
    make_own_entry,
    make_record,
    make_topic_row,
)

INFO = ClusterInfo("id", tuple(Broker(n, "h", 9092) for n in (1, 2, 3)))
TOPIC = ConfigResource(ConfigScope.TOPIC, "t")
BROKER = ConfigResource(ConfigScope.BROKER, "1")
HOUR: dict[str, Any] = {"partitions": 1, "configs": {"retention.ms": 3600000}}
STATIC_SECRET = ConfigEntry(None, ConfigSource.STATIC, sensitive=True)
TOKEN = Referenced("hunter2", "${env.TOKEN}")
"""The value behind a reference, which must not be shown anywhere."""


def make_live_topic(
    configs: Mapping[str, str | None] | None = None,
    replicas: tuple[tuple[int, ...], ...] = ((1, 2),),
    *,
    name: str = "t",
    internal: bool = False,
    moves: Mapping[TopicPartition, Move] | None = None,
) -> Row:
    entries = {key: make_own_entry(TOPIC, key, value) for key, value in (configs or {}).items()}
    topic = Topic(name, "uuid", tuple(Partition(r) for r in replicas), internal)
    return make_topic_row(make_origin("eu"), topic, entries, moves or {})


def make_live_broker(name: str, entries: Mapping[str, ConfigEntry]) -> Row:
    return make_broker_row(make_origin("eu"), name, entries)


def find_findings(
    item: DesiredResource | ResourceId, live: Row | None, owned: OwnedRecord | None = None
) -> list[Finding]:
    """Return the findings, and check that the facts agree."""
    id_ = item.id if isinstance(item, DesiredResource) else item
    row = build_declared_row("eu", item if isinstance(item, DesiredResource) else None, id_, owned)
    cluster = make_cluster_row(make_origin("eu"), INFO, "4.1")["body"]
    seen = live or {"body": None, "error": None}
    bodies = row["desired"], row["owned"], seen["body"]
    manifest = row["labels"].items(), row["source"]
    result = list(find_drift(id_.kind, id_.name, *bodies, seen["error"], cluster, *manifest))
    assert live is None or not (proves_no_drift(row, live) and result)
    return result


def shorten_findings(findings: list[Finding]) -> list[tuple[str, str | None, str | None, Json, Json]]:
    """Return findings without messages, with decoded values."""
    return [
        (str(f.finding), f.path, f.op, f.before and json.loads(f.before), f.after and json.loads(f.after))
        for f in findings
    ]


def test_declared_value_in_effect_is_no_finding() -> None:
    item = make_desired("Topic", "t", **HOUR)
    assert find_findings(item, make_live_topic({"retention.ms": "3600000"}), make_record(item)) == []


def test_declared_value_in_effect_ignores_last_applied_record() -> None:
    item = make_desired("Topic", "t", **HOUR)
    before = make_record(make_desired("Topic", "t", partitions=4, configs={"retention.ms": 1}))
    assert find_findings(item, make_live_topic({"retention.ms": "3600000"}), before) == []


def test_changed_value_differs_from_applied_and_declared() -> None:
    item = make_desired("Topic", "t", **HOUR)
    (only,) = find_findings(item, make_live_topic({"retention.ms": "5"}), make_record(item))
    assert only == Finding(
        FindingKind.CHANGED,
        "configs.retention.ms",
        "SET",
        '"5"',
        '"3600000"',
        "Changed outside kdeclare since the last apply.",
        FindingSeverity.HIGH,
        "topics.yaml:3:1",
    )


@pytest.mark.parametrize(
    ("declared", "live", "severity"),
    [
        ({"retention.ms": "604800000"}, {"retention.ms": "1000"}, "high"),
        ({"retention.ms": "1000"}, {"retention.ms": "604800000"}, "low"),
        ({"compression.type": "zstd"}, {"compression.type": "lz4"}, "low"),
        ({"cleanup.policy": "delete"}, {"cleanup.policy": "compact"}, "high"),
        ({"unclean.leader.election.enable": "false"}, {"unclean.leader.election.enable": "true"}, "high"),
        ({"unclean.leader.election.enable": "true"}, {"unclean.leader.election.enable": "false"}, "low"),
    ],
)
def test_changed_config_is_as_severe_as_what_it_did(
    declared: dict[str, str], live: dict[str, str], severity: str
) -> None:
    item = make_desired("Topic", "t", partitions=1, replicationFactor=1, configs=declared)
    (found,) = find_findings(item, make_live_topic(live, ((1,),)), make_record(item))
    assert (found.finding, found.severity) == ("changed", severity)
    (pending,) = find_findings(item, make_live_topic(live, ((1,),)), None)
    assert (pending.finding, pending.severity) == ("pending", "low"), "it was never applied"
    item = make_desired("Topic", "t", partitions=1, replicationFactor=1)
    (unmanaged,) = find_findings(item, make_live_topic(live, ((1,),)), make_record(item))
    expected = "low" if live in ({"retention.ms": "604800000"}, declared) else severity
    assert (unmanaged.finding, unmanaged.severity) == ("unmanaged", expected), "compared with the default"


def test_only_externally_changed_fields_are_changed() -> None:
    configs = {"retention.ms": 1, "cleanup.policy": {"append": ["compact"]}, "flush.ms": None}
    before = make_desired("Topic", "t", partitions=1, replicationFactor=2, configs=configs)
    item = make_desired(
        "Topic", "t", partitions=2, replicationFactor=3, configs={**configs, "retention.ms": 2}
    )
    live = make_live_topic({"retention.ms": "1", "cleanup.policy": "delete", "flush.ms": "9"}, ((1,),))
    assert shorten_findings(find_findings(item, live, make_record(before))) == [
        ("pending", "partitions", "change", 1, 2),
        ("changed", "replicationFactor", "change", 1, 3),
        ("changed", "configs.cleanup.policy", "APPEND", ["delete"], ["delete", "compact"]),
        ("changed", "configs.flush.ms", "DELETE", "9", None),
        ("pending", "configs.retention.ms", "SET", "1", "2"),
    ]


def test_moved_assignments_are_changed_one_by_one() -> None:
    item = make_desired("Topic", "t", assignments={0: [1, 2], 1: [2, 3]})
    live = make_live_topic({}, ((1, 2), (3, 1)))
    assert shorten_findings(find_findings(item, live, make_record(item))) == [
        ("changed", "assignments.1", "change", [3, 1], [2, 3])
    ]
    assert shorten_findings(find_findings(item, live)) == [
        ("pending", "assignments.1", "change", [3, 1], [2, 3])
    ]


def test_topic_never_created_is_pending() -> None:
    after = {"partitions": 1, "configs.retention.ms": "3600000"}
    assert shorten_findings(find_findings(make_desired("Topic", "t", **HOUR), None)) == [
        ("pending", None, "create", None, after)
    ]


def test_owned_config_no_longer_declared_is_pending() -> None:
    before = make_record(make_desired("Topic", "t", configs={"retention.ms": 1, "flush.ms": 9}))
    live = make_live_topic({"retention.ms": "1", "flush.ms": "9"})
    assert shorten_findings(
        find_findings(make_desired("Topic", "t", configs={"retention.ms": 1}), live, before)
    ) == [("pending", "configs.flush.ms", "DELETE", "9", None)]


def test_ignored_fields_are_no_drift_unless_topic_is_missing() -> None:
    spec: dict[str, Any] = {"partitions": 1, "configs": {"retention.ms": 1}}
    item = make_desired("Topic", "t", **spec, lifecycle={"ignoreChanges": ["configs.retention.ms"]})
    live = make_live_topic({"retention.ms": "2", "flush.ms": "9"})
    assert shorten_findings(find_findings(item, live, make_record(item))) == [
        ("unmanaged", "configs.flush.ms", None, "9", None)
    ]
    strict = make_desired("Topic", "t", **spec)
    assert ("changed", "configs.retention.ms", "SET", "2", "1") in shorten_findings(
        find_findings(strict, live, make_record(strict))
    )
    assert shorten_findings(find_findings(item, None, make_record(item))) == [
        ("missing", None, "create", None, {"partitions": 1, "configs.retention.ms": "1"})
    ]


def test_owned_topic_that_is_gone_is_missing() -> None:
    item = make_desired("Topic", "t", **HOUR)
    after = {"partitions": 1, "configs.retention.ms": "3600000"}
    assert shorten_findings(find_findings(item, None, make_record(item))) == [
        ("missing", None, "create", None, after)
    ]
    assert shorten_findings(find_findings(item.id, None, make_record(item))) == [
        ("missing", None, "forget", None, None)
    ]


def test_owned_topic_no_longer_declared_is_orphaned() -> None:
    item = make_desired("Topic", "t", **HOUR)
    assert shorten_findings(find_findings(item.id, make_live_topic(), make_record(item))) == [
        ("orphaned", None, "delete", None, None)
    ]
    kept = make_desired("Topic", "t", **HOUR, lifecycle={"preventDestroy": True})
    (only,) = find_findings(kept.id, make_live_topic(), make_record(kept))
    assert (only.finding, only.op) == (FindingKind.ORPHANED, "delete")
    assert "preventDestroy was true" in only.message
    broker = make_desired("BrokerConfig", "1", configs={"log.cleaner.threads": 2})
    assert shorten_findings(find_findings(broker.id, make_live_broker("1", {}), make_record(broker))) == [
        ("orphaned", None, "delete", None, None)
    ]


def test_undeclared_external_topic_is_unmanaged() -> None:
    cluster = make_cluster_row(make_origin("eu"), INFO, None)["body"]

    def find_undeclared(kind: str, row: Row, cluster: str | None = cluster) -> list[Finding]:
        return list(find_drift(kind, row["name"], None, None, row["body"], row["error"], cluster))

    assert shorten_findings(find_undeclared("Topic", make_live_topic())) == [
        ("unmanaged", None, None, None, None)
    ]
    assert find_undeclared("Topic", make_live_topic(internal=True)) == []
    assert find_undeclared("BrokerConfig", make_live_broker("1", {})) == []
    assert find_undeclared("Topic", make_live_topic(), None) == []
    assert find_undeclared("Topic", build_unread_row(make_origin("eu"), "Topic", "t", "timed out")) == []


def test_declared_internal_topic_is_compared() -> None:
    item = make_desired("Topic", "t", configs={"retention.ms": 1})
    assert [f.finding for f in find_findings(item, make_live_topic(internal=True))] == [FindingKind.PENDING]


def test_config_neither_declared_nor_owned_is_unmanaged() -> None:
    item = make_desired("Topic", "t", **HOUR)
    live = make_live_topic({"retention.ms": "3600000", "cleanup.policy": "compact, delete", "flush.ms": "09"})
    assert shorten_findings(find_findings(item, live, make_record(item))) == [
        ("unmanaged", "configs.cleanup.policy", None, ["compact", " delete"], None),
        ("unmanaged", "configs.flush.ms", None, "9", None),
    ]
    strict = make_desired("Topic", "t", **HOUR, unmanagedConfigs="remove")
    assert [f.op for f in find_findings(strict, live, make_record(strict))] == ["DELETE", "DELETE"]
    assert {f.finding for f in find_findings(strict, live, make_record(strict))} == {"changed"}, (
        "they came after it was applied"
    )
    assert {f.finding for f in find_findings(strict, live, None)} == {"pending"}


def test_unmanaged_sensitive_value_is_hidden() -> None:
    item = make_desired("BrokerConfig", "1", configs={})
    live = make_live_broker("1", {"ssl.key.password": make_own_entry(BROKER, "ssl.key.password", None)})
    assert shorten_findings(find_findings(item, live)) == [
        ("unmanaged", "configs.ssl.key.password", None, "(sensitive)", None)
    ]


@pytest.mark.parametrize(
    ("kind", "name", "live"),
    [("Topic", "t", make_live_topic()), ("BrokerConfig", "1", make_live_broker("1", {}))],
)
def test_pending_unknown_key_suggests_plan(kind: str, name: str, live: Row) -> None:
    """`kdeclare plan` reads such a key from the cluster; live rows contain only keys that are set."""
    item = make_desired(
        kind, name, configs={"log.cleaner.threadzz": 2, "retention.millis": {"append": ["x"]}}
    )
    told = (
        "kdeclare does not know this config key, so the audit cannot tell whether the key exists. Run "
        "kdeclare plan to check the key."
    )
    pending = [*find_findings(item, None)] if kind == "Topic" else [*find_findings(item, live)]
    assert {f.message for f in pending} == {f"Declared, but not applied yet. {told}"}
    assert all(f.message.endswith(told) for f in find_findings(item, live))
    changed, _ = find_findings(
        item, live, bind_record(kind, {"configs": {"log.cleaner.threadzz": {"value": "2"}}})
    )
    assert changed.message == "Changed outside kdeclare since the last apply."


def test_pending_key_that_is_set_is_known() -> None:
    item = make_desired("Topic", "t", configs={"owner.of.plugin": 2})
    (pending,) = find_findings(item, make_live_topic({"owner.of.plugin": "1"}), TopicRecord())
    assert pending.message == "Declared, but not applied yet."


@pytest.mark.parametrize("adopt", [False, True])
@pytest.mark.parametrize(
    ("kind", "name", "live"),
    [
        ("Topic", "t", make_live_topic({"retention.ms": "5"})),
        (
            "BrokerConfig",
            "1",
            make_live_broker("1", {"num.io.threads": make_own_entry(BROKER, "num.io.threads", "8")}),
        ),
    ],
)
def test_pending_message_states_required_adoption(kind: str, name: str, live: Row, adopt: bool) -> None:
    configs = {"retention.ms": 1} if kind == "Topic" else {"num.io.threads": 9, "log.cleaner.threads": 2}
    item = make_desired(kind, name, configs=configs, lifecycle={"adopt": adopt})
    told = {f.path: f.message for f in find_findings(item, live)}
    if kind == "BrokerConfig":
        assert told.pop("configs.log.cleaner.threads") == "Declared, but not applied yet."
    (message,) = told.values()
    assert message.startswith("Exists, but has never been applied by this project")
    assert ("--adopt" in message) is not adopt


def test_fewer_partitions_than_live_block_topic() -> None:
    item = make_desired("Topic", "t", partitions=1, configs={"retention.ms": 1})
    live = make_live_topic({"retention.ms": "1"}, ((1, 2), (2, 3)))
    (changed,) = find_findings(item, live, make_record(item))
    assert shorten_findings([changed]) == [("changed", "partitions", None, 2, 1)]
    assert changed.message == (
        "Topic 't' has 2 partitions, but the manifest declares 1. Kafka cannot remove partitions. "
        "The manifest (topics.yaml:3:1) must be changed: declare at least 2 partitions, or create another "
        "topic and copy the records to that topic."
    )
    assert shorten_findings(find_findings(item, live)) == [("pending", "partitions", None, 2, 1)]
    both = find_findings(item, make_live_topic({"retention.ms": "5"}, ((1, 2), (2, 3))))
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
def test_blocked_finding_names_owner_and_required_change(labels: dict[str, str], owner: str) -> None:
    item = replace(
        make_desired("Topic", "t", partitions=1), labels=labels, source=SourcePosition("m/a.yaml", 4, 18)
    )
    (fewer,) = find_findings(item, make_live_topic({}, ((1, 2), (2, 3))))
    assert f"{owner} must be changed: declare at least 2 partitions, or create another topic" in fewer.message
    (unknown,) = find_findings(
        replace(item, body=make_desired("Topic", "t", assignments={0: [9]}).body), None
    )
    assert (
        "contain broker ids that are not registered in the cluster: [9]. "
        f"{owner} cannot be applied without changes: use the ids of registered brokers" in unknown.message
    )


def test_unregistered_broker_is_pending_or_missing() -> None:
    item = make_desired("BrokerConfig", "9", configs={"log.cleaner.threads": 2})
    (pending,) = find_findings(item, None)
    assert shorten_findings([pending]) == [("pending", None, None, None, None)]
    assert "Broker 9 is not registered" in pending.message
    assert shorten_findings(find_findings(item, None, make_record(make_desired("BrokerConfig", "1")))) == [
        ("missing", None, None, None, None)
    ]
    assert shorten_findings(find_findings(item.id, None, BrokerConfigRecord())) == [
        ("missing", None, "forget", None, None)
    ]


def test_move_is_no_drift_and_blocks_conflicting_changes() -> None:
    moves = {TopicPartition("t", 0): Move((3, 1, 2), (3,), (1,))}
    live = make_live_topic({}, ((3, 1, 2),), moves=moves)
    item = make_desired("Topic", "t", replicationFactor=2)
    target = Topic("t", "uuid", (Partition((3, 2)),))
    assert live["has"] == compute_topic_facts(target, {}, {}).has, "what it is on its way to counts"
    assert find_findings(item, live, make_record(item)) == []
    (blocked,) = find_findings(make_desired("Topic", "t", replicationFactor=1), live)
    assert shorten_findings([blocked]) == [("pending", "replicationFactor", "change", 2, 1)]
    assert "1 partition of topic 't' is being reassigned" in blocked.message


def test_unread_declared_or_owned_resource_is_unreachable() -> None:
    item = make_desired("Topic", "t", **HOUR)
    row = build_unread_row(make_origin("eu"), "Topic", "t", "TOPIC_AUTHORIZATION_FAILED")
    reason = "TOPIC_AUTHORIZATION_FAILED"
    (found,) = find_findings(item, row)
    assert (found.finding, found.severity, found.message, found.source) == (
        "unreachable",
        "medium",
        reason,
        "topics.yaml:3:1",
    )
    assert find_findings(item.id, row, make_record(item)) == [replace(found, source=None)]


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
    item = make_desired("Topic", "t", configs={"cleanup.policy": wish})
    result = find_findings(item, make_live_topic({} if live is None else {"cleanup.policy": live}))
    assert [(f[2], f[3], f[4]) for f in shorten_findings(result)] == expected


def test_default_elements_of_unset_list_are_kept_in_row() -> None:
    item = make_desired("Topic", "t", configs={"cleanup.policy": {"subtract": ["compact"]}})
    entries = {
        "cleanup.policy": ConfigEntry(
            "compact", ConfigSource.STATIC, make_own_entry(TOPIC, "cleanup.policy", "").type
        )
    }
    row = make_topic_row(make_origin("eu"), Topic("t", "uuid", (Partition((1,)),)), entries, {})
    assert shorten_findings(find_findings(item, row)) == [
        ("pending", "configs.cleanup.policy", "SUBTRACT", None, ["delete"])
    ]


def test_unset_list_of_cluster_default_is_unknown() -> None:
    item = make_desired(
        "BrokerConfig", CLUSTER_DEFAULT, configs={"log.cleanup.policy": {"subtract": ["compact"]}}
    )
    assert [f.op for f in find_findings(item, make_live_broker(CLUSTER_DEFAULT, {}))] == ["SUBTRACT"]


def test_owned_element_no_longer_declared_is_subtracted() -> None:
    before = make_record(
        make_desired("Topic", "t", configs={"cleanup.policy": {"append": ["compact", "delete"]}})
    )
    item = make_desired("Topic", "t", configs={"cleanup.policy": {"append": ["delete"]}})
    live = make_live_topic({"cleanup.policy": "compact,delete"})
    assert [f.op for f in find_findings(item, live, before)] == ["SUBTRACT"]
    assert find_findings(item, live) == []


class TestSecrets:
    """A row contains only the hash of a secret, and a finding does not show it."""

    key = "listener.name.internal.ssl.keystore.password"

    def test_known_secret_key_is_hashed_and_hidden(self) -> None:
        item = make_desired("BrokerConfig", "1", configs={self.key: TOKEN})
        row = build_declared_row("eu", item, item.id, make_record(item))
        assert "hunter2" not in str(row)
        live = make_live_broker("1", {self.key: make_own_entry(BROKER, self.key, None)})
        assert find_findings(item, live, make_record(item)) == []
        other = make_record(make_desired("BrokerConfig", "1", configs={self.key: "other"}))
        assert shorten_findings(find_findings(item, live, other)) == [
            ("pending", f"configs.{self.key}", "SET", "(sensitive)", "(sensitive)")
        ]
        assert shorten_findings(find_findings(item, make_live_broker("1", {}), make_record(item))) == [
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
    def test_secret_key_known_only_to_cluster_is_hidden(
        self, value: Any, shown: str | None, expected: list[Any]
    ) -> None:
        item = make_desired("BrokerConfig", "1", configs={"plugin.token": value})
        row = build_declared_row("eu", item, item.id, None)
        assert "hunter2" not in str(row)
        assert (row["need"], row["always"]) == ([], True), "a quick hash would give it away"
        live = make_live_broker("1", {"plugin.token": make_own_entry(BROKER, "plugin.token", shown)})
        assert shorten_findings(find_findings(item, live)) == expected

    @pytest.mark.parametrize("entries", [{}, {"plugin.token": STATIC_SECRET}])
    def test_secret_without_dynamic_override_is_pending(self, entries: Mapping[str, ConfigEntry]) -> None:
        """Static values are not read, so the value of a key that is not set dynamically is unknown."""
        item = make_desired("BrokerConfig", "1", configs={"plugin.token": "hunter2"})
        assert shorten_findings(find_findings(item, make_live_broker("1", entries))) == [
            ("pending", "configs.plugin.token", "SET", None, "(sensitive)")
        ]
        assert isinstance(narrow(make_record(item), BrokerConfigRecord).configs["plugin.token"], SecretRef)
        set_as_applied = {"plugin.token": make_own_entry(BROKER, "plugin.token", None)}
        assert find_findings(item, make_live_broker("1", set_as_applied), make_record(item)) == []

    def test_unknown_topic_key_is_not_secret(self) -> None:
        """Kafka rejects unknown keys, so a key that it accepts is not a secret one."""
        item = make_desired("Topic", "t", configs={"plugin.size": "5"})
        assert json.loads(build_declared_row("eu", item, item.id, None)["desired"])["configs"] == {
            "plugin.size": "5"
        }
        assert find_findings(item, make_live_topic({"plugin.size": "5"})) == []

    def test_exposed_sensitive_value_is_not_kept(self) -> None:
        live = make_live_broker(
            "1", {"x": ConfigEntry("hunter2", ConfigSource.BROKER, sensitive=True, beneath="hunter2")}
        )
        assert "hunter2" not in str(live)


def test_undeletable_cluster_default_is_no_finding() -> None:
    before = make_record(make_desired("BrokerConfig", CLUSTER_DEFAULT, configs={"min.insync.replicas": 1}))
    entity = ConfigResource(ConfigScope.BROKER, "")
    live = make_live_broker(
        CLUSTER_DEFAULT, {"min.insync.replicas": make_own_entry(entity, "min.insync.replicas", "1")}
    )
    assert find_findings(make_desired("BrokerConfig", CLUSTER_DEFAULT), live, before) == []


def test_unfinished_reassignment_is_pending() -> None:
    item = make_desired("Reassignment", "r", partitions=[{"topic": "t", "partition": 0, "replicas": [2, 3]}])
    live = KafkaState(INFO, {"t": Topic("t", "uuid", (Partition((1, 2)),))})
    difference = KINDS["Reassignment"].diff(item.id, item, LiveState(live), None, NO_PLACEMENT)
    assert shorten_findings(list(collect_findings(item.id, difference, item, None, LiveState(live)))) == [
        ("pending", "replicas.t-0", "change", [1, 2], [2, 3])
    ]
    nowhere = KafkaState(INFO)
    difference = KINDS["Reassignment"].diff(item.id, item, LiveState(nowhere), None, NO_PLACEMENT)
    (blocked,) = collect_findings(item.id, difference, item, None, LiveState(nowhere))
    assert (blocked.finding, blocked.path, blocked.op) == (FindingKind.PENDING, None, None)
    assert "Partition t-0 does not exist in the cluster" in blocked.message


def _audit(declared: list[Row], live: list[Row]) -> list[tuple[str, str, str, str]]:
    return [(i["cluster"], i["kind"], i["name"], i["finding"]) for i in audit_rows(declared, live)]


def test_audit_reads_declared_and_live_tables() -> None:
    item = make_desired("Topic", "t", **HOUR)
    declared = [build_declared_cluster_row("eu", {}), build_declared_row("eu", item, item.id, None)]
    live = [make_cluster_row(make_origin("eu"), INFO, None), make_live_topic(), make_live_topic(name="u")]
    assert _audit(declared, live) == [("eu", "Topic", "t", "pending"), ("eu", "Topic", "u", "unmanaged")]
    assert _audit([build_declared_cluster_row("eu", {})], live[:1]) == []
    assert _audit([], []) == []


def test_audit_of_unread_cluster_finds_nothing_else() -> None:
    item = make_desired("Topic", "t", **HOUR)
    unreachable = ("eu", CLUSTER, "eu", "unreachable")
    mine = [build_declared_cluster_row("eu", {}), build_declared_row("eu", item, item.id, None)]
    assert _audit(mine, [build_unread_row(make_origin("eu", None), CLUSTER, "eu", "timed out")]) == [
        unreachable
    ]
    assert _audit(mine, []) == [unreachable]
    there = [make_cluster_row(make_origin("eu"), INFO, None), make_live_topic(name="u")]
    assert _audit([build_declared_cluster_row("eu", {}, "no such folder")], there) == [unreachable]
    assert _audit([], there) == []


def test_audit_combines_declared_and_live_errors() -> None:
    declared = [build_declared_cluster_row("eu", {}, "No such folder.")]
    live = [build_unread_row(make_origin("eu", None), CLUSTER, "eu", "It timed out.")]
    assert [i["message"] for i in audit_rows(declared, live)] == ["It timed out. No such folder."]


def test_audit_reports_state_of_other_cluster_only() -> None:
    item = make_desired("Topic", "t", **HOUR)
    own = build_declared_cluster_row("eu", {}, cluster_id="lab-id")
    declared = [own, build_declared_row("eu", item, item.id, TopicRecord())]
    found = list(audit_rows(declared, [make_cluster_row(make_origin("eu"), INFO, None)]))
    assert [i["message"] for i in found] == ["The state belongs to cluster lab-id, but this is cluster id."]


def test_audit_omits_resources_that_need_whole_cluster() -> None:
    placed = make_desired(
        "Topic", "t", partitions=1, replicationFactor=2, placement={"strategy": "cross-rack"}
    )
    moved = make_desired("Reassignment", "r", topics=["/.*/"], drain=[1])
    declared = [
        build_declared_cluster_row("eu", {}),
        *(build_declared_row("eu", i, i.id, None) for i in (placed, moved)),
    ]
    live = [make_cluster_row(make_origin("eu"), INFO, None), make_live_topic()]
    assert _audit(declared, live) == []
    assert not any(proves_no_drift(row, live[1]) for row in declared[2:])


@pytest.mark.parametrize("side", ["declared", "live"])
def test_audit_rejects_duplicate_rows(side: str) -> None:
    item = make_desired("Topic", "t", **HOUR)
    declared, live = [build_declared_row("eu", item, item.id, None)], [make_live_topic()]
    rows = declared if side == "declared" else live
    rows *= 2
    with pytest.raises(KdeclareError) as problem:
        list(audit_rows(declared, live))
    (wrong,) = problem.value.diagnostics
    assert (wrong.code, f"The {side} table contains" in wrong.detail) == ("duplicate-resource", True)


@pytest.mark.parametrize("retention", ["1", "5"])
def test_recreated_topic_is_changed_in_addition_to_other_findings(retention: str) -> None:
    item = make_desired("Topic", "t", configs={"retention.ms": 1})
    live = make_live_topic({"retention.ms": retention})
    before = replace(narrow(make_record(item), TopicRecord), topicId="older")
    first, *more = find_findings(item, live, before)
    assert shorten_findings([first]) == [("changed", "topicId", None, "older", "uuid")]
    assert "deleted and re-created outside kdeclare" in first.message
    assert [f.path for f in more] == ([] if retention == "1" else ["configs.retention.ms"])
    assert all("--adopt" in f.message for f in more)
    (orphan,) = find_findings(item.id, live, before)
    assert "kdeclare leaves the new topic unchanged" in orphan.message
    assert find_findings(item, make_live_topic({"retention.ms": "1"}), replace(before, topicId="uuid")) == []
