"""``kdeclare impact`` on the command line: the same impact as in a plan, for a hypothetical change."""

import json
import time
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset, GroupMember
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from tests.impact_texts import hide_times
from tests.unit.cli.command_line import CommandLine, CommandResult
from tests.unit.report.golden_files import check_golden

HOUR = 3_600_000
FIRST = TopicPartition("orders", 0)
SHORTER = ("--add-config", "retention.ms=1d")
LOSS = [
    "loss: Kafka deletes 74 to 76 of 100 records (up to 76%, about 74.2 KiB). It keeps all "
    "records since TIME.",
    "loss: Group 'billing' has not read 34 to 36 of these records.",
]


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """A topic with a record per hour for 100 hours, two groups, and another topic."""
    cluster = kdeclare.cluster
    cluster.create_topics(
        [
            NewTopic("orders", 1, 3, None, {"segment.ms": str(HOUR)}),
            NewTopic("refunds", 2, 3, None, {}),
        ]
    )
    cluster.produce("orders", 100)
    now_ms = int(time.time() * 1000)
    cluster.set_log(FIRST, times=[now_ms - (100 - number) * HOUR + 60_000 for number in range(100)])
    for group, offset in (("billing", 40), ("archive", 100)):
        cluster.add_group(group)
        cluster.groups.alter_offsets({group: {FIRST: CommittedOffset(offset)}})
    cluster.set_members("archive", GroupMember("m-1", "c", "h", None, (FIRST,)))
    cluster.calls.clear()
    return kdeclare


def list_impact(ran: CommandResult) -> list[str]:
    """Return the lines about impact in a text."""
    labels = ("loss:", "impact:", "unknown:")
    return [hide_times(line.strip()) for line in ran.out.splitlines() if line.strip().startswith(labels)]


def read(shop: CommandLine, *arguments: str) -> dict[str, Any]:
    """Return the JSON document of the command."""
    document: dict[str, Any] = json.loads(shop("impact", *arguments, "--format", "json").out)
    return document


def find_writes(shop: CommandLine) -> set[str]:
    """Return the requests that change the cluster or validate a change."""
    writes = (
        "create_topics",
        "alter_configs",
        "delete_topics",
        "create_partitions",
        "reassign",
        "alter_offsets",
    )
    return {call.method for call in shop.cluster.calls} & set(writes)


def test_shorter_retention_shows_what_a_plan_shows(shop: CommandLine) -> None:
    ran = shop("impact", "Topic/orders", *SHORTER)
    assert (ran.code, ran.err) == (0, "")
    assert list_impact(ran) == LOSS
    check_golden("impact-retention", hide_times(ran.out))
    assert find_writes(shop) == set()
    shop.topic("orders", replicationFactor=3, configs={"segment.ms": str(HOUR), "retention.ms": 24 * HOUR})
    assert list_impact(shop("plan", "--adopt")) == LOSS


def test_deletion_shows_records_and_readers(shop: CommandLine) -> None:
    ran = shop("impact", "Topic/orders", "--delete")
    assert (ran.code, ran.err) == (0, "")
    assert list_impact(ran)[:3] == [
        "loss: The topic holds 100 records (97.7 KiB).",
        "loss: Group 'billing' has not read 60 of these records.",
        "impact: 1 member of group 'archive' reads the topic.",
    ]
    assert shop.topics == {"orders", "refunds"}
    assert find_writes(shop) == set()


def test_json_has_changes_and_figures(shop: CommandLine) -> None:
    document = read(shop, "Topic/orders", *SHORTER)
    (change,) = document["changes"]
    assert (change["resource"], change["action"], change["risk"]) == ("Topic/orders", "update", "destructive")
    assert change["fields"][0] | {"before": None} == {
        "path": "configs.retention.ms",
        "op": "SET",
        "before": None,
        "after": str(24 * HOUR),
        "risk": "destructive",
    }
    loss, unread = document["observations"]
    assert (loss["code"], loss["figures"]["records_at_most"]) == ("deletable-records", 76)
    assert (unread["code"], unread["figures"]["group"]) == ("unread-records", "billing")


def test_expression_selects_topics(shop: CommandLine) -> None:
    document = read(shop, "Topic/(orders|refunds)", "--partitions", "4")
    assert [change["resource"] for change in document["changes"]] == ["Topic/orders", "Topic/refunds"]
    assert {item["code"] for item in document["observations"]} == {"keys-move"}


def test_fewer_replicas_and_larger_min_isr(shop: CommandLine) -> None:
    options = ("--replication-factor", "2", "--add-config", "min.insync.replicas=2")
    (observation,) = read(shop, "Topic/orders", *options)["observations"]
    assert observation["code"] == "not-writable"


def test_manifest_describes_the_change(shop: CommandLine) -> None:
    """A manifest outside of the project, without a project file."""
    file = shop.write("new.yaml", "Topic", "orders", partitions=1, configs={"retention.ms": 24 * HOUR})
    (shop.folder / "kdeclare.yaml").unlink()
    ran = shop("impact", file, "--bootstrap-server", "lab:9092")
    assert (ran.code, ran.err) == (0, "")
    assert list_impact(ran) == LOSS
    assert not (shop.folder / "state").exists()
    assert not (shop.folder / ".kdeclare").exists()


