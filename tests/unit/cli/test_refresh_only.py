"""``kdeclare plan --refresh-only``: what other clients changed, without what is pending."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.report.plan.drift import build_drift_schemas
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_schema


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """Four applied topics: one changed, one deleted, one re-created, one with a pending change only."""
    kdeclare.topic("orders", configs={"retention.ms": "86400000", "cleanup.policy": ["delete"]})
    for name in ("deleted", "pending", "recreated"):
        kdeclare.topic(name)
    assert kdeclare("apply", "--yes").code == 0
    set_config(kdeclare, "orders", "retention.ms", "5000")
    kdeclare.cluster.delete_topics({"deleted": None, "recreated": None})
    kdeclare.cluster.create_topics([NewTopic("recreated", 1, 1, None, {})])
    kdeclare.topic("orders", configs={"retention.ms": "86400000", "cleanup.policy": ["compact"]})
    kdeclare.topic("pending", partitions=3)
    kdeclare.topic("new")
    return kdeclare


def set_config(kdeclare: CommandLine, topic: str, key: str, value: str) -> None:
    resource = ConfigResource(ConfigScope.TOPIC, topic)
    kdeclare.cluster.set_overrides(resource, {**kdeclare.cluster.overrides(resource), key: value})


def read_drift(kdeclare: CommandLine, *arguments: str) -> dict[str, Any]:
    ran = kdeclare("plan", "--refresh-only", "--format", "json", *arguments)
    document: dict[str, Any] = json.loads(ran.out)
    Draft202012Validator(build_drift_schemas()["drift"]).validate(document)
    assert document["exit_code"] == ran.code
    return document


def test_document_contains_drift_and_nothing_pending(shop: CommandLine) -> None:
    document = read_drift(shop, "--detailed-exitcode")
    assert document["exit_code"] == ExitCode.CHANGES
    assert (document["outcome"], document["compared"]) == ("drift", 4)
    assert document["headline"] == "Drift in shop/lab on lab:9092: 1 changed, 1 missing, 1 recreated."
    field = {"path": "configs.retention.ms", "applied": "86400000", "live": "5000"}
    assert [(item["id"], item["drift"], item["fields"]) for item in document["resources"]] == [
        ("Topic/deleted", "missing", []),
        ("Topic/orders", "changed", [field]),
        ("Topic/recreated", "recreated", []),
    ]
    assert document["resources"][1]["source"] == "manifests/orders.yaml:4:9"
    check_schema("drift", build_drift_schemas()["drift"])


def test_text_names_the_last_applied_and_the_current_value(shop: CommandLine) -> None:
    ran = shop("plan", "--refresh-only", "--quiet")
    assert (ran.code, ran.err) == (ExitCode.OK, ""), ran
    assert ran.out == (
        "Drift in shop/lab on lab:9092: 1 changed, 1 missing, 1 recreated.\n\n"
        "  - Topic/deleted  missing from the cluster  (manifests/deleted.yaml:4:9)\n\n"
        "  ~ Topic/orders  changed outside kdeclare  (manifests/orders.yaml:4:9)\n"
        "      retention.ms  86400000 (1 d) → 5000 (5 s)\n\n"
        "  ± Topic/recreated  deleted and created again outside kdeclare  (manifests/recreated.yaml:4:9)\n\n"
        "Values: last applied → current.\n\n"
        "hint: Run kdeclare plan to see what apply would change back. To keep the current values, change the "
        "manifests.\n"
    )


def test_markdown_has_one_row_per_field(shop: CommandLine) -> None:
    ran = shop("plan", "--refresh-only", "--format", "markdown")
    rows = [line for line in ran.out.splitlines() if line.startswith("| <code>")]
    assert len(rows) == 3
    assert rows[1] == (
        "| <code>Topic/orders</code> | changed outside kdeclare | <code>retention.ms</code> "
        "| <code>86400000 (1 d)</code> | <code>5000 (5 s)</code> |"
    )


def test_without_drift_pending_changes_are_not_shown(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.topic("orders", partitions=3)
    kdeclare.topic("new")
    ran = kdeclare("plan", "--refresh-only", "--detailed-exitcode")
    assert ran.code == ExitCode.OK
    assert ran.out == "No drift. shop/lab on lab:9092: 1 applied resource is unchanged.\n"
    assert kdeclare("plan", "--detailed-exitcode").code == ExitCode.CHANGES


def test_drift_that_the_manifest_declares_now_is_still_drift(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", configs={"retention.ms": "86400000"})
    assert kdeclare("apply", "--yes").code == 0
    set_config(kdeclare, "orders", "retention.ms", "5000")
    kdeclare.topic("orders", configs={"retention.ms": "5000"})
    (item,) = read_drift(kdeclare)["resources"]
    assert item["fields"] == [{"path": "configs.retention.ms", "applied": "86400000", "live": "5000"}]


def test_deleted_orphan_is_missing_and_target_limits_the_report(shop: CommandLine) -> None:
    (shop.folder / "manifests" / "deleted.yaml").unlink()
    found = {item["id"]: (item["drift"], item["source"]) for item in read_drift(shop)["resources"]}
    assert found["Topic/deleted"] == ("missing", None)
    (only,) = read_drift(shop, "--target", "Topic/orders")["resources"]
    assert only["id"] == "Topic/orders"
    assert read_drift(shop, "--target", "Topic/typo")["exit_code"] == ExitCode.ERROR


@pytest.mark.parametrize(
    "arguments", [("--out", "it.plan"), ("--graph",), ("--format", "html"), ("--format", "sarif")]
)
def test_options_about_plans_are_refused(shop: CommandLine, arguments: tuple[str, ...]) -> None:
    ran = shop("plan", "--refresh-only", *arguments)
    assert ran.code == ExitCode.USAGE
    assert not (shop.folder / "it.plan").exists()
