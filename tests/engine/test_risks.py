"""Each field has its own risk and cause, and no risk of a change hides another."""

import pytest

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Risk
from kdeclare.engine.planning.plan_document import build_plan_document
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.risks import assess_broker_field, assess_topic_field
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.plan.plan_markdown import plan_markdown
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.report.plan.risks import list_risks
from kdeclare.report.sarif import build_plan_sarif
from tests.engine.world import World, desired, topic
from tests.jsontypes import untyped


@pytest.fixture
def world() -> World:
    return World(MemoryCluster())


def list_field_risks(change: Change) -> dict[str, tuple[Risk, str]]:
    return {field.path: (field.risk, field.cause) for field in change.fields}


def plan_mixed_change(world: World) -> Change:
    configs = {"retention.ms": "604800000", "compression.type": "zstd"}
    world.apply(topic("t", partitions=3, replicationFactor=1, configs=configs))
    configs = {"retention.ms": "1000", "compression.type": "lz4"}
    (change,) = world.plan(topic("t", partitions=12, replicationFactor=2, configs=configs)).changes
    return change


def test_change_lists_irreversible_and_destructive_risks(world: World) -> None:
    change = plan_mixed_change(world)
    assert change.risk is Risk.IRREVERSIBLE
    assert change.risks == (Risk.IRREVERSIBLE, Risk.DESTRUCTIVE, Risk.DISRUPTIVE, Risk.SAFE)
    assert list_field_risks(change) == {
        "partitions": (Risk.IRREVERSIBLE, "Kafka cannot remove partitions."),
        "replicationFactor": (Risk.DISRUPTIVE, "Replicas are copied between brokers."),
        "configs.retention.ms": (Risk.DESTRUCTIVE, "Records older than 1 s are deleted."),
        "configs.compression.type": (Risk.SAFE, ""),
    }


def test_reports_show_all_risks_of_change(world: World) -> None:
    plan_mixed_change(world)
    configs = {"retention.ms": "1000"}
    plan = world.plan(topic("t", partitions=12, replicationFactor=2, configs=configs))
    text, markdown = plan_text(plan), plan_markdown(plan)
    assert "irreversible · destructive · disruptive" in text
    assert "irreversible: Kafka cannot remove partitions. (partitions)" in text
    assert "destructive: Records older than 1 s are deleted. (retention.ms)" in text
    assert "- **irreversible, destructive, disruptive** update" in markdown
    assert "| **irreversible**, **destructive**, disruptive |" in markdown
    assert "Records older than 1 s are deleted." in markdown
    results = build_plan_sarif(plan)["runs"][0]["results"]
    results = [result for result in results if result["ruleId"].startswith("risk/")]
    assert [(result["ruleId"], result["level"]) for result in results] == [
        ("risk/irreversible", "warning"),
        ("risk/destructive", "warning"),
        ("risk/disruptive", "note"),
    ]
    assert "Records older than 1 s are deleted. (retention.ms)" in results[1]["message"]["text"]
    (change,) = untyped(build_plan_document(plan))["changes"]
    assert (change["risk"], change["risks"][:2]) == ("irreversible", ["irreversible", "destructive"])


def test_reports_list_deletions_first(world: World) -> None:
    names = [f"a{n:03}" for n in range(300)]
    world.apply(*(topic(name, partitions=1) for name in names), topic("zz", partitions=1))
    grown = [topic(name, partitions=2) for name in names]
    plan = world.plan(*grown, scope=PlanScope(allow_deletes=True))
    first = list_risks(plan)[0]
    assert isinstance(first, Change)
    assert (str(first.id), first.action) == ("Topic/zz", Action.DELETE)
    text, markdown = plan_text(plan), plan_markdown(plan)
    assert text.index("- Topic/zz") < text.index("Topic/a000")
    assert markdown.index("Topic/zz") < markdown.index("Topic/a000")
    risks = markdown.split("### Changes")[0]
    assert risks.count("irreversible** update") == 300, "no risk is left out"


