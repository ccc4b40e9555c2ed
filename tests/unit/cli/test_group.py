"""``kdeclare group`` on the command line: list, describe, reset, delete, and the rollback of both."""

import json
from pathlib import Path

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset, GroupMember, GroupType
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine

FIRST, SECOND, THIRD = (TopicPartition("orders", number) for number in range(3))
REFUND = TopicPartition("refunds", 0)
BILLING = {
    FIRST: CommittedOffset(40, 1, "from billing"),
    SECOND: CommittedOffset(100),
    REFUND: CommittedOffset(7),
}
MEMBER = GroupMember("consumer-1", "app", "/10.0.0.1", None, (FIRST,))
RESET = ("group", "reset-offsets", "billing")


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """Two topics, five groups, and 100 offsets per partition of ``orders``; 30 of partition 0 are deleted."""
    cluster = kdeclare.cluster
    cluster.create_topics([NewTopic("orders", 3, 1, None, {}), NewTopic("refunds", 1, 1, None, {})])
    cluster.produce("orders", 300)
    cluster.produce("refunds", 7)
    cluster.set_log(FIRST, start=30)
    cluster.groups.alter_offsets({"billing": BILLING, "mail": {FIRST: CommittedOffset(90)}})
    cluster.set_members("mail", MEMBER)
    cluster.add_group("queue", GroupType.SHARE)
    cluster.add_group("stream", GroupType.STREAMS)
    cluster.add_group("workers", protocol="connect")
    return kdeclare


def read_offsets(shop: CommandLine, group: str = "billing") -> dict[str, int]:
    offsets = shop.cluster.groups.fetch_offsets([group])[group]
    return {str(where): committed.offset for where, committed in sorted(offsets.items())}


BEFORE = {"orders-0": 40, "orders-1": 100, "refunds-0": 7}


def test_list_shows_type_and_state_of_all_groups(shop: CommandLine) -> None:
    ran = shop("group", "list")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "5 groups on lab:9092: 3 classic, 1 share, 1 streams."
    assert "queue    share              Empty\n" in ran.out
    assert "workers  classic  connect   Empty\n" in ran.out


def test_list_filters_by_state_and_type(shop: CommandLine) -> None:
    assert shop("group", "list", "--type", "share,streams", "--format", "names").out == "queue\nstream\n"
    assert shop("group", "list", "--in-state", "stable", "--format", "names").out == "mail\n"
    assert shop("group", "list", "--in-state", "Dead").out == "No matching groups on lab:9092.\n"
    assert "'nonsense' is not a type" in shop("group", "list", "--type", "nonsense").err
    document = json.loads(shop("group", "list", "--format", "json").out)
    assert [(g["id"], g["type"], g["state"]) for g in document["groups"]][1] == ("mail", "classic", "Stable")


def test_describe_shows_offsets_members_and_lag(shop: CommandLine) -> None:
    ran = shop("group", "describe", "billing", "--group", "mail", "--members", "--offsets")
    assert (ran.code, ran.err) == (0, "")
    assert "billing: classic group, Empty, 0 members, lag of 60 records\n" in ran.out
    assert "  orders           0         40      100   60\n" in ran.out
    assert "  consumer-1  app     /10.0.0.1  orders-0\n" in ran.out
    assert "  orders          0         90      100   10  consumer-1\n" in ran.out


def test_describe_explains_groups_of_other_types(shop: CommandLine) -> None:
    ran = shop("group", "describe", "--all-groups", "--summary")
    assert "queue: share group, Empty\n  Run Kafka's kafka-share-groups" in ran.out
    assert "stream: streams group, Empty\n  Run Kafka's kafka-streams-groups" in ran.out
    assert "workers: classic connect group, Empty, 0 members\n" in ran.out
    document = json.loads(shop("group", "describe", "queue", "billing", "--format", "json").out)
    assert [group["offsets"] is None for group in document["groups"]] == [True, False]
    assert document["groups"][1]["offsets"][0]["metadata"] == "from billing"


def test_describe_suggests_id_of_unknown_group(shop: CommandLine) -> None:
    ran = shop("group", "describe", "biling")
    assert (ran.code, ran.out) == (1, "")
    assert "There is no group 'biling'." in ran.err
    assert "Did you mean 'billing'?" in ran.err


