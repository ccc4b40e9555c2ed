"""Deleting undeclared resources: limits, empty projects, orphans by name, and the confirmation."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.engine.planning.request import DeletionLimit, compute_default_count
from tests.unit.cli.command_line import CommandLine, CommandResult


def own_topics(kdeclare: CommandLine, count: int) -> None:
    """Apply topics t0, t1 …"""
    for n in range(count):
        kdeclare.topic(f"t{n}")
    assert kdeclare("apply", "--yes").code == 0


def undeclare(kdeclare: CommandLine, *names: str) -> None:
    """Remove topics from the manifests."""
    for name in names:
        (kdeclare.folder / "manifests" / f"{name}.yaml").unlink()


def list_codes(ran: CommandResult) -> list[str]:
    """Return the codes of the diagnostics in JSON."""
    return [d["code"] for d in json.loads(ran.out)["diagnostics"]]


@pytest.mark.parametrize("command", [["plan"], ["apply", "--yes"]])
@pytest.mark.parametrize("options", [[], ["--allow-deletes"], ["--allow-deletes", "--max-deletes", "100%"]])
def test_project_without_manifests_is_error_while_it_owns_resources(
    kdeclare: CommandLine, command: list[str], options: list[str]
) -> None:
    own_topics(kdeclare, 2)
    undeclare(kdeclare, "t0", "t1")
    ran = kdeclare(*command, *options)
    assert ran.code == 1
    assert "no manifests" in ran.out + ran.err
    assert "--allow-empty" in ran.out + ran.err
    assert kdeclare.topics == {"t0", "t1"}


def test_missing_manifests_folder_is_error(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 2)
    shutil.rmtree(kdeclare.folder / "manifests")
    assert kdeclare("apply", "--yes", "--allow-deletes").code == 1
    assert kdeclare.topics == {"t0", "t1"}


def test_allow_empty_accepts_empty_project(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 2)
    undeclare(kdeclare, "t0", "t1")
    assert kdeclare("plan", "--allow-empty").code == 0, "orphans alone are not changes"
    assert kdeclare("apply", "--yes", "--allow-empty", "--allow-deletes").code == 0
    assert kdeclare.topics == set()


def test_empty_project_without_owned_resources_is_accepted(kdeclare: CommandLine) -> None:
    assert kdeclare("plan").code == 0


def test_last_resources_can_be_forgotten_or_deleted_by_name(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 2)
    undeclare(kdeclare, "t0", "t1")
    ran = kdeclare("apply", "--yes", "--forget", "Topic/t0", "--delete", "Topic/t1")
    assert ran.code == 0, ran.err
    assert kdeclare.topics == {"t0"}


@pytest.mark.parametrize(
    ("owned", "allowed"), [(1, 3), (30, 3), (39, 3), (40, 4), (100, 10), (500, 50), (5000, 50)]
)
def test_default_limit_is_ten_percent_between_three_and_fifty(owned: int, allowed: int) -> None:
    assert compute_default_count(owned) == allowed


@pytest.mark.parametrize(("text", "count"), [("0", 0), ("7", 7), ("0%", 0), ("10%", 4), ("100%", 40)])
def test_limit_accepts_count_or_percentage(text: str, count: int) -> None:
    limit = DeletionLimit.parse(text)
    assert limit.count(40) == count
    assert str(limit) == text


@pytest.mark.parametrize("text", ["-1", "1.5", "101%", "ten", "²", "٣", "1 %", "1e3", "9999999999"])
def test_invalid_limit_is_usage_error(kdeclare: CommandLine, text: str) -> None:
    ran = kdeclare("plan", f"--max-deletes={text}")
    assert ran.code == 64
    assert "is not a number or a percentage" in ran.err


def test_apply_blocks_deletions_above_limit_and_applies_others(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 6)
    undeclare(kdeclare, "t0", "t1", "t2", "t3")
    kdeclare.topic("fresh")
    ran = kdeclare("plan", "--allow-deletes", "--format", "json")
    assert ran.code == 3
    assert "max-deletes" in list_codes(ran)
    plan = json.loads(ran.out)
    assert {c["id"]: c.get("blocked") for c in plan["changes"]} == {
        "Topic/fresh": None,
        **{f"Topic/t{n}": "max-deletes" for n in range(4)},
    }
    assert (plan["summary"]["delete"], plan["summary"]["blocked"], plan["summary"]["create"]) == (0, 4, 1)
    ran = kdeclare("apply", "--yes", "--allow-deletes")
    assert ran.code == 3
    assert "--max-deletes 4" in ran.out + ran.err
    assert kdeclare.topics == {*(f"t{n}" for n in range(6)), "fresh"}
    assert kdeclare("apply", "--yes", "--allow-deletes", "--max-deletes", "4").code == 0
    assert kdeclare.topics == {"t4", "t5", "fresh"}


def test_three_deletions_are_within_default_limit(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 4)
    undeclare(kdeclare, "t0", "t1", "t2")
    assert kdeclare("apply", "--yes", "--allow-deletes").code == 0
    assert kdeclare.topics == {"t3"}


def test_saved_plan_keeps_its_limit(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 6)
    undeclare(kdeclare, "t0", "t1", "t2", "t3")
    assert kdeclare("plan", "--allow-deletes", "--max-deletes", "80%", "--out", "it.plan").code == 0
    assert kdeclare("apply", "it.plan", "--yes").code == 0
    assert kdeclare.topics == {"t4", "t5"}


def test_apply_of_saved_plan_checks_limit_again(kdeclare: CommandLine) -> None:
    """The plan was within 10 % of 40; since then, most of the owned resources have been released."""
    own_topics(kdeclare, 40)
    undeclare(kdeclare, "t0", "t1", "t2", "t3")
    assert kdeclare("plan", "--allow-deletes", "--out", "it.plan").code == 0
    undeclare(kdeclare, *(f"t{n}" for n in range(4, 39)))
    forgotten = [option for n in range(4, 39) for option in ("--forget", f"Topic/t{n}")]
    assert kdeclare("apply", "--yes", *forgotten).code == 0
    ran = kdeclare("apply", "it.plan", "--yes")
    assert ran.code == 3
    assert "allows 3" in ran.out + ran.err
    assert {"t0", "t1", "t2", "t3"} <= kdeclare.topics


def test_rollback_is_exempt_from_the_limit(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 6)
    assert kdeclare("rollback", "--yes").code == 0
    assert kdeclare.topics == set()


def test_ad_hoc_deletion_is_exempt_from_the_limit(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 6)
    assert kdeclare("topic", "delete", *(f"t{n}" for n in range(6)), "--yes").code == 0
    assert kdeclare.topics == set()


def test_target_of_orphan_suggests_delete_option(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 2)
    undeclare(kdeclare, "t0")
    ran = kdeclare("plan", "--allow-deletes", "--target", "Topic/t0")
    assert ran.code == 1
    assert "--delete Topic/t0" in ran.out + ran.err
    assert "no manifest declares" in ran.out + ran.err


@pytest.mark.parametrize("others", [[], ["--target", "Topic/t1"]])
def test_delete_option_deletes_named_orphan_only(kdeclare: CommandLine, others: list[str]) -> None:
    own_topics(kdeclare, 4)
    undeclare(kdeclare, "t0", "t2")
    ran = kdeclare("apply", "--yes", "--delete", "Topic/t0", *others)
    assert ran.code == 0, ran.err
    assert kdeclare.topics == {"t1", "t2", "t3"}


def test_delete_option_rejects_declared_or_unknown_resource(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 2)
    declared = kdeclare("apply", "--yes", "--delete", "Topic/t0")
    assert (declared.code, "still declares" in declared.out + declared.err) == (1, True)
    unknown = kdeclare("apply", "--yes", "--delete", "Topic/nope")
    assert (unknown.code, "does not own" in unknown.out + unknown.err) == (1, True)
    assert kdeclare.topics == {"t0", "t1"}


def test_delete_option_needs_whole_project(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 2)
    undeclare(kdeclare, "t0")
    ran = kdeclare("apply", "--yes", "--delete", "Topic/t0", Path("manifests/t1.yaml"))
    assert ran.code == 1
    assert "Only part of the project" in ran.out + ran.err
    assert kdeclare.topics == {"t0", "t1"}


def test_confirmation_counts_topics_with_records(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 4)
    undeclare(kdeclare, "t0", "t1", "t2")
    kdeclare.cluster.produce("t1", 1200)
    ran = kdeclare("apply", "--allow-deletes", answer="no\n")
    assert "1 of the 3 topics to be deleted holds records: t1 (1,200)" in ran.err
    question = ran.err[ran.err.rindex("1 of the 3 topics") :]
    assert "Apply these changes?" in question, "right before the confirmation"
    assert kdeclare.topics == {"t0", "t1", "t2", "t3"}


def test_unreadable_record_counts_are_reported_and_block_nothing(kdeclare: CommandLine) -> None:
    own_topics(kdeclare, 2)
    undeclare(kdeclare, "t0")
    kdeclare.cluster.faults.fail(Fault("TOPIC_AUTHORIZATION_FAILED", "no"), method="record_counts")
    ran = kdeclare("apply", "--allow-deletes", "--yes")
    assert ran.code == 0
    assert "Could not count the records" in ran.err
    assert kdeclare.topics == {"t1"}


SETTINGS: dict[str, Callable[[int], dict[str, Any]]] = {
    "ClientMetrics": lambda n: {"metrics": ["org.apache.kafka.consumer."]},
    "ClientQuota": lambda n: {"entity": {"user": f"u{n}"}, "limits": {"producer_byte_rate": 1000}},
    "GroupConfig": lambda n: {"configs": {"consumer.session.timeout.ms": 46000}},
    "ScramUser": lambda n: {"mechanisms": {"SCRAM-SHA-512": {"password": "${env.P}"}}},
    "Acl": lambda n: {"principal": f"User:u{n}", "produce": [f"t{n}"]},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETTINGS)
def test_removed_settings_count_as_deletions(kdeclare: CommandLine, kind: str) -> None:
    kdeclare.monkeypatch.setenv("P", "correct horse battery")
    for n in range(5):
        kdeclare.write(f"manifests/s{n}.yaml", kind, f"s{n}", **SETTINGS[kind](n))
    assert kdeclare("apply", "--yes").code == 0
    for n in range(4):
        (kdeclare.folder / "manifests" / f"s{n}.yaml").unlink()
    ran = kdeclare("plan", "--allow-deletes", "--format", "json")
    assert ran.code == 3
    assert "max-deletes" in list_codes(ran)
    assert json.loads(ran.out)["operations"] == []
    assert kdeclare("plan", "--allow-deletes", "--max-deletes", "80%", "--out", "it.plan").code == 0
    assert kdeclare("apply", "it.plan", "--yes").code == 0
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_apply_of_saved_plan_counts_removed_settings_again(kdeclare: CommandLine) -> None:
    """The plan was within 10 % of 40; since then, most of the owned resources have been released."""
    for n in range(40):
        kdeclare.write(f"manifests/s{n}.yaml", "ClientQuota", f"s{n}", **SETTINGS["ClientQuota"](n))
    assert kdeclare("apply", "--yes").code == 0
    for n in range(4):
        (kdeclare.folder / "manifests" / f"s{n}.yaml").unlink()
    assert kdeclare("plan", "--allow-deletes", "--out", "it.plan").code == 0
    for n in range(4, 39):
        (kdeclare.folder / "manifests" / f"s{n}.yaml").unlink()
    forgotten = [option for n in range(4, 39) for option in ("--forget", f"ClientQuota/s{n}")]
    assert kdeclare("apply", "--yes", *forgotten).code == 0
    ran = kdeclare("apply", "it.plan", "--yes")
    assert ran.code == 3
    assert "allows 3" in ran.out + ran.err
    assert len(kdeclare.cluster.quotas()) == 40


def test_removed_keys_of_a_declared_resource_do_not_count_as_deletions(kdeclare: CommandLine) -> None:
    for n in range(5):
        kdeclare.topic(f"t{n}", configs={"retention.ms": 1000})
    assert kdeclare("apply", "--yes").code == 0
    for n in range(5):
        kdeclare.topic(f"t{n}")
    assert kdeclare("apply", "--yes", "--max-deletes", "0").code == 0
