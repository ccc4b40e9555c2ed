"""Config values of times and sizes can have units in manifests and options. Kafka gets the numbers."""

import json

import pytest

from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from tests.unit.cli.command_line import CommandLine

WEEK_MS = "604800000"
CONFIGS = {"retention.ms": "7d", "max.message.bytes": "50MiB", "retention.bytes": "-1"}


def read_overrides(kdeclare: CommandLine, topic: str = "orders") -> dict[str, str]:
    return kdeclare.cluster.overrides(ConfigResource(ConfigScope.TOPIC, topic))


def test_apply_sends_numbers_and_next_plan_is_empty(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", configs=CONFIGS)
    assert "604800000 (7 d)" in kdeclare("plan").out
    assert kdeclare("apply", "--yes").code == 0
    assert read_overrides(kdeclare) == {
        "retention.ms": WEEK_MS,
        "max.message.bytes": str(50 * 2**20),
        "retention.bytes": "-1",
    }
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_other_spelling_of_same_amount_is_no_change(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", configs={"retention.ms": WEEK_MS})
    assert kdeclare("apply", "--yes").code == 0
    for amount in ("7d", "1w", "168 h", "604800s", "604800000ms"):
        kdeclare.topic("orders", configs={"retention.ms": amount})
        assert kdeclare("plan", "--detailed-exitcode").code == 0, amount


def test_show_manifest_shows_number_and_amount(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", configs=CONFIGS)
    metrics = {"metrics": ["org.apache.kafka."], "interval": "30s"}
    kdeclare.write("manifests/metrics.yaml", "ClientMetrics", "all", **metrics)
    quota = {"entity": {"user": "etl"}, "limits": {"producer_byte_rate": "10MiB/s", "request_percentage": 50}}
    kdeclare.write("manifests/quota.yaml", "ClientQuota", "etl", **quota)
    lines = kdeclare("show-manifest", "Topic/orders").out.splitlines()
    sent = {line.split(":")[0].strip(): line.partition("sent as ")[2] for line in lines}
    assert sent["retention.ms"] == WEEK_MS
    assert sent["retention.bytes"] == ""
    for resource, expected in {
        "Topic/orders": {"retention.ms": WEEK_MS, "max.message.bytes": str(50 * 2**20)},
        "ClientMetrics/all": {"interval": "30000"},
        "ClientQuota/etl": {"producer_byte_rate": str(10 * 2**20)},
    }.items():
        shown = json.loads(kdeclare("show-manifest", resource, "--format", "json").out)
        assert {item["path"][-1]: item["sent"] for item in shown["fields"] if item["sent"]} == expected


def test_variables_and_defaults_can_be_amounts(kdeclare: CommandLine) -> None:
    kdeclare.write(
        "kdeclare.yaml",
        "Project",
        "shop",
        environments={"lab": {"bootstrapServers": "lab:9092", "variables": {"retention": "7d"}}},
    )
    (kdeclare.folder / "manifests" / "defaults.yaml").write_text(
        "{apiVersion: kdeclare/v1, kind: Defaults, metadata: {name: all}, "
        "spec: {kind: Topic, defaults: {configs: {max.message.bytes: 50MiB}}}}"
    )
    kdeclare.topic("orders", configs={"retention.ms": "${var.retention}"})
    assert kdeclare("apply", "--yes").code == 0
    assert read_overrides(kdeclare) == {"retention.ms": WEEK_MS, "max.message.bytes": str(50 * 2**20)}


def test_brokers_and_groups_take_amounts(kdeclare: CommandLine) -> None:
    kdeclare.write(
        "manifests/brokers.yaml", "BrokerConfig", "cluster-default", configs={"log.retention.ms": "2d"}
    )
    kdeclare.write(
        "manifests/group.yaml", "GroupConfig", "billing", configs={"consumer.session.timeout.ms": "50s"}
    )
    assert kdeclare("apply", "--yes").code == 0
    ran = kdeclare("config", "describe", "--entity-type", "brokers", "--entity-default")
    assert "172800000 (2 d)" in ran.out


def test_ad_hoc_commands_take_amounts(kdeclare: CommandLine) -> None:
    assert kdeclare("topic", "create", "orders", "--config", "retention.ms=7d", "--yes").code == 0
    assert read_overrides(kdeclare) == {"retention.ms": WEEK_MS}
    assert kdeclare("topic", "alter", "orders", "--add-config", "retention.ms=1d", "--yes").code == 0
    assert read_overrides(kdeclare) == {"retention.ms": "86400000"}


@pytest.mark.parametrize(
    ("key", "value", "detail", "hint"),
    [
        (
            "max.message.bytes",
            "3GiB",
            "'max.message.bytes' takes a 32-bit integer, not '3GiB', which is 3221225472.",
            None,
        ),
        (
            "retention.ms",
            "1m",
            "'retention.ms' takes an integer, not '1m'.",
            "Write a number, or an amount with one of the units ms, s, min, h, d, w.",
        ),
        (
            "segment.bytes",
            "100MB",
            "'segment.bytes' takes an integer, not '100MB'.",
            "Write a number, or an amount with one of the units B, KiB, MiB, GiB, TiB.",
        ),
        ("min.insync.replicas", "2d", "'min.insync.replicas' takes an integer, not '2d'.", None),
        ("retention.ms", "9" * 5000 + "d", "takes an integer, not '999", "Write a number, or an amount"),
    ],
)
def test_validate_explains_wrong_amounts(
    kdeclare: CommandLine, key: str, value: str, detail: str, hint: str | None
) -> None:
    kdeclare.topic("orders", configs={key: value})
    ran = kdeclare("validate")
    assert ran.code == 1
    assert detail in ran.out
    assert ("hint: " in ran.out) == (hint is not None)
    assert hint is None or hint in ran.out


def test_write_back_leaves_equal_amount_unchanged(kdeclare: CommandLine) -> None:
    file = kdeclare.topic("orders", configs={"retention.ms": "7d", "segment.ms": "1d"})
    assert kdeclare("apply", "--yes").code == 0
    before = file.read_text()
    change = ("topic", "alter", "orders", "--add-config", f"retention.ms={WEEK_MS},segment.ms=1h")
    assert kdeclare(*change, "--yes", "--write-manifest").code == 0
    assert file.read_text() == before.replace("segment.ms: 1d", "segment.ms: 3600000")
    assert kdeclare("plan", "--detailed-exitcode").code == 0
