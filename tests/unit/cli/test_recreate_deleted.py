"""`rollback --recreate-deleted` on the command line."""

import json

from kdeclare.core.exit_codes import ExitCode
from tests.unit.cli.command_line import CommandLine

TOPIC = {
    "apiVersion": "kdeclare/v1",
    "kind": "Topic",
    "metadata": {"name": "orders"},
    "spec": {"partitions": 2, "replicationFactor": 1, "configs": {"retention.ms": "5000"}},
}


def apply_topic(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "manifests" / "orders.yaml").write_text(json.dumps(TOPIC))
    ran = kdeclare("apply", "--yes")
    assert ran.code == ExitCode.OK, ran


def test_rollback_of_adhoc_deletion_recreates_topic(kdeclare: CommandLine) -> None:
    apply_topic(kdeclare)
    deleted = kdeclare("topic", "delete", "orders", "--yes")
    assert deleted.code == ExitCode.OK, deleted
    kept = kdeclare("rollback", "--out", "kept.plan")
    assert "roll back with --recreate-deleted" in kept.out
    ran = kdeclare("rollback", "--recreate-deleted", "--yes")
    assert ran.code == ExitCode.OK, ran
    assert "The rollback re-creates the topic, empty" in ran.out + ran.err
    assert kdeclare("plan", "--detailed-exitcode").code == ExitCode.OK


def test_recreation_asks_for_confirmation(kdeclare: CommandLine) -> None:
    apply_topic(kdeclare)
    assert kdeclare("topic", "delete", "orders", "--yes").code == ExitCode.OK
    kdeclare("rollback", "--recreate-deleted", answer="no\n")
    assert kdeclare("plan", "--detailed-exitcode").code == ExitCode.CHANGES
