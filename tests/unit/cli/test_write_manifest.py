"""`--write-manifest` writes an ad hoc change into the manifest and changes nothing else there."""

import json
from difflib import unified_diff
from pathlib import Path

import pytest

from kdeclare.providers.kafka.port import NewTopic
from tests.unit.cli.command_line import CommandLine

ORDERS = """\
# All that has to do with orders.
apiVersion: kdeclare/v1
kind: Topic
metadata:
  name:   orders      # do not rename
spec:
  partitions: 2       # more than enough
  replicationFactor: 1

  configs:
    # a week, as agreed with the accountants
    retention.ms: 604800000   # ms
    "max.message.bytes": 1000
    cleanup.policy: [compact]
"""


@pytest.fixture
def manifest(kdeclare: CommandLine) -> Path:
    """An applied manifest with comments and formatting."""
    path = kdeclare.folder / "manifests" / "orders.yaml"
    path.write_text(ORDERS)
    assert kdeclare("apply", "--yes").code == 0
    return path


def changed_lines(path: Path) -> list[str]:
    """Return the removed and added lines."""
    lines = unified_diff(ORDERS.splitlines(), path.read_text().splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def test_exactly_the_changed_lines_change(kdeclare: CommandLine, manifest: Path) -> None:
    changes = ("--add-config", "retention.ms=1000,segment.ms=5", "--delete-config", "max.message.bytes")
    ran = kdeclare("config", "alter", "--topic", "orders", *changes, "--write-manifest", answer="yes\n")
    assert ran.code == 0, ran.err
    assert sorted(changed_lines(manifest)) == [
        "+    retention.ms: 1000   # ms",
        "+    segment.ms: 5",
        '-    "max.message.bytes": 1000',
        "-    retention.ms: 604800000   # ms",
    ]
    assert "+    retention.ms: 1000   # ms" in ran.err
    assert ran.err.index("+    retention.ms: 1000") < ran.err.index("Change these configs?")
    assert "Written: manifests/orders.yaml" in ran.out
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_partitions_factor_and_a_list(kdeclare: CommandLine, manifest: Path) -> None:
    changes = ("--partitions", "4", "--replication-factor", "2", "--append-config", "cleanup.policy=delete")
    assert kdeclare("topic", "alter", "orders", *changes, "--write-manifest", "--yes").code == 0
    assert sorted(changed_lines(manifest)) == [
        "+    cleanup.policy: [compact, delete]",
        "+  partitions: 4       # more than enough",
        "+  replicationFactor: 2",
        "-    cleanup.policy: [compact]",
        "-  partitions: 2       # more than enough",
        "-  replicationFactor: 1",
    ]
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_a_new_topic_gets_a_manifest_and_a_deleted_one_loses_it(
    kdeclare: CommandLine, manifest: Path
) -> None:
    assert kdeclare("topic", "create", "refunds", "--partitions", "3", "--write-manifest", "--yes").code == 0
    assert (kdeclare.folder / "manifests" / "refunds.yaml").exists()
    assert kdeclare("plan", "--detailed-exitcode").code == 0
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare("topic", "delete", "refunds", "--write-manifest", "--yes").code == 0
    assert not (kdeclare.folder / "manifests" / "refunds.yaml").exists()
    assert kdeclare("plan", "--detailed-exitcode").code == 0
    assert manifest.read_text() == ORDERS


def test_what_cannot_be_written_is_told_before_anything_is_changed(kdeclare: CommandLine) -> None:
    kdeclare.cluster.create_topics([NewTopic("wild", 1, 1, None, {})])
    options = ("--add-config", "retention.ms=1", "--write-manifest", "--yes")
    ran = kdeclare("config", "alter", "--topic", "wild", *options)
    assert ran.code == 1
    assert "kdeclare import" in ran.err
    assert "retention.ms" not in kdeclare("config", "describe", "--topic", "wild").out


def test_only_what_was_done_is_written(kdeclare: CommandLine, manifest: Path) -> None:
    kdeclare.topic("refunds", partitions=3)
    kdeclare("apply", "--yes")
    ran = kdeclare("topic", "alter", "orders", "refunds", "--partitions", "3", "--write-manifest", "--yes")
    assert ran.code == 0
    ran = kdeclare(
        "topic",
        "alter",
        "orders",
        "refunds",
        "gone",
        "--partitions",
        "5",
        "--write-manifest",
        "--yes",
        "--format",
        "json",
    )
    assert ran.code == 5
    assert json.loads(ran.out)["written"] == ["manifests/orders.yaml", "manifests/refunds.yaml"]


def test_a_manifest_that_changes_meanwhile_is_left_alone(
    kdeclare: CommandLine, manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alter = kdeclare.cluster.alter_configs

    def meddling(*args: object, **kwargs: object) -> object:
        if not kwargs.get("validate_only"):
            manifest.write_text(ORDERS.replace("604800000", "${var.retention}"))
        return alter(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(kdeclare.cluster, "alter_configs", meddling)
    options = ("--add-config", "retention.ms=1000", "--write-manifest", "--yes")
    ran = kdeclare("config", "alter", "--topic", "orders", *options)
    assert ran.code == 5
    assert "✓ Topic/orders  altered" in ran.out
    assert "${var.retention}" in manifest.read_text()


def test_where_nothing_is_changed_it_is_said_that_nothing_is_written(
    kdeclare: CommandLine, manifest: Path
) -> None:
    options = ("config", "alter", "--topic", "orders", "--add-config", "retention.ms=1000", "--yes")
    kdeclare(*options)
    ran = kdeclare(*options, "--write-manifest")
    assert ran.code == 0
    assert "neither the cluster nor a manifest is changed" in ran.err
    assert manifest.read_text() == ORDERS


def test_assignments_that_the_declared_factor_contradicts_are_not_written(
    kdeclare: CommandLine, manifest: Path
) -> None:
    options = ("--replica-assignment", "1:2,2:3", "--write-manifest", "--yes")
    assert kdeclare("topic", "alter", "orders", *options).code == 1
    assert manifest.read_text() == ORDERS