def test_new_topic_of_manifest_has_no_impact(shop: CommandLine) -> None:
    ran = shop("impact", shop.write("new.yaml", "Topic", "other", partitions=1))
    assert ran.code == 0
    assert "+ Topic/other" in ran.out
    assert list_impact(ran) == []


def test_change_without_impact_is_told(shop: CommandLine) -> None:
    ran = shop("impact", "Topic/orders", "--add-config", "compression.type=lz4")
    assert list_impact(ran) == [
        "impact: kdeclare found no effect of this change on records, producers or groups."
    ]
    assert read(shop, "Topic/orders", "--add-config", "compression.type=lz4")["observations"] == []
    unchanged = shop("impact", "Topic/refunds", "--partitions", "2")
    assert (unchanged.code, unchanged.out) == (0, "No changes: lab:9092 already has these values.\n")


def test_broker_configs_show_what_topics_without_override_lose(shop: CommandLine) -> None:
    ran = shop("impact", "BrokerConfig/cluster-default", "--add-config", "log.retention.ms=1s")
    assert ran.code == 0
    assert list_impact(ran)[0].startswith("loss: Kafka deletes 100 of 100 records (100%, about 97.7 KiB)")


def test_change_that_is_not_allowed_exits_with_3(shop: CommandLine) -> None:
    ran = shop("impact", "Topic/refunds", "--partitions", "1")
    assert ran.code == 3
    assert "BLOCKED: invalid-partitions" in ran.out
    assert "denied: Fewer partitions than the topic has" in ran.err
    shop.cluster.mark_internal("refunds")
    assert shop("impact", "Topic/refunds", "--delete").code == 3


def test_unknown_topic_is_an_error(shop: CommandLine) -> None:
    ran = shop("impact", "Topic/order", "--delete")
    assert (ran.code, ran.out) == (1, "")
    assert "Did you mean 'orders'?" in ran.err
    failed = read(shop, "Topic/order", "--delete")
    assert (failed["exit_code"], failed["diagnostics"][0]["code"]) == (1, "no-such-topic")
    assert "no topic 'order'" in shop("impact", "Topic/order", "--delete", "--quiet").err
    partly = shop("impact", "Topic/order", "Topic/orders", "--delete")
    assert partly.code == 1
    assert "loss: The topic holds 100 records" in partly.out
    unknown_key = shop("impact", "Topic/orders", "--add-config", "retention.msx=1")
    assert (unknown_key.code, unknown_key.out) == (1, "")
    assert "retention.msx" in unknown_key.err


def test_manifests_without_resources_are_an_error(shop: CommandLine) -> None:
    ran = shop("impact", "manifests")
    assert (ran.code, ran.out) == (1, "")
    assert "error:" in ran.err


def test_missing_right_is_named(shop: CommandLine) -> None:
    fault = Fault("GROUP_AUTHORIZATION_FAILED", "Not authorized.")
    shop.cluster.faults.fail(fault, method="list_groups", nth=None)
    ran = shop("impact", "Topic/orders", *SHORTER)
    assert ran.code == 0
    assert any("lacks the Describe permission on the groups" in line for line in list_impact(ran))


def test_policies_do_not_judge(shop: CommandLine) -> None:
    rule = {"rule": "false", "message": "never", "selector": {"kind": "Topic"}}
    shop.write("manifests/never.yaml", "Policy", "never", **rule)
    assert shop("impact", "Topic/orders", *SHORTER).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Topic/orders"], "specify a change: --delete"),
        (["orders", "--delete"], "'orders' does not have the form KIND/NAME"),
        (["Tpic/orders", "--delete"], "'Tpic' is not a kind. Did you mean 'Topic'?"),
        (["Topic/orders", "--delete", "--partitions", "3"], "cannot be combined with other changes"),
        (["Topic/orders", "BrokerConfig/1", "--add-config", "a=b"], "name resources of the same kind"),
        (["BrokerConfig/1", "--delete"], "the options can change only the configs of a BrokerConfig"),
        (["ScramUser/a", "--delete"], "not for the kind ScramUser"),
        (["manifests", "--delete"], "manifests describe the change themselves"),
        (["manifests", "Topic/orders"], "pass either manifests or resources, not both"),
    ],
)
def test_contradictory_arguments_are_usage_errors(
    shop: CommandLine, arguments: list[str], message: str
) -> None:
    ran = shop("impact", *arguments)
    assert (ran.code, ran.out) == (64, "")
    assert message in " ".join(ran.err.split())


def test_requests_do_not_grow_with_topics(shop: CommandLine) -> None:
    shop("impact", "Topic/orders", "--delete")
    few = [call.method for call in shop.cluster.calls]
    shop.cluster.create_topics([NewTopic(f"t{number}", 1, 1, None, {}) for number in range(100)])
    shop.cluster.calls.clear()
    assert len(read(shop, "Topic/orders", "Topic/t[0-9]+", "--delete")["changes"]) == 101
    assert len(shop.cluster.calls) <= len(few)