def test_dry_run_shows_offsets_and_records_and_changes_nothing(shop: CommandLine) -> None:
    ran = shop(*RESET, "--topic", "orders", "--to-earliest", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert "      offsets.orders-0  40      → 30\n" in ran.out
    assert "  Group/billing: 110 records read again\n" in ran.out
    assert "    orders-2  no committed offset before, 100 records to read\n" in ran.out
    assert read_offsets(shop) == BEFORE
    assert len(shop.cluster.requests("alter_offsets")) == 1  # of the fixture
    plan = json.loads(shop(*RESET, "--topic", "orders", "--to-earliest", "--dry-run", "--format", "json").out)
    change = plan["operations"][0]["args"]["partitions"]["orders-0"]
    assert (change["before"]["offset"], change["after"]["offset"], change["log"]) == (
        40,
        30,
        {"start": 30, "end": 100},
    )
    assert "reset-offsets" not in shop("history").out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["--topic", "orders", "--to-earliest"],
            {"orders-0": 30, "orders-1": 0, "orders-2": 0, "refunds-0": 7},
        ),
        (["--all-topics", "--to-latest"], {"orders-0": 100, "orders-1": 100, "refunds-0": 7}),
        (["--all-topics", "--shift-by", "-5"], {"orders-0": 35, "orders-1": 95, "refunds-0": 2}),
        (["--topic", "orders:1,2", "--to-offset", "50"], BEFORE | {"orders-1": 50, "orders-2": 50}),
        (["--topic", "orders", "--to-current"], BEFORE | {"orders-2": 100}),
        (["--topic", "refunds", "--to-datetime", "1970-01-01T00:00:00.000"], BEFORE | {"refunds-0": 0}),
        (["--topic", "refunds", "--to-datetime", "1969-12-31T23:59:59.999"], BEFORE | {"refunds-0": 0}),
        (["--topic", "refunds", "--by-duration", "P40000D"], BEFORE | {"refunds-0": 0}),
        (["--topic", "refunds", "--by-duration", "PT1H"], BEFORE),
    ],
)
def test_reset_changes_offsets_and_rollback_restores_them(
    shop: CommandLine, arguments: list[str], expected: dict[str, int]
) -> None:
    ran = shop(*RESET, *arguments, "--yes")
    assert ran.code == 0, ran.err
    assert read_offsets(shop) == expected
    if expected == BEFORE:
        assert "already up to date" in ran.out
        return
    assert "✓ Group/billing  altered\n" in ran.out
    assert shop("rollback", "--yes").code == 0
    assert dict(shop.cluster.groups.fetch_offsets(["billing"])["billing"]) == BILLING


def test_exported_offsets_are_restored_from_file(shop: CommandLine) -> None:
    exported = shop(*RESET, "--all-topics", "--to-current", "--export")
    assert exported.out == "orders,0,40\norders,1,100\nrefunds,0,7\n"
    Path("saved.csv").write_text(exported.out)
    assert shop(*RESET, "--all-topics", "--to-earliest", "--yes", "--execute").code == 0
    assert shop(*RESET, "--from-file", "saved.csv", "--yes").code == 0
    assert read_offsets(shop) == BEFORE


def test_file_with_groups_resets_each_group(shop: CommandLine) -> None:
    shop.cluster.set_members("mail")
    exported = shop(*RESET, "mail", "--topic", "orders", "--to-earliest", "--export").out
    assert exported.startswith("billing,orders,0,30\n")
    Path("both.csv").write_text("billing,orders,0,31\nmail,orders,0,32\n")
    assert shop("group", "reset-offsets", "--all-groups", "--from-file", "both.csv", "--yes").code == 0
    assert (read_offsets(shop)["orders-0"], read_offsets(shop, "mail")) == (31, {"orders-0": 32})


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (["--topic", "orders"], {"refunds-0": 7}),
        (["--topic", "orders:1,2", "--topic", "refunds"], {"orders-0": 40}),
        (["--all-topics"], {}),
    ],
)
def test_deleted_offsets_are_restored_by_rollback(
    shop: CommandLine, scope: list[str], expected: dict[str, int]
) -> None:
    ran = shop("group", "delete-offsets", "billing", *scope, "--yes")
    assert ran.code == 0, ran.err
    assert "Group/billing: consumers start at the position that auto.offset.reset determines\n" in ran.out
    assert "✓ Group/billing  altered\n" in ran.out
    assert read_offsets(shop) == expected
    assert "group delete-offsets" in shop("history").out
    assert shop("rollback", "--yes").code == 0
    assert dict(shop.cluster.groups.fetch_offsets(["billing"])["billing"]) == BILLING