def test_retention_below_broker_default_is_destructive() -> None:
    world = World(MemoryCluster())
    default = desired("BrokerConfig", "cluster-default", configs={"log.retention.ms": "31536000000"})
    world.apply(default, topic("t", partitions=1))
    # 30 days are more than Kafka's default of 7, but less than the 365 that these brokers use.
    plan = world.plan(default, topic("t", partitions=1, configs={"retention.ms": "2592000000"}))
    (change,) = plan.changes
    assert list_field_risks(change)["configs.retention.ms"] == (
        Risk.DESTRUCTIVE,
        "Records older than 30 d are deleted.",
    )


def test_lowered_broker_retention_is_destructive(world: World) -> None:
    config = {"log.retention.ms": "60000", "log.cleaner.threads": "2"}
    (change,) = world.plan(desired("BrokerConfig", "cluster-default", configs=config)).changes
    assert change.risks == (Risk.DESTRUCTIVE, Risk.DISRUPTIVE)
    assert list_field_risks(change)["configs.log.retention.ms"] == (
        Risk.DESTRUCTIVE,
        "Records older than 1 min are deleted.",
    )


def test_rollback_that_lowers_retention_is_destructive(world: World) -> None:
    world.apply(topic("t", partitions=1, configs={"retention.ms": "1000"}))
    world.apply(topic("t", partitions=1, configs={"retention.ms": "604800000"}))
    (change,) = world.plan_rollback().changes
    assert change.risk is Risk.DESTRUCTIVE
    assert list_field_risks(change)["configs.retention.ms"][1] == "Records older than 1 s are deleted."


def test_rollback_deletion_reports_lost_records(world: World) -> None:
    world.apply(topic("t", partitions=1))
    plan = world.plan_rollback()
    assert "destructive: All records of the topic are deleted." in plan_text(plan)


def test_ad_hoc_change_has_risks_of_its_fields(world: World) -> None:
    world.apply(topic("t", partitions=1))
    asked = topic("t", partitions=4, configs={"retention.ms": "1"})
    (change,) = world.plan(asked, scope=PlanScope(by_hand=True)).changes
    assert change.risks == (Risk.IRREVERSIBLE, Risk.DESTRUCTIVE)
    (gone,) = world.plan(scope=PlanScope(by_hand=True, removals=frozenset({asked.id}))).changes
    assert gone.risks[0] is Risk.DESTRUCTIVE
    assert list_field_risks(gone)["partitions"][1] == "All records of the topic are deleted."


FIELDS = [
    ("retention.ms", "1000", "-1", None),
    ("retention.ms", "-1", "1000", "Records older than 1 s are deleted."),
    ("retention.ms", "-1", None, "Records older than 7 d, the default, are deleted."),
    ("retention.bytes", None, "1048576",
     "The oldest records of partitions with more than 1 MiB are deleted."),
    ("cleanup.policy", ["delete"], ["delete", "compact"],
     "Compaction removes all records of a key except the latest."),
    ("cleanup.policy", ["compact"], None, "Records beyond the retention limits are deleted."),
    ("unclean.leader.election.enable", None, "true",
     "An out-of-sync replica can become leader; the records it lacks are lost."),
    ("unclean.leader.election.enable", "true", "false", None),
]  # fmt: skip


@pytest.mark.parametrize(("key", "before", "after", "cause"), FIELDS)
def test_topic_config_risk(key: str, before: JsonValue, after: JsonValue, cause: str | None) -> None:
    field = FieldChange(f"configs.{key}", FieldOp.SET, before, after)
    rated = assess_topic_field(Action.UPDATE, field)
    assert (rated.risk, rated.cause) == ((Risk.DESTRUCTIVE, cause) if cause else (Risk.SAFE, ""))


def test_cluster_wide_unclean_election_is_destructive() -> None:
    field = FieldChange("configs.unclean.leader.election.enable", FieldOp.SET, "false", "true")
    assert assess_broker_field(field).risk is Risk.DESTRUCTIVE
