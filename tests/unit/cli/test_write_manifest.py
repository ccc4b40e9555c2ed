"""`--write-manifest` writes an ad hoc change into the manifest and changes nothing else there."""

import json
from difflib import unified_diff
from pathlib import Path

import pytest

from kdeclare.providers.kafka.request_values import NewTopic
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
def applied_manifest(kdeclare: CommandLine) -> Path:
    """An applied manifest with comments and formatting."""
    path = kdeclare.folder / "manifests" / "orders.yaml"
    path.write_text(ORDERS)
    assert kdeclare("apply", "--yes").code == 0
    return path


def list_changed_lines(path: Path) -> list[str]:
    """Return the removed and added lines."""
    lines = unified_diff(ORDERS.splitlines(), path.read_text().splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def test_write_manifest_changes_only_affected_lines(kdeclare: CommandLine, applied_manifest: Path) -> None:
    changes = ("--add-config", "retention.ms=1000,segment.ms=5", "--delete-config", "max.message.bytes")
    ran = kdeclare("config", "alter", "--topic", "orders", *changes, "--write-manifest", answer="yes\n")
    assert ran.code == 0, ran.err
    assert sorted(list_changed_lines(applied_manifest)) == [
        "+    retention.ms: 1000   # ms",
        "+    segment.ms: 5",
        '-    "max.message.bytes": 1000',
        "-    retention.ms: 604800000   # ms",
    ]
    assert "+    retention.ms: 1000   # ms" in ran.err
    assert ran.err.index("+    retention.ms: 1000") < ran.err.index("Change these configs?")
    assert "Written: manifests/orders.yaml" in ran.out
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_write_manifest_writes_counts_and_lists(kdeclare: CommandLine, applied_manifest: Path) -> None:
    changes = ("--partitions", "4", "--replication-factor", "2", "--append-config", "cleanup.policy=delete")
    assert kdeclare("topic", "alter", "orders", *changes, "--write-manifest", "--yes").code == 0
    assert sorted(list_changed_lines(applied_manifest)) == [
        "+    cleanup.policy: [compact, delete]",
        "+  partitions: 4       # more than enough",
        "+  replicationFactor: 2",
        "-    cleanup.policy: [compact]",
        "-  partitions: 2       # more than enough",
        "-  replicationFactor: 1",
    ]
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_write_manifest_creates_and_deletes_manifests(kdeclare: CommandLine, applied_manifest: Path) -> None:
    assert kdeclare("topic", "create", "refunds", "--partitions", "3", "--write-manifest", "--yes").code == 0
    assert (kdeclare.folder / "manifests" / "refunds.yaml").exists()
    assert kdeclare("plan", "--detailed-exitcode").code == 0
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare("topic", "delete", "refunds", "--write-manifest", "--yes").code == 0
    assert not (kdeclare.folder / "manifests" / "refunds.yaml").exists()
    assert kdeclare("plan", "--detailed-exitcode").code == 0
    assert applied_manifest.read_text() == ORDERS


@pytest.mark.parametrize("writes", [True, False])
def test_rollback_says_that_written_manifests_stay(
    kdeclare: CommandLine, applied_manifest: Path, *, writes: bool
) -> None:
    options = ("--write-manifest",) if writes else ()
    change = ("config", "alter", "--topic", "orders", "--add-config", "retention.ms=1000", "--yes")
    assert kdeclare(*change, *options).code == 0
    written = applied_manifest.read_text()
    ran = kdeclare("rollback", "--yes")
    assert ran.code == 0
    assert ("The manifests are unchanged" in ran.err) is writes
    assert applied_manifest.read_text() == written
    assert kdeclare("rollback", "--yes").code == 0
    assert "The manifests are unchanged" not in kdeclare("rollback", "--yes").err


def test_write_manifest_refuses_undeclared_topic_before_changes(kdeclare: CommandLine) -> None:
    kdeclare.cluster.create_topics([NewTopic("wild", 1, 1, None, {})])
    options = ("--add-config", "retention.ms=1", "--write-manifest", "--yes")
    ran = kdeclare("config", "alter", "--topic", "wild", *options)
    assert ran.code == 1
    assert "kdeclare import" in ran.err
    assert "retention.ms" not in kdeclare("config", "describe", "--topic", "wild").out


def test_write_manifest_writes_successful_changes_only(kdeclare: CommandLine, applied_manifest: Path) -> None:
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


def test_write_manifest_leaves_concurrently_changed_manifest(
    kdeclare: CommandLine, applied_manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alter = kdeclare.cluster.alter_configs

    def alter_and_edit_manifest(*args: object, **kwargs: object) -> object:
        if not kwargs.get("validate_only"):
            applied_manifest.write_text(ORDERS.replace("604800000", "${var.retention}"))
        return alter(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(kdeclare.cluster, "alter_configs", alter_and_edit_manifest)
    options = ("--add-config", "retention.ms=1000", "--write-manifest", "--yes")
    ran = kdeclare("config", "alter", "--topic", "orders", *options)
    assert ran.code == 5
    assert "✓ Topic/orders  altered" in ran.out
    assert "${var.retention}" in applied_manifest.read_text()


def test_write_manifest_without_changes_reports_nothing_written(
    kdeclare: CommandLine, applied_manifest: Path
) -> None:
    options = ("config", "alter", "--topic", "orders", "--add-config", "retention.ms=1000", "--yes")
    kdeclare(*options)
    ran = kdeclare(*options, "--write-manifest")
    assert ran.code == 0
    assert "neither the cluster nor a manifest is changed" in ran.err
    assert applied_manifest.read_text() == ORDERS


def test_write_manifest_refuses_contradicting_assignments(
    kdeclare: CommandLine, applied_manifest: Path
) -> None:
    options = ("--replica-assignment", "1:2,2:3", "--write-manifest", "--yes")
    assert kdeclare("topic", "alter", "orders", *options).code == 1
    assert applied_manifest.read_text() == ORDERS


def test_rollback_writes_restored_values_into_the_manifest(
    kdeclare: CommandLine, applied_manifest: Path
) -> None:
    changed = ORDERS.replace("604800000", "1000")
    assert changed != ORDERS
    applied_manifest.write_text(changed)
    assert kdeclare("apply", "--yes").code == 0
    ran = kdeclare("rollback", "--yes", "--write-manifest")
    assert ran.code == 0, ran
    assert applied_manifest.read_text() == ORDERS
    assert "Written: manifests/orders.yaml." in ran.out + ran.err
    assert "The manifests are unchanged" not in ran.out + ran.err
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_rollback_refuses_manifest_that_cannot_be_edited(
    kdeclare: CommandLine, applied_manifest: Path
) -> None:
    kdeclare.monkeypatch.setenv("RETENTION", "1000")
    applied_manifest.write_text(ORDERS.replace("604800000", "${env.RETENTION}"))
    assert kdeclare("apply", "--yes").code == 0
    ran = kdeclare("rollback", "--yes", "--write-manifest")
    assert ran.code == 1
    assert "Value is a reference" in ran.err
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_rollback_cannot_write_manifests_and_save_the_plan(
    kdeclare: CommandLine, applied_manifest: Path
) -> None:
    ran = kdeclare("rollback", "--out", "undo.plan", "--write-manifest")
    assert ran.code == 64
    assert "cannot be combined with --out: applying a saved plan" in " ".join(ran.err.split())