def test_dry_run_of_offset_deletion_changes_nothing(shop: CommandLine) -> None:
    ran = shop("group", "delete-offsets", "billing", "--topic", "orders", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert "      offsets.orders-0  40  → (unset)\n" in ran.out
    assert "      offsets.orders-1  100 → (unset)\n" in ran.out
    assert "    orders-1  no committed offset afterwards\n" in ran.out
    assert read_offsets(shop) == BEFORE


def test_offsets_are_deleted_only_after_confirmation(shop: CommandLine) -> None:
    line = ("group", "delete-offsets", "billing", "--all-topics")
    assert shop(*line).code == 64
    assert shop(*line, answer="no\n").code == 1
    assert read_offsets(shop) == BEFORE
    assert shop(*line, answer="yes\n").code == 0
    assert read_offsets(shop) == {}


def test_partitions_without_committed_offset_are_up_to_date(shop: CommandLine) -> None:
    ran = shop("group", "delete-offsets", "billing", "--topic", "orders:2", "--yes")
    assert ran.code == 0
    assert "already up to date" in ran.out
    assert len(shop.cluster.requests("alter_offsets")) == 1  # of the fixture


def test_rollback_of_offset_deletion_keeps_offsets_of_others(shop: CommandLine) -> None:
    assert shop("group", "delete-offsets", "billing", "--all-topics", "--yes").code == 0
    shop.cluster.groups.alter_offsets({"billing": {FIRST: CommittedOffset(99)}})
    ran = shop("rollback", "--yes")
    assert ran.code == 5
    assert "Group/billing: orders-0 was changed after the run" in ran.out
    assert read_offsets(shop) == BEFORE | {"orders-0": 99}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["billing", "--topic", "odrers"], 1, "Did you mean 'orders'?"),
        (["billing", "--topic", "orders:7"], 1, "Topic 'orders' has no partition 7."),
        (["biling", "--topic", "orders"], 1, "Did you mean 'billing'?"),
        (["billing"], 64, "specify the topics, or pass --all-topics"),
        (["billing", "--topic", "orders", "--all-topics"], 64, "cannot be combined with --topic"),
    ],
)
def test_impossible_offset_deletions_are_errors(
    shop: CommandLine, arguments: list[str], code: int, message: str
) -> None:
    ran = shop("group", "delete-offsets", *arguments, "--yes")
    assert (ran.code, ran.out) == (code, "")
    assert message in " ".join(ran.err.split())
    assert read_offsets(shop) == BEFORE


@pytest.mark.parametrize(
    "command",
    [
        ("reset-offsets", "--topic", "orders", "--to-earliest"),
        ("delete-offsets", "--topic", "orders"),
        ("delete",),
    ],
)
def test_active_and_other_groups_are_refused_and_the_rest_is_done(
    shop: CommandLine, command: tuple[str, ...]
) -> None:
    ran = shop("group", *command, "billing", "mail", "queue", "stream", "workers", "--yes")
    assert ran.code == 3
    assert "Group 'mail' has members (state Stable)" in ran.out
    assert "hint: Stop all members of the group, and run the command again." in ran.out
    for text in ("'queue' is a share group", "'stream' is a streams group", "'workers' is a connect group"):
        assert text in ran.out
    assert "✓ Group/billing" in ran.out
    assert read_offsets(shop) != BEFORE
    assert read_offsets(shop, "mail") == {"orders-0": 90}


def test_group_that_becomes_active_is_refused_by_brokers(shop: CommandLine) -> None:
    shop.cluster.faults.run_before(lambda c: c.set_members("billing", MEMBER), method="alter_offsets")
    ran = shop(*RESET, "--topic", "orders", "--to-earliest", "--yes")
    assert ran.code == 1
    assert "The group has members. Stop all members of the group, and run the command again." in ran.out
    assert read_offsets(shop) == BEFORE


def test_offset_that_changes_before_the_request_makes_the_plan_stale(shop: CommandLine) -> None:
    shop.cluster.faults.run_before(
        lambda c: c.groups.alter_offsets({"billing": {FIRST: CommittedOffset(41)}}),
        method="fetch_offsets",
        nth=2,
    )
    ran = shop(*RESET, "--topic", "orders", "--to-earliest", "--yes")
    assert "because another client has changed it" in ran.out
    assert "orders-0 was 40 when the plan was made, but is now 41" in ran.out
    assert read_offsets(shop)["orders-0"] == 41


def test_rollback_leaves_offsets_of_others_unchanged(shop: CommandLine) -> None:
    assert shop(*RESET, "--topic", "orders", "--to-earliest", "--yes").code == 0
    shop.cluster.groups.alter_offsets({"billing": {SECOND: CommittedOffset(60)}})
    ran = shop("rollback", "--yes")
    assert ran.code == 5
    assert "Group/billing: orders-1 was changed after the run" in ran.out
    assert read_offsets(shop) == BEFORE | {"orders-1": 60}


def test_rollback_waits_for_members_to_stop(shop: CommandLine) -> None:
    assert shop(*RESET, "--topic", "orders", "--to-earliest", "--yes").code == 0
    shop.cluster.set_members("billing", MEMBER)
    ran = shop("rollback", "--yes")
    assert ran.code == 5
    assert "Group/billing has members, so its offsets are left unchanged." in ran.out
    shop.cluster.set_members("billing")
    run_id = next(line.split()[0] for line in shop("history").out.splitlines() if "reset-offsets" in line)
    assert shop("rollback", run_id, "--yes").code == 0
    assert read_offsets(shop) == BEFORE


def test_new_group_is_announced_and_deleted_by_rollback(shop: CommandLine) -> None:
    ran = shop("group", "reset-offsets", "--group", "new", "--topic", "refunds", "--to-latest", "--yes")
    assert ran.code == 0
    assert "There is no group 'new'. The reset creates the group." in ran.out
    assert "✓ Group/new  created\n" in ran.out
    assert read_offsets(shop, "new") == {"refunds-0": 7}
    assert shop("rollback", "--yes").code == 0
    assert "new" not in shop.cluster.groups.list_groups()


def test_rollback_keeps_new_group_with_offsets_of_others(shop: CommandLine) -> None:
    assert shop("group", "reset-offsets", "new", "--topic", "refunds", "--to-latest", "--yes").code == 0
    shop.cluster.groups.alter_offsets({"new": {FIRST: CommittedOffset(60)}})
    ran = shop("rollback", "--yes")
    assert ran.code == 5
    assert "The run created Group/new, but other offsets have been committed since then." in ran.out
    assert read_offsets(shop, "new") == {"orders-0": 60, "refunds-0": 7}


def test_deleted_group_is_restored_with_its_recorded_offsets(shop: CommandLine) -> None:
    ran = shop("group", "delete", "billing", "--yes")
    assert ran.code == 0
    assert "✓ Group/billing  deleted\n" in ran.out
    assert "billing" not in shop.cluster.groups.list_groups()
    assert shop("rollback", "--yes").code == 0
    assert dict(shop.cluster.groups.fetch_offsets(["billing"])["billing"]) == BILLING


def test_group_without_offsets_cannot_be_restored(shop: CommandLine) -> None:
    shop.cluster.add_group("idle")
    ran = shop("group", "delete", "idle", "--yes")
    assert ran.code == 0
    assert "Group/idle: Cannot be restored: the empty group." in ran.out
    assert shop("rollback", "--yes").code == 5


def test_deletion_of_unknown_group_fails_alone(shop: CommandLine) -> None:
    ran = shop("group", "delete", "billing", "nothing", "--yes")
    assert ran.code == 5
    assert "✓ Group/billing  deleted\n✗ Group/nothing  failed; There is no group 'nothing'.\n" in ran.out
    assert shop("group", "delete", "nothing", "--yes").code == 1


def test_rollback_restores_offsets_of_partly_failed_reset(shop: CommandLine) -> None:
    refusal = Fault("UNKNOWN_TOPIC_OR_PARTITION", "")
    shop.cluster.faults.fail(refusal, method="alter_offsets", item="billing/orders-1")
    ran = shop(*RESET, "--topic", "orders", "--to-earliest", "--yes")
    assert ran.code == 5
    assert "orders-1: refused (UNKNOWN_TOPIC_OR_PARTITION). 2 other offsets changed" in ran.out
    assert read_offsets(shop) == BEFORE | {"orders-0": 30, "orders-2": 0}
    assert shop("rollback", "--yes").code == 0
    assert read_offsets(shop) == BEFORE


@pytest.mark.parametrize("after_effect", [True, False])
@pytest.mark.parametrize(
    ("method", "command"),
    [
        ("alter_offsets", ("reset-offsets", "--topic", "orders", "--to-latest")),
        ("alter_offsets", ("delete-offsets", "--topic", "orders")),
        ("delete_groups", ("delete",)),
    ],
)
def test_request_without_response_is_settled_by_observation(
    shop: CommandLine, method: str, command: tuple[str, ...], after_effect: bool
) -> None:
    shop.hurry()
    shop.cluster.faults.time_out(after_effect=after_effect, method=method)
    assert shop("group", *command, "billing", "--yes").code == 0
    assert shop("rollback", "--yes").code == 0
    assert read_offsets(shop) == BEFORE


def test_user_is_asked_before_offsets_change(shop: CommandLine) -> None:
    line = (*RESET, "--topic", "orders", "--to-latest")
    assert shop(*line).code == 64
    assert shop(*line, answer="no\n").code == 1
    assert read_offsets(shop) == BEFORE
    assert shop(*line, answer="yes\n").code == 0
    assert read_offsets(shop)["orders-0"] == 100


def test_project_scope_limits_groups(shop: CommandLine) -> None:
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    shop.write("kdeclare.yaml", "Project", "shop", environments=environments, scope={"Group": ["mail"]})
    ran = shop("group", "delete", "billing", "--yes")
    assert ran.code == 1
    assert read_offsets(shop) == BEFORE


def test_json_result_has_one_entry_per_group(shop: CommandLine) -> None:
    ran = shop(*RESET, "mail", "--topic", "orders", "--to-latest", "--yes", "--format", "json")
    document = json.loads(ran.out)
    assert ran.code == document["exit_code"] == 3
    assert [(item["resource"], item["result"]) for item in document["results"]] == [
        ("Group/billing", "altered"),
        ("Group/mail", "denied"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["billing", "--topic", "orders"], "specify exactly one of --to-earliest"),
        (["billing", "--topic", "orders", "--to-latest", "--to-earliest"], "specify exactly one of"),
        (["billing", "--to-latest"], "specify the topics, or pass --all-topics"),
        (["--topic", "orders", "--to-latest"], "name a group, or pass --all-groups"),
        (["billing", "--all-groups", "--all-topics", "--to-latest"], "cannot be combined with ids of groups"),
        (["billing", "--topic", "orders:x", "--to-latest"], "is not of the form TOPIC"),
        (["billing", "--all-topics", "--topic", "orders", "--to-latest"], "cannot be combined with --topic"),
        (["billing", "--all-topics", "--to-offset", "-1"], "--to-offset"),
        (["billing", "--all-topics", "--to-datetime", "yesterday"], "is not a time of the form"),
        (["billing", "--all-topics", "--by-duration", "1h"], "is not a duration of the form"),
        (
            ["billing", "--all-topics", "--to-latest", "--dry-run", "--execute"],
            "changes nothing, so it cannot be combined with --execute",
        ),
        (["billing", "mail", "--from-file", "plain.csv"], "each line must start with a group"),
        (
            ["billing", "--all-topics", "--from-file", "plain.csv"],
            "because the file lists the partitions",
        ),
        (["", "--all-topics", "--to-latest"], "The value is empty."),
    ],
)
def test_usage_errors_are_explained(shop: CommandLine, arguments: list[str], message: str) -> None:
    Path("plain.csv").write_text("orders,0,1\n")
    ran = shop("group", "reset-offsets", *arguments)
    assert (ran.code, ran.out) == (64, "")
    assert message in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "orders:7", "--to-latest"], "Topic 'orders' has no partition 7."),
        (["--topic", "odrers", "--to-latest"], "Did you mean 'orders'?"),
        (["--topic", "orders", "--shift-by", "1"], "has no committed offset for orders-2"),
        (["--from-file", "missing.csv"], "missing.csv: No such file or directory."),
    ],
)
def test_impossible_resets_are_errors(shop: CommandLine, arguments: list[str], message: str) -> None:
    for mode in ("--yes", "--dry-run"):
        ran = shop(*RESET, *arguments, mode)
        assert (ran.code, ran.out) == (1, "")
        assert message in ran.err
    assert read_offsets(shop) == BEFORE
